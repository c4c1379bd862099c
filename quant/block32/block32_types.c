/* quant/block32/block32_types.c: the encoders, scalar kernels and rows of the types with blocks of
 * 32 elements, and of those whose blocks have a multiple. Layouts: q4_0.h and the other headers. */
#include "quant/block32/iq4_nl.h"
#include "quant/block32/mxfp4.h"
#include "quant/block32/q1_0.h"
#include "quant/block32/q2_0.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q4_1.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q5_1.h"
#include "quant/block32/q6_0.h"
#include "quant/block32/q8_0.h"
#include "quant/block32/q8_1.h"

QUANT_BLOCK32_ENCODE(q4_0)
QUANT_BLOCK32_TYPE(q4_0, Q4_0)

QUANT_BLOCK32_ENCODE(q4_1)
QUANT_BLOCK32_TYPE(q4_1, Q4_1)

QUANT_BLOCK32_ENCODE(q5_0)
QUANT_BLOCK32_TYPE(q5_0, Q5_0)

QUANT_BLOCK32_ENCODE(q5_1)
QUANT_BLOCK32_TYPE(q5_1, Q5_1)

QUANT_BLOCK32_ENCODE(q6_0)
QUANT_BLOCK32_TYPE(q6_0, Q6_0)

QUANT_ENCODE_AT(q8_0, q8_0_encode, )
QUANT_BLOCK32_TYPE(q8_0, Q8_0)

QUANT_ENCODE_AT(q8_1, q8_1_encode, )
QUANT_BLOCK32_TYPE(q8_1, Q8_1)

QUANT_BLOCK32_ENCODE(iq4_nl)
QUANT_BLOCK32_TYPE(iq4_nl, IQ4_NL)

QUANT_ENCODE_AT(mxfp4, mxfp4_encode, )
QUANT_BLOCK32_TYPE(mxfp4, MXFP4)

/* ---- Longer blocks ---- */

QUANT_ENCODE_AT(q1_0, q1_0_encode, )
QUANT_LONG_TYPE(q1_0, Q1_0)

static const struct quant_fit_grid q2_0_grid = {
    .low = -1, .high = 2, .n_trials = 3, .first = 0.5f, .step = 1.0f};

QUANT_INLINE void q2_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    memcpy(block, &d, sizeof d);
    for (int i = 0; i < Q2_0_LEN; i += 4)
        block[2 + i / 4] =
            (uint8_t)(code[i] | code[i + 1] << 2 | code[i + 2] << 4 | code[i + 3] << 6);
}

static void q2_0_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    quant_fit_encode(search->fit, &q2_0_grid, Q2_0_LEN, Q2_0_BYTES, q2_0_pack, k, in, importance,
                     row);
}

QUANT_LONG_TYPE(q2_0, Q2_0)
