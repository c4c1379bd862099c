/* quant/codebook.h: private to quant/: the values of codes that are indices into a book. They are
 * denser around 0, where weights are more frequent. */
#pragma once

#include <stdint.h>

/* IQ4_NL and IQ4_XS; IQ4_K, IQ4_KS and IQ4_KSS; IQ1_KT and IQ2_KT for scales. */
static const int8_t quant_codebook_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

/* The books of ik_llama.cpp's types. Sixteen values or more, so that a register is filled. */
static const int8_t quant_codebook_iq2[16] = {-31, -13, 1, 17};
static const int8_t quant_codebook_iq3[16] = {-63, -40, -23, -10, 1, 13, 28, 47};
static const int8_t quant_codebook_iq5[32] = {
    -126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, -12, -6,
    -1,   5,    11,   17,  23,  29,  36,  43,  51,  59,  68,  77,  87,  97,  109, 121};
static const int8_t quant_codebook_iq6[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54,
    -51,  -47,  -44,  -40,  -37,  -34, -31, -28, -25, -22, -19, -16, -13, -11, -8,  -5,
    -2,   0,    3,    6,    9,    12,  14,  17,  20,  23,  27,  30,  33,  36,  40,  44,
    47,   51,   55,   59,   63,   68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};
/* The first and the second value of each of 32 pairs of IQ2_KL. */
static const int8_t quant_codebook_kl[2][32] = {
    {-63, -63, -40, -40, -40, -40, -23, -23, -23, -23, -23, -10, -10, -10, -10, 1,
     1,   1,   1,   1,   13,  13,  13,  13,  13,  28,  28,  28,  28,  28,  47,  47},
    {-23, 13, -63, -10, 13,  47,  -40, -23, 1,  13,  28,  -63, 1,  13, 47,  -23,
     -10, 1,  13,  28,  -40, -23, -10, 1,   13, -63, -23, 1,   28, 47, -23, 13}};
