/* quant/codebook.h: private to quant/: the values of the 4-bit codes of IQ4_NL and IQ4_XS. They are
 * denser around 0, where weights are more frequent. */
#ifndef QUANT_CODEBOOK_H
#define QUANT_CODEBOOK_H

#include <stdint.h>

static const int8_t quant_codebook_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

#endif
