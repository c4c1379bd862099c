/* cli/cmd/quantize_plan.c: types, mixes and fallbacks. See cli/cmd/quantize_plan.h. */
#include "cli/cmd/quantize_plan.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* general.file_type of a file whose matrices all have one type. */
static const uint32_t file_types[QUANT_ID_COUNT] = {
    [QUANT_F32] = 0,      [QUANT_F16] = 1,     [QUANT_Q4_0] = 2,     [QUANT_Q4_1] = 3,
    [QUANT_Q8_0] = 7,     [QUANT_Q5_0] = 8,    [QUANT_Q5_1] = 9,     [QUANT_Q2_K] = 10,
    [QUANT_Q3_K] = 11,    [QUANT_Q4_K] = 14,   [QUANT_Q5_K] = 16,    [QUANT_Q6_K] = 18,
    [QUANT_IQ2_XXS] = 19, [QUANT_IQ2_XS] = 20, [QUANT_IQ3_XXS] = 23, [QUANT_IQ1_S] = 24,
    [QUANT_IQ4_NL] = 25,  [QUANT_IQ3_S] = 26,  [QUANT_IQ2_S] = 28,   [QUANT_IQ4_XS] = 30,
    [QUANT_IQ1_M] = 31,   [QUANT_BF16] = 32,   [QUANT_TQ1_0] = 36,   [QUANT_TQ2_0] = 37,
    [QUANT_MXFP4] = 38,   [QUANT_NVFP4] = 39,  [QUANT_Q1_0] = 40,    [QUANT_Q2_0] = 41,
};

/* The fallback of a type whose block does not divide a row: about as many bits, block 32. Types
 * that are not listed: F16. */
static const struct {
    enum quant_id wanted, instead;
} fallbacks[] = {
    {QUANT_Q2_K, QUANT_IQ4_NL},   {QUANT_Q3_K, QUANT_IQ4_NL},    {QUANT_Q4_K, QUANT_Q5_0},
    {QUANT_Q5_K, QUANT_Q5_1},     {QUANT_Q6_K, QUANT_Q8_0},      {QUANT_IQ1_S, QUANT_IQ4_NL},
    {QUANT_IQ1_M, QUANT_IQ4_NL},  {QUANT_IQ2_XXS, QUANT_IQ4_NL}, {QUANT_IQ2_XS, QUANT_IQ4_NL},
    {QUANT_IQ2_S, QUANT_IQ4_NL},  {QUANT_IQ3_XXS, QUANT_IQ4_NL}, {QUANT_IQ3_S, QUANT_IQ4_NL},
    {QUANT_IQ4_XS, QUANT_IQ4_NL}, {QUANT_TQ1_0, QUANT_IQ4_NL},   {QUANT_TQ2_0, QUANT_IQ4_NL},
};

/* Matrices that are small, or used by lookup, or too sensitive to be quantized. */
static const char *const kept[] = {
    "_norm.",    "ffn_gate_inp.", "position_embd.", "token_types.", "ssm_conv1d.", "shortconv.",
    "time_mix_", "altup",         "laurel",         "rope_freqs",   "attn_rel_b.", "conv1d.",
};

static bool has_text(struct gguf_str s, const char *text)
{
    return memmem(s.data, s.size, text, strlen(text)) != NULL;
}

static bool str_is(struct gguf_str s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static const struct quant_type *encodable(const char *name, const char *option,
                                          struct base_error *err)
{
    const struct quant_type *type = quant_type_by_name(name);
    if (type && type->encode) return type;
    if (type)
        base_fail_at(err, BASE_USAGE, option, -1, "%s cannot be written", type->name);
    else
        base_fail_at(err, BASE_USAGE, option, -1,
                     "'%s' is not a type; try Q8_0, Q6_K, Q4_K_M or Q4_0", name);
    return NULL;
}

/* The layer in "blk.N.", or -1. */
static int64_t layer_of(struct gguf_str name)
{
    uint64_t i = 4;
    int64_t layer = 0;
    if (name.size < 6 || memcmp(name.data, "blk.", 4) != 0) return -1;
    for (; i < name.size && name.data[i] >= '0' && name.data[i] <= '9' && layer < 100000; i++)
        layer = layer * 10 + (name.data[i] - '0');
    return i > 4 && i < name.size && name.data[i] == '.' ? layer : -1;
}

bool cli_quantize_plan_make(struct cli_quantize_plan *p, const struct gguf_file *file,
                            const char *name, const char *output, const char *embedding,
                            struct base_error *err)
{
    *p = (struct cli_quantize_plan){.tied = gguf_tensor_find(file, "output.weight") == NULL};
    const struct cli_quantize_mix *mix;
    for (size_t i = 0; (mix = cli_quantize_mix_at(i)); i++)
        if (strcasecmp(mix->name, name) == 0) p->mix = mix;
    p->base = encodable(p->mix ? quant_type_by_id(p->mix->base)->name : name, "TYPE", err);
    if (!p->base) return false;
    p->file_type = p->mix ? p->mix->file_type : file_types[p->base->id];
    if (p->mix) p->output = encodable(quant_type_by_id(p->mix->output)->name, "TYPE", err);
    if (p->mix && !p->output) return false;
    if (output && !(p->output = encodable(output, "--output-type", err))) return false;
    if (embedding && !(p->embedding = encodable(embedding, "--embedding-type", err))) return false;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        int64_t layer = layer_of(gguf_tensor_at(file, i)->name);
        if (layer >= p->n_layer) p->n_layer = (uint32_t)layer + 1;
    }
    return true;
}

static bool is_converted(const struct gguf_tensor *t)
{
    const char *end = ".weight";
    const size_t n = strlen(end);
    if (t->n_dims < 2 || t->ne[1] < 2 || !t->type->act) return false;
    if (t->name.size < n || memcmp(t->name.data + t->name.size - n, end, n) != 0) return false;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (has_text(t->name, kept[i])) return false;
    return true;
}

static bool gets_more(const struct cli_quantize_plan *p, int64_t layer)
{
    const int64_t eighth = p->n_layer / 8;
    return p->mix->all_layers || layer < eighth || layer >= 7 * (int64_t)p->n_layer / 8 ||
           (layer - eighth) % 3 == 2;
}

static const struct quant_type *wanted(const struct cli_quantize_plan *p,
                                       const struct gguf_tensor *t)
{
    const bool embedding = str_is(t->name, "token_embd.weight");
    const int64_t layer = layer_of(t->name);
    if (embedding && p->embedding) return p->embedding;
    if (p->output && (str_is(t->name, "output.weight") || (embedding && p->tied))) return p->output;
    if (!p->mix || layer < 0) return p->base;
    if (has_text(t->name, "attn_output.")) return quant_type_by_id(p->mix->attention);
    if (has_text(t->name, "attn_v.") || has_text(t->name, "attn_qkv."))
        return gets_more(p, layer) ? quant_type_by_id(p->mix->value) : p->base;
    if (has_text(t->name, "ffn_down"))
        return gets_more(p, layer) ? quant_type_by_id(p->mix->down) : p->base;
    return p->base;
}

const struct quant_type *cli_quantize_plan_type(const struct cli_quantize_plan *p,
                                                const struct gguf_tensor *t, bool *fell_back)
{
    *fell_back = false;
    if (!is_converted(t)) return t->type;
    const struct quant_type *type = wanted(p, t);
    if (t->ne[0] % type->block_len == 0) return type;
    *fell_back = true;
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++) {
        const struct quant_type *instead = quant_type_by_id(fallbacks[i].instead);
        if (fallbacks[i].wanted == type->id && t->ne[0] % instead->block_len == 0 &&
            instead->encode)
            return instead;
    }
    return quant_type_by_id(QUANT_F16);
}

const char *cli_quantize_name(const struct gguf_file *file)
{
    uint32_t said = UINT32_MAX;
    struct base_error ignored = BASE_ERROR_INIT; /* of another kind: counts as absent */
    if (!gguf_get_u32(file, "general.file_type", &said, &ignored) || said == UINT32_MAX)
        return NULL;
    const struct cli_quantize_mix *mix;
    for (size_t i = 0; (mix = cli_quantize_mix_at(i)); i++)
        if (mix->file_type == said) return mix->name;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        if (file_types[id] == said && (said || id == QUANT_F32)) return quant_type_by_id(id)->name;
    return NULL;
}
