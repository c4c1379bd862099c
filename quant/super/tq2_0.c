/* quant/super/tq2_0.c: the encoder of TQ2_0, its scalar kernels and its row. Layout:
 * quant/super/tq2_0.h. */
#include "quant/super/tq2_0.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(tq2_0)

QUANT_INLINE void tq2_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq2_0_block *out = (struct tq2_0_block *)(void *)block;
    for (int i = 0; i < 64; i++, code += i == 32 ? 96 : 0)
        out->q[i] = (uint8_t)(code[i] | code[i + 32] << 2 | code[i + 64] << 4 | code[i + 96] << 6);
    out->d = d;
}

static void tq2_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq2_0_block),
                     tq2_0_pack, k, in, importance, row);
}

const struct quant_type quant_type_tq2_0 = {
    .name = "TQ2_0",
    .id = QUANT_TQ2_0,
    SUPER_MEMBERS(tq2_0),
};
