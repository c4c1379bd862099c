/* quant/types.c: the type table, one row per GGUF tensor type id.
 *
 * Types with arithmetic export their row from a file of their own. Types that are known by name and
 * size only (so that files which hold them can be listed and refused by name) stand here. Nothing
 * else in the program switches on a type. */
#include "quant/types.h"
#include "base/size.h"
#include <strings.h>

/* A row without arithmetic. */
#define NAME_AND_SIZE(NAME, ID, LEN, BYTES)                                                        \
    (&(const struct quant_type){                                                                   \
        .name = (NAME), .id = (ID), .block_len = (LEN), .block_bytes = (BYTES)})

/* Ids 4, 5, 31 to 33 and 36 to 38 were types once and are no longer valid in files: NULL. */
static const struct quant_type *const table[QUANT_ID_COUNT] = {
    [QUANT_F32] = &quant_type_f32,
    [QUANT_F16] = &quant_type_f16,
    [QUANT_Q4_0] = &quant_type_q4_0,
    [QUANT_Q4_1] = &quant_type_q4_1,
    [QUANT_Q5_0] = &quant_type_q5_0,
    [QUANT_Q5_1] = &quant_type_q5_1,
    [QUANT_Q8_0] = &quant_type_q8_0,
    [QUANT_Q8_1] = NAME_AND_SIZE("Q8_1", QUANT_Q8_1, 32, 36),
    [QUANT_Q2_K] = &quant_type_q2_k,
    [QUANT_Q3_K] = &quant_type_q3_k,
    [QUANT_Q4_K] = &quant_type_q4_k,
    [QUANT_Q5_K] = &quant_type_q5_k,
    [QUANT_Q6_K] = &quant_type_q6_k,
    [QUANT_Q8_K] = NAME_AND_SIZE("Q8_K", QUANT_Q8_K, 256, 292),
    [QUANT_IQ2_XXS] = NAME_AND_SIZE("IQ2_XXS", QUANT_IQ2_XXS, 256, 66),
    [QUANT_IQ2_XS] = NAME_AND_SIZE("IQ2_XS", QUANT_IQ2_XS, 256, 74),
    [QUANT_IQ3_XXS] = NAME_AND_SIZE("IQ3_XXS", QUANT_IQ3_XXS, 256, 98),
    [QUANT_IQ1_S] = NAME_AND_SIZE("IQ1_S", QUANT_IQ1_S, 256, 50),
    [QUANT_IQ4_NL] = &quant_type_iq4_nl,
    [QUANT_IQ3_S] = NAME_AND_SIZE("IQ3_S", QUANT_IQ3_S, 256, 110),
    [QUANT_IQ2_S] = NAME_AND_SIZE("IQ2_S", QUANT_IQ2_S, 256, 82),
    [QUANT_IQ4_XS] = &quant_type_iq4_xs,
    [QUANT_I8] = NAME_AND_SIZE("I8", QUANT_I8, 1, 1),
    [QUANT_I16] = NAME_AND_SIZE("I16", QUANT_I16, 1, 2),
    [QUANT_I32] = NAME_AND_SIZE("I32", QUANT_I32, 1, 4),
    [QUANT_I64] = NAME_AND_SIZE("I64", QUANT_I64, 1, 8),
    [QUANT_F64] = NAME_AND_SIZE("F64", QUANT_F64, 1, 8),
    [QUANT_IQ1_M] = NAME_AND_SIZE("IQ1_M", QUANT_IQ1_M, 256, 56),
    [QUANT_BF16] = &quant_type_bf16,
    [QUANT_TQ1_0] = NAME_AND_SIZE("TQ1_0", QUANT_TQ1_0, 256, 54),
    [QUANT_TQ2_0] = NAME_AND_SIZE("TQ2_0", QUANT_TQ2_0, 256, 66),
    [QUANT_MXFP4] = &quant_type_mxfp4,
    [QUANT_NVFP4] = NAME_AND_SIZE("NVFP4", QUANT_NVFP4, 64, 36),
    [QUANT_Q1_0] = NAME_AND_SIZE("Q1_0", QUANT_Q1_0, 128, 18),
    [QUANT_Q2_0] = NAME_AND_SIZE("Q2_0", QUANT_Q2_0, 64, 18),
};

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
