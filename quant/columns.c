/* quant/columns.c: matrices by columns: the transposition and the scalar kernels. See
 * quant/columns.h. */
#include "quant/columns.h"
#include "base/size.h"
#include "quant/types.h"
#include <math.h>

static bool has_form(enum quant_id id)
{
    return id == QUANT_Q4_0 || id == QUANT_Q8_0 || id == QUANT_F16;
}

bool quant_columns_size(const struct quant_type *type, int64_t k, int64_t n_rows, uint64_t *bytes)
{
    return has_form(type->id) && n_rows > 0 && n_rows % QUANT_COLUMNS_ROWS == 0 && k > 0 &&
           k % QUANT_COLUMNS_BLOCK == 0 && n_rows <= INT64_MAX / 256 &&
           base_mul((uint64_t)(k / QUANT_COLUMNS_BLOCK),
                    (uint64_t)quant_columns_block(type->id, n_rows), bytes) &&
           *bytes <= INT64_MAX;
}

static bool is_finite(uint16_t half)
{
    return (half & 0x7c00) != 0x7c00;
}

/* Writes one block of 32 weights of row r: its codes one column apart. */
static bool put_block(enum quant_id id, const char *w, int64_t n_rows, int64_t r, uint8_t *to)
{
    const int64_t column = quant_columns_column(id, n_rows);
    bool finite = true;
    if (id == QUANT_F16) {
        for (int i = 0; i < QUANT_COLUMNS_BLOCK; i++) {
            const uint16_t half = quant_load16(w + 2 * i);
            memcpy(to + i * column + 2 * r, &half, sizeof half);
            finite = finite && is_finite(half);
        }
        return finite;
    }
    const uint16_t d = quant_load16(w);
    const uint8_t *code = (const uint8_t *)w + 2;
    memcpy(to + QUANT_COLUMNS_BLOCK * column + 2 * r, &d, sizeof d);
    for (int i = 0; i < QUANT_COLUMNS_BLOCK && id == QUANT_Q8_0; i++) to[i * column + r] = code[i];
    const int shift = r % 64 < 32 ? 0 : 4;
    for (int i = 0; i < QUANT_COLUMNS_BLOCK && id == QUANT_Q4_0; i++) {
        uint8_t *at = to + i * column + r / 64 * 32 + r % 32;
        const uint8_t value = i < 16 ? code[i] & 15 : code[i - 16] >> 4;
        *at = (uint8_t)(shift ? *at | value << 4 : value); /* the low half is written first */
    }
    return is_finite(d);
}

bool quant_columns_make(const struct quant_type *type, int64_t k, int64_t n_rows, const void *w,
                        int64_t row_bytes, int64_t first, int64_t n, void *to)
{
    const int64_t block = quant_columns_block(type->id, n_rows);
    const int64_t in_block =
        QUANT_COLUMNS_BLOCK / type->block_len * (int64_t)type->block_bytes; /* of a row */
    bool finite = true;
    for (int64_t g = first; g < first + n; g += QUANT_COLUMNS_ROWS)
        for (int64_t b = 0; b < k / QUANT_COLUMNS_BLOCK; b++)
            for (int64_t r = g; r < g + QUANT_COLUMNS_ROWS; r++)
                finite &= put_block(type->id, (const char *)w + r * row_bytes + b * in_block,
                                    n_rows, r, (uint8_t *)to + b * block);
    return finite;
}

/* Writes one block of row r as it is in the matrix to w[64]. */
static void get_block(enum quant_id id, const uint8_t *from, int64_t n_rows, int64_t r, uint8_t *w)
{
    const int64_t column = quant_columns_column(id, n_rows);
    const int shift = r % 64 < 32 ? 0 : 4;
    if (id != QUANT_F16) memcpy(w, from + QUANT_COLUMNS_BLOCK * column + 2 * r, 2);
    for (int i = 0; i < QUANT_COLUMNS_BLOCK; i++, from += column) {
        const uint8_t code = from[r / 64 * 32 + r % 32] >> shift & 15;
        if (id == QUANT_F16) memcpy(w + 2 * i, from + 2 * r, 2);
        if (id == QUANT_Q8_0) w[2 + i] = from[r];
        if (id == QUANT_Q4_0 && i < 16) w[2 + i] = code;
        if (id == QUANT_Q4_0 && i >= 16) w[2 + i - 16] |= (uint8_t)(code << 4);
    }
}

bool quant_columns_check(const struct quant_type *type, int64_t k, int64_t n_rows, const void *w,
                         int64_t row_bytes, const void *columns)
{
    const int64_t block = quant_columns_block(type->id, n_rows), n_blocks = k / QUANT_COLUMNS_BLOCK;
    const int64_t in_block = QUANT_COLUMNS_BLOCK / type->block_len * (int64_t)type->block_bytes;
    for (int64_t i = 0; i < n_rows; i += n_rows / QUANT_COLUMNS_ROWS) {
        uint8_t have[2 * QUANT_COLUMNS_BLOCK];
        const int64_t b = i * n_blocks / n_rows;
        get_block(type->id, (const uint8_t *)columns + b * block, n_rows, i, have);
        if (memcmp(have, (const char *)w + i * row_bytes + b * in_block, (size_t)in_block) != 0)
            return false;
    }
    return true;
}

/* ---- Kernels ---- */

/* The code of row r in a column. */
static int code_at(enum quant_id id, const uint8_t *column, int64_t r)
{
    if (id == QUANT_Q8_0) return (int8_t)column[r];
    const uint8_t both = column[r / 64 * 32 + r % 32];
    return (r % 64 < 32 ? both & 15 : both >> 4) - 8;
}

static void multiply_blocks(enum quant_id id, const struct quant_columns *c, int64_t first,
                            int64_t n, const struct quant_act *a, float *out)
{
    const int64_t column = quant_columns_column(id, c->n_rows);
    const uint8_t *at = c->data;
    for (int64_t i = 0; i < n; i++) out[i] = 0.0f;
    for (int64_t b = 0; b < c->k / QUANT_COLUMNS_BLOCK; b++) {
        const int8_t *q = a->q + b * QUANT_COLUMNS_BLOCK;
        bool any = isnan(a->d[b]);
        for (int j = 0; j < QUANT_COLUMNS_BLOCK; j++) any |= q[j] != 0;
        for (int64_t i = 0; any && i < n; i++) {
            int32_t isum = 0;
            for (int j = 0; j < QUANT_COLUMNS_BLOCK; j++)
                if (q[j]) isum += code_at(id, at + j * column, first + i) * q[j];
            const float d_w =
                quant_f16_to_f32(quant_load16(at + QUANT_COLUMNS_BLOCK * column + 2 * (first + i)));
            const float v = (d_w * a->d[b]) * (float)isum;
            out[i] = out[i] + v;
        }
        at += quant_columns_block(id, c->n_rows);
    }
}

static void multiply_q4_0(const struct quant_columns *c, int64_t first, int64_t n,
                          const struct quant_act *a, float *out)
{
    multiply_blocks(QUANT_Q4_0, c, first, n, a, out);
}

static void multiply_q8_0(const struct quant_columns *c, int64_t first, int64_t n,
                          const struct quant_act *a, float *out)
{
    multiply_blocks(QUANT_Q8_0, c, first, n, a, out);
}

static void multiply_f16(const struct quant_columns *c, int64_t first, int64_t n,
                         const struct quant_act *a, float *out)
{
    const uint8_t *w = c->data;
    for (int64_t i = 0; i < n; i++) {
        float lane[16] = {0.0f};
        for (int64_t j = 0; j < c->k; j++) {
            const uint16_t half = quant_load16(w + 2 * (j * c->n_rows + first + i));
            if (a->f32[j] != 0.0f)
                lane[j % 16] = fmaf(quant_f16_to_f32(half), a->f32[j], lane[j % 16]);
        }
        for (int h = 8; h > 0; h /= 2)
            for (int l = 0; l < h; l++) lane[l] += lane[l + h];
        out[i] = lane[0];
    }
}

void quant_columns_fill(struct quant_kernels *kernels)
{
    kernels->type[QUANT_Q4_0].columns = multiply_q4_0;
    kernels->type[QUANT_Q8_0].columns = multiply_q8_0;
    kernels->type[QUANT_F16].columns = multiply_f16;
}
