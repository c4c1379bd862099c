/* test/support_row.c: rows of any type with arithmetic. */
#include "test/support_row.h"
#include <math.h>
#include <string.h>

enum { MAX_LEN = 256 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static float largest_of(const struct quant_type *type, const uint8_t *block)
{
    float x[MAX_LEN], largest = 0.0f;
    type->scalar.decode(0, type->block_len, block, x);
    for (uint32_t i = 0; i < type->block_len; i++) {
        if (!isfinite(x[i])) return INFINITY;
        largest = fmaxf(largest, fabsf(x[i]));
    }
    return largest;
}

bool support_row_encodes_slowly(const struct quant_type *type)
{
    return strncmp(type->name, "IQ1", 3) == 0 || strncmp(type->name, "IQ2", 3) == 0 ||
           strncmp(type->name, "IQ3", 3) == 0;
}

void support_row_encode(const struct quant_type *type, int64_t k, const float *x,
                        const float *importance, void *row)
{
    struct quant_kernels scalar;
    quant_kernels_init(&scalar, CPU_SCALAR);
    quant_encode(&scalar, type->id, k, x, importance, row);
}

void support_row_make(const struct quant_type *type, int64_t k, const float *x, void *row)
{
    uint8_t *block = row;
    uint32_t state = 1;
    if (type->scalar.encode && !support_row_encodes_slowly(type)) {
        support_row_encode(type, k, x, NULL, row);
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
            largest = largest_of(type, block);
        } while (!(largest >= 0.5f && largest <= 2.0f));
    }
}
