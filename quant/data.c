/* quant/data.c: elements of the types without arithmetic: integers, F64. */
#include "quant/quant.h"
#include <string.h>

static double load_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool quant_data_read(const struct quant_type *type, int64_t first, int64_t n, const void *row,
                     double *out)
{
    const unsigned char *at = (const unsigned char *)row + first * (int64_t)type->block_bytes;
    for (int64_t i = 0; i < n; i++, at += type->block_bytes) {
        uint64_t bits = 0; /* little-endian: shorter elements fill the low bytes */
        memcpy(&bits, at, type->block_bytes < 8 ? type->block_bytes : 8);
        switch (type->id) {
        case QUANT_I8:
            out[i] = (int8_t)bits;
            break;
        case QUANT_I16:
            out[i] = (int16_t)bits;
            break;
        case QUANT_I32:
            out[i] = (int32_t)bits;
            break;
        case QUANT_I64:
            out[i] = (double)(int64_t)bits;
            break;
        case QUANT_F64:
            out[i] = load_f64(bits);
            break;
        default:
            return false;
        }
    }
    return true;
}
