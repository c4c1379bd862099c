/* quant/half.h: private to quant/: the conversions of quant/half.c as inline functions without
 * branches, so that loops over them become vector code on any CPU. */
#pragma once

#include "quant/types.h"

/* binary16 has 5 exponent and 10 mantissa bits, bias 15; float has 8 and 23, bias 127. The 13 bits
 * that are added or removed are the difference of the mantissas, 112 is that of the biases. */
#if defined(__NVPTX__) /* the instruction; NaN may differ */
static inline float quant_half_to_float(uint16_t h)
{
    float f;
    __asm__("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
#else
static inline float quant_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t magnitude = h & 0x7fff;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    /* The mantissa is kept: 0 for infinity, the payload of a NaN, which becomes quiet. */
    uint32_t special = (magnitude << 13) | 0x7f800000 | (magnitude > 0x7c00 ? 0x400000 : 0);
    /* Subnormal: magnitude * 2^-24, which is 0 or a normal float. */
    uint32_t subnormal = quant_bits_of((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = magnitude < 0x400 ? subnormal : magnitude >= 0x7c00 ? special : normal;
    return quant_float_of(sign | bits);
}
#endif

static inline uint16_t quant_float_to_half(float f)
{
    uint32_t bits = quant_bits_of(f);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    /* Rounding off the 13 low bits may carry into the exponent, up to infinity. */
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    /* Below 2^-14: the unit in the last place of 0.5f is 2^-24, the same as of a subnormal
     * binary16, so adding 0.5 rounds. */
    uint32_t small = magnitude < 0x38800000 ? magnitude : 0;
    uint32_t subnormal = quant_bits_of(quant_float_of(small) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
    half = magnitude >= 0x477ff000 ? 0x7c00 : half; /* 65520 or more */
    half = magnitude > 0x7f800000 ? nan : half;
    return (uint16_t)(sign | half);
}

static inline float quant_bfloat_to_float(uint16_t b)
{
    return quant_float_of((uint32_t)b << 16);
}

/* Rounds to nearest even: adds half of the last place, less one if the last bit is even. */
static inline uint16_t quant_float_to_bfloat(float f)
{
    uint32_t bits = quant_bits_of(f);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}
