/* quant/block32/q4_0.c: Q4_0: blocks of 32 four-bit codes with a scale; 4.5 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: code of element 16 + i, low nibble: code of element i
 *      x = d * (code - 8),   code 0 .. 15
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 18, "Q4_0 block");

enum { OFFSET = 8, MAX_CODE = 15 };

static const struct quant_fit_grid grid = {
    .low = -OFFSET, .high = OFFSET - 1, .n_trials = 4, .first = -1.0f, .step = 0.6f};

static const struct quant_form32 q4_0_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .offset = OFFSET,
    .max_code = MAX_CODE,
    .grid = &grid,
};

QUANT_BLOCK32_ENCODE(q4_0)
QUANT_BLOCK32_KERNELS(q4_0)

const struct quant_type quant_type_q4_0 = {
    .name = "Q4_0",
    .id = QUANT_Q4_0,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(q4_0, 3),
};
