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
#define SMALL_MIX(embedding, more)                                                                 \
    OUTPUT_AS(QUANT_Q5_K), {EMBEDDING, 0, embedding}, {VALUE, GQA_4, QUANT_Q4_K},                  \
        {VALUE, EXPERTS_4, QUANT_Q4_K}, {VALUE, 0, more}, {KEY, EXPERTS_8, QUANT_Q4_K},            \
        {DOWN, FIRST_8TH, more},                                                                   \
    {                                                                                              \
        ATTN_OUT, EXPERTS_8, QUANT_Q5_K                                                            \
    }

static const struct cli_quantize_mix mixes[] = {
    {.name = "COPY", .copies = true, .base = QUANT_F32},
    {.name = "F32", .base = QUANT_F32, .file_type = 0},
    {.name = "F16", .base = QUANT_F16, .file_type = 1},
    {.name = "BF16", .base = QUANT_BF16, .file_type = 32},
    {.name = "Q8_0", .base = QUANT_Q8_0, .file_type = 7},
    {.name = "Q6_K", .base = QUANT_Q6_K, .file_type = 18, .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS}},
    {.name = "Q5_K_M",
     .alias = "Q5_K",
     .base = QUANT_Q5_K,
     .file_type = 17,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {VALUE | DOWN, SPREAD, QUANT_Q6_K}}},
    {.name = "Q5_K_S", .base = QUANT_Q5_K, .file_type = 16, .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS}},
    {.name = "Q5_1", .base = QUANT_Q5_1, .file_type = 9, .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS}},
    {.name = "Q5_0",
     .base = QUANT_Q5_0,
     .file_type = 8,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {DOWN, FIRST_8TH | CLI_WHEN_MATRIX, QUANT_Q5_1}}},
    {.name = "Q4_K_M",
     .alias = "Q4_K",
     .base = QUANT_Q4_K,
     .file_type = 15,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              {VALUE, SPREAD, QUANT_Q6_K},
              LARGE,
              {DOWN, NOT_FALCON | SPREAD, QUANT_Q6_K},
              {DOWN, FALCON | CLI_WHEN_FIRST_16TH, QUANT_Q6_K},
              {DOWN, FALCON | SPREAD, QUANT_Q5_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "Q4_K_S",
     .base = QUANT_Q4_K,
     .file_type = 14,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              LARGE,
              {VALUE, CLI_WHEN_FIRST_4, QUANT_Q5_K},
              {DOWN, NOT_FALCON | FIRST_8TH, QUANT_Q5_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "Q4_1", .base = QUANT_Q4_1, .file_type = 3, .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS}},
    {.name = "Q4_0",
     .base = QUANT_Q4_0,
     .file_type = 2,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {DOWN, FIRST_8TH | CLI_WHEN_MATRIX, QUANT_Q4_1}}},
    {.name = "IQ4_NL",
     .base = QUANT_IQ4_NL,
     .file_type = 25,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              {VALUE, GQA_4, QUANT_Q5_K},
              {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q5_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "IQ4_XS",
     .base = QUANT_IQ4_XS,
     .file_type = 30,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              {VALUE, GQA_4, QUANT_Q5_K},
              {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q5_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "MXFP4_MOE",
     .base = QUANT_MXFP4,
     .file_type = 38,
     .rule = {{OUTPUT, 0, QUANT_Q8_0},
              {UP | GATE | DOWN, CLI_WHEN_STACKED, QUANT_MXFP4},
              {CLI_ROLE_ANY, CLI_WHEN_STACKED | CLI_WHEN_NOT_BAILINGMOE3, QUANT_MXFP4},
              {CLI_ROLE_ANY, 0, QUANT_Q8_0}}},
    {.name = "Q3_K_L",
     .base = QUANT_Q3_K,
     .file_type = 13,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              {VALUE, 0, QUANT_Q5_K},
              {DOWN | ATTN_OUT, FALCON, QUANT_Q4_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q3_K},
              {DOWN | ATTN_OUT, 0, QUANT_Q5_K}}},
    {.name = "Q3_K_M",
     .alias = "Q3_K",
     .base = QUANT_Q3_K,
     .file_type = 12,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              LARGE,
              {VALUE, CLI_WHEN_FIRST_2, QUANT_Q5_K},
              {VALUE, 0, QUANT_Q4_K},
              {DOWN, CLI_WHEN_FIRST_16TH, QUANT_Q5_K},
              {DOWN, NOT_FALCON, QUANT_Q4_K},
              {DOWN, SPREAD, QUANT_Q4_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
              {ATTN_OUT, NOT_FALCON, QUANT_Q4_K}}},
    {.name = "Q3_K_S",
     .base = QUANT_Q3_K,
     .file_type = 11,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, LARGE, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "IQ3_M",
     .base = QUANT_IQ3_S,
     .file_type = 27,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              LARGE,
              {VALUE, 0, QUANT_Q4_K},
              {DOWN, FIRST_8TH, QUANT_Q4_K},
              {DOWN, EXPERTS_8 | SPREAD, QUANT_Q4_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
              {ATTN_OUT, NOT_FALCON, QUANT_Q4_K}}},
    {.name = "IQ3_S",
     .base = QUANT_IQ3_S,
     .file_type = 26,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, GQA_4_OR_LARGE, {ATTN_OUT, EXPERTS_8, QUANT_Q5_K}}},
    {.name = "IQ3_XS",
     .base = QUANT_IQ3_S,
     .file_type = 22,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              GQA_4_OR_LARGE,
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
              {QUERY | KEY, 0, QUANT_IQ3_XXS},
              {UP | GATE, CLI_WHEN_MIDDLE, QUANT_IQ3_XXS}}},
    {.name = "IQ3_XXS",
     .base = QUANT_IQ3_XXS,
     .file_type = 23,
     .rule = {OUTPUT_AS(QUANT_Q5_K),
              EIGHT_EXPERTS,
              {EMBEDDING, 0, QUANT_IQ3_S},
              GQA_4_OR_LARGE,
              {VALUE, NO_MATRIX, QUANT_IQ3_S},
              {QUERY | KEY, 0, QUANT_IQ2_S},
              {DOWN, FIRST_8TH | NO_MATRIX, QUANT_Q4_K},
              {DOWN, NO_MATRIX, QUANT_Q3_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
              {ATTN_OUT, NOT_FALCON, QUANT_IQ3_S}}},
    {.name = "Q2_K",
     .base = QUANT_Q2_K,
     .file_type = 10,
     .rule = {OUTPUT_Q6_K,
              EIGHT_EXPERTS,
              LARGE,
              {VALUE, GQA_4, QUANT_Q4_K},
              {VALUE | DOWN, 0, QUANT_Q3_K},
              {ATTN_OUT, EXPERTS_8, QUANT_Q5_K},
              {ATTN_OUT, NOT_FALCON, QUANT_Q3_K}}},
    {.name = "Q2_K_S",
     .base = QUANT_Q2_K,
     .file_type = 21,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, GQA_4_OR_LARGE, {DOWN, FIRST_8TH, QUANT_Q4_K}}},
    {.name = "IQ2_M",
     .base = QUANT_IQ2_S,
     .file_type = 29,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_IQ3_S, QUANT_IQ3_S), {ATTN_OUT, 0, QUANT_IQ3_S}}},
    {.name = "IQ2_S",
     .base = QUANT_IQ2_XS,
     .file_type = 28,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_IQ3_S, QUANT_IQ3_S), {ATTN_OUT, 0, QUANT_IQ3_S}}},
    {.name = "IQ2_XS",
     .base = QUANT_IQ2_XS,
     .file_type = 20,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_Q2_K, QUANT_Q2_K)}},
    {.name = "IQ2_XXS",
     .base = QUANT_IQ2_XXS,
     .file_type = 19,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_Q2_K, QUANT_Q2_K)}},
    {.name = "IQ1_M",
     .base = QUANT_IQ1_M,
     .file_type = 31,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_Q2_K, QUANT_Q2_K), {ATTN_OUT, 0, QUANT_IQ2_XXS}}},
    {.name = "IQ1_S",
     .base = QUANT_IQ1_S,
     .file_type = 24,
     .ranked = true,
     .rule = {SMALL_MIX(QUANT_Q2_K, QUANT_Q2_K), {ATTN_OUT, 0, QUANT_IQ2_XXS}}},
    {.name = "TQ2_0",
     .base = QUANT_TQ2_0,
     .file_type = 37,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}}},
    {.name = "TQ1_0",
     .base = QUANT_TQ1_0,
     .file_type = 36,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}}},
    {.name = "Q2_0",
     .base = QUANT_Q2_0,
     .file_type = 41,
     .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS, {EMBEDDING, 0, QUANT_Q4_K}}},
    {.name = "Q1_0", .base = QUANT_Q1_0, .file_type = 40, .rule = {OUTPUT_Q6_K, EIGHT_EXPERTS}},
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
