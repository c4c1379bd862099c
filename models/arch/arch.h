/* models/arch/arch.h: what an architecture is (a row of features), and what one model's numbers
 * are.
 *
 * Private to models/. Builders ask a row for features, never for its name: a new architecture that
 * combines known features is one more row in arch.c. */
#ifndef MODELS_ARCH_ARCH_H
#define MODELS_ARCH_ARCH_H

#include "engine/graph.h"
#include "gguf/gguf.h"

/* What a model has beyond the common; bits, so that the tensor table can ask. */
enum model_feature {
    MODEL_QK_NORM = 1,    /* RMS norm of every query and key head, before RoPE */
    MODEL_POST_NORMS = 2, /* RMS norm after attention and after the FFN, before the additions */
    MODEL_EMBD_SCALE = 4, /* embeddings times sqrt(embedding length) */
    MODEL_MAY_MIX = 8,    /* the feed-forward network may be a mixture of experts */
    MODEL_EXPERTS = 16,   /* it is one (set per model, from expert_count) */
    MODEL_DENSE = 32      /* it is not */
};

/* What queries are multiplied by: 1 / sqrt(D), or 1 / sqrt(E / H). */
enum model_scale { MODEL_SCALE_BY_HEAD, MODEL_SCALE_BY_EMBD };

/* A published model that differs from its architecture in what no key of its file says; it is known
 * by its number of layers. */
struct model_known {
    uint32_t n_layer;
    enum model_scale attention_scale;
};
enum { MODEL_MAX_KNOWN = 2 };

struct model_arch {
    const char *name; /* general.architecture, and the prefix of its keys */
    unsigned features;
    enum engine_rope_kind rope;
    enum engine_unary activation; /* of the gated FFN */
    /* Sliding windows: of every `window_period` layers the last sees everything; 0: all do. The
     * file may give another period. */
    uint32_t window_period;
    float window_rope_base; /* RoPE base of windowed layers unless the file says otherwise */
    struct model_known known[MODEL_MAX_KNOWN]; /* n_layer 0: no more */
};

/* The row of an architecture, or NULL. */
const struct model_arch *model_arch_find(struct gguf_str name);
/* Row i of the table; NULL past the last one. */
const struct model_arch *model_arch_at(size_t i);

struct model_layer_params {
    uint32_t n_head, n_head_kv, n_ff;
    uint32_t window; /* keys a query sees at most, itself included; 0: all */
    struct engine_rope rope;
};

struct model_params {
    const struct model_arch *arch;
    unsigned features; /* the architecture's and the model's own, enum model_feature */
    uint32_t n_expert, n_expert_used;
    uint32_t n_layer, n_embd, n_ctx_train, n_vocab;
    uint32_t n_embd_head_k, n_embd_head_v;
    float norm_eps;
    float attention_scale;
    float logit_softcap;              /* 0: none */
    struct model_layer_params *layer; /* [n_layer], owned */
};

/* Reads and checks the numbers; n_vocab comes from the embedding's shape. On failure *p is empty.
 */
bool model_params_read(struct model_params *p, const struct gguf_file *file,
                       struct base_error *err);
void model_params_free(struct model_params *p);

#endif
