/* engine/tile_x86.h: private to tile_avx2.c and tile_avx512.c: what both levels do alike. */
#ifndef ENGINE_TILE_X86_H
#define ENGINE_TILE_X86_H

#include "engine/tile.h"
#if defined(__x86_64__)
#include <immintrin.h>

/* tile->interleave: 8 x 8 fours at a time, turned in registers. */
__attribute__((target("avx2"))) static inline void
engine_tile_turn(int64_t n, const int8_t *const q[ENGINE_TILE_COLS],
                 int8_t (*to)[ENGINE_TILE_COLS][4])
{
    for (int64_t i = 0; i < n; i += 8, to += 8) {
        __m256i v[8], two[8], four[8];
        for (int c = 0; c < 8; c++) v[c] = _mm256_loadu_si256((const __m256i *)(q[c] + 4 * i));
        for (int c = 0; c < 8; c += 2) {
            two[c] = _mm256_unpacklo_epi32(v[c], v[c + 1]);
            two[c + 1] = _mm256_unpackhi_epi32(v[c], v[c + 1]);
        }
        for (int h = 0; h < 2; h++) { /* columns 4h .. 4h + 3: elements j and j + 4 of each */
            four[4 * h] = _mm256_unpacklo_epi64(two[4 * h], two[4 * h + 2]);
            four[4 * h + 1] = _mm256_unpackhi_epi64(two[4 * h], two[4 * h + 2]);
            four[4 * h + 2] = _mm256_unpacklo_epi64(two[4 * h + 1], two[4 * h + 3]);
            four[4 * h + 3] = _mm256_unpackhi_epi64(two[4 * h + 1], two[4 * h + 3]);
        }
        for (int j = 0; j < 4; j++) {
            __m256i low = _mm256_permute2x128_si256(four[j], four[j + 4], 0x20);
            __m256i high = _mm256_permute2x128_si256(four[j], four[j + 4], 0x31);
            _mm256_storeu_si256((__m256i *)to[j], low);
            _mm256_storeu_si256((__m256i *)to[j + 4], high);
        }
    }
}
#endif
#endif
