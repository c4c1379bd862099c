/* quant/super/q8_k.c: the encoder of Q8_K, its scalar kernels and its row. Layout:
 * quant/super/q8_k.h. */
#include "quant/super/q8_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q8_k)

static void q8_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    (void)search;
    (void)importance;
    struct q8_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, in += SUPER_LEN, out++) {
        uint32_t largest = 0;
        for (int i = 0; i < SUPER_LEN; i++) {
            const uint32_t bits = quant_bits_of(in[i]) & 0x7fffffff;
            largest = bits > largest ? bits : largest;
        }
        memset(out, 0, sizeof *out);
        out->d = largest < 0x7f800000 ? quant_float_of(largest) / 127.0f : NAN;
        for (int i = 0; i < SUPER_LEN && out->d > 0.0f; i++) {
            out->q[i] = (int8_t)quant_fit_integer(in[i] / out->d, -127.0f, 127.0f);
            out->sum[i / 16] = (int16_t)(out->sum[i / 16] + out->q[i]);
        }
    }
}

const struct quant_type quant_type_q8_k = {
    .name = "Q8_K",
    .id = QUANT_Q8_K,
    SUPER_MEMBERS(q8_k),
};
