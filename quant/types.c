/* quant/types.c: the type table, one row per GGUF tensor type id.
 *
 * The row of a type with arithmetic is in the type's file. Types of which only name and size are
 * needed (to list a file, and to name the type in an error) are here. No other code switches on a
 * type. */
#include "quant/types.h"
#include "base/size.h"
#include <strings.h>

/* A row without arithmetic. */
#define NAME_AND_SIZE(NAME, ID, LEN, BYTES) HEADED(NAME, ID, LEN, BYTES, 0, 0)
#define HEADED(NAME, ID, LEN, BYTES, HEADER, ROWS)                                                 \
    (&(const struct quant_type){.name = (NAME),                                                    \
                                .id = (ID),                                                        \
                                .block_len = (LEN),                                                \
                                .block_bytes = (BYTES),                                            \
                                .header_bytes = (HEADER),                                          \
                                .interleave = (ROWS)})

static const struct quant_type *const table[QUANT_ID_COUNT] = {
    [QUANT_F32] = &quant_type_f32,
    [QUANT_F16] = &quant_type_f16,
    [QUANT_Q4_0] = &quant_type_q4_0,
    [QUANT_Q4_1] = &quant_type_q4_1,
    [QUANT_Q5_0] = &quant_type_q5_0,
    [QUANT_Q5_1] = &quant_type_q5_1,
    [QUANT_Q8_0] = &quant_type_q8_0,
    [QUANT_Q8_1] = &quant_type_q8_1,
    [QUANT_Q2_K] = &quant_type_q2_k,
    [QUANT_Q3_K] = &quant_type_q3_k,
    [QUANT_Q4_K] = &quant_type_q4_k,
    [QUANT_Q5_K] = &quant_type_q5_k,
    [QUANT_Q6_K] = &quant_type_q6_k,
    [QUANT_Q8_K] = &quant_type_q8_k,
    [QUANT_IQ2_XXS] = &quant_type_iq2_xxs,
    [QUANT_IQ2_XS] = &quant_type_iq2_xs,
    [QUANT_IQ3_XXS] = &quant_type_iq3_xxs,
    [QUANT_IQ1_S] = &quant_type_iq1_s,
    [QUANT_IQ4_NL] = &quant_type_iq4_nl,
    [QUANT_IQ3_S] = &quant_type_iq3_s,
    [QUANT_IQ2_S] = &quant_type_iq2_s,
    [QUANT_IQ4_XS] = &quant_type_iq4_xs,
    [QUANT_I8] = NAME_AND_SIZE("I8", QUANT_I8, 1, 1),
    [QUANT_I16] = NAME_AND_SIZE("I16", QUANT_I16, 1, 2),
    [QUANT_I32] = NAME_AND_SIZE("I32", QUANT_I32, 1, 4),
    [QUANT_I64] = NAME_AND_SIZE("I64", QUANT_I64, 1, 8),
    [QUANT_F64] = NAME_AND_SIZE("F64", QUANT_F64, 1, 8),
    [QUANT_IQ1_M] = &quant_type_iq1_m,
    [QUANT_BF16] = &quant_type_bf16,
    [QUANT_TQ1_0] = &quant_type_tq1_0,
    [QUANT_TQ2_0] = &quant_type_tq2_0,
    [QUANT_MXFP4] = &quant_type_mxfp4,
    [QUANT_NVFP4] = &quant_type_nvfp4,
    [QUANT_Q1_0] = &quant_type_q1_0,
    [QUANT_Q2_0] = &quant_type_q2_0,
    [QUANT_Q6_0] = &quant_type_q6_0,
    [QUANT_IQ1_BN] = HEADED("IQ1_BN", QUANT_IQ1_BN, 64, 13, 2, 1),
    [QUANT_IQ2_BN] = HEADED("IQ2_BN", QUANT_IQ2_BN, 64, 16, 4, 1),
    [QUANT_IQ2_K] = &quant_type_iq2_k,
    [QUANT_IQ3_K] = &quant_type_iq3_k,
    [QUANT_IQ4_K] = &quant_type_iq4_k,
    [QUANT_IQ5_K] = &quant_type_iq5_k,
    [QUANT_IQ6_K] = &quant_type_iq6_k,
    [QUANT_IQ4_KS] = &quant_type_iq4_ks,
    [QUANT_IQ2_KS] = &quant_type_iq2_ks,
    [QUANT_IQ4_KSS] = &quant_type_iq4_kss,
    [QUANT_Q8_KV] = HEADED("Q8_KV", QUANT_Q8_KV, 32, 32, 8, 1),
    [QUANT_IQ5_KS] = &quant_type_iq5_ks,
    [QUANT_IQ2_KT] = &quant_type_iq2_kt,
    [QUANT_IQ3_KT] = &quant_type_iq3_kt,
    [QUANT_IQ4_KT] = &quant_type_iq4_kt,
    [QUANT_IQ3_KS] = &quant_type_iq3_ks,
    [QUANT_IQ2_KL] = &quant_type_iq2_kl,
    [QUANT_IQ1_KT] = &quant_type_iq1_kt,
    [QUANT_Q4_0_R8] = HEADED("Q4_0_R8", QUANT_Q4_0_R8, 32, 18, 0, 8),
    [QUANT_Q5_0_R4] = HEADED("Q5_0_R4", QUANT_Q5_0_R4, 32, 22, 0, 4),
    [QUANT_Q8_0_R8] = HEADED("Q8_0_R8", QUANT_Q8_0_R8, 32, 34, 0, 8),
    [QUANT_Q2_K_R4] = HEADED("Q2_K_R4", QUANT_Q2_K_R4, 256, 84, 0, 4),
    [QUANT_Q3_K_R4] = HEADED("Q3_K_R4", QUANT_Q3_K_R4, 256, 110, 0, 4),
    [QUANT_Q4_K_R4] = HEADED("Q4_K_R4", QUANT_Q4_K_R4, 256, 144, 0, 4),
    [QUANT_Q5_K_R4] = HEADED("Q5_K_R4", QUANT_Q5_K_R4, 256, 176, 0, 4),
    [QUANT_Q6_K_R4] = HEADED("Q6_K_R4", QUANT_Q6_K_R4, 256, 210, 0, 4),
    [QUANT_IQ2_XXS_R4] = HEADED("IQ2_XXS_R4", QUANT_IQ2_XXS_R4, 256, 66, 0, 4),
    [QUANT_IQ2_XS_R4] = HEADED("IQ2_XS_R4", QUANT_IQ2_XS_R4, 256, 74, 0, 4),
    [QUANT_IQ3_XXS_R4] = HEADED("IQ3_XXS_R4", QUANT_IQ3_XXS_R4, 256, 98, 0, 4),
    [QUANT_IQ1_S_R4] = HEADED("IQ1_S_R4", QUANT_IQ1_S_R4, 32, 6, 2, 4),
    [QUANT_IQ4_NL_R4] = HEADED("IQ4_NL_R4", QUANT_IQ4_NL_R4, 32, 18, 0, 4),
    [QUANT_IQ3_S_R4] = HEADED("IQ3_S_R4", QUANT_IQ3_S_R4, 256, 110, 0, 4),
    [QUANT_IQ2_S_R4] = HEADED("IQ2_S_R4", QUANT_IQ2_S_R4, 256, 82, 0, 4),
    [QUANT_IQ4_XS_R8] = HEADED("IQ4_XS_R8", QUANT_IQ4_XS_R8, 256, 136, 0, 8),
    [QUANT_IQ1_M_R4] = HEADED("IQ1_M_R4", QUANT_IQ1_M_R4, 32, 7, 2, 4),
    [QUANT_BF16_R16] = HEADED("BF16_R16", QUANT_BF16_R16, 2, 4, 0, 16),
    [QUANT_Q6_0_R4] = HEADED("Q6_0_R4", QUANT_Q6_0_R4, 32, 26, 0, 4),
    [QUANT_IQ2_BN_R4] = HEADED("IQ2_BN_R4", QUANT_IQ2_BN_R4, 64, 16, 4, 4),
    [QUANT_IQ2_K_R4] = HEADED("IQ2_K_R4", QUANT_IQ2_K_R4, 256, 76, 0, 4),
    [QUANT_IQ3_K_R4] = HEADED("IQ3_K_R4", QUANT_IQ3_K_R4, 256, 110, 0, 4),
    [QUANT_IQ4_K_R4] = HEADED("IQ4_K_R4", QUANT_IQ4_K_R4, 256, 144, 0, 4),
    [QUANT_IQ5_K_R4] = HEADED("IQ5_K_R4", QUANT_IQ5_K_R4, 256, 176, 0, 4),
    [QUANT_IQ4_KS_R4] = HEADED("IQ4_KS_R4", QUANT_IQ4_KS_R4, 256, 136, 4, 4),
    [QUANT_IQ5_KS_R4] = HEADED("IQ5_KS_R4", QUANT_IQ5_KS_R4, 256, 168, 4, 4),
    [QUANT_MXFP4_R8] = HEADED("MXFP4_R8", QUANT_MXFP4_R8, 32, 17, 0, 8),
    [QUANT_Q8_K_R16] = HEADED("Q8_K_R16", QUANT_Q8_K_R16, 256, 258, 0, 16),
    [QUANT_Q8_KV_R8] = HEADED("Q8_KV_R8", QUANT_Q8_KV_R8, 32, 32, 4, 8),
    [QUANT_Q8_K_R8] = HEADED("Q8_K_R8", QUANT_Q8_K_R8, 256, 258, 0, 8),
};

/* Ids that the format has retired; files with them must be converted again. 36 has two meanings,
 * between which no key of a file distinguishes. */
static const char *const retired[QUANT_ID_COUNT] = {
    [4] = "Q4_2",        [5] = "Q4_3",        [31] = "Q4_0_4_4",
    [32] = "Q4_0_4_8",   [33] = "Q4_0_8_8",   [36] = "IQ4_NL_4_4, or I2_S of BitNet",
    [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8",
};

const char *quant_retired_name(uint32_t id)
{
    return id < QUANT_ID_COUNT ? retired[id] : NULL;
}

const struct quant_type *quant_type_by_id(uint32_t id)
{
    return id < QUANT_ID_COUNT ? table[id] : NULL;
}

const struct quant_type *quant_type_by_name(const char *name)
{
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        if (table[id] && strcasecmp(table[id]->name, name) == 0) return table[id];
    return NULL;
}

bool quant_row_bytes(const struct quant_type *type, uint64_t k, uint64_t *bytes)
{
    if (k % type->block_len != 0) return false;
    return base_mul(k / type->block_len, type->block_bytes, bytes) &&
           base_add(*bytes, type->header_bytes, bytes);
}

int64_t quant_row_size(const struct quant_type *type, int64_t k)
{
    return type->header_bytes + k / type->block_len * (int64_t)type->block_bytes;
}
