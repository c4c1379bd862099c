/* cli/activations.h: counts of activations: how often each element that the last product of a
 * feed-forward network reads was not zero, over a text. `imatrix --activations` writes them as a
 * GGUF file, and `--cpu-cold` divides networks by them: rows that were often active are hot.
 *
 * The file: general.type "activations", and for each such layer N the tensor "blk.N.ffn.active",
 * I32 of the network's length. */
#pragma once

#include "engine/cpu/pool.h"
#include "gguf/gguf.h"
#include "models/model.h"

struct cli_activations_layer {
    uint32_t n;     /* elements; 0: none are counted */
    int32_t *count; /* [n] */
};

struct cli_activations {
    uint32_t n_layers;
    uint64_t n;                          /* elements of all layers */
    struct cli_activations_layer *layer; /* [n_layers] */
    struct engine_observer observer;     /* counts while a text is evaluated */
    struct model_hot *hot;               /* [n_layers]: see cli_activations_choose */
    uint32_t *order;                     /* [n]: elements by descending counts */
    uint32_t *row;                       /* [n]: of `hot` */
    bool *is_hot;                        /* [n] */
};

/* Prepares counting for a model's file with n_layers layers that write texts; those after them only
 * draft. The caller frees *a, after a failure too. */
bool cli_activations_begin(struct cli_activations *a, const struct gguf_file *model,
                           uint32_t n_layers, struct base_error *err);
/* Declares the counts and writes them to the writer's output, which is open. */
bool cli_activations_write(const struct cli_activations *a, struct gguf_writer *w, const char *path,
                           struct base_error *err);
/* Reads a file, for a model of n_layers layers. Fails with BASE_USAGE and the file's name. */
bool cli_activations_read(struct cli_activations *a, const char *path, uint32_t n_layers,
                          struct base_error *err);
/* Makes of a->hot the rows of the layers from `first` on: a share (0 to 1) of all their rows is
 * hot, those with the largest counts; of equal ones the first. */
void cli_activations_choose(struct cli_activations *a, uint32_t first, double share);
void cli_activations_free(struct cli_activations *a);
