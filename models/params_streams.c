/* models/params_streams.c: reads the numbers of streams around sublayers (hyper-connections,
 * attention to earlier streams), of gated units, and of what depends on the ids before a token. See
 * models/params.h. */
#include "models/params.h"
#include <float.h>
#include <math.h>

struct model_hyper model_hyper_gated(const struct model_params *p, const struct gguf_tensor *norm,
                                     bool end)
{
    const uint32_t n = p->n_hyper, all = n * p->n_embd;
    const bool rows = norm && norm->ne[1] == n;
    return (struct model_hyper){.n_in = all,
                                .n_norm = rows ? p->n_embd : all,
                                .n_norm_rows = rows ? n : 1,
                                .n_low = p->hyper_rank,
                                .n_back = end ? 0 : n};
}

static bool read_hyper(struct model_reader *r, struct model_params *p)
{
    const bool mean = p->residual == MODEL_HYPER_MEAN;
    const bool mixed = p->residual == MODEL_HYPER_MIXED || mean;
    if (p->residual == MODEL_HYPER_GATED) {
        if (!model_read_u32(r, "hyper_connection.count", MODEL_REQUIRED, 2, 64, &p->n_hyper) ||
            !model_read_u32(r, "hyper_connection.low_rank", MODEL_REQUIRED, 1, MODEL_MAX_DIM,
                            &p->hyper_rank))
            return false;
        p->ends.hyper =
            model_hyper_gated(p, gguf_tensor_find(r->file, "output_hc_norm.weight"), true);
        return true;
    }
    if (p->residual != MODEL_HYPER && !mixed) return true;
    p->hyper_magnitude = 2.0f;
    if (!model_read_u32(r, "hyper_connection.count", MODEL_REQUIRED, 1, 64, &p->n_hyper) ||
        !model_read_f32(r, "hyper_connection.epsilon", MODEL_REQUIRED, 0.0f, &p->hyper_eps) ||
        (mixed && !model_read_u32(r, "hyper_connection.sinkhorn_iterations", MODEL_REQUIRED, 1,
                                  1000, &p->sinkhorn)) ||
        (!mixed && !model_read_f32(r, "hyper_connection.magnitude", MODEL_REQUIRED, 0.0f,
                                   &p->hyper_magnitude)))
        return false;
    if (!mean)
        p->ends.hyper =
            (struct model_hyper){.n_in = p->n_hyper * p->n_embd, .n_mix = p->n_hyper, .n_scale = 1};
    return true;
}

/* Returns the array of a key with at least n integers, NULL after an error. */
static const struct gguf_kv *read_integers(struct model_reader *r, const char *name, uint32_t n)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    if (gguf_is_integers(kv) && kv->count >= n) return kv;
    model_reader_fail(r, name, "an array of %u integers was expected", n);
    return NULL;
}

/* Reads the numbers of the hash of n-grams, and finds the rows of the table. */
static bool read_ngram_heads(struct model_reader *r, struct model_params *p)
{
    static const char sizes[] = "ple.head_vocab_sizes";
    struct model_ngram *n = &p->ngram;
    const struct gguf_kv *by, *first, *rows;
    const struct gguf_tensor *t = gguf_tensor_find(r->file, "per_layer_token_embd.weight");
    if (!(by = read_integers(r, "ple.layer_multipliers", n->size)) ||
        !(first = read_integers(r, "ple.head_offsets", n->n_head)) ||
        !(rows = read_integers(r, sizes, n->n_head)))
        return false;
    for (uint32_t i = 0; i < n->size; i++) n->multiplier[i] = (uint64_t)gguf_array_int(by, i);
    for (uint32_t h = 0; h < n->n_head; h++) {
        const int64_t at = gguf_array_int(first, h), count = gguf_array_int(rows, h);
        if (at < 0 || count < 1 || at > INT32_MAX || count > INT32_MAX - at)
            return model_reader_fail(r, sizes, "item %u is out of range", h);
        n->first[h] = (uint32_t)at;
        n->n_row[h] = (uint32_t)count;
        if (at + count > p->ends.n_ngram_rows) p->ends.n_ngram_rows = (uint32_t)(at + count);
    }
    if (t && t->ne[1] < p->ends.n_ngram_rows)
        return model_reader_fail(r, sizes, "the table has %llu rows, not %u",
                                 (unsigned long long)t->ne[1], p->ends.n_ngram_rows);
    if (t && t->ne[1] <= INT32_MAX) p->ends.n_ngram_rows = (uint32_t)t->ne[1];
    return true;
}

/* Reads the keys of embeddings of n-grams, which one layer may have. */
static bool read_ngram(struct model_reader *r, struct model_params *p)
{
    struct model_ngram *n = &p->ngram;
    uint32_t end = 0;
    if (!p->arch->plan.ngram || !model_reader_has(r, "ple.layers")) return true;
    const struct gguf_kv *layers = read_integers(r, "ple.layers", 0);
    if (!layers) return false;
    if (layers->count == 0) return true;
    if (layers->count > 1 || gguf_array_int(layers, 0) < 0 ||
        gguf_array_int(layers, 0) >= p->n_layer)
        return model_reader_fail(r, "ple.layers", "not one of %u layers", p->n_layer);
    n->layer = (uint32_t)gguf_array_int(layers, 0);
    if (!model_read_u32(r, "ple.ngram_size", MODEL_REQUIRED, 2, MODEL_NGRAM_MAX, &n->size) ||
        !model_read_u32(r, "ple.heads_per_ngram", MODEL_REQUIRED, 1,
                        MODEL_NGRAM_HEADS / (n->size - 1), &n->each) ||
        !model_read_u32(r, "ple.conv_kernel", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &n->n_taps) ||
        !model_read_u32(r, "ple.eos_token_id", MODEL_REQUIRED, 0, INT32_MAX, &end))
        return false;
    n->end_id = (int32_t)end;
    n->n_head = n->each * (n->size - 1);
    return model_read_u32(r, "embedding_length_per_layer_input", MODEL_REQUIRED, 1,
                          MODEL_MAX_DIM / MODEL_NGRAM_HEADS, &p->ends.n_ngram) &&
           read_ngram_heads(r, p);
}

/* Reads the keys of adapters that ids choose. */
static bool read_switch(struct model_reader *r, struct model_params *p)
{
    struct model_switch *s = &p->adapters;
    if (!p->arch->plan.switched) return true;
    s->gain = 15.0f;
    return model_read_u32(r, "adapters.count", MODEL_REQUIRED, 1, 4096, &s->n) &&
           model_read_u32(r, "adapters.lora_rank", MODEL_REQUIRED, 1, 4096, &s->rank) &&
           model_read_f32(r, "adapters.router_gain", MODEL_OPTIONAL, 0.0f, &s->gain) &&
           (s->on = read_integers(r, "adapters.token_ids_activate", s->n)) &&
           (s->as = read_integers(r, "adapters.token_ids_substitute", s->n));
}

bool model_read_streams(struct model_reader *r, struct model_params *p)
{
    if (!read_hyper(r, p) || !read_ngram(r, p) || !read_switch(r, p)) return false;
    if (p->residual == MODEL_ATTENDED && !model_read_u32(r, "attn_res.block_size", MODEL_REQUIRED,
                                                         0, MODEL_MAX_LAYERS, &p->set_aside))
        return false;
    p->ends.n_score = p->set_aside ? p->n_embd : 0;
    return !p->arch->ffn.situ ||
           (model_read_f32(r, "activation.situ_beta", MODEL_REQUIRED, FLT_MIN, &p->situ) &&
            model_read_f32(r, "activation.situ_linear_beta", MODEL_REQUIRED, -INFINITY,
                           &p->situ_linear));
}

bool model_read_stacks(struct model_reader *r, struct model_params *p, uint32_t max_layers)
{
    uint32_t high = 0;
    if (!p->arch->plan.stacks) return true;
    if (!model_read_u32(r, "hrm.layers_per_stack", MODEL_REQUIRED, 1, max_layers / 2,
                        &p->n_stack) ||
        !model_read_u32(r, "hrm.h_cycles", MODEL_REQUIRED, 1, MODEL_MAX_LAYERS, &high) ||
        !model_read_u32(r, "hrm.l_cycles", MODEL_REQUIRED, 1, MODEL_MAX_LAYERS, &p->n_low))
        return false;
    p->n_run = p->n_layer;
    if ((uint64_t)p->n_stack * high * (p->n_low + 1) != p->n_run)
        return model_reader_fail(r, "block_count", "%u, not %u layers %u times %u", p->n_run,
                                 p->n_stack, high, p->n_low + 1);
    p->n_layer = 2 * p->n_stack;
    p->scales_by_run =
        p->n_run > p->n_layer && model_reader_tensor(r, p->n_run - 1, "attn_output.scale");
    p->ends.n_start = p->n_embd;
    return true;
}
