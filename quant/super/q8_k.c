/* quant/super/q8_k.c: Q8_K: super-blocks of 256 signed bytes with a float scale and sums of 16;
 * 9.125 bits per weight.
 *
 *      byte  0     4                      260                 292
 *            | d   | q[256]               | sum[16] (int16)   |     d: binary32
 *
 *      sum[i]:         the sum of q[16i] .. q[16i + 15]; no kernel reads it
 *      x = d * q[i]
 *
 * An intermediate form of other programs, rare in files, so there are only scalar kernels. The
 * codes in panels are q[i] + 128. */
#include "quant/encode/fit.h"
#include "quant/super/super.h"

struct q8_k_block {
    float d;
    int8_t q[256];
    int16_t sum[16];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q8_k_block) == 292, "the size in the file");

QUANT_INLINE void q8_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q8_k_block *w = (const struct q8_k_block *)row + b;
    p->d = w->d;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < SUPER_LEN; i++) p->q[i] = (uint8_t)(w->q[i] + 128);
}

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
    .block_len = SUPER_LEN,
    .block_bytes = sizeof(struct q8_k_block),
    .act = &quant_act_q8_256,
    .panel = {.sub_len = 32, .offset = 128, .max_code = 255},
    .dot = q8_k_dot,
    .kernel =
        {
            [CPU_SCALAR] = {.decode = q8_k_decode,
                            .encode = q8_k_encode,
                            .unpack = q8_k_unpack,
                            .gemv = q8_k_gemv},
#if defined(__x86_64__)
            [CPU_AVX2] = {.decode = q8_k_decode_avx2},
#endif
        },
};
