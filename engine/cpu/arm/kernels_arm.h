/* engine/cpu/arm/kernels_arm.h: what the files of this folder export to each other. */
#pragma once

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/roofline.h"

void engine_vec_fill_neon(struct engine_vec *vec);
extern const struct engine_attn engine_attn_neon, engine_attn_dotprod, engine_attn_i8mm;
extern const struct engine_roofline_loops engine_roofline_neon, engine_roofline_dotprod,
    engine_roofline_i8mm;
extern const struct engine_tile engine_tile_neon, engine_tile_dotprod, engine_tile_i8mm;

/* Members of all tables. */
void engine_tile_f32_neon(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                          const float *const *x, int64_t n_cols, float *const *out);
void engine_tile_weighted_sum_neon(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                   const float *const *p, int64_t n_rows, float *const *o);
float engine_attn_row_neon(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes);
void engine_attn_weights_neon(int64_t first, int64_t end, const float *inverse,
                              struct engine_attn_tile *tile);
extern const struct engine_tile_packed engine_tile_packed_f32_neon;
