/* cli/cmd/quantize_plan.c: types, mixes and fallbacks. See cli/cmd/quantize_plan.h. */
#include "cli/cmd/quantize_plan.h"
#include "base/os.h"
#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 100000 }; /* largest number of layers, heads or experts */

/* general.file_type for types that are not the base of a mix; from 100 on those of ik_llama.cpp. */
static const struct {
    enum quant_id type;
    uint32_t file_type;
} file_types[] = {
    {QUANT_MXFP4, 38},   {QUANT_NVFP4, 39},   {QUANT_Q6_0, 135},    {QUANT_IQ2_K, 138},
    {QUANT_IQ3_K, 139},  {QUANT_IQ4_K, 140},  {QUANT_IQ5_K, 141},   {QUANT_IQ6_K, 142},
    {QUANT_IQ4_KS, 145}, {QUANT_IQ2_KS, 147}, {QUANT_IQ4_KSS, 148}, {QUANT_IQ5_KS, 150},
    {QUANT_IQ2_KT, 151}, {QUANT_IQ3_KT, 152}, {QUANT_IQ4_KT, 153},  {QUANT_IQ3_KS, 154},
    {QUANT_IQ2_KL, 155}, {QUANT_IQ1_KT, 156},
};

/* The fallbacks of types whose block does not divide a row, by size: types with blocks of 32. */
static const enum quant_id fallbacks[] = {QUANT_IQ4_NL, QUANT_Q5_0, QUANT_Q5_1, QUANT_Q8_0};
enum { N_FALLBACKS = sizeof fallbacks / sizeof *fallbacks, FALLBACK_LEN = 32 };

/* Parts of the names of matrices that are small, only looked up, or too sensitive to be quantized.
 */
static const char kept[] =
    "_norm. ffn_gate_inp. ffn_gate_tid2eid. position_embd. token_types. ssm_conv1d "
    "shortconv.conv. altup laurel per_layer_model_proj. rope_freqs attn_rel_b. "
    "compressor_ape. ple_norm_ ple_conv1d. indexer.k_proj indexer.q_proj "
    "time_mix_first. time_mix_w0. time_mix_w1. time_mix_w2. "
    "time_mix_v0. time_mix_v1. time_mix_v2. time_mix_a0. time_mix_a1. time_mix_a2. "
    "time_mix_g1. time_mix_g2. time_mix_decay_w1. time_mix_decay_w2. time_mix_lerp_fused. "
    "sam.pos_embd sam.neck. sam.net_ .rel_pos .patch_embd .patch_merger a.rvq.codebook "
    "mm.a.code_embd";

/* Models of about 70 billion weights, in which attn_v is a small part of the weights. */
static const struct {
    const char *architecture;
    uint64_t layers;
    bool shared; /* only if it has fewer key heads than query heads */
} large_models[] = {
    {"llama", 80, true}, {"qwen2", 80, false}, {"deci", 80, false},
    {"olmo", 80, false}, {"jais2", 68, false},
};

/* Patterns for roles: the first one that a name contains determines its role. */
static const struct {
    const char *part;
    unsigned role;
} roles[] = {
    {"token_embd.weight", CLI_ROLE_EMBEDDING},
    {"attn_qkv.weight", CLI_ROLE_VALUE},
    {"attn_kv_b.weight", CLI_ROLE_VALUE},
    {"attn_v.weight", CLI_ROLE_VALUE},
    {"attn_k.weight", CLI_ROLE_KEY},
    {"attn_q.weight", CLI_ROLE_QUERY},
    {"attn_output.weight", CLI_ROLE_ATTENTION_OUTPUT},
    {"ffn_up", CLI_ROLE_UP},
    {"ffn_gate", CLI_ROLE_GATE},
    {"ffn_down", CLI_ROLE_DOWN},
};

static bool has_text(struct gguf_str s, const char *text)
{
    return memmem(s.data, s.size, text, strlen(text)) != NULL;
}

static unsigned role_of(struct gguf_str name)
{
    if (gguf_str_is(name, "output.weight")) return CLI_ROLE_OUTPUT;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (has_text(name, roles[i].part)) return roles[i].role;
    return CLI_ROLE_OTHER;
}

/* Returns the layer N of "blk.N.", or -1. */
static int64_t layer_of(struct gguf_str name)
{
    uint64_t i = 4;
    int64_t layer = 0;
    if (!gguf_str_begins(name, "blk.")) return -1;
    for (; i < name.size && name.data[i] >= '0' && name.data[i] <= '9' && layer < MAX_NUMBER; i++)
        layer = layer * 10 + (name.data[i] - '0');
    return i > 4 && i < name.size && name.data[i] == '.' ? layer : -1;
}

/* ---- Making a plan ---- */

static const struct quant_type *encodable(const char *name, const char *option,
                                          struct base_error *err)
{
    const struct quant_type *type = quant_type_by_name(name);
    if (type && type->scalar.encode) return type;
    if (type)
        base_fail_at(err, BASE_USAGE, option, -1, "%s cannot be written", type->name);
    else
        base_fail_at(err, BASE_USAGE, option, -1,
                     "'%s' is not a type; try Q8_0, Q6_K, Q4_K_M or Q4_0", name);
    return NULL;
}

/* Adds "PATTERN=TYPE". Case in the pattern is ignored, because names of tensors are lower case. */
static bool add_override(struct cli_quantize_plan *p, const char *text, struct base_error *err)
{
    const char *option = "--tensor-type", *type = strchr(text, '=');
    char pattern[256];
    const size_t n = type ? (size_t)(type - text) : 0;
    if (n == 0 || n >= sizeof pattern)
        return base_fail_at(err, BASE_USAGE, option, -1, "'%s' is not PATTERN=TYPE", text);
    for (size_t i = 0; i < n; i++) pattern[i] = (char)tolower((unsigned char)text[i]);
    struct cli_quantize_override *o = &p->override[p->n_overrides];
    o->text = text;
    o->type = encodable(type + 1, option, err);
    if (!o->type) return false;
    int code;
    PCRE2_SIZE at;
    o->pattern = pcre2_compile((PCRE2_SPTR)pattern, n, 0, &code, &at, NULL);
    if (!o->pattern && code == PCRE2_ERROR_HEAP_FAILED)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a pattern");
    if (!o->pattern) {
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return base_fail_at(err, BASE_USAGE, option, -1, "'%.*s' is not a pattern: %s", (int)n,
                            pattern, why);
    }
    p->n_overrides++;
    if (!p->match) p->match = pcre2_match_data_create_from_pattern(o->pattern, NULL);
    return p->match || base_fail(err, BASE_NO_MEMORY, "not enough memory for a pattern");
}

/* Returns the value of ARCHITECTURE.key, or its first item if it is a list; at most MAX_NUMBER; 0
 * if it is absent. */
static uint64_t number_of(const struct gguf_file *file, struct gguf_str architecture,
                          const char *key)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s.%s", (int)architecture.size, architecture.data, key);
    const struct gguf_kv *kv = gguf_kv_find(file, name);
    struct base_error ignored = BASE_ERROR_INIT; /* a wrong kind counts as absent */
    int64_t value = 0;
    if (kv && kv->kind == GGUF_ARRAY && kv->count > 0 && kv->item != GGUF_STRING)
        value = (int64_t)gguf_array_num(kv, 0);
    else if (kv && !gguf_get_i64(file, name, &value, &ignored))
        value = 0;
    return value < 0 ? 0 : value < MAX_NUMBER ? (uint64_t)value : MAX_NUMBER;
}

static bool is_large(struct gguf_str architecture, uint64_t layers, uint64_t shared)
{
    for (size_t i = 0; i < sizeof large_models / sizeof large_models[0]; i++)
        if (gguf_str_is(architecture, large_models[i].architecture) &&
            layers == large_models[i].layers)
            return shared > 1 || !large_models[i].shared;
    return false;
}

static void set_facts(struct cli_quantize_plan *p, bool has_matrix)
{
    const struct gguf_file *file = p->file;
    struct base_error ignored = BASE_ERROR_INIT;
    struct gguf_str architecture = {NULL, 0};
    if (!gguf_get_str(file, "general.architecture", &architecture, &ignored) ||
        architecture.size > 64)
        architecture.size = 0;
    const uint64_t layers = number_of(file, architecture, "block_count");
    const uint64_t loops = number_of(file, architecture, "num_loops"); /* each counts its layers */
    p->n_layer = layers * (loops ? loops : 1);
    const uint64_t heads = number_of(file, architecture, "attention.head_count");
    const uint64_t key_heads = number_of(file, architecture, "attention.head_count_kv");
    const uint64_t shared = key_heads ? heads / key_heads : 1; /* query heads per key head */
    const uint64_t experts = number_of(file, architecture, "expert_count");
    unsigned facts = has_matrix ? CLI_WHEN_MATRIX : CLI_WHEN_NO_MATRIX;
    facts |= gguf_str_is(architecture, "falcon") ? CLI_WHEN_FALCON : CLI_WHEN_NOT_FALCON;
    facts |= gguf_str_is(architecture, "bailingmoe3") ? 0 : CLI_WHEN_NOT_BAILINGMOE3;
    facts |= shared >= 4 ? CLI_WHEN_GQA_4 : 0;
    facts |= experts >= 4 ? CLI_WHEN_EXPERTS_4 : 0;
    facts |= experts == 8 ? CLI_WHEN_EXPERTS_8 : 0;
    facts |= is_large(architecture, layers, shared) ? CLI_WHEN_LARGE : 0;
    p->facts = facts;
    p->has_experts = experts > 1;
}

/* Sets the mix or type that TYPE names. */
static bool set_base(struct cli_quantize_plan *p, const char *name, bool pure,
                     struct base_error *err)
{
    const struct cli_quantize_mix *mix = cli_quantize_mix_find(name);
    const char *base = mix ? quant_type_by_id(mix->base)->name : name;
    if (!(p->base = encodable(base, "TYPE", err))) return false;
    p->file_type = CLI_FILE_TYPE_NONE;
    for (size_t i = 0; i < sizeof file_types / sizeof file_types[0]; i++)
        if (file_types[i].type == p->base->id) p->file_type = file_types[i].file_type;
    if (mix) p->file_type = mix->file_type;
    for (int i = 0; mix && !pure && i < CLI_QUANTIZE_RULES && mix->rule[i].roles; i++)
        if (!encodable(quant_type_by_id(mix->rule[i].type)->name, "TYPE", err)) return false;
    p->mix = mix && (mix->copies || !pure) ? mix : NULL;
    return true;
}

bool cli_quantize_is_copy(const struct gguf_tensor *t)
{
    return gguf_str_ends(t->name, ".columns");
}

static bool is_converted(const struct cli_quantize_plan *p, const struct gguf_tensor *t)
{
    if (p->mix && p->mix->copies) return false;
    if (t->ne[1] * t->ne[2] * t->ne[3] < 2) return false;
    if (!t->type->act && !quant_type_plain(t->type, t->ne[0])) return false;
    if (!gguf_str_ends(t->name, ".weight")) return false;
    for (const char *word = kept; *word; word += strspn(word, " ")) {
        const size_t n = strcspn(word, " ");
        if (memmem(t->name.data, t->name.size, word, n)) return false;
        word += n;
    }
    return true;
}

/* Finds for each converted tensor the first pattern that matches its name. A pattern that matches
 * none of them is BASE_USAGE: it would have no effect. */
static bool match_overrides(struct cli_quantize_plan *p, struct base_error *err)
{
    const uint64_t count = gguf_tensor_count(p->file);
    p->overridden = calloc(count + 1, sizeof *p->overridden);
    if (!p->overridden) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a plan");
    for (size_t k = 0; k < p->n_overrides; k++) {
        const struct cli_quantize_override *o = &p->override[k];
        bool matches_any = false;
        for (uint64_t i = 0; i < count; i++) {
            const struct gguf_tensor *t = gguf_tensor_at(p->file, i);
            if (!is_converted(p, t)) continue;
            const int n = pcre2_match(o->pattern, (PCRE2_SPTR)t->name.data, t->name.size, 0, 0,
                                      p->match, NULL);
            if (n == PCRE2_ERROR_NOMEMORY)
                return base_fail(err, BASE_NO_MEMORY, "not enough memory for a pattern");
            if (n < 0 && n != PCRE2_ERROR_NOMATCH)
                return base_fail_at(err, BASE_USAGE, "--tensor-type", -1,
                                    "'%s': matching it takes too long", o->text);
            matches_any |= n >= 0;
            if (n >= 0 && !p->overridden[i]) p->overridden[i] = o->type;
        }
        if (!matches_any)
            return base_fail_at(err, BASE_USAGE, "--tensor-type", -1,
                                "'%s' matches no tensor that is converted", o->text);
    }
    return true;
}

/* Compares as llama-quantize does: by layer, then by name. */
static int by_layer(const void *a, const void *b, void *file)
{
    const struct gguf_str x = gguf_tensor_at(file, *(const uint64_t *)a)->name;
    const struct gguf_str y = gguf_tensor_at(file, *(const uint64_t *)b)->name;
    const int64_t layer_x = layer_of(x), layer_y = layer_of(y);
    if (layer_x != layer_y) return layer_x < layer_y ? -1 : 1;
    return gguf_str_compare(x, y);
}

/* Numbers the matrices of each role that the rules apply to. */
static bool set_ranks(struct cli_quantize_plan *p, struct base_error *err)
{
    const uint64_t count = gguf_tensor_count(p->file);
    uint64_t *order = calloc(count + 1, sizeof *order), n_of_role[CLI_ROLES] = {0};
    p->rank = calloc(count + 1, sizeof *p->rank);
    if (!order || !p->rank) {
        free(order);
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a plan");
    }
    for (uint64_t i = 0; i < count; i++) order[i] = i;
    base_os_sort(order, count, sizeof *order, by_layer, (void *)p->file);
    for (uint64_t i = 0; i < count; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(p->file, order[i]);
        const unsigned role = role_of(t->name);
        const int64_t layer = layer_of(t->name);
        if (layer >= (int64_t)p->n_layer) p->n_layer = (uint64_t)layer + 1;
        if (role == CLI_ROLE_VALUE) p->n_values++;
        p->rank[order[i]] = n_of_role[__builtin_ctz(role)];
        if (is_converted(p, t) && !p->overridden[order[i]]) n_of_role[__builtin_ctz(role)]++;
    }
    free(order);
    return true;
}

bool cli_quantize_plan_make(struct cli_quantize_plan *p, const struct gguf_file *file,
                            const struct cli_values *values, const char *name, bool has_matrix,
                            struct base_error *err)
{
    *p = (struct cli_quantize_plan){.file = file,
                                    .tied = gguf_tensor_find(file, "output.weight") == NULL};
    set_facts(p, has_matrix);
    const char *output = values->output_type, *embedding = values->embedding_type;
    if (name && !set_base(p, name, values->pure, err)) return false;
    if (p->mix && p->mix->copies &&
        (output || embedding || values->tensor_type.count || values->pure))
        return base_fail(err, BASE_USAGE, "COPY converts nothing: no option can name a type");
    if (output && !(p->output = encodable(output, "--output-type", err))) return false;
    if (embedding && !(p->embedding = encodable(embedding, "--embedding-type", err))) return false;
    for (size_t i = 0; i < values->tensor_type.count; i++)
        if (!add_override(p, values->tensor_type.item[i], err)) return false;
    if (p->embedding && !gguf_tensor_find(file, "token_embd.weight"))
        return base_fail_at(err, BASE_USAGE, "--embedding-type", -1,
                            "the model has no token_embd.weight");
    if (p->output && p->tied && !gguf_tensor_find(file, "token_embd.weight"))
        return base_fail_at(err, BASE_USAGE, "--output-type", -1, "the model has no output.weight");
    return match_overrides(p, err) && set_ranks(p, err);
}

void cli_quantize_plan_free(struct cli_quantize_plan *p)
{
    for (size_t i = 0; i < p->n_overrides; i++) pcre2_code_free(p->override[i].pattern);
    pcre2_match_data_free(p->match);
    free(p->rank);
    free(p->overridden);
}

/* ---- Applying a plan ---- */

static unsigned facts_of_tensor(const struct cli_quantize_plan *p, uint64_t i, unsigned role)
{
    const struct gguf_tensor *t = gguf_tensor_at(p->file, i);
    const bool ranked = role == CLI_ROLE_VALUE || !p->has_experts || p->mix->ranked;
    const int64_t at = ranked ? (int64_t)p->rank[i] : layer_of(t->name);
    const int64_t count = (int64_t)(role == CLI_ROLE_VALUE ? p->n_values : p->n_layer);
    unsigned facts = p->facts;
    const bool first = at < count / 8, last = at >= 7 * count / 8;
    facts |= t->ne[2] > 1 ? CLI_WHEN_STACKED : 0;
    facts |= t->ne[0] % p->base->block_len != 0 ? CLI_WHEN_UNFIT : 0;
    if (at < 0) return facts;
    facts |= at < 2 ? CLI_WHEN_FIRST_2 : 0;
    facts |= at < 4 ? CLI_WHEN_FIRST_4 : 0;
    facts |= at < count / 16 ? CLI_WHEN_FIRST_16TH : 0;
    facts |= first ? CLI_WHEN_FIRST_8TH : 0;
    facts |= !first && !last ? CLI_WHEN_MIDDLE : 0;
    facts |= first || last || (at - count / 8) % 3 == 2 ? CLI_WHEN_SPREAD : 0;
    return facts;
}

unsigned cli_quantize_plan_role(const struct cli_quantize_plan *p, uint64_t i)
{
    const unsigned role = role_of(gguf_tensor_at(p->file, i)->name);
    return role == CLI_ROLE_EMBEDDING && p->tied ? CLI_ROLE_OUTPUT : role;
}

static const struct quant_type *wanted(const struct cli_quantize_plan *p, uint64_t i)
{
    const unsigned role = cli_quantize_plan_role(p, i);
    if (p->embedding && role_of(gguf_tensor_at(p->file, i)->name) == CLI_ROLE_EMBEDDING)
        return p->embedding;
    if (role == CLI_ROLE_OUTPUT && p->output) return p->output;
    if (p->overridden[i]) return p->overridden[i];
    if (!p->mix) return p->base;
    const unsigned facts = facts_of_tensor(p, i, role);
    for (int r = 0; r < CLI_QUANTIZE_RULES && p->mix->rule[r].roles; r++) {
        const struct cli_quantize_rule *rule = &p->mix->rule[r];
        if ((rule->roles & role) && (rule->when & ~facts) == 0) return quant_type_by_id(rule->type);
    }
    return p->base;
}

/* Returns the first fallback with more bits than a type, for blocks shorter than a super-block with
 * as many; the last one if there is none. */
static const struct quant_type *fallback_of(const struct quant_type *type)
{
    enum { LEN = 256 };
    const int64_t least = quant_row_size(type, LEN) + (type->block_len == LEN);
    int i = 0;
    while (i < N_FALLBACKS - 1 && quant_row_size(quant_type_by_id(fallbacks[i]), LEN) < least) i++;
    return quant_type_by_id(fallbacks[i]);
}

const struct quant_type *cli_quantize_own_type(const struct gguf_tensor *t)
{
    const struct quant_type *plain = quant_type_plain(t->type, t->ne[0]);
    return plain ? plain : t->type;
}

const struct quant_type *cli_quantize_plan_type(const struct cli_quantize_plan *p, uint64_t index,
                                                bool *fell_back)
{
    const struct gguf_tensor *t = gguf_tensor_at(p->file, index);
    *fell_back = false;
    if (!is_converted(p, t)) return cli_quantize_own_type(t);
    const struct quant_type *type = wanted(p, index);
    if (!type || t->ne[0] % type->block_len == 0) return type;
    *fell_back = true;
    return t->ne[0] % FALLBACK_LEN == 0 ? fallback_of(type) : quant_type_by_id(QUANT_F16);
}

const char *cli_quantize_name(const struct gguf_file *file)
{
    uint32_t in_file = CLI_FILE_TYPE_NONE;
    struct base_error ignored = BASE_ERROR_INIT; /* a wrong kind counts as absent */
    if (!gguf_get_u32(file, "general.file_type", &in_file, &ignored) ||
        in_file == CLI_FILE_TYPE_NONE)
        return NULL;
    const struct cli_quantize_mix *mix;
    for (size_t i = 0; (mix = cli_quantize_mix_at(i)); i++)
        if (!mix->copies && mix->file_type == in_file) return mix->name;
    for (size_t i = 0; i < sizeof file_types / sizeof file_types[0]; i++)
        if (file_types[i].file_type == in_file) return quant_type_by_id(file_types[i].type)->name;
    return NULL;
}
