/* models/adapter.h: adapters (LoRA) and control vectors, evaluated beside the weights of a model.
 *
 * An adapter has for some matrices W two factors A and B of a small rank r. Products become
 *
 *     y = W x + scale * alpha / r * B (A x)
 *
 * (without alpha in its file: scale * B (A x)), and rows of embedding tables the same with a row of
 * A in place of A x. Several adapters are added in the order in which they were opened. Each
 * sequence has its own scales; a scale of 0 gives the bits of the model without the adapter. An
 * activated adapter has tokens that invoke it: it acts from their last occurrence in the prompt on,
 * so that the state of the tokens before is that of the model alone. MTP layers are without
 * adapters. File format and arithmetic: Hu et al. 2021 (LoRA), Greenewald et al. 2025 (activated
 * LoRA). */
#pragma once

#include "models/model.h"

enum { MODEL_ADAPTERS_MAX = 16 };

struct model_adapter_facts {
    float scale;                  /* the default of new sequences */
    float alpha;                  /* 0: the file has none */
    uint32_t n_matrices;          /* with a pair of factors */
    uint32_t n_norms;             /* tensors for norms, which have no effect */
    const int32_t *invocation;    /* [n_invocation]: ids that invoke an activated adapter */
    uint64_t n_invocation;        /* 0: the adapter is not an activated one */
    struct gguf_str task, prefix; /* the file's name of its task, and text before each prompt */
};

/* Opens the adapter of a file for a model that has no session yet. The file must outlive the model,
 * which owns the rest. Fails with BASE_MODEL and the name of the tensor or key: another
 * architecture, a tensor that the model lacks or that has another shape. model_session_new fails
 * the same way for a tensor with a matrix for each head or stream, on which adapters do not act. */
bool model_adapter_add(struct model *m, const struct gguf_file *file, float scale,
                       struct base_error *err);
uint32_t model_adapter_count(const struct model *m);
const struct model_adapter_facts *model_adapter_facts(const struct model *m, uint32_t i);

/* Adds strength * direction.N of a control vector's file to the output of layer N, for all tokens,
 * first <= N <= last; layers count from 0, and layer 0 has no direction. The model must have no
 * session yet; the file may be closed afterwards. */
bool model_steer(struct model *m, const struct gguf_file *file, float strength, uint32_t first,
                 uint32_t last, struct base_error *err);

/* How the adapters act on a sequence: of adapter i, from position from[i] on with scale[i]. */
struct model_adaptation {
    float scale[MODEL_ADAPTERS_MAX];
    uint32_t from[MODEL_ADAPTERS_MAX];
};

/* Fills *a for the prompt ids[n]: scales[i] of adapter i, or the default if scales is NULL; 0 for
 * an activated adapter that the ids do not invoke. */
void model_adaptation_make(const struct model *m, const float *scales, const int32_t *ids, size_t n,
                           struct model_adaptation *a);
/* Returns the number of first tokens for which both have the same effect; UINT32_MAX: all. */
uint32_t model_adaptation_common(const struct model *m, const struct model_adaptation *a,
                                 const struct model_adaptation *b);

/* Returns how many of the sequence's first tokens have the state that *a gives them. */
uint32_t model_seq_adapted(const struct model_session *s, uint32_t seq,
                           const struct model_adaptation *a);
/* Sets the adaptation of the tokens that follow, and removes those whose state differs. Returns the
 * number of tokens that are left. A new sequence has the default scales, without activated
 * adapters. model_seq_fork copies at most the tokens whose state is the same in both sequences. */
uint32_t model_seq_adapt(struct model_session *s, uint32_t seq, const struct model_adaptation *a);

/* Calls model_seq_adapt with the adaptation of model_adaptation_make for the prompt ids[n]. */
uint32_t model_seq_adapt_to(struct model_session *s, uint32_t seq, const float *scales,
                            const int32_t *ids, size_t n);
/* Returns for how many first tokens the sequence's adaptation is that of a new sequence;
 * UINT32_MAX: for all. */
uint32_t model_seq_usual(const struct model_session *s, uint32_t seq);
