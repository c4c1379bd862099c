/* models/params.c: a model's numbers from its metadata, checked. See models/arch/arch.h.
 *
 * Keys are "ARCH.name" (GGUF specification). Nothing is believed: a number that later sizes or
 * divides something is bounded here, so that builders need no checks. */
#include "models/arch/arch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generous bounds that keep every product of two of these numbers far from overflow. */
enum {
    MAX_DIM = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_LAYERS = 1 << 12,
    MAX_CTX = 1 << 28,
    MAX_EXPERTS = 1 << 12
};

struct reader {
    const struct gguf_file *file;
    const struct model_arch *arch;
    struct base_error *err;
    char key[128];
};

static const char *key_of(struct reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->arch->name, name);
    return r->key;
}

static bool has(struct reader *r, const char *name)
{
    return gguf_kv_find(r->file, key_of(r, name)) != NULL;
}

/* A number in least..most; `required` or else *out keeps its value when the key is absent. */
static bool read_u32(struct reader *r, const char *name, bool required, uint32_t least,
                     uint32_t most, uint32_t *out)
{
    if (!has(r, name)) {
        if (!required) return true;
        return base_fail_at(r->err, BASE_MODEL, r->key, -1, "this key is missing");
    }
    uint32_t value = *out;
    if (!gguf_get_u32(r->file, r->key, &value, r->err)) return false;
    if (value < least || value > most)
        return base_fail_at(r->err, BASE_MODEL, r->key, -1, "%u is not between %u and %u", value,
                            least, most);
    *out = value;
    return true;
}

/* A number per layer: one for all, or an array of n_layer. */
static bool read_per_layer(struct reader *r, const char *name, uint32_t layer, uint32_t n_layer,
                           uint32_t most, uint32_t *out)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, key_of(r, name));
    if (!kv || kv->kind != GGUF_ARRAY) return read_u32(r, name, false, 1, most, out);
    if (kv->item == GGUF_STRING || kv->item == GGUF_F32 || kv->item == GGUF_F64 ||
        kv->count < n_layer)
        return base_fail_at(r->err, BASE_MODEL, r->key, (int64_t)kv->offset,
                            "an array of %u integers was expected", n_layer);
    int64_t value = gguf_array_int(kv, layer);
    if (value < 1 || value > most)
        return base_fail_at(r->err, BASE_MODEL, r->key, (int64_t)kv->offset,
                            "item %u is %lld, not between 1 and %u", layer, (long long)value, most);
    *out = (uint32_t)value;
    return true;
}

/* A float that is finite and at least `least`. */
static bool read_f32(struct reader *r, const char *name, float least, float *out)
{
    float value = *out;
    if (!gguf_get_f32(r->file, key_of(r, name), &value, r->err)) return false;
    if (!isfinite(value) || value < least)
        return base_fail_at(r->err, BASE_MODEL, r->key, -1, "%g is out of range", (double)value);
    *out = value;
    return true;
}

static bool str_is(struct gguf_str s, const char *text)
{
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

/* RoPE as the full-attention layers use it. */
static bool read_rope(struct reader *r, struct model_params *p, struct engine_rope *rope)
{
    uint32_t n_rot = p->n_embd_head_k, n_orig = p->n_ctx_train;
    float factor = 0.0f, attn_factor = 1.0f;
    struct gguf_str scaling = {"linear", 6};
    *rope = (struct engine_rope){.kind = r->arch->rope,
                                 .freq_base = 10000.0f,
                                 .freq_scale = 1.0f,
                                 .attn_factor = 1.0f,
                                 .beta_fast = 32.0f,
                                 .beta_slow = 1.0f};
    if (!read_u32(r, "rope.dimension_count", false, 2, p->n_embd_head_k, &n_rot) ||
        !read_u32(r, "rope.scaling.original_context_length", false, 1, MAX_CTX, &n_orig) ||
        !read_f32(r, "rope.freq_base", 1.0f, &rope->freq_base) ||
        !read_f32(r, "rope.scaling.attn_factor", 0.0f, &attn_factor) ||
        !gguf_get_str(r->file, key_of(r, "rope.scaling.type"), &scaling, r->err))
        return false;
    /* "rope.scale_linear" is the older name of the factor. */
    const char *factor_key =
        has(r, "rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    if (!read_f32(r, factor_key, 0.0f, &factor)) return false;
    if (n_rot % 2)
        return base_fail_at(r->err, BASE_MODEL, key_of(r, "rope.dimension_count"), -1, "%u is odd",
                            n_rot);
    rope->n_rot = (int)n_rot;
    rope->n_ctx_orig = (int)n_orig;
    bool yarn = str_is(scaling, "yarn"), none = str_is(scaling, "none");
    if (!yarn && !none && !str_is(scaling, "linear"))
        return base_fail_at(r->err, BASE_MODEL, key_of(r, "rope.scaling.type"), -1,
                            "RoPE scaling '%.*s' is not supported (none, linear and yarn are)",
                            (int)(scaling.size & 0xff), scaling.data);
    if (factor > 0.0f && !none) rope->freq_scale = 1.0f / factor;
    /* YaRN (Peng et al. 2023) in its standard form; its magnitude is part of the op, and only
     * stretching has one. */
    if (yarn) rope->ext_factor = 1.0f;
    if (yarn && factor > 0.0f && factor < 1.0f)
        rope->attn_factor = 1.0f / (1.0f + 0.1f * logf(factor));
    rope->attn_factor *= attn_factor;
    return true;
}

/* Gives every layer its window and its RoPE. */
static bool read_layers(struct reader *r, struct model_params *p)
{
    struct engine_rope full;
    uint32_t window = 0, period = r->arch->window_period;
    float window_base = r->arch->window_rope_base;
    if (!read_rope(r, p, &full)) return false;
    if (period &&
        (!read_u32(r, "attention.sliding_window", false, 0, MAX_CTX, &window) ||
         !read_u32(r, "attention.sliding_window_pattern", false, 1, MAX_LAYERS, &period) ||
         !read_f32(r, "rope.freq_base_swa", 1.0f, &window_base)))
        return false;
    for (uint32_t i = 0; i < p->n_layer; i++) {
        struct model_layer_params *l = &p->layer[i];
        l->n_head = 0;
        l->n_ff = 0;
        if (!read_per_layer(r, "attention.head_count", i, p->n_layer, MAX_HEADS, &l->n_head))
            return false;
        l->n_head_kv = l->n_head;
        if (!read_per_layer(r, "attention.head_count_kv", i, p->n_layer, MAX_HEADS,
                            &l->n_head_kv) ||
            !read_per_layer(r, "feed_forward_length", i, p->n_layer, MAX_DIM, &l->n_ff))
            return false;
        if (l->n_head == 0 || l->n_ff == 0)
            return base_fail_at(
                r->err, BASE_MODEL,
                key_of(r, l->n_head ? "feed_forward_length" : "attention.head_count"), -1,
                "this key is missing");
        if (l->n_head % l->n_head_kv)
            return base_fail_at(r->err, BASE_MODEL, key_of(r, "attention.head_count_kv"), -1,
                                "%u heads cannot share %u key heads", l->n_head, l->n_head_kv);
        l->rope = full;
        if (window && (i % period) != period - 1) {
            l->window = window;
            l->rope.freq_base = window_base;
            l->rope.freq_scale = 1.0f; /* windowed layers are not stretched */
        }
    }
    return true;
}

/* The size of a head, which may differ from E / H. */
static bool read_heads(struct reader *r, struct model_params *p)
{
    uint32_t n_head = 0;
    if (!read_per_layer(r, "attention.head_count", 0, 1, MAX_HEADS, &n_head)) return false;
    if (n_head == 0)
        return base_fail_at(r->err, BASE_MODEL, key_of(r, "attention.head_count"), -1,
                            "this key is missing");
    p->n_embd_head_k = p->n_embd_head_v = p->n_embd / n_head;
    if (!read_u32(r, "attention.key_length", false, 1, MAX_DIM, &p->n_embd_head_k) ||
        !read_u32(r, "attention.value_length", false, 1, MAX_DIM, &p->n_embd_head_v))
        return false;
    if (p->n_embd_head_k == 0 || p->n_embd_head_v == 0)
        return base_fail_at(r->err, BASE_MODEL, key_of(r, "attention.head_count"), -1,
                            "%u heads of an embedding of %u", n_head, p->n_embd);
    bool by_embd = false;
    for (int i = 0; i < MODEL_MAX_KNOWN && r->arch->known[i].n_layer > 0; i++)
        if (r->arch->known[i].n_layer == p->n_layer)
            by_embd = r->arch->known[i].attention_scale == MODEL_SCALE_BY_EMBD;
    p->attention_scale = 1.0f / sqrtf((float)(by_embd ? p->n_embd / n_head : p->n_embd_head_k));
    return true;
}

/* Mixtures of experts: counts, and whether the architecture's blocks know them. */
static bool read_experts(struct reader *r, struct model_params *p)
{
    if (!read_u32(r, "expert_count", false, 0, MAX_EXPERTS, &p->n_expert)) return false;
    p->features = r->arch->features | (p->n_expert ? MODEL_EXPERTS : MODEL_DENSE);
    if (p->n_expert == 0) return true;
    if (!(r->arch->features & MODEL_MAY_MIX))
        return base_fail_at(r->err, BASE_MODEL, r->key, -1,
                            "mixtures of experts are not supported for %s", r->arch->name);
    return read_u32(r, "expert_used_count", true, 1, p->n_expert, &p->n_expert_used);
}

static bool read_vocab(struct reader *r, struct model_params *p)
{
    const struct gguf_tensor *t = gguf_tensor_find(r->file, "token_embd.weight");
    if (!t) return base_fail_at(r->err, BASE_MODEL, "token_embd.weight", -1, "missing tensor");
    if (t->n_dims != 2 || t->ne[0] != p->n_embd || t->ne[1] > INT32_MAX)
        return base_fail_at(r->err, BASE_MODEL, "token_embd.weight", -1,
                            "shape [%llu][%llu], but the embedding length is %u",
                            (unsigned long long)t->ne[1], (unsigned long long)t->ne[0], p->n_embd);
    p->n_vocab = (uint32_t)t->ne[1];
    return true;
}

/* Names what is supported, as many as fit. */
static bool fail_arch(struct gguf_str name, struct base_error *err)
{
    char names[128] = "";
    size_t used = 0;
    const struct model_arch *arch;
    for (size_t i = 0; (arch = model_arch_at(i)) && used < sizeof names; i++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", arch->name);
    return base_fail_at(err, BASE_MODEL, "general.architecture", -1,
                        "'%.*s' is not supported (%s are)", (int)(name.size & 0xff), name.data,
                        names);
}

bool model_params_read(struct model_params *p, const struct gguf_file *file, struct base_error *err)
{
    struct gguf_str name = {NULL, 0};
    *p = (struct model_params){0};
    if (!gguf_get_str(file, "general.architecture", &name, err)) return false;
    if (!name.data)
        return base_fail_at(err, BASE_MODEL, "general.architecture", -1, "this key is missing");
    p->arch = model_arch_find(name);
    if (!p->arch) return fail_arch(name, err);
    struct reader r = {.file = file, .arch = p->arch, .err = err};
    p->norm_eps = -1.0f;
    /* Every layer has tensors of its own, which bounds the count by what the file holds. */
    uint64_t n_tensors = gguf_tensor_count(file);
    if (n_tensors == 0)
        return base_fail(err, BASE_MODEL,
                         "the file holds no tensors: a vocabulary without a model");
    uint32_t most_layers = n_tensors < MAX_LAYERS ? (uint32_t)n_tensors : MAX_LAYERS;
    if (!read_u32(&r, "block_count", true, 1, most_layers, &p->n_layer) ||
        !read_u32(&r, "embedding_length", true, 1, MAX_DIM, &p->n_embd) ||
        !read_u32(&r, "context_length", true, 1, MAX_CTX, &p->n_ctx_train) ||
        !read_f32(&r, "attention.layer_norm_rms_epsilon", 0.0f, &p->norm_eps) ||
        !read_f32(&r, "final_logit_softcapping", 0.0f, &p->logit_softcap) || !read_heads(&r, p) ||
        !read_experts(&r, p) || !read_vocab(&r, p))
        return false;
    if (p->norm_eps < 0.0f)
        return base_fail_at(err, BASE_MODEL, key_of(&r, "attention.layer_norm_rms_epsilon"), -1,
                            "this key is missing");
    p->layer = calloc(p->n_layer, sizeof *p->layer);
    if (!p->layer) return base_fail(err, BASE_NO_MEMORY, "no memory for %u layers", p->n_layer);
    if (read_layers(&r, p)) return true;
    model_params_free(p);
    return false;
}

void model_params_free(struct model_params *p)
{
    free(p->layer);
    *p = (struct model_params){0};
}
