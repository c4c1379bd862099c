/* quant/float/nvfp4.c: the scalar kernels of NVFP4 and its row. Layout: quant/float/nvfp4.h. */
#include "quant/float/nvfp4.h"
#include "quant/float/lanes.h"

QUANT_INLINE void decode_blocks(int64_t first, int64_t n, const void *row, float *out)
{
    const uint8_t *block = (const uint8_t *)row + first / NVFP4_LEN * NVFP4_BYTES;
    for (int64_t b = 0; b < n / NVFP4_LEN; b++, block += NVFP4_BYTES, out += NVFP4_LEN) {
        for (int s = 0; s < NVFP4_LEN / NVFP4_SUB_LEN; s++) {
            const float d = nvfp4_half_scale(block[s]);
            const uint8_t *q = block + 4 + 8 * s;
            for (int i = 0; i < 8; i++) {
                out[NVFP4_SUB_LEN * s + i] = d * (float)quant_e2m1[q[i] & 15];
                out[NVFP4_SUB_LEN * s + 8 + i] = d * (float)quant_e2m1[q[i] >> 4];
            }
        }
    }
}

static void nvfp4_decode(int64_t first, int64_t n, const void *row, float *out)
{
    decode_blocks(first, n, row, out);
}

QUANT_ENCODE_AT(nvfp4, nvfp4_encode, )

static float nvfp4_dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t first = 0; first < k; first += NVFP4_LEN) {
        float w[NVFP4_LEN];
        decode_blocks(first, NVFP4_LEN, row, w);
        for (int i = 0; i < NVFP4_LEN; i++)
            lane[i % 16] = fmaf(w[i], a->f32[first + i], lane[i % 16]);
    }
    return quant_lanes_tree(lane);
}

QUANT_FLOAT_TYPE(nvfp4, NVFP4, NVFP4_LEN, NVFP4_BYTES, f32)
