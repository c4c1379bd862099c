/* models/weights.c: tensors by name and shape: a table, and one loop over it. See weights.h. */
#include "models/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The dimensions that tensors are made of; layers may differ, so each is asked per layer. */
enum dim {
    DIM_ONE,
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

enum kind {
    VECTOR, /* a pointer; NAME.weight of [inputs] */
    MATRIX, /* a pointer; NAME.weight of [outputs][inputs] */
    LINEAR, /* a model_linear; NAME.weight and, where they are there, NAME.bias and NAME.scale */
    STACK   /* a model_linear of n_expert matrices */
};

enum need {
    OPTIONAL,
    REQUIRED,
    UNLESS_FUSED /* required where attn_qkv is absent */
};

struct row {
    const char *name; /* with "blk.N." before it for a layer's tensors */
    size_t field;     /* where the pointer or model_linear lies */
    enum kind kind;
    enum dim inputs, outputs;
    enum need need;
    unsigned feature; /* only in models with this feature (0: all) */
};

#define GLOBAL(field) offsetof(struct model_weights, field)
#define LAYER(field)  offsetof(struct model_layer_weights, field)

static const struct row global_rows[] = {
    {"token_embd", GLOBAL(token_embd), MATRIX, DIM_EMBD, DIM_VOCAB, REQUIRED, 0},
    {"output_norm", GLOBAL(output_norm), VECTOR, DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"output", GLOBAL(output), LINEAR, DIM_EMBD, DIM_VOCAB, OPTIONAL, 0},
    {"rope_freqs", GLOBAL(rope_freqs), VECTOR, DIM_ROT, DIM_ONE, OPTIONAL, 0},
};

static const struct row layer_rows[] = {
    {"attn_norm", LAYER(attn_norm), VECTOR, DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"attn_qkv", LAYER(attn_qkv), LINEAR, DIM_EMBD, DIM_QKV, OPTIONAL, 0},
    {"attn_q", LAYER(attn_q), LINEAR, DIM_EMBD, DIM_Q, UNLESS_FUSED, 0},
    {"attn_k", LAYER(attn_k), LINEAR, DIM_EMBD, DIM_K, UNLESS_FUSED, 0},
    {"attn_v", LAYER(attn_v), LINEAR, DIM_EMBD, DIM_V, UNLESS_FUSED, 0},
    {"attn_q_norm", LAYER(attn_q_norm), VECTOR, DIM_HEAD, DIM_ONE, REQUIRED, MODEL_QK_NORM},
    {"attn_k_norm", LAYER(attn_k_norm), VECTOR, DIM_HEAD, DIM_ONE, REQUIRED, MODEL_QK_NORM},
    {"attn_output", LAYER(attn_out), LINEAR, DIM_OUT, DIM_EMBD, REQUIRED, 0},
    {"post_attention_norm", LAYER(attn_post_norm), VECTOR, DIM_EMBD, DIM_ONE, REQUIRED,
     MODEL_POST_NORMS},
    {"ffn_norm", LAYER(ffn_norm), VECTOR, DIM_EMBD, DIM_ONE, REQUIRED, 0},
    {"ffn_gate", LAYER(ffn_gate), LINEAR, DIM_EMBD, DIM_FF, REQUIRED, MODEL_DENSE},
    {"ffn_up", LAYER(ffn_up), LINEAR, DIM_EMBD, DIM_FF, REQUIRED, MODEL_DENSE},
    {"ffn_down", LAYER(ffn_down), LINEAR, DIM_FF, DIM_EMBD, REQUIRED, MODEL_DENSE},
    {"ffn_gate_inp", LAYER(ffn_router), LINEAR, DIM_EMBD, DIM_EXPERTS, REQUIRED, MODEL_EXPERTS},
    {"ffn_gate_exps", LAYER(ffn_gate_exps), STACK, DIM_EMBD, DIM_FF, REQUIRED, MODEL_EXPERTS},
    {"ffn_up_exps", LAYER(ffn_up_exps), STACK, DIM_EMBD, DIM_FF, REQUIRED, MODEL_EXPERTS},
    {"ffn_down_exps", LAYER(ffn_down_exps), STACK, DIM_FF, DIM_EMBD, REQUIRED, MODEL_EXPERTS},
    {"post_ffw_norm", LAYER(ffn_post_norm), VECTOR, DIM_EMBD, DIM_ONE, REQUIRED, MODEL_POST_NORMS},
};

enum {
    N_GLOBAL = sizeof global_rows / sizeof *global_rows,
    N_LAYER = sizeof layer_rows / sizeof *layer_rows,
    TENSORS_PER_ROW = 3 /* weight, bias, scale */
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
    bool *is_bound; /* [tensors of the file] */
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
    t->type->kernel[CPU_SCALAR].decode(0, (int64_t)t->ne[0], t->data, values);
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
    if (!t->type->act)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "tensors of type %s cannot be computed with yet", t->type->name);
    return true;
}

/* Binds one tensor of the shape [ne2][ne1][ne0]; *out stays NULL where the file has none. */
static bool bind(struct binder *b, const char *name, const int64_t ne[3], bool is_vector,
                 struct engine_tensor **out)
{
    const struct gguf_tensor *t = gguf_tensor_find(b->file, name);
    if (!t) return true;
    if (!check_shape(b, t, name, ne)) return false;
    const struct quant_type *type = t->type;
    const void *data = t->data;
    if (is_vector && type->id != QUANT_F32) {
        type = quant_type_by_id(QUANT_F32);
        data = widen(b, t, name);
        if (!data) return false;
    }
    struct engine_tensor *tensor = &b->w->tensors[b->w->n_tensors];
    /* The map is read-only; the engine never writes to a leaf that is no input. */
    if (!engine_tensor_init(tensor, type, 3, ne, (void *)data, name, b->err)) return false;
    b->w->n_tensors++;
    b->is_bound[t - gguf_tensor_at(b->file, 0)] = true;
    *out = tensor;
    return true;
}

/* Binds what a row names; `prefix` is "" or "blk.N.". */
static bool bind_row(struct binder *b, const struct row *row, const char *prefix, uint32_t layer,
                     bool required, void *field)
{
    const int64_t inputs = dim_of(row->inputs, b->p, layer);
    const int64_t outputs = dim_of(row->outputs, b->p, layer);
    const int64_t depth = row->kind == STACK ? b->p->n_expert : 1;
    char name[64];
    struct model_linear found = {0};
    snprintf(name, sizeof name, "%s%s.weight", prefix, row->name);
    if (!bind(b, name, (int64_t[]){inputs, outputs, depth}, row->kind == VECTOR, &found.weight))
        return false;
    if (!found.weight && required)
        return base_fail_at(b->err, BASE_MODEL, name, -1, "missing tensor");
    if (row->kind == VECTOR || row->kind == MATRIX) {
        *(struct engine_tensor **)field = found.weight;
        return true;
    }
    snprintf(name, sizeof name, "%s%s.scale", prefix, row->name);
    if (!bind(b, name, (int64_t[]){depth, 1, 1}, true, &found.scale)) return false;
    snprintf(name, sizeof name, "%s%s.bias", prefix, row->name);
    if (row->kind == LINEAR && !bind(b, name, (int64_t[]){outputs, 1, 1}, true, &found.bias))
        return false;
    *(struct model_linear *)field = found;
    return true;
}

static bool bind_layer(struct binder *b, uint32_t layer)
{
    struct model_layer_weights *l = &b->w->layer[layer];
    char prefix[24];
    snprintf(prefix, sizeof prefix, "blk.%u.", layer);
    for (size_t i = 0; i < N_LAYER; i++) {
        const struct row *row = &layer_rows[i];
        if (row->feature && !(b->p->features & row->feature)) continue;
        bool required = row->need == REQUIRED || (row->need == UNLESS_FUSED && !l->attn_qkv.weight);
        if (!bind_row(b, row, prefix, layer, required, (char *)l + row->field)) return false;
    }
    return true;
}

/* What may be left out: heads for other uses than the next token, and the scales that engines with
 * 4-bit activations need. */
static bool is_harmless(const struct gguf_tensor *t)
{
    static const char input_scale[] = ".input_scale";
    const size_t end = sizeof input_scale - 1;
    static const char *const names[] = {"cls.weight", "cls.output.weight", "dense_2.weight",
                                        "dense_3.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == t->name.size && !memcmp(names[i], t->name.data, t->name.size))
            return true;
    return t->name.size > end && !memcmp(t->name.data + t->name.size - end, input_scale, end);
}

/* A tensor that is left over is a part of the model that would be left out: a wrong answer. */
static bool check_left_over(struct binder *b)
{
    for (uint64_t i = 0; i < gguf_tensor_count(b->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(b->file, i);
        if (b->is_bound[i] || is_harmless(t)) continue;
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
    struct binder b = {w, p, file, calloc(gguf_tensor_count(file), sizeof(bool)), err};
    const size_t most = (N_GLOBAL + (size_t)p->n_layer * N_LAYER) * TENSORS_PER_ROW;
    *w = (struct model_weights){0};
    w->layer = calloc(p->n_layer, sizeof *w->layer);
    w->tensors = calloc(most, sizeof *w->tensors);
    w->vectors = calloc(most, sizeof *w->vectors);
    if (!w->layer || !w->tensors || !w->vectors || !b.is_bound) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the tensor table");
        goto fail;
    }
    for (size_t i = 0; i < N_GLOBAL; i++)
        if (!bind_row(&b, &global_rows[i], "", 0, global_rows[i].need == REQUIRED,
                      (char *)w + global_rows[i].field))
            goto fail;
    if (!w->output.weight) w->output.weight = w->token_embd;
    for (uint32_t i = 0; i < p->n_layer; i++)
        if (!bind_layer(&b, i)) goto fail;
    if (!check_left_over(&b)) goto fail;
    free(b.is_bound);
    return true;

fail:
    free(b.is_bound);
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
