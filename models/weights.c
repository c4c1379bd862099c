/* models/weights.c: tensors by name and shape: a table, and one loop over it. See weights.h. */
#include "models/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The dimensions that tensors are made of; layers may differ, so each is asked per layer. */
enum dim {
    DIM_ONE, /* no second dimension: a vector */
    DIM_EMBD,
    DIM_VOCAB,
    DIM_Q,    /* H D */
    DIM_K,    /* KH D */
    DIM_V,    /* KH DV */
    DIM_QKV,  /* the three together */
    DIM_OUT,  /* H DV */
    DIM_HEAD, /* D */
    DIM_FF,
    DIM_EXPERTS,
    DIM_ROT /* n_rot / 2 */
};

enum need {
    OPTIONAL,
    REQUIRED,
    UNLESS_FUSED, /* required where attn_qkv is absent */
    STACKED       /* required: n_expert matrices */
};

struct row {
    const char *name; /* with "blk.%u." before it for a layer's tensors */
    size_t field;     /* where the pointer goes */
    enum dim inputs, outputs;
    enum need need;
    unsigned feature; /* only in models with this feature (0: all) */
};

#define GLOBAL(field) offsetof(struct model_weights, field)
#define LAYER(field)  offsetof(struct model_layer_weights, field)

static const struct row global_rows[] = {
    {"token_embd.weight", GLOBAL(token_embd), DIM_EMBD, DIM_VOCAB, REQUIRED, 0},
    {"output_norm.weight", GLOBAL(output_norm), DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"output.weight", GLOBAL(output), DIM_EMBD, DIM_VOCAB, OPTIONAL, 0},
    {"output.bias", GLOBAL(output_bias), DIM_VOCAB, DIM_ONE, OPTIONAL, 0},
    {"rope_freqs.weight", GLOBAL(rope_freqs), DIM_ROT, DIM_ONE, OPTIONAL, 0},
};

static const struct row layer_rows[] = {
    {"attn_norm.weight", LAYER(attn_norm), DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"attn_qkv.weight", LAYER(attn_qkv), DIM_EMBD, DIM_QKV, OPTIONAL, 0},
    {"attn_q.weight", LAYER(attn_q), DIM_EMBD, DIM_Q, UNLESS_FUSED, 0},
    {"attn_k.weight", LAYER(attn_k), DIM_EMBD, DIM_K, UNLESS_FUSED, 0},
    {"attn_v.weight", LAYER(attn_v), DIM_EMBD, DIM_V, UNLESS_FUSED, 0},
    {"attn_qkv.bias", LAYER(attn_qkv_bias), DIM_QKV, DIM_ONE, OPTIONAL, 0},
    {"attn_q.bias", LAYER(attn_q_bias), DIM_Q, DIM_ONE, OPTIONAL, 0},
    {"attn_k.bias", LAYER(attn_k_bias), DIM_K, DIM_ONE, OPTIONAL, 0},
    {"attn_v.bias", LAYER(attn_v_bias), DIM_V, DIM_ONE, OPTIONAL, 0},
    {"attn_q_norm.weight", LAYER(attn_q_norm), DIM_HEAD, DIM_ONE, REQUIRED, MODEL_QK_NORM},
    {"attn_k_norm.weight", LAYER(attn_k_norm), DIM_HEAD, DIM_ONE, REQUIRED, MODEL_QK_NORM},
    {"attn_output.weight", LAYER(attn_out), DIM_OUT, DIM_EMBD, REQUIRED, 0},
    {"attn_output.bias", LAYER(attn_out_bias), DIM_EMBD, DIM_ONE, OPTIONAL, 0},
    {"post_attention_norm.weight", LAYER(attn_post_norm), DIM_EMBD, DIM_ONE, REQUIRED,
     MODEL_POST_NORMS},
    {"ffn_norm.weight", LAYER(ffn_norm), DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"ffn_gate.weight", LAYER(ffn_gate), DIM_EMBD, DIM_FF, REQUIRED, MODEL_DENSE},
    {"ffn_up.weight", LAYER(ffn_up), DIM_EMBD, DIM_FF, REQUIRED, MODEL_DENSE},
    {"ffn_down.weight", LAYER(ffn_down), DIM_FF, DIM_EMBD, REQUIRED, MODEL_DENSE},
    {"ffn_gate.bias", LAYER(ffn_gate_bias), DIM_FF, DIM_ONE, OPTIONAL, MODEL_DENSE},
    {"ffn_up.bias", LAYER(ffn_up_bias), DIM_FF, DIM_ONE, OPTIONAL, MODEL_DENSE},
    {"ffn_down.bias", LAYER(ffn_down_bias), DIM_EMBD, DIM_ONE, OPTIONAL, MODEL_DENSE},
    {"post_ffw_norm.weight", LAYER(ffn_post_norm), DIM_EMBD, DIM_ONE, REQUIRED, MODEL_POST_NORMS},
    {"ffn_gate_inp.weight", LAYER(ffn_router), DIM_EMBD, DIM_EXPERTS, REQUIRED, MODEL_EXPERTS},
    {"ffn_gate_exps.weight", LAYER(ffn_gate_exps), DIM_EMBD, DIM_FF, STACKED, MODEL_EXPERTS},
    {"ffn_up_exps.weight", LAYER(ffn_up_exps), DIM_EMBD, DIM_FF, STACKED, MODEL_EXPERTS},
    {"ffn_down_exps.weight", LAYER(ffn_down_exps), DIM_FF, DIM_EMBD, STACKED, MODEL_EXPERTS},
};

enum {
    N_GLOBAL = sizeof global_rows / sizeof *global_rows,
    N_LAYER = sizeof layer_rows / sizeof *layer_rows
};

static int64_t dim_of(enum dim dim, const struct model_params *p, uint32_t layer)
{
    const struct model_layer_params *l = &p->layer[layer];
    const int64_t d = p->n_embd_head_k, dv = p->n_embd_head_v;
    switch (dim) {
    case DIM_ONE:
        return 1;
    case DIM_EMBD:
        return p->n_embd;
    case DIM_VOCAB:
        return p->n_vocab;
    case DIM_Q:
        return l->n_head * d;
    case DIM_K:
        return l->n_head_kv * d;
    case DIM_V:
        return l->n_head_kv * dv;
    case DIM_QKV:
        return (l->n_head + l->n_head_kv) * d + l->n_head_kv * dv;
    case DIM_OUT:
        return l->n_head * dv;
    case DIM_HEAD:
        return d;
    case DIM_FF:
        return l->n_ff;
    case DIM_EXPERTS:
        return p->n_expert;
    case DIM_ROT:
        return l->rope.n_rot / 2;
    }
    return 0;
}

struct binder {
    struct model_weights *w;
    const struct model_params *p;
    const struct gguf_file *file;
    struct base_error *err;
};

/* Vectors take part in float arithmetic as F32: other types are widened once, here. */
static float *widen(struct binder *b, const struct gguf_tensor *t, const char *name)
{
    float *values = malloc(t->ne[0] * sizeof *values);
    if (!values) {
        base_fail_at(b->err, BASE_NO_MEMORY, name, -1, "no memory for %llu values",
                     (unsigned long long)t->ne[0]);
        return NULL;
    }
    t->type->kernel[QUANT_SCALAR].decode((int64_t)t->ne[0], t->data, values);
    return b->w->vectors[b->w->n_vectors++] = values;
}

static bool check_shape(struct binder *b, const struct gguf_tensor *t, const char *name,
                        const int64_t ne[3])
{
    bool fits = (int64_t)t->ne[0] == ne[0] && (int64_t)t->ne[1] == ne[1] &&
                (int64_t)t->ne[2] == ne[2] && t->ne[3] == 1;
    if (!fits)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "shape [%llu][%llu][%llu], expected [%lld][%lld][%lld]",
                            (unsigned long long)t->ne[2], (unsigned long long)t->ne[1],
                            (unsigned long long)t->ne[0], (long long)ne[2], (long long)ne[1],
                            (long long)ne[0]);
    if (t->type->act == QUANT_ACT_NONE)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "tensors of type %s cannot be computed with yet", t->type->name);
    return true;
}

/* Binds one row; *out stays NULL where the file has no such tensor and need not have it. */
static bool bind(struct binder *b, const struct row *row, const char *name, uint32_t layer,
                 bool required, struct engine_tensor **out)
{
    const struct gguf_tensor *t = gguf_tensor_find(b->file, name);
    if (!t) {
        if (!required) return true;
        return base_fail_at(b->err, BASE_MODEL, name, -1, "missing tensor");
    }
    const int64_t ne[3] = {dim_of(row->inputs, b->p, layer), dim_of(row->outputs, b->p, layer),
                           row->need == STACKED ? b->p->n_expert : 1};
    if (!check_shape(b, t, name, ne)) return false;
    const struct quant_type *type = t->type;
    const void *data = t->data;
    if (row->outputs == DIM_ONE && type->id != QUANT_F32) {
        type = quant_type_by_id(QUANT_F32);
        data = widen(b, t, name);
        if (!data) return false;
    }
    struct engine_tensor *tensor = &b->w->tensors[b->w->n_tensors];
    /* The map is read-only; the engine never writes to a leaf that is no input. */
    if (!engine_tensor_init(tensor, type, 3, ne, (void *)data, name, b->err)) return false;
    b->w->n_tensors++;
    *out = tensor;
    return true;
}

static bool bind_layer(struct binder *b, uint32_t layer)
{
    struct model_layer_weights *l = &b->w->layer[layer];
    for (size_t i = 0; i < N_LAYER; i++) {
        const struct row *row = &layer_rows[i];
        char name[64];
        if (row->feature && !(b->p->features & row->feature)) continue;
        snprintf(name, sizeof name, "blk.%u.%s", layer, row->name);
        bool required = row->need == REQUIRED || row->need == STACKED ||
                        (row->need == UNLESS_FUSED && !l->attn_qkv);
        if (!bind(b, row, name, layer, required, (struct engine_tensor **)((char *)l + row->field)))
            return false;
    }
    return true;
}

static bool is_bound(const struct model_weights *w, const struct gguf_tensor *t)
{
    for (uint32_t i = 0; i < w->n_tensors; i++)
        if (strlen(w->tensors[i].name) == t->name.size &&
            !memcmp(w->tensors[i].name, t->name.data, t->name.size))
            return true;
    return false;
}

/* Heads for other uses than the next token: leaving them out changes nothing here. */
static bool is_other_head(const struct gguf_tensor *t)
{
    static const char *const names[] = {"cls.weight", "cls.output.weight", "dense_2.weight",
                                        "dense_3.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == t->name.size && !memcmp(names[i], t->name.data, t->name.size))
            return true;
    return false;
}

/* A tensor that is left over is a part of the model that would be left out: a wrong answer. */
static bool check_left_over(struct binder *b)
{
    const uint64_t n = gguf_tensor_count(b->file);
    if (n == b->w->n_tensors) return true;
    for (uint64_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(b->file, i);
        if (is_other_head(t) || is_bound(b->w, t)) continue;
        char name[ENGINE_NAME_SIZE * 2];
        snprintf(name, sizeof name, "%.*s", (int)(t->name.size & 0x7f), t->name.data);
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "architecture %s has no such tensor here: the model is not supported",
                            b->p->arch->name);
    }
    return true;
}

bool model_weights_bind(struct model_weights *w, const struct model_params *p,
                        const struct gguf_file *file, struct base_error *err)
{
    struct binder b = {w, p, file, err};
    const size_t most = N_GLOBAL + (size_t)p->n_layer * N_LAYER;
    *w = (struct model_weights){0};
    w->layer = calloc(p->n_layer, sizeof *w->layer);
    w->tensors = calloc(most, sizeof *w->tensors);
    w->vectors = calloc(most, sizeof *w->vectors);
    if (!w->layer || !w->tensors || !w->vectors) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the tensor table");
        goto fail;
    }
    for (size_t i = 0; i < N_GLOBAL; i++)
        if (!bind(&b, &global_rows[i], global_rows[i].name, 0, global_rows[i].need == REQUIRED,
                  (struct engine_tensor **)((char *)w + global_rows[i].field)))
            goto fail;
    if (!w->output) w->output = w->token_embd;
    for (uint32_t i = 0; i < p->n_layer; i++)
        if (!bind_layer(&b, i)) goto fail;
    if (!check_left_over(&b)) goto fail;
    return true;

fail:
    model_weights_free(w);
    return false;
}

void model_weights_free(struct model_weights *w)
{
    for (uint32_t i = 0; i < w->n_vectors; i++) free(w->vectors[i]);
    free(w->vectors);
    free(w->tensors);
    free(w->layer);
    *w = (struct model_weights){0};
}
