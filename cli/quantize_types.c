/* cli/quantize_types.c: names and rules of types and mixes. See cli/quantize_types.h. */
#include "cli/quantize_types.h"
#include <stddef.h>
#include <strings.h>

#define OUTPUT    CLI_ROLE_OUTPUT
#define EMBEDDING CLI_ROLE_EMBEDDING
#define QUERY     CLI_ROLE_QUERY
#define KEY       CLI_ROLE_KEY
#define VALUE     CLI_ROLE_VALUE
#define ATTN_OUT  CLI_ROLE_ATTENTION_OUTPUT
#define UP        CLI_ROLE_UP
#define GATE      CLI_ROLE_GATE
#define DOWN      CLI_ROLE_DOWN

#define FIRST_8TH  CLI_WHEN_FIRST_8TH
#define SPREAD     CLI_WHEN_SPREAD
#define GQA_4      CLI_WHEN_GQA_4
#define EXPERTS_4  CLI_WHEN_EXPERTS_4
#define EXPERTS_8  CLI_WHEN_EXPERTS_8
#define NO_MATRIX  CLI_WHEN_NO_MATRIX
#define FALCON     CLI_WHEN_FALCON
#define NOT_FALCON CLI_WHEN_NOT_FALCON

/* The output matrix of most mixes: Q8_0 if the base's block does not divide a row, otherwise
 * `type`. */
#define OUTPUT_AS(type)                                                                            \
    {OUTPUT, FALCON, QUANT_Q8_0}, {OUTPUT, CLI_WHEN_UNFIT, QUANT_Q8_0},                            \
    {                                                                                              \
        OUTPUT, 0, type                                                                            \
    }
#define OUTPUT_Q6_K OUTPUT_AS(QUANT_Q6_K)
/* Keys and values are a small part of a model with eight experts, so more bits cost little. */
#define EIGHT_EXPERTS                                                                              \
    {                                                                                              \
        KEY | VALUE, EXPERTS_8, QUANT_Q8_0                                                         \
    }
#define LARGE                                                                                      \
    {                                                                                              \
        VALUE, CLI_WHEN_LARGE, QUANT_Q5_K                                                          \
    }
#define GQA_4_OR_LARGE                                                                             \
    {VALUE, GQA_4 | CLI_WHEN_LARGE, QUANT_Q5_K},                                                   \
    {                                                                                              \
        VALUE, GQA_4, QUANT_Q4_K                                                                   \
    }

/* The mixes of about one and two bits; `more` is the type of the more sensitive parts. */
#define SMALL(more)                                                                                \
    OUTPUT_AS(QUANT_Q5_K), {EMBEDDING, 0, more}, {VALUE, GQA_4, QUANT_Q4_K},                       \
        {VALUE, EXPERTS_4, QUANT_Q4_K}, {VALUE, 0, more}, {KEY, EXPERTS_8, QUANT_Q4_K},            \
        {DOWN, FIRST_8TH, more},                                                                   \
    {                                                                                              \
        ATTN_OUT, EXPERTS_8, QUANT_Q5_K                                                            \
    }

/* Name, another name, the type of most matrices, the number of the file's type, rules. */
#define MIX_OF(mix_name, other_name, base_type, number, is_ranked, ...)                            \
    {                                                                                              \
        .name = mix_name, .alias = other_name, .base = base_type, .file_type = number,             \
        .ranked = is_ranked, .rule = {                                                             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define MIX(name, other, base, number, ...) MIX_OF(name, other, base, number, false, __VA_ARGS__)
#define RANKED(name, base, number, ...)     MIX_OF(name, NULL, base, number, true, __VA_ARGS__)

static const struct cli_quantize_mix mixes[] = {
    {.name = "COPY", .copies = true, .base = QUANT_F32},
    {.name = "F32", .base = QUANT_F32, .file_type = 0},
    {.name = "F16", .base = QUANT_F16, .file_type = 1},
    {.name = "BF16", .base = QUANT_BF16, .file_type = 32},
    {.name = "Q8_0", .base = QUANT_Q8_0, .file_type = 7},
    MIX("Q6_K", NULL, QUANT_Q6_K, 18, OUTPUT_Q6_K, EIGHT_EXPERTS),
    MIX("Q5_K_M", "Q5_K", QUANT_Q5_K, 17, OUTPUT_Q6_K, EIGHT_EXPERTS,
        {VALUE | DOWN, SPREAD, QUANT_Q6_K}),
    MIX("Q5_K_S", NULL, QUANT_Q5_K, 16, OUTPUT_Q6_K, EIGHT_EXPERTS),
    MIX("Q5_1", NULL, QUANT_Q5_1, 9, OUTPUT_Q6_K, EIGHT_EXPERTS),
    MIX("Q5_0", NULL, QUANT_Q5_0, 8, OUTPUT_Q6_K, EIGHT_EXPERTS,
        {DOWN, FIRST_8TH | CLI_WHEN_MATRIX, QUANT_Q5_1}),
    MIX("Q4_K_M", "Q4_K", QUANT_Q4_K, 15, OUTPUT_Q6_K, EIGHT_EXPERTS, {VALUE, SPREAD, QUANT_Q6_K},
        LARGE, {DOWN, NOT_FALCON | SPREAD, QUANT_Q6_K},
        {DOWN, FALCON | CLI_WHEN_FIRST_16TH, QUANT_Q6_K}, {DOWN, FALCON | SPREAD, QUANT_Q5_K},
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("Q4_K_S", NULL, QUANT_Q4_K, 14, OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE,
        {VALUE, CLI_WHEN_FIRST_4, QUANT_Q5_K}, {DOWN, NOT_FALCON | FIRST_8TH, QUANT_Q5_K},
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("Q4_1", NULL, QUANT_Q4_1, 3, OUTPUT_Q6_K, EIGHT_EXPERTS),
    MIX("Q4_0", NULL, QUANT_Q4_0, 2, OUTPUT_Q6_K, EIGHT_EXPERTS,
        {DOWN, FIRST_8TH | CLI_WHEN_MATRIX, QUANT_Q4_1}),
    MIX("IQ4_NL", NULL, QUANT_IQ4_NL, 25, OUTPUT_Q6_K, EIGHT_EXPERTS, {VALUE, GQA_4, QUANT_Q5_K},
        {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q5_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("IQ4_XS", NULL, QUANT_IQ4_XS, 30, OUTPUT_Q6_K, EIGHT_EXPERTS, {VALUE, GQA_4, QUANT_Q5_K},
        {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q5_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("MXFP4_MOE", NULL, QUANT_MXFP4, 38, {OUTPUT, 0, QUANT_Q8_0},
        {UP | GATE | DOWN, CLI_WHEN_STACKED, QUANT_MXFP4},
        {CLI_ROLE_ANY, CLI_WHEN_STACKED | CLI_WHEN_NOT_BAILINGMOE3, QUANT_MXFP4},
        {CLI_ROLE_ANY, 0, QUANT_Q8_0}),
    MIX("Q3_K_L", NULL, QUANT_Q3_K, 13, OUTPUT_Q6_K, EIGHT_EXPERTS, {VALUE, 0, QUANT_Q5_K},
        {DOWN | ATTN_OUT, FALCON, QUANT_Q4_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q3_K},
        {DOWN | ATTN_OUT, 0, QUANT_Q5_K}),
    MIX("Q3_K_M", "Q3_K", QUANT_Q3_K, 12, OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE,
        {VALUE, CLI_WHEN_FIRST_2, QUANT_Q5_K}, {VALUE, 0, QUANT_Q4_K},
        {DOWN, CLI_WHEN_FIRST_16TH, QUANT_Q5_K}, {DOWN, NOT_FALCON, QUANT_Q4_K},
        {DOWN, SPREAD, QUANT_Q4_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
        {ATTN_OUT, NOT_FALCON, QUANT_Q4_K}),
    MIX("Q3_K_S", NULL, QUANT_Q3_K, 11, OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE,
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("IQ3_M", NULL, QUANT_IQ3_S, 27, OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE, {VALUE, 0, QUANT_Q4_K},
        {DOWN, FIRST_8TH, QUANT_Q4_K}, {DOWN, EXPERTS_8 | SPREAD, QUANT_Q4_K},
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}, {ATTN_OUT, NOT_FALCON, QUANT_Q4_K}),
    MIX("IQ3_S", NULL, QUANT_IQ3_S, 26, OUTPUT_Q6_K, EIGHT_EXPERTS, GQA_4_OR_LARGE,
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}),
    MIX("IQ3_XS", NULL, QUANT_IQ3_S, 22, OUTPUT_Q6_K, EIGHT_EXPERTS, GQA_4_OR_LARGE,
        {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}, {QUERY | KEY, 0, QUANT_IQ3_XXS},
        {UP | GATE, CLI_WHEN_MIDDLE, QUANT_IQ3_XXS}),
    MIX("IQ3_XXS", NULL, QUANT_IQ3_XXS, 23, OUTPUT_AS(QUANT_Q5_K), EIGHT_EXPERTS,
        {EMBEDDING, 0, QUANT_IQ3_S}, GQA_4_OR_LARGE, {VALUE, NO_MATRIX, QUANT_IQ3_S},
        {QUERY | KEY, 0, QUANT_IQ2_S}, {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q4_K},
        {DOWN, NO_MATRIX, QUANT_Q3_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
        {ATTN_OUT, NOT_FALCON, QUANT_IQ3_S}),
    MIX("Q2_K", NULL, QUANT_Q2_K, 10, OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE, {VALUE, GQA_4, QUANT_Q4_K},
        {VALUE | DOWN, 0, QUANT_Q3_K}, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
        {ATTN_OUT, NOT_FALCON, QUANT_Q3_K}),
    MIX("Q2_K_S", NULL, QUANT_Q2_K, 21, OUTPUT_Q6_K, EIGHT_EXPERTS, GQA_4_OR_LARGE,
        {DOWN, FIRST_8TH, QUANT_Q4_K}),
    RANKED("IQ2_M", QUANT_IQ2_S, 29, SMALL(QUANT_IQ3_S), {ATTN_OUT, 0, QUANT_IQ3_S}),
    RANKED("IQ2_S", QUANT_IQ2_XS, 28, SMALL(QUANT_IQ3_S), {ATTN_OUT, 0, QUANT_IQ3_S}),
    RANKED("IQ2_XS", QUANT_IQ2_XS, 20, SMALL(QUANT_Q2_K)),
    RANKED("IQ2_XXS", QUANT_IQ2_XXS, 19, SMALL(QUANT_Q2_K)),
    RANKED("IQ1_M", QUANT_IQ1_M, 31, SMALL(QUANT_Q2_K), {ATTN_OUT, 0, QUANT_IQ2_XXS}),
    RANKED("IQ1_S", QUANT_IQ1_S, 24, SMALL(QUANT_Q2_K), {ATTN_OUT, 0, QUANT_IQ2_XXS}),
    MIX("TQ2_0", NULL, QUANT_TQ2_0, 37, OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}),
    MIX("TQ1_0", NULL, QUANT_TQ1_0, 36, OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}),
    MIX("Q2_0", NULL, QUANT_Q2_0, 41, OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}),
    MIX("Q1_0", NULL, QUANT_Q1_0, 40, OUTPUT_Q6_K, EIGHT_EXPERTS),
};
enum { N_MIXES = sizeof mixes / sizeof *mixes };

const struct cli_quantize_mix *cli_quantize_mix_at(size_t i)
{
    return i < N_MIXES ? &mixes[i] : NULL;
}

const struct cli_quantize_mix *cli_quantize_mix_find(const char *name)
{
    for (size_t i = 0; i < N_MIXES; i++)
        if (strcasecmp(mixes[i].name, name) == 0 ||
            (mixes[i].alias && strcasecmp(mixes[i].alias, name) == 0))
            return &mixes[i];
    return NULL;
}

const char *cli_quantize_type_name(size_t i)
{
    for (size_t m = 0; m < N_MIXES; m++) {
        if (mixes[m].alias && i-- == 0) return mixes[m].alias;
        if (i-- == 0) return mixes[m].name;
    }
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (type && type->scalar.encode && !cli_quantize_mix_find(type->name) && i-- == 0)
            return type->name;
    }
    return NULL;
}
