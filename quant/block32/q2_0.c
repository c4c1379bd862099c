/* quant/block32/q2_0.c: the encoder of Q2_0, its scalar kernels and its row. Layout:
 * quant/block32/q2_0.h. */
#include "quant/block32/q2_0.h"

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

QUANT_LONG_KERNELS(q2_0)

const struct quant_type quant_type_q2_0 = {
    .name = "Q2_0",
    .id = QUANT_Q2_0,
    .block_len = Q2_0_LEN,
    .block_bytes = Q2_0_BYTES,
    QUANT_LONG_MEMBERS(q2_0),
};
