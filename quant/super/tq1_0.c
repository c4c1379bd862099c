/* quant/super/tq1_0.c: the encoder of TQ1_0, its scalar kernels and its row. Layout:
 * quant/super/tq1_0.h. */
#include "quant/super/tq1_0.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(tq1_0)

/* The smallest byte with the given n digits, which are codes `stride` elements apart. */
QUANT_INLINE uint8_t byte_of(const uint8_t *code, int n, int stride)
{
    int number = 0;
    for (int i = 0; i < 5; i++) number = 3 * number + (i < n ? code[i * stride] : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

QUANT_INLINE void tq1_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq1_0_block *out = (struct tq1_0_block *)(void *)block;
    for (int i = 0; i < 32; i++) out->q[i] = byte_of(code + i, 5, 32);
    for (int i = 0; i < 16; i++) out->q[32 + i] = byte_of(code + 160 + i, 5, 16);
    for (int i = 0; i < 4; i++) out->high[i] = byte_of(code + 240 + i, 4, 4);
    out->d = d;
}

static void tq1_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq1_0_block),
                     tq1_0_pack, k, in, importance, row);
}

const struct quant_type quant_type_tq1_0 = {
    .name = "TQ1_0",
    .id = QUANT_TQ1_0,
    SUPER_MEMBERS(tq1_0),
};
