/* quant/codebook.h: private to quant/: types whose 4-bit codes are places in a book of 16 values.
 */
#ifndef QUANT_CODEBOOK_H
#define QUANT_CODEBOOK_H

#include "quant/encode/fit.h"
#include "quant/super/super_x86.h"

/* IQ4_NL and IQ4_XS: denser around 0, as weights are. */
static const int8_t book_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

/* The same for the search of scales. */
static const struct quant_fit_grid book_iq4_grid = {
    .low = -127, .high = 113, .book = book_iq4, .search = 4, .step = 2.0f};

#if defined(__x86_64__)
/* The book in both halves, for pshufb. */
SUPER_AVX2 __m256i book_load_avx2(const int8_t book[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)book));
}

/* 16 bytes to 32 codes in the order of their elements: the low nibbles, then the high ones. */
SUPER_AVX2 __m256i book_codes_avx2(const uint8_t bytes[16])
{
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
    __m256i moved = _mm256_srlv_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(moved, _mm256_set1_epi8(15));
}

/* Values times activations, summed in pairs. vpmaddubsw wants one side unsigned: the values' sizes
 * (a second book), their signs moved to the activations. 2 * 127 * 127 fits its 16 bits. */
SUPER_AVX2 __m256i book_products_avx2(__m256i book, __m256i sizes, __m256i code, __m256i x)
{
    __m256i sign = _mm256_shuffle_epi8(book, code), size = _mm256_shuffle_epi8(sizes, code);
    return _mm256_maddubs_epi16(size, _mm256_sign_epi8(x, sign));
}
#endif
#endif
