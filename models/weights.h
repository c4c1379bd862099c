/* models/weights.h: a model's tensors as named fields, bound once at open and checked against the
 * shapes that its numbers imply. Private to models/. */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "models/arch/arch.h"

/* y = (W x) * scale + bias; scale (one number, or one per expert) and bias are NULL where the file
 * has none. */
struct model_linear {
    struct engine_tensor *weight; /* [outputs][inputs]; experts: [X][outputs][inputs] */
    struct engine_tensor *bias;   /* [outputs] */
    struct engine_tensor *scale;  /* [1]; experts: [X] */
};

/* A weight is NULL where the model has no such tensor. In comments: outputs x inputs. E embedding,
 * H heads, KH key heads, D and DV head sizes of keys and values, F feed-forward length, X experts.
 */
struct model_layer_weights {
    struct engine_tensor *attn_norm;      /* [E] */
    struct model_linear attn_qkv;         /* (H + KH) D + KH DV x E, or the next three */
    struct model_linear attn_q;           /* H D x E */
    struct model_linear attn_k;           /* KH D x E */
    struct model_linear attn_v;           /* KH DV x E */
    struct engine_tensor *attn_q_norm;    /* [D] */
    struct engine_tensor *attn_k_norm;    /* [D] */
    struct model_linear attn_out;         /* E x H DV */
    struct engine_tensor *attn_post_norm; /* [E] */
    struct engine_tensor *ffn_norm;       /* [E] */
    struct model_linear ffn_gate;         /* F x E */
    struct model_linear ffn_up;           /* F x E */
    struct model_linear ffn_down;         /* E x F */
    struct model_linear ffn_router;       /* X x E */
    struct model_linear ffn_gate_exps;    /* X of F x E */
    struct model_linear ffn_up_exps;      /* X of F x E */
    struct model_linear ffn_down_exps;    /* X of E x F */
    struct engine_tensor *ffn_post_norm;  /* [E] */
};

struct model_weights {
    struct engine_tensor *token_embd;  /* [V][E] */
    struct engine_tensor *output_norm; /* [E] */
    struct model_linear output;        /* V x E; the embeddings where the file ties them */
    struct engine_tensor *rope_freqs;  /* [n_rot / 2] divisors of the RoPE frequencies */
    struct model_layer_weights *layer; /* [n_layer] */

    struct engine_tensor *tensors; /* all of the above, owned */
    float **vectors;               /* vectors that had to be widened to F32, owned */
    uint32_t n_tensors, n_vectors;
};

/* Binds every tensor of the file. A missing or misshapen one, one of a type without arithmetic, or
 * one that nothing here uses (it would change the result) is BASE_MODEL with its name. On failure
 * *w is empty. */
bool model_weights_bind(struct model_weights *w, const struct model_params *p,
                        const struct gguf_file *file, struct base_error *err);
void model_weights_free(struct model_weights *w);

#endif
