/* quant/half.c: IEEE binary16 and bfloat16 to and from float, exact and rounding to nearest even.
 *
 * The results have the bits that VCVTPH2PS and VCVTPS2PH give; test/test_half.c tests all values.
 */
#include "quant/half.h"

float quant_f16_to_f32(uint16_t h)
{
    return quant_half_to_float(h);
}

uint16_t quant_f32_to_f16(float f)
{
    return quant_float_to_half(f);
}

float quant_bf16_to_f32(uint16_t b)
{
    return quant_bfloat_to_float(b);
}

uint16_t quant_f32_to_bf16(float f)
{
    return quant_float_to_bfloat(f);
}
