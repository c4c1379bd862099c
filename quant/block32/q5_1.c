/* quant/block32/q5_1.c: Q5_1: blocks of 32 five-bit codes with a scale and a minimum; 6 bits per
 * weight.
 *
 *      byte  0     2     4         8                      24
 *            | d   | m   | qh[4]   | qs[16]               |     d, m: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * code + m,   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 24, "Q5_1 block");

enum { MAX_CODE = 31 };

static const struct quant_fit_min_form with_min = {QUANT_FIT_FREE, .max_code = MAX_CODE};

static const struct quant_form32 q5_1_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .fifth = offsetof(struct block, qh),
    .has_min = true,
    .max_code = MAX_CODE,
    .with_min = &with_min,
};

QUANT_BLOCK32_ENCODE(q5_1)
QUANT_BLOCK32_KERNELS(q5_1)

const struct quant_type quant_type_q5_1 = {
    .name = "Q5_1",
    .id = QUANT_Q5_1,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .max_code = MAX_CODE, .has_min = true},
    QUANT_BLOCK32_MEMBERS(q5_1, 2),
};
