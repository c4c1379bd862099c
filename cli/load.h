/* cli/load.h: opens the parts of a model that a command needs: vocabulary, engine, weights,
 * session. */
#pragma once

#include "cli/activations.h"
#include "cli/adapters.h"
#include "cli/draft_file.h"
#include "cli/expert_stream.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "engine/gpu/gpu.h"
#include "models/model.h"
#include "text/tokenizer/tokenizer.h"

enum { CLI_GPUS_MAX = ENGINE_PLACES_MAX - 1 };

/* Layers that an option puts on GPUs. */
struct cli_gpu_layers {
    uint32_t n; /* at most; UINT32_MAX: all */
    bool fits;  /* fewer if memory is short; none if the GPU lacks an op */
};

/* The part of a model that is on GPUs (cli/gpu_layers.h). */
struct cli_model_gpu {
    const struct cli_gpu *device; /* NULL: the engine has no GPU */
    struct cli_gpu_layers wanted;
    struct model_placement at;
    struct engine_gpu_plan plan[CLI_GPUS_MAX]; /* with --plan: the bytes of each */
    /* Bytes that were free on each before its first layers, and what these and sessions need. */
    uint64_t room[CLI_GPUS_MAX], taken[CLI_GPUS_MAX];
    struct cli_activations counts; /* of --cpu-cold; n 0: none */
    double share, given_share;     /* of its layers' rows that are hot; --hot-share, 0: not given */
};

struct cli_model {
    struct gguf_file *file;
    struct text_tokenizer *tokenizer;
    struct engine *engine;
    struct cli_stream stream;
    struct model *model;
    struct cli_drafter drafter;
    struct model_session *session;
    struct cli_adapters adapters;
    struct cli_model_gpu gpu;
    struct base_buffer name; /* general.name, or the file name */
    bool encodes;            /* only its vocabulary is used */
    bool drafts;             /* it is the model of --draft */
    bool embeds;             /* sessions return hidden states instead of logits */
    bool whole;              /* sessions evaluate whole texts, also of diffusion models */
};

/* Opens the file; with --plan only its header. The caller calls cli_model_close, also if this or a
 * following call fails. */
bool cli_model_open_file(struct cli_model *m, const struct cli_values *values,
                         struct base_error *err);
/* Opens the vocabulary. Fails with BASE_MODEL for a file that is no language model (a drafter, an
 * adapter ..), unless only its vocabulary is used. */
bool cli_model_open_tokenizer(struct cli_model *m, struct base_error *err);
/* Appends the token that begins the answer after a text for an encoder, if the model of the open
 * file has one. */
bool cli_model_end_source(const struct cli_model *m, struct text_ids *ids, struct base_error *err);
/* Returns whether the file has a vocabulary; test models may have none. */
bool cli_model_has_vocabulary(const struct cli_model *m);
/* Starts the engine and opens the weights, adapters, control vectors and the drafter. */
bool cli_model_open_weights(struct cli_model *m, const struct cli_values *values,
                            struct base_error *err);
/* Appends a member for approximate results (--sparse predict); otherwise nothing. */
void cli_model_add_approximate(const struct cli_model *m, struct base_buffer *out);
/* Appends the options that change hidden states, other than adapters. */
void cli_model_add_settings(const struct cli_values *values, struct base_buffer *out);
/* Opens a session of n_seq sequences of n_ctx tokens; n_ctx 0: the model's default. Warns on
 * standard error if n_ctx exceeds the training context and the file does not scale positions.
 * With --gpu it may open m->model again: its facts move. */
bool cli_model_open_session(struct cli_model *m, const struct cli_values *values, uint32_t n_seq,
                            uint32_t n_ctx, struct base_error *err);
/* As cli_model_open_session, in place of an open session and without the warning: to compare sizes.
 */
bool cli_model_plan_session(struct cli_model *m, const struct cli_values *values, uint32_t n_seq,
                            uint32_t n_ctx, struct base_error *err);
/* Opens a session for many texts of n_ctx tokens (0: the model's default): *n_slots sequences and
 * n_more. *n_slots is that of -np, otherwise `usual`, reduced to what fits into half of the memory
 * that this process may use (base/memory.h), at least one. */
bool cli_model_open_slots(struct cli_model *m, const struct cli_values *values, uint32_t n_ctx,
                          uint32_t usual, uint32_t n_more, uint32_t *n_slots,
                          struct base_error *err);
/* Returns whether sessions keep the state that drafts of the file's MTP layer need: --draft is auto
 * or mtp, and the file has such a layer; for auto the model must have more than one other layer. */
bool cli_model_keeps_mtp(const struct cli_model *m, const struct cli_values *values);
/* Begin a progress line (cli/progress.h): of the prompt of n tokens that sequence 0 reads; of n
 * tokens that any sequences evaluate from now on. The caller ends it before it closes the model. */
void cli_model_progress_length(const struct cli_model *m, uint64_t n);
void cli_model_progress_tokens(const struct cli_model *m, const char *what, uint64_t n);
void cli_model_close(struct cli_model *m);

/* Returns whether a file contains a model that can run, by its header; otherwise fails with
 * BASE_MODEL and the reason. */
bool cli_model_check(const struct gguf_file *file, struct base_error *err);

/* Returns the default context for `need` tokens: at least 4096, at most the training context. */
uint32_t cli_model_pick_ctx(const struct cli_model *m, uint64_t need);

/* -v: prints model, instruction set, threads and context. */
void cli_model_note(const struct cli_model *m);
