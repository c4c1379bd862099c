/* quant/gpu/gpu_gemv.c: device code: products of rows with columns, for the types of weights that
 * gpu_gemv_staged.c does not have.
 *
 * The arithmetic is that of the types' own headers, inlined. In types with blocks, the lanes of a
 * warp compute terms v of 8 rows into shared memory, in any order, because no term depends on
 * another; then lane r adds the terms of row r in ascending order:
 *
 *                  block 0   1   2  ..
 *     row 0        v         v   v       -> lane 0: acc = acc + v
 *     row 1        v         v   v       -> lane 1
 *
 * In float types, 16 lanes have the 16 sums of a row, and add them as a tree. */
#include "quant/act.h"
#include "quant/block32/q1_0.h"
#include "quant/block32/q2_0.h"
#include "quant/block32/q6_0.h"
#include "quant/block32/q8_1.h"
#include "quant/gpu/gpu_floats.h"
#include "quant/gpu/gpu_quant.h"
#include "quant/half.h"
#include "quant/super/iq1_kt.h"
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_kl.h"
#include "quant/super/iq2_ks.h"
#include "quant/super/iq2_kt.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_ks.h"
#include "quant/super/iq3_kt.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_kss.h"
#include "quant/super/iq4_kt.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/iq6_k.h"
#include "quant/super/q8_k.h"
#include "quant/super/tq1_0.h"
#include "quant/super/tq2_0.h"
#if defined(__NVPTX__) /* device code has no linker */
#include "quant/half.c"
#endif

/* ---- Types with blocks ---- */

/* v of block b of a row. */
typedef float term_of(const void *row, int64_t b, const struct quant_act *a);

QUANT_INLINE void gemv_blocks(const struct quant_gpu_gemv *p, int64_t block_len, term_of *term)
{
    struct quant_gpu_terms *terms = gpu_shared();
    const int64_t n_blocks = p->k / block_len;
    const struct quant_gpu_rows rows = quant_gpu_rows_of(p, gpu_block());
    const int64_t first =
        ((gpu_block() - rows.block) * QUANT_GPU_WARPS + gpu_warp()) * QUANT_GPU_ROWS;
    const int n_rows =
        rows.n_rows - first < QUANT_GPU_ROWS ? (int)(rows.n_rows - first) : QUANT_GPU_ROWS;
    const struct quant_gpu_factors of = quant_gpu_factors(p, rows.w, gpu_block_y());
    float(*v)[QUANT_GPU_TERMS + 1] = terms->v[gpu_warp()];
    float acc = of.w ? 0.0f : quant_float_of(0x7fc00000);
    for (int64_t b = 0; of.w && b < n_blocks; b += QUANT_GPU_TERMS) {
        const int n = n_blocks - b < QUANT_GPU_TERMS ? (int)(n_blocks - b) : QUANT_GPU_TERMS;
        for (int i = gpu_lane(); i < n_rows * n; i += GPU_WARP)
            v[i / n][i % n] = term(of.w + (first + i / n) * p->row_bytes, b + i % n, &of.a);
        gpu_sync_warp(); /* all terms are written */
        if (gpu_lane() < n_rows)
            for (int i = 0; i < n; i++) acc += v[gpu_lane()][i];
        gpu_sync_warp(); /* all terms are read */
    }
    if (gpu_lane() < n_rows) rows.out[gpu_block_y() * p->out_stride + first + gpu_lane()] = acc;
}

#define GEMV_BLOCKS(NAME, LEN, TERM)                                                               \
    QUANT_INLINE float NAME##_term(const void *row, int64_t b, const struct quant_act *a)          \
    {                                                                                              \
        return TERM;                                                                               \
    }                                                                                              \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        gemv_blocks(&p, LEN, NAME##_term);                                                         \
    }
#define GEMV_32(NAME)   GEMV_BLOCKS(NAME, 32, quant_term32(NAME##_form, row, b, a))
#define GEMV_LONG(NAME) GEMV_BLOCKS(NAME, 32, quant_long_term(NAME##_form, NAME##_code, row, b, a))
#define GEMV_SUPER(NAME)                                                                           \
    GEMV_BLOCKS(NAME, 256, super_term(&NAME##_layout, NAME##_expand, row, b, a))

GEMV_32(q8_1)
GEMV_32(q6_0)
GEMV_LONG(q1_0)
GEMV_LONG(q2_0)
GEMV_SUPER(q8_k)
GEMV_SUPER(tq1_0)
GEMV_SUPER(tq2_0)
GEMV_SUPER(iq2_k)
GEMV_SUPER(iq3_k)
GEMV_SUPER(iq4_k)
GEMV_SUPER(iq5_k)
GEMV_SUPER(iq6_k)
GEMV_SUPER(iq2_ks)
GEMV_SUPER(iq3_ks)
GEMV_SUPER(iq4_ks)
GEMV_SUPER(iq5_ks)
GEMV_SUPER(iq4_kss)
GEMV_SUPER(iq2_kl)
GEMV_SUPER(iq1_kt)
GEMV_SUPER(iq2_kt)
GEMV_SUPER(iq3_kt)
GEMV_SUPER(iq4_kt)

/* ---- Float types ---- */

QUANT_INLINE void gemv_lanes(const struct quant_gpu_gemv *p, const struct float_type *type,
                             bool is_aligned)
{
    const struct quant_gpu_rows rows = quant_gpu_rows_of(p, gpu_block());
    const int64_t warp = (gpu_block() - rows.block) * QUANT_GPU_WARPS + gpu_warp(),
                  row = warp * QUANT_GPU_FLOAT_ROWS + gpu_lane() / 16;
    const struct quant_gpu_factors of = quant_gpu_factors(p, rows.w, gpu_block_y());
    float sum = of.w ? 0.0f : quant_float_of(0x7fc00000);
    if (of.w && row < rows.n_rows)
        sum = float_sum(type, is_aligned, p->k, of.w + row * p->row_bytes, &of.a, gpu_lane() % 16);
    sum = float_tree(sum);
    if (row < rows.n_rows && gpu_lane() % 16 == 0)
        rows.out[gpu_block_y() * p->out_stride + row] = sum;
}

#define GEMV_LANES(NAME)                                                                           \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        if (quant_gpu_is_aligned(&p, NAME##_type.size))                                            \
            gemv_lanes(&p, &NAME##_type, true);                                                    \
        else                                                                                       \
            gemv_lanes(&p, &NAME##_type, false);                                                   \
    }

GEMV_LANES(f32)
GEMV_LANES(f16)
GEMV_LANES(bf16)
GEMV_LANES(nvfp4)
