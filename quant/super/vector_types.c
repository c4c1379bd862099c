/* quant/super/vector_types.c: encoders, scalar kernels and rows of the super-block types of
 * ik_llama.cpp whose codes are entries of a book of vectors or starts of a generator. Layouts:
 * iq2_kl.h and the other headers. */
#include "quant/encode/vector_fit.h"
#include "quant/super/iq1_kt.h"
#include "quant/super/iq2_kl.h"
#include "quant/super/iq2_kt.h"
#include "quant/super/iq3_kt.h"
#include "quant/super/iq4_kt.h"

/* ---- Books ---- */

static void pair(int entry, int8_t *value)
{
    for (int i = 0; i < 2; i++) value[i] = quant_codebook_kl[i][entry];
}

static void generate(uint32_t number, int n, int8_t *value)
{
    uint8_t code[8];
    trellis_codes(TRELLIS_FIRST + number, n, code);
    for (int i = 0; i < n; i++) value[i] = (int8_t)(code[i] - TRELLIS_OFFSET);
}

static void eight(int entry, int8_t *value)
{
    generate((uint32_t)entry, 8, value);
}

static void eight_magnitudes(int entry, int8_t *value)
{
    eight(entry, value);
    for (int i = 0; i < 8; i++) value[i] = (int8_t)(value[i] < 0 ? -value[i] : value[i]);
}

static void four(int entry, int8_t *value)
{
    generate((uint32_t)entry, 4, value);
}

static void four_of_upper(int entry, int8_t *value)
{
    generate((uint32_t)entry + (1 << 15), 4, value);
}

QUANT_VECTORS(iq2_kl_book, 2, 32, 1, 1, pair)
QUANT_VECTORS(iq1_kt_book, 8, 1 << 13, 2, 16, eight)
QUANT_VECTORS(iq2_kt_book, 8, 1 << 16, 3, 81, eight)
QUANT_VECTORS(iq3_kt_book, 8, 1 << 16, 3, 81, eight_magnitudes)
QUANT_VECTORS(iq4_kt_book, 4, 1 << 15, 4, 16, four)
QUANT_VECTORS(iq4_kt_upper, 4, 1 << 15, 4, 16, four_of_upper)

/* ---- Encoders ---- */

/* The inverse of book_nibble_of_8. */
static void put_nibbles_of_8(const uint8_t number[8], uint8_t four_bytes[4])
{
    for (int s = 0; s < 8; s++) four_bytes[s % 4] |= (uint8_t)((number[s] & 15) << s / 4 * 4);
}

/* Bits 11 .. 0 of 2n numbers; the inverse of trellis_nibble. */
static void put_numbers(const uint16_t *number, int n, uint8_t *low, uint8_t *high)
{
    for (int i = 0; i < 2 * n; i++) {
        low[i] = (uint8_t)number[i];
        high[i % n] |= (uint8_t)((number[i] >> 8 & 15) << i / n * 4);
    }
}

static void iq2_kl_pack(const struct quant_vector_fit *fit, void *block)
{
    struct iq2_kl_block *out = block;
    put_nibbles_of_8(fit->scale, out->scale_low);
    for (int s = 0; s < 8; s++) out->scale_high |= (uint16_t)(fit->scale[s] >> 4 << 2 * s);
    for (int i = 0; i < SUPER_LEN / 2; i++) {
        const int s = i / 16, l = i % 16;
        out->q[s / 2 * 16 + l] |= (uint8_t)((fit->entry[i] & 15) << s % 2 * 4);
        out->high[l] |= (uint8_t)(fit->entry[i] >> 4 << s);
    }
}

static void iq1_kt_pack(const struct quant_vector_fit *fit, void *block)
{
    struct iq1_kt_block *out = block;
    put_numbers(fit->entry, 16, out->low, out->high);
    for (int i = 0; i < 32; i++)
        out->scale[i / 4] |= (uint8_t)(fit->scale[i / 4] | fit->entry[i] >> 12 << (4 + i % 4));
}

static void iq2_kt_pack(const struct quant_vector_fit *fit, void *block)
{
    struct iq2_kt_block *out = block;
    put_nibbles_of_8(fit->scale, out->scale);
    memcpy(out->low, fit->entry, sizeof out->low);
}

static void iq3_kt_pack(const struct quant_vector_fit *fit, void *block)
{
    struct iq3_kt_block *out = block;
    put_nibbles_of_8(fit->scale, out->scale);
    memcpy(out->low, fit->entry, sizeof out->low);
    memcpy(out->sign, fit->sign, sizeof out->sign);
}

static void iq4_kt_pack(const struct quant_vector_fit *fit, void *block)
{
    struct iq4_kt_block *out = block;
    put_numbers(fit->entry, 32, out->low, out->high);
    for (int i = 0; i < 64; i++) out->head[i / 8] |= (fit->entry[i] >> 12 & 7u) << (8 + i % 8 * 3);
    for (int s = 0; s < 8; s++) out->head[s] |= (uint32_t)(fit->scale[s] << 1 | fit->book[s]);
}

#define VECTOR_TYPE(NAME, ID, HEADER, ...)                                                         \
    static void NAME##_encode(const struct quant_search *search, int64_t k, const float *in,       \
                              const float *importance, void *row)                                  \
    {                                                                                              \
        static const struct quant_vector_form form = {.block_bytes = sizeof(struct NAME##_block),  \
                                                      .header_bytes = (HEADER),                    \
                                                      .pack = NAME##_pack,                         \
                                                      __VA_ARGS__};                                \
        quant_vector_encode(search, &form, k, in, importance, row);                                \
    }                                                                                              \
    SUPER_KERNELS(NAME)                                                                            \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, .header_bytes = (HEADER), SUPER_MEMBERS(NAME)};

VECTOR_TYPE(iq2_kl, IQ2_KL, 2, .book = {&iq2_kl_book}, .by_size = true, .first_scale = -32,
            .n_scales = 64, .low = 45.0f, .high = 50.0f, .n_trials = 12)
VECTOR_TYPE(iq1_kt, IQ1_KT, 4, .book = {&iq1_kt_book}, .by_root = true,
            .scales = quant_codebook_iq4, .n_scales = 16, .low = 52.0f, .high = 80.0f,
            .n_trials = 8)
VECTOR_TYPE(iq2_kt, IQ2_KT, 4, .book = {&iq2_kt_book}, .by_root = true, .tempered = true,
            .scales = quant_codebook_iq4, .n_scales = 16, .low = 52.0f, .high = 80.0f,
            .n_trials = 8)
VECTOR_TYPE(iq3_kt, IQ3_KT, 4, .book = {&iq3_kt_book}, .n_scales = 16, .magnitudes = true,
            .low = 52.0f, .high = 80.0f, .n_trials = 8)
VECTOR_TYPE(iq4_kt, IQ4_KT, 4, .book = {&iq4_kt_book, &iq4_kt_upper}, .first_scale = -64,
            .n_scales = 128, .low = 52.0f, .high = 80.0f, .n_trials = 8)
