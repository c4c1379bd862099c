/* cli/gpu_layers.h: --gpu: layers of the model on a GPU.
 *
 * The GPU is opened before the command begins, because a sandbox forbids its devices and its cache
 * of machine code. Which layers lie there is decided when a session is planned: their states and
 * graphs count. The bytes of results are the same everywhere. */
#pragma once

#include "cli/load.h"

struct cli_gpu {
    int n; /* of --gpu-device, in its order */
    struct cli_gpu_card {
        struct engine_gpu *gpu;        /* NULL with --plan */
        struct engine_gpu_facts facts; /* zeros: not known (--plan) */
    } card[CLI_GPUS_MAX];
    char name[256];                      /* of all */
    struct cli_gpu_layers wanted, draft; /* --gpu, --gpu-draft */
};

/* Opens the GPU of --gpu as values->device, which the caller closes; NULL: none. With `auto`, and
 * with another program's name of the option, a note states why there is none; otherwise BASE_USAGE,
 * as for a value that is none. */
bool cli_gpu_open(struct cli_values *values, struct base_error *err);
void cli_gpu_close(struct cli_values *values);

/* Returns what cli_sandbox_close must allow: CLI_SANDBOX_GPU or 0. */
unsigned cli_gpu_allows(const struct cli_values *values);

/* Adds the GPU to the engine of an open model, and reads the counts of --cpu-cold. */
bool cli_gpu_join(struct cli_model *m, const struct cli_values *values, struct base_error *err);

/* Lets layers of a draft model, on the same engine, be where those of `model`, whose session is
 * open, leave memory. */
void cli_gpu_join_draft(struct cli_model *draft, const struct cli_model *model);

/* Chooses the layers for sessions of `options`, `drafts` with draft tokens, and opens the model
 * again if they differ from those that it has there. The model must have no session. */
bool cli_gpu_place(struct cli_model *m, const struct model_session_options *options, bool drafts,
                   struct base_error *err);

/* Returns how many of the model's layers are on the GPU. */
uint32_t cli_gpu_layers(const struct cli_model *m);

/* Appends a member with the GPU's name, its number of layers, and with --cpu-cold the share of hot
 * rows; without a GPU nothing. */
void cli_gpu_add_json(const struct cli_model *m, struct base_buffer *out);

/* -v: prints which layers are on the GPU. */
void cli_gpu_note(const struct cli_model *m);
