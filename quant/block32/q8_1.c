/* quant/block32/q8_1.c: Q8_1: blocks of 32 signed bytes with a scale and a sum; 9 bits per weight.
 *
 *      byte  0     2     4                                  36
 *            | d   | s   | qs[32]                           |     d, s: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * s is d times the sum of qs; no kernel reads it. The codes in panels are qs[i] + 128. Source of
 * the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d, s;
    int8_t qs[32];
};
_Static_assert(sizeof(struct block) == 36, "Q8_1 block");

enum { OFFSET = 128, MAX_CODE = 255 };

QUANT_INLINE void q8_1_write(const float x[32], const float *importance, uint8_t *at)
{
    (void)importance; /* the scale is that of the largest element */
    struct block block;
    int sum = 0;
    block.d = quant_encode_bytes(x, block.qs);
    for (int i = 0; i < 32; i++) sum += block.qs[i];
    block.s = quant_f32_to_f16(quant_f16_to_f32(block.d) * (float)sum);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 q8_1_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .bytes = true,
    .offset = OFFSET,
    .max_code = MAX_CODE,
};

QUANT_BLOCK32_ENCODE_EACH(q8_1)
QUANT_ENCODE_AT(q8_1, q8_1_encode, )
QUANT_BLOCK32_KERNELS(q8_1)

const struct quant_type quant_type_q8_1 = {
    .name = "Q8_1",
    .id = QUANT_Q8_1,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(q8_1, 4),
};
