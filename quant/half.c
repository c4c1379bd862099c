/* quant/half.c: IEEE binary16 and bfloat16 to and from float, exact and rounding to nearest even.
 *
 * Integer arithmetic only, so the results do not depend on the rounding mode or on flush-to-zero;
 * they are the bits that VCVTPH2PS and VCVTPS2PH give. */
#include "quant/types.h"

/* binary16 has 5 exponent and 10 mantissa bits, bias 15; float has 8 and 23, bias 127. */
float quant_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 0x1f;
    uint32_t mantissa = h & 0x3ff;

    if (exponent == 0x1f) {
        uint32_t quiet = mantissa ? 0x400000 : 0;
        return quant_float_of(sign | 0x7f800000 | quiet | mantissa << 13);
    }
    if (exponent == 0) {
        /* mantissa * 2^-24: 0, or exact in float as a normal number. */
        float f = (float)(int32_t)mantissa * 0x1p-24f;
        return quant_float_of(sign | quant_bits_of(f));
    }
    return quant_float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t quant_f32_to_f16(float f)
{
    uint32_t bits = quant_bits_of(f);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more: infinity */
    if (magnitude >= 0x38800000) {
        /* Normal (2^-14 and more): rounding the 13 bits that go may carry into the exponent. */
        uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
        return (uint16_t)(sign | ((rounded - (112u << 23)) >> 13));
    }
    if (magnitude <= 0x33000000) return (uint16_t)sign; /* 2^-25 and less: zero */

    /* Subnormal: the mantissa with its leading one, shifted to units of 2^-24. */
    uint32_t shift = 126 - (magnitude >> 23);
    uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    uint32_t half = 1u << (shift - 1);
    return (uint16_t)(sign | ((mantissa + half - 1 + (mantissa >> shift & 1)) >> shift));
}

float quant_bf16_to_f32(uint16_t b)
{
    return quant_float_of((uint32_t)b << 16);
}

uint16_t quant_f32_to_bf16(float f)
{
    uint32_t bits = quant_bits_of(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
