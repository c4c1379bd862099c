/* quant/block32/q8_0.c: Q8_0: blocks of 32 signed bytes with a scale; 8.5 bits per weight.
 *
 *      byte  0     2                                  34
 *            | d   | qs[32]                           |     d: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * The codes in panels are qs[i] + 128, because the multiply instructions take one unsigned operand.
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct block) == 34, "Q8_0 block");

enum { OFFSET = 128, MAX_CODE = 255 };

QUANT_INLINE void q8_0_write(const float x[32], const float *importance, uint8_t *at)
{
    (void)importance; /* the scale is that of the largest element */
    struct block block;
    block.d = quant_encode_bytes(x, block.qs);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 q8_0_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .bytes = true,
    .offset = OFFSET,
    .max_code = MAX_CODE,
};

QUANT_BLOCK32_ENCODE_EACH(q8_0)
QUANT_ENCODE_AT(q8_0, q8_0_encode, )
QUANT_BLOCK32_KERNELS(q8_0)

const struct quant_type quant_type_q8_0 = {
    .name = "Q8_0",
    .id = QUANT_Q8_0,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(q8_0, 4),
};
