/* quant/block32/q4_1.c: Q4_1: blocks of 32 four-bit codes with a scale and a minimum; 5 bits per
 * weight.
 *
 *      byte  0     2     4                      20
 *            | d   | m   | qs[16]               |     d, m: binary16, little-endian
 *
 *      qs[i]:  high nibble: code of element 16 + i, low nibble: code of element i
 *      x = d * code + m,   code 0 .. 15
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d, m;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 20, "Q4_1 block");

enum { MAX_CODE = 15 };

static const struct quant_fit_min_form with_min = {QUANT_FIT_FREE, .max_code = MAX_CODE};

static const struct quant_form32 q4_1_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .has_min = true,
    .max_code = MAX_CODE,
    .with_min = &with_min,
};

QUANT_BLOCK32_ENCODE(q4_1)
QUANT_BLOCK32_KERNELS(q4_1)

const struct quant_type quant_type_q4_1 = {
    .name = "Q4_1",
    .id = QUANT_Q4_1,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .max_code = MAX_CODE, .has_min = true},
    QUANT_BLOCK32_MEMBERS(q4_1, 2),
};
