/* quant/block32/iq4_nl.c: IQ4_NL: blocks of 32 four-bit indices into a codebook of 16 values, with
 * a scale; 4.5 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: index of element 16 + i, low nibble: index of element i
 *      x = d * quant_codebook_iq4[index]
 *
 * The codes below and in panels are quant_codebook_iq4[index] + 128. Source of the layout: the GGUF
 * format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"

struct block {
    uint16_t d;
    uint8_t qs[16];
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

QUANT_BLOCK32_ENCODE(iq4_nl)
QUANT_BLOCK32_KERNELS(iq4_nl)

const struct quant_type quant_type_iq4_nl = {
    .name = "IQ4_NL",
    .id = QUANT_IQ4_NL,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(iq4_nl, 3),
};
