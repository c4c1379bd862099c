/* models/weights.h: a model's tensors as named fields, bound once at open and checked against the
 * shapes that its numbers imply. Private to models/. */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "models/arch.h"

/* A pointer is NULL where the model has no such tensor. Matrices are [outputs][inputs]. E
 * embedding, H heads, KH key heads, D and DV head sizes of keys and values, F feed-forward length.
 */
struct model_layer_weights {
    struct engine_tensor *attn_norm;     /* [E] */
    struct engine_tensor *attn_qkv;      /* [(H + KH) D + KH DV][E], or the next three */
    struct engine_tensor *attn_q;        /* [H D][E] */
    struct engine_tensor *attn_k;        /* [KH D][E] */
    struct engine_tensor *attn_v;        /* [KH DV][E] */
    struct engine_tensor *attn_qkv_bias; /* as many as rows, like all biases */
    struct engine_tensor *attn_q_bias;
    struct engine_tensor *attn_k_bias;
    struct engine_tensor *attn_v_bias;
    struct engine_tensor *attn_q_norm; /* [D] */
    struct engine_tensor *attn_k_norm; /* [D] */
    struct engine_tensor *attn_out;    /* [E][H DV] */
    struct engine_tensor *attn_out_bias;
    struct engine_tensor *attn_post_norm; /* [E] */
    struct engine_tensor *ffn_norm;       /* [E] */
    struct engine_tensor *ffn_gate;       /* [F][E] */
    struct engine_tensor *ffn_up;         /* [F][E] */
    struct engine_tensor *ffn_down;       /* [E][F] */
    struct engine_tensor *ffn_gate_bias;
    struct engine_tensor *ffn_up_bias;
    struct engine_tensor *ffn_down_bias;
    struct engine_tensor *ffn_post_norm; /* [E] */
    struct engine_tensor *ffn_router;    /* [X][E]; X experts */
    struct engine_tensor *ffn_gate_exps; /* [X][F][E] */
    struct engine_tensor *ffn_up_exps;   /* [X][F][E] */
    struct engine_tensor *ffn_down_exps; /* [X][E][F] */
};

struct model_weights {
    struct engine_tensor *token_embd;  /* [V][E] */
    struct engine_tensor *output_norm; /* [E] */
    struct engine_tensor *output;      /* [V][E]; token_embd where the file ties them */
    struct engine_tensor *output_bias; /* [V] */
    struct engine_tensor *rope_freqs;  /* [n_rot / 2] divisors of the RoPE frequencies */
    struct model_layer_weights *layer; /* [n_layer] */

    struct engine_tensor *tensors; /* all of the above, owned */
    float **vectors;               /* norms and biases that had to be widened to F32, owned */
    uint32_t n_tensors, n_vectors;
};

/* Binds every tensor of the file. A missing or misshapen one, one of a type without arithmetic, or
 * one that nothing here uses (it would change the result) is BASE_MODEL with its name. On failure
 * *w is empty. */
bool model_weights_bind(struct model_weights *w, const struct model_params *p,
                        const struct gguf_file *file, struct base_error *err);
void model_weights_free(struct model_weights *w);

#endif
