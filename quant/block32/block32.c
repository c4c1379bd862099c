/* quant/block32/block32.c: encodes blocks of 32 signed bytes with one scale. */
#include "quant/block32/block32.h"
#include <math.h>

uint16_t quant_encode_bytes(const float x[32], int8_t code[32])
{
    uint32_t largest = 0;
    for (int i = 0; i < 32; i++) {
        const uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    memset(code, 0, 32);
    if (largest >= 0x7f800000) return 0x7e00;
    const float wanted = quant_float_of(largest) / 127.0f;
    const uint16_t half = quant_f32_to_f16(wanted < 65504.0f ? wanted : 65504.0f);
    const float d = quant_f16_to_f32(half);
    for (int i = 0; i < 32 && d != 0.0f; i++) { /* the nearest code for the rounded scale */
        const float q = x[i] / d;
        code[i] = (int8_t)lrintf(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
    }
    return half;
}
