/* quant/super/book_types.c: encoders, scalar kernels and rows of the super-block types of
 * ik_llama.cpp whose codes are indices into a book. Layouts: iq2_k.h and the other headers. */
#include "quant/encode/fit.h"
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_ks.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_ks.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_kss.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/iq6_k.h"

/* ---- Encoders ---- */

/* The grids of the books, with the ends and the shift of each. */
#define GRID(BOOK, N, LOW, HIGH, SHIFT)                                                            \
    .codebook = quant_codebook_##BOOK, .n_values = (N), .low = (LOW), .high = (HIGH),              \
    .shift = (SHIFT)
#define GRID_iq2 GRID(iq2, 4, -31, 17, 5), .first = -3.0f, .step = 2.5f, .n_trials = 8
#define GRID_iq2_k                                                                                 \
    GRID(iq2, 4, -31, 17, 5), .first = -3.0f, .step = 5.0f, .n_trials = 8, .few_scales = true,     \
                              .gain = 1.03f
#define GRID_iq3 GRID(iq3, 8, -63, 47, 4), .first = -8.0f, .step = 3.0f, .n_trials = 7
#define GRID_iq4 GRID(iq4, 16, -127, 113, 4), .first = -9.0f, .step = 4.0f, .n_trials = 6
#define GRID_iq5 GRID(iq5, 32, -126, 121, 2), .first = -6.0f, .step = 2.5f, .n_trials = 6
#define GRID_iq6 GRID(iq6, 64, -127, 121, 1), .first = -4.0f, .step = 2.0f, .n_trials = 5

static void put_nibbles_16(const uint8_t code[SUPER_LEN], uint8_t q[128])
{
    for (int i = 0; i < SUPER_LEN; i++)
        q[i / 32 * 16 + i % 16] |= (uint8_t)(code[i] << i / 16 % 2 * 4);
}

static void put_nibbles_32(const uint8_t code[SUPER_LEN], uint8_t q[128])
{
    for (int i = 0; i < SUPER_LEN; i++)
        q[i / 64 * 32 + i % 32] |= (uint8_t)((code[i] & 15) << i / 32 % 2 * 4);
}

/* Bits from + 1 and from of each code. */
static void put_pairs(const uint8_t code[SUPER_LEN], int from, uint8_t q[64])
{
    for (int i = 0; i < SUPER_LEN; i++)
        q[i / 128 * 32 + i % 32] |= (uint8_t)((code[i] >> from & 3) << i / 32 % 4 * 2);
}

/* The bits of each code above `from`, one. */
static void put_bits(const uint8_t code[SUPER_LEN], int from, uint8_t high[32])
{
    for (int i = 0; i < SUPER_LEN; i++) high[i % 32] |= (uint8_t)(code[i] >> from << i / 32);
}

/* 6-bit scales plus 32. */
static void put_scales_6(const int16_t scale[16], uint8_t low[8], uint8_t high[4])
{
    for (int s = 0; s < 16; s++) {
        low[s / 2] |= (uint8_t)(((scale[s] + 32) & 15) << s % 2 * 4);
        high[s / 4] |= (uint8_t)((scale[s] + 32) >> 4 << s % 4 * 2);
    }
}

/* The inverse of book_scale_7, with bits. */
static void put_scales_7(const struct quant_fit_super *fit, uint8_t byte[8])
{
    for (int s = 0; s < 8; s++) byte[s] = (uint8_t)((fit->scale[s] + 127) | (fit->bits >> s & 1));
}

static void iq2_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq2_k_block *out = block;
    out->d = fit->d;
    out->bits = fit->bits;
    for (int s = 0; s < 16; s++) out->scale[s / 2] |= (uint8_t)((fit->scale[s] + 8) << s % 2 * 4);
    put_pairs(fit->q, 0, out->q);
}

static void iq3_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq3_k_block *out = block;
    out->d = fit->d;
    out->bits = fit->bits;
    for (int s = 0; s < 16; s++) {
        const int scale = fit->scale[s], n = (scale < 0 ? -scale : scale) / 2;
        out->scale[s / 2] |= (uint8_t)(n << s % 2 * 4);
        out->sign |= (uint16_t)((scale < 0) << s);
    }
    put_pairs(fit->q, 0, out->q);
    put_bits(fit->q, 2, out->high);
}

static void iq4_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq4_k_block *out = block;
    out->d = fit->d;
    out->bits = fit->bits;
    put_scales_6(fit->scale, out->scale_low, out->scale_high);
    put_nibbles_16(fit->q, out->q);
}

static void iq5_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq5_k_block *out = block;
    out->d = fit->d;
    out->bits = fit->bits;
    put_scales_6(fit->scale, out->scale_low, out->scale_high);
    put_nibbles_32(fit->q, out->q);
    put_bits(fit->q, 4, out->high);
}

static void iq6_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq6_k_block *out = block;
    out->d = fit->d;
    out->bits = fit->bits;
    for (int s = 0; s < 16; s++) out->scale[s] = (int8_t)fit->scale[s];
    put_nibbles_32(fit->q, out->q);
    put_pairs(fit->q, 4, out->high);
}

static void iq2_ks_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq2_ks_block *out = block;
    out->bits = fit->bits;
    for (int s = 0; s < 8; s++) {
        const int scale = fit->scale[s] + 16;
        out->scale[s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
        out->bits |= (uint16_t)(scale >> 4 << (8 + s));
    }
    put_pairs(fit->q, 0, out->q);
}

static void iq3_ks_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq3_ks_block *out = block;
    out->bits = (uint16_t)(fit->bits << 8);
    for (int s = 0; s < 8; s++) {
        const int scale = fit->scale[s] + 16;
        out->scale[s % 4] |= (uint8_t)((scale & 15) << s / 4 * 4);
        out->bits |= (uint16_t)(scale >> 4 << s);
    }
    put_pairs(fit->q, 0, out->q);
    put_bits(fit->q, 2, out->high);
}

static void iq4_ks_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq4_ks_block *out = block;
    put_scales_7(fit, out->scale);
    put_nibbles_16(fit->q, out->q);
}

static void iq5_ks_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq5_ks_block *out = block;
    put_scales_7(fit, out->scale);
    put_nibbles_32(fit->q, out->q);
    put_bits(fit->q, 4, out->high);
}

/* The four elements of word j. */
static void iq4_kss_elements(int j, int element[4])
{
    for (int i = 0; i < 4; i++) element[i] = j / 8 * 32 + j % 8 * 2 + i % 2 + i / 2 * 16;
}

/* Words hold indices with an even number of ones: in others the index is changed that increases the
 * error least. */
static void iq4_kss_correct(struct quant_fit_super *fit, float d, const float *in,
                            const float *importance)
{
    float x[SUPER_LEN], w[SUPER_LEN];
    if (!quant_fit_prepare(SUPER_LEN, in, importance, false, x, w)) return;
    for (int j = 0; j < 64; j++) {
        int element[4], ones = 0, changed = 0, to = 0;
        float least = INFINITY;
        iq4_kss_elements(j, element);
        for (int i = 0; i < 4; i++) ones += __builtin_popcount(fit->q[element[i]]);
        if (ones % 2 == 0) continue;
        const float scale = d * (float)fit->scale[j / 8];
        for (int n = 0; n < 64; n++) {
            const int e = element[n / 16], now = fit->q[e], next = n % 16;
            if (__builtin_popcount((unsigned)(now ^ next)) % 2 == 0) continue;
            const int bit = fit->bits >> j / 8 & 1;
            const float before = x[e] - scale * (float)book_value(&super_book_iq4, now, bit);
            const float after = x[e] - scale * (float)book_value(&super_book_iq4, next, bit);
            const float more = w[e] * (after * after - before * before);
            if (!(more < least)) continue;
            least = more;
            changed = e;
            to = next;
        }
        fit->q[changed] = (uint8_t)to;
    }
}

static void iq4_kss_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq4_kss_block *out = block;
    uint8_t q[128] = {0}, byte[8];
    put_nibbles_16(fit->q, q);
    put_scales_7(fit, byte);
    for (int j = 0; j < 64; j++) {
        unsigned u = q[2 * j] | (unsigned)q[2 * j + 1]
                                    << 8; /* bit i: the xor of bits i and above */
        for (int i = 1; i < 16; i *= 2) u ^= u >> i;
        out->word[j] = (uint16_t)((u & 0xfffe) | (byte[j / 8] >> j % 8 & 1));
    }
}

#define ENCODE(NAME, BOOK, MIN_SCALE, ODD, ...)                                                    \
    static const struct quant_fit_grid NAME##_grid = {GRID_##BOOK, .odd_scale = (ODD)};            \
    SUPER_FIT_ENCODE(NAME, .grid = &NAME##_grid, .min_scale = (MIN_SCALE), __VA_ARGS__)
ENCODE(iq2_k, iq2_k, -8, false)
ENCODE(iq3_k, iq3, -31, true)
ENCODE(iq4_k, iq4, -32, false)
ENCODE(iq5_k, iq5, -32, false)
ENCODE(iq6_k, iq6, -128, false)
ENCODE(iq2_ks, iq2, -16, false)
ENCODE(iq3_ks, iq3, -16, false)
ENCODE(iq4_ks, iq4, -127, true)
ENCODE(iq5_ks, iq5, -127, true)
ENCODE(iq4_kss, iq4, -127, true, .correct = iq4_kss_correct)

/* ---- Rows ---- */

#define BOOK_TYPE(NAME, ID, HEADER)                                                                \
    SUPER_KERNELS(NAME)                                                                            \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, .header_bytes = (HEADER), SUPER_MEMBERS(NAME)};

BOOK_TYPE(iq2_k, IQ2_K, 0)
BOOK_TYPE(iq3_k, IQ3_K, 0)
BOOK_TYPE(iq4_k, IQ4_K, 0)
BOOK_TYPE(iq5_k, IQ5_K, 0)
BOOK_TYPE(iq6_k, IQ6_K, 0)
BOOK_TYPE(iq2_ks, IQ2_KS, 2)
BOOK_TYPE(iq3_ks, IQ3_KS, 2)
BOOK_TYPE(iq4_ks, IQ4_KS, 4)
BOOK_TYPE(iq5_ks, IQ5_KS, 4)
BOOK_TYPE(iq4_kss, IQ4_KSS, 4)
