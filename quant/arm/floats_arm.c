/* quant/arm/floats_arm.c: the kernels of F32, F16, BF16 and NVFP4 for all levels of 64-bit ARM:
 * four rows at once, four registers of lanes for each. */
#include "quant/arm/types_arm.h"
#include "quant/float/lanes.h"
#include "quant/float/nvfp4.h"
#include "quant/row_groups.h"
#include <arm_neon.h>

enum { N_ROWS = 4 };

/* Adds the products of a step of elements from i on to the lanes. */
typedef void lanes_add(float32x4_t lanes[4], const uint8_t *row, const uint8_t *x, int64_t i);

struct lanes_form {
    int64_t step;            /* elements */
    size_t w_bytes, x_bytes; /* of an element */
    uint32_t fill;           /* the bits of missing weights */
    lanes_add *add;
};

QUANT_INLINE void lanes_of_rows(const struct lanes_form *form, int64_t k,
                                const struct quant_row_group *group, const uint8_t *row,
                                const uint8_t *x, float lanes[N_ROWS][16])
{
    float32x4_t acc[N_ROWS][4];
    const int64_t whole = k - k % form->step;
    const size_t step_bytes = (size_t)form->step * form->w_bytes;
    EACH (r, N_ROWS)
        EACH (j, 4) acc[r][j] = vdupq_n_f32(0.0f);
    for (int64_t i = 0; i < whole; i += form->step) {
        const size_t done = (size_t)i * form->w_bytes;
        quant_group_prefetch_adjacent(group, row + done, done, step_bytes);
        EACH (r, N_ROWS) {
            const uint8_t *w = row + (size_t)r * group->row_stride;
            quant_group_prefetch_strided(group, w + done, step_bytes);
            form->add(acc[r], w, x, i);
        }
    }
    if (whole < k) /* at most 64 bytes of a row */
        EACH (r, N_ROWS) {
            const uint8_t *w = row + (size_t)r * group->row_stride;
            uint32_t w_end[16], x_end[16] = {0};
            EACH (i, 16) w_end[i] = form->fill;
            memcpy(w_end, w + (size_t)whole * form->w_bytes, (size_t)(k - whole) * form->w_bytes);
            memcpy(x_end, x + (size_t)whole * form->x_bytes, (size_t)(k - whole) * form->x_bytes);
            form->add(acc[r], (const uint8_t *)w_end, (const uint8_t *)x_end, 0);
        }
    EACH (r, N_ROWS)
        EACH (j, 4) vst1q_f32(lanes[r] + 4 * j, acc[r][j]);
}

struct floats_product {
    const struct lanes_form *form;
    int64_t k;
    const float *x;
};

QUANT_INLINE void floats_sums(const void *product, const struct quant_row_group *group,
                              const uint8_t *row, float *sum)
{
    const struct floats_product *p = product;
    float lanes[N_ROWS][16];
    lanes_of_rows(p->form, p->k, group, row, (const uint8_t *)p->x, lanes);
    EACH (r, N_ROWS) sum[r] = quant_lanes_tree(lanes[r]);
}

QUANT_INLINE void floats_gemv(const struct lanes_form *form, int64_t k,
                              const struct quant_rows *rows, const struct quant_act *a, float *out)
{
    const struct floats_product product = {form, k, a->f32};
    quant_gemv_by_groups(N_ROWS, false, floats_sums, &product, rows, out);
}

/* ---- F32, F16 ----
 *
 * The missing weights of an incomplete step are -0, whose products with +0 change no lane. */

QUANT_INLINE void f32_add(float32x4_t lanes[4], const uint8_t *row, const uint8_t *x, int64_t i)
{
    EACH (j, 4) {
        const size_t at = (size_t)(i + 4 * j) * sizeof(float);
        lanes[j] = vfmaq_f32(lanes[j], vreinterpretq_f32_u8(vld1q_u8(row + at)),
                             vreinterpretq_f32_u8(vld1q_u8(x + at)));
    }
}

QUANT_INLINE float32x4_t wide(uint8x8_t halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(halves));
}

QUANT_INLINE void f16_add(float32x4_t lanes[4], const uint8_t *row, const uint8_t *x, int64_t i)
{
    EACH (j, 4)
        lanes[j] = vfmaq_f32(lanes[j], wide(vld1_u8(row + 2 * (i + 4 * j))),
                             vreinterpretq_f32_u8(vld1q_u8(x + 4 * (i + 4 * j))));
}

static void f32_gemv(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                     float *out)
{
    const struct lanes_form form = {16, 4, 4, 0x80000000, f32_add};
    floats_gemv(&form, k, rows, a, out);
}

static void f16_gemv(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                     float *out)
{
    const struct lanes_form form = {16, 2, 4, 0x80008000, f16_add};
    floats_gemv(&form, k, rows, a, out);
}

static void f16_decode(int64_t first, int64_t n, const void *row, float *out)
{
    const uint8_t *at = (const uint8_t *)row + 2 * first;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(out + i, wide(vld1_u8(at + 2 * i)));
    for (; i < n; i++)
        out[i] = vgetq_lane_f32(wide(vreinterpret_u8_u16(vdup_n_u16(quant_load16(at + 2 * i)))), 0);
}

/* ---- NVFP4 ---- */

QUANT_INLINE void nvfp4_add(float32x4_t lanes[4], const uint8_t *row, const uint8_t *x, int64_t i)
{
    const uint8_t *block = row + i / NVFP4_LEN * NVFP4_BYTES;
    const int64_t s = i / NVFP4_SUB_LEN % 4;
    const float d = nvfp4_half_scale(block[s]);
    const uint8x8_t q = vld1_u8(block + 4 + 8 * s);
    const uint8x16_t nibbles = vcombine_u8(vand_u8(q, vdup_n_u8(15)), vshr_n_u8(q, 4));
    const int8x16_t code = vqtbl1q_s8(vld1q_s8(quant_e2m1), nibbles);
    const int16x8_t half[2] = {vmovl_s8(vget_low_s8(code)), vmovl_high_s8(code)};
    EACH (j, 4) {
        const int32x4_t w =
            j % 2 ? vmovl_high_s16(half[j / 2]) : vmovl_s16(vget_low_s16(half[j / 2]));
        lanes[j] = vfmaq_f32(lanes[j], vmulq_n_f32(vcvtq_f32_s32(w), d),
                             vreinterpretq_f32_u8(vld1q_u8(x + 4 * (i + 4 * j))));
    }
}

static void nvfp4_gemv(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                       float *out)
{
    const struct lanes_form form = {NVFP4_SUB_LEN, 0, 4, 0, nvfp4_add};
    floats_gemv(&form, k, rows, a, out);
}

/* ---- BF16 ----
 *
 * With FPCR.FZ subnormal inputs and results are zero, but results are flushed by their value before
 * rounding, not after. FPSR.UFC is set if a result was flushed; then the rows are computed again by
 * the scalar product. The loop stores its lanes and is not inlined, because compilers do not model
 * these registers and might move arithmetic across their change. */

enum { FLUSH = 1 << 24 /* FPCR.FZ */, FLUSHED = 1 << 3 /* FPSR.UFC */ };

QUANT_INLINE void bf16_add(float32x4_t lanes[4], const uint8_t *row, const uint8_t *x, int64_t i)
{
    const uint32x4_t odd = vdupq_n_u32(0xffff0000);
    EACH (j, 4) {
        const size_t at = (size_t)(i + 8 * j) * sizeof(uint16_t);
        const uint32x4_t w = vreinterpretq_u32_u8(vld1q_u8(row + at));
        const uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(x + at));
        lanes[j] = vfmaq_f32(lanes[j], vreinterpretq_f32_u32(vandq_u32(w, odd)),
                             vreinterpretq_f32_u32(vandq_u32(v, odd)));
        lanes[j] = vfmaq_f32(lanes[j], vreinterpretq_f32_u32(vshlq_n_u32(w, 16)),
                             vreinterpretq_f32_u32(vshlq_n_u32(v, 16)));
    }
}

__attribute__((noinline)) static void bf16_lanes(int64_t k, const struct quant_row_group *group,
                                                 const uint8_t *row, const uint8_t *x,
                                                 float lanes[N_ROWS][16])
{
    const struct lanes_form form = {32, 2, 2, 0, bf16_add};
    lanes_of_rows(&form, k, group, row, x, lanes);
}

/* Fills the lanes of four rows; false if a result was flushed. */
static bool bf16_flushing(int64_t k, const struct quant_row_group *group, const uint8_t *row,
                          const uint8_t *x, float lanes[N_ROWS][16])
{
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | FLUSH) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(UINT64_C(0)) : "memory");
    bf16_lanes(k, group, row, x, lanes);
    __asm__ volatile("mrs %0, fpsr" : "=r"(status) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
    return !(status & FLUSHED);
}

struct bf16_product {
    int64_t k;
    const struct quant_act *a;
};

static void bf16_sums(const void *product, const struct quant_row_group *group, const uint8_t *row,
                      float *sum)
{
    const struct bf16_product *p = product;
    float lanes[N_ROWS][16];
    const bool exact = bf16_flushing(p->k, group, row, (const uint8_t *)p->a->bf16, lanes);
    for (int r = 0; r < N_ROWS; r++)
        sum[r] = exact ? quant_lanes_tree(lanes[r])
                       : quant_type_bf16.dot(p->k, row + (size_t)r * group->row_stride, p->a);
}

static void bf16_gemv(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                      float *out)
{
    const struct bf16_product product = {k, a};
    quant_gemv_by_groups(N_ROWS, false, bf16_sums, &product, rows, out);
}

const struct quant_kernel quant_arm_floats[QUANT_ID_COUNT] = {
    [QUANT_F32] = {.gemv = f32_gemv, .rows_per_step = N_ROWS},
    [QUANT_F16] = {.gemv = f16_gemv, .rows_per_step = N_ROWS, .decode = f16_decode},
    [QUANT_BF16] = {.gemv = bf16_gemv, .rows_per_step = N_ROWS},
    [QUANT_NVFP4] = {.gemv = nvfp4_gemv, .rows_per_step = N_ROWS},
};
