/* quant/super/book_types.c: scalar kernels and rows of the super-block types of ik_llama.cpp whose
 * codes are indices into a book or starts of a generator, and the encoders of those that are
 * written. Layouts: iq2_k.h and the other headers. */
#include "quant/encode/fit.h"
#include "quant/super/iq1_kt.h"
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_kl.h"
#include "quant/super/iq2_ks.h"
#include "quant/super/iq2_kt.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_ks.h"
#include "quant/super/iq3_kt.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_kss.h"
#include "quant/super/iq4_kt.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/iq6_k.h"

static void iq4_k_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    struct quant_fit_grid grid = quant_fit_iq4;
    struct iq4_k_block *out = row;
    grid.shift = super_book_iq4.shift;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super(&grid, 16, -32, in + SUPER_LEN * b, super_importance(importance, b),
                           &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        out->bits = fit.bits;
        for (int s = 0; s < 16; s++) {
            const int scale = fit.scale[s] + 32;
            out->scale_low[s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
            out->scale_high[s / 4] |= (uint8_t)(scale >> 4 << s % 4 * 2);
        }
        for (int i = 0; i < SUPER_LEN; i++)
            out->q[i / 32 * 16 + i % 16] |= (uint8_t)(fit.q[i] << i / 16 % 2 * 4);
    }
}

#define BOOK_TYPE(NAME, ID, HEADER) BOOK_TYPE_OF(NAME, ID, HEADER, NULL)
#define BOOK_TYPE_OF(NAME, ID, HEADER, ENCODE)                                                     \
    SUPER_KERNELS(NAME)                                                                            \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, .header_bytes = (HEADER), SUPER_MEMBERS_OF(NAME, ENCODE)};

BOOK_TYPE(iq2_k, IQ2_K, 0)
BOOK_TYPE(iq3_k, IQ3_K, 0)
BOOK_TYPE_OF(iq4_k, IQ4_K, 0, iq4_k_encode)
BOOK_TYPE(iq5_k, IQ5_K, 0)
BOOK_TYPE(iq6_k, IQ6_K, 0)
BOOK_TYPE(iq2_ks, IQ2_KS, 2)
BOOK_TYPE(iq3_ks, IQ3_KS, 2)
BOOK_TYPE(iq4_ks, IQ4_KS, 4)
BOOK_TYPE(iq5_ks, IQ5_KS, 4)
BOOK_TYPE(iq4_kss, IQ4_KSS, 4)
BOOK_TYPE(iq2_kl, IQ2_KL, 2)
BOOK_TYPE(iq1_kt, IQ1_KT, 4)
BOOK_TYPE(iq2_kt, IQ2_KT, 4)
BOOK_TYPE(iq3_kt, IQ3_KT, 4)
BOOK_TYPE(iq4_kt, IQ4_KT, 4)
