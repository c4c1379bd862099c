/* test/support_row.c: rows of any type with arithmetic. */
#include "test/support_row.h"

#include "quant/types.h"
#include <math.h>
#include <string.h>

enum { MAX_LEN = 256, MAX_HEADER = 8 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

void support_row_head(const struct quant_type *type, float d, void *row)
{
    const uint16_t half = quant_f32_to_f16(d);
    memset(row, 0, type->header_bytes);
    if (type->header_bytes == sizeof half)
        memcpy(row, &half, sizeof half);
    else if (type->header_bytes)
        memcpy(row, &d, sizeof d);
}

float support_row_largest(const struct quant_type *type, const uint8_t *block)
{
    uint8_t row[MAX_HEADER + 4 * MAX_LEN + 64];
    float x[MAX_LEN], largest = 0.0f;
    support_row_head(type, 1.0f, row);
    memcpy(row + type->header_bytes, block, type->block_bytes);
    type->scalar.decode(0, type->block_len, row, x);
    for (uint32_t i = 0; i < type->block_len; i++) {
        if (!isfinite(x[i])) return INFINITY;
        largest = fmaxf(largest, fabsf(x[i]));
    }
    return largest;
}

bool support_row_encodes_slowly(const struct quant_type *type)
{
    return strncmp(type->name, "IQ1", 3) == 0 || strncmp(type->name, "IQ2", 3) == 0 ||
           strncmp(type->name, "IQ3", 3) == 0 || type->id == QUANT_IQ4_KT;
}

void support_row_encode(const struct quant_type *type, int64_t k, const float *x,
                        const float *importance, void *row)
{
    type->scalar.encode(&quant_search_scalar, k, x, importance, row);
}

void support_row_fill(const struct quant_type *type, int64_t k, const float *x, void *row)
{
    static struct quant_kernels kernels;
    if (!kernels.search) quant_kernels_fill(&kernels, cpu_level_best());
    quant_encode(&kernels, type->id, k, x, NULL, row);
}

void support_row_make(const struct quant_type *type, int64_t k, const float *x, void *row)
{
    uint8_t *block = (uint8_t *)row + type->header_bytes;
    uint32_t state = 1;
    float of_row = 0.0f;
    if (type->scalar.encode && !support_row_encodes_slowly(type)) {
        support_row_fill(type, k, x, row);
        return;
    }
    for (int64_t i = 0; i < k; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        state = (state ^ bits) * 16777619u;
    }
    for (int64_t b = 0; b < k / type->block_len; b++, block += type->block_bytes) {
        float largest;
        do {
            for (uint32_t i = 0; i < type->block_bytes; i++) block[i] = (uint8_t)next(&state);
            largest = support_row_largest(type, block);
        } while (!type->header_bytes && !(largest >= 0.5f && largest <= 2.0f));
        of_row = fmaxf(of_row, largest);
    }
    support_row_head(type, 1.0f / of_row, row);
}
