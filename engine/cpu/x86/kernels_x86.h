/* engine/cpu/x86/kernels_x86.h: what the files of this folder export to each other. */
#pragma once

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/roofline.h"

void engine_vec_fill_avx2(struct engine_vec *vec);
void engine_vec_fill_avx512(struct engine_vec *vec);
extern const struct engine_attn engine_attn_avx2, engine_attn_avx512;
extern const struct engine_roofline_loops engine_roofline_avx2, engine_roofline_avxvnni,
    engine_roofline_avx512;

/* AVX2 functions that AVX-512 tables also use. */
void engine_tile_interleave_avx2(int64_t n, const int8_t *const q[ENGINE_TILE_COLS],
                                 int8_t (*to)[ENGINE_TILE_COLS][4]);
void engine_tile_f32_avx2(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                          const float *const *x, int64_t n_cols, float *const *out);
void engine_tile_f32_avx512(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                            const float *const *x, int64_t n_cols, float *const *out);
void engine_tile_bf16_avx512(int64_t k, const char *w, int64_t row_bytes, int64_t n_rows,
                             const uint16_t *const *x, int64_t n_cols, float *const *out);
/* `pack` of struct engine_tile_packed: words as they are, and pairs of bfloat16 as two floats. */
void engine_tile_pack_avx2(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS], int64_t leaf,
                           int64_t step, float *to);
void engine_tile_pack_pairs_avx2(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS],
                                 int64_t leaf, int64_t step, float *to);
extern const struct engine_tile_packed engine_tile_packed_f32_avx2, engine_tile_packed_bf16_avx2;
extern const struct engine_tile_packed engine_tile_packed_f32_avx512,
    engine_tile_packed_bf16_avx512, engine_tile_packed_bf16_dots;
extern const struct engine_tile engine_tile_avx2;
extern const struct engine_tile engine_tile_avxvnni;
extern const struct engine_tile engine_tile_avx512;
extern const struct engine_tile engine_tile_avx512bf16;
extern const struct engine_tile engine_tile_amx;
