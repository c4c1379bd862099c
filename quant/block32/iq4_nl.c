/* quant/block32/iq4_nl.c: IQ4_NL: blocks of 32 four-bit indices into a codebook of 16 values, with
 * a scale.
 *
 * value = d * book[code]. 4.5 bits per weight. "Codes" below and in panels are book[code] + 128.
 * Called through the type table only. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d;     /* half precision */
    uint8_t qs[16]; /* byte l: element l low, element 16 + l high */
};
_Static_assert(sizeof(struct block) == 18, "IQ4_NL block");

enum { OFFSET = 128, MAX_CODE = 113 + OFFSET };

static const struct quant_form32 iq4_nl_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .codebook = quant_codebook_iq4,
    .offset = OFFSET,
    .max_code = MAX_CODE,
    .grid = &quant_fit_iq4,
};

QUANT_BLOCK32_KERNELS(iq4_nl)

const struct quant_type quant_type_iq4_nl = {
    .name = "IQ4_NL",
    .id = QUANT_IQ4_NL,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(iq4_nl, 3),
};
