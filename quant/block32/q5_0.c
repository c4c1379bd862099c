/* quant/block32/q5_0.c: Q5_0: blocks of 32 five-bit codes with a scale; 5.5 bits per weight.
 *
 *      byte  0     2         6                      22
 *            | d   | qh[4]   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * (code - 16),   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 22, "Q5_0 block");

enum { OFFSET = 16, MAX_CODE = 31 };

static const struct quant_fit_grid grid = {
    .low = -OFFSET, .high = OFFSET - 1, .n_trials = 4, .first = -1.0f, .step = 0.6f};

static const struct quant_form32 q5_0_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .fifth = offsetof(struct block, qh),
    .offset = OFFSET,
    .max_code = MAX_CODE,
    .grid = &grid,
};

QUANT_BLOCK32_ENCODE(q5_0)
QUANT_BLOCK32_KERNELS(q5_0)

const struct quant_type quant_type_q5_0 = {
    .name = "Q5_0",
    .id = QUANT_Q5_0,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(q5_0, 3),
};
