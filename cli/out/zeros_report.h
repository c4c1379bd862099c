/* cli/out/zeros_report.h: the share of zeros in the inputs of feed-forward networks' last product,
 * by layer (`infer bench --zeros`): what skipping them can gain. */
#pragma once

#include "engine/engine.h"

struct cli_zeros_layer {
    uint64_t zeros, all;
};

struct cli_zeros {
    struct engine_observer observer; /* for engine_set_observer */
    struct cli_zeros_layer *layer;   /* [n_layers], owned */
    uint32_t n_layers;
};

/* Prepares counting; false when there is no memory. The caller calls cli_zeros_free. */
bool cli_zeros_init(struct cli_zeros *z, uint32_t n_layers);
void cli_zeros_free(struct cli_zeros *z);
/* Prints the share of each layer with a network, and of all, to stderr. */
void cli_zeros_print(const struct cli_zeros *z, const char *title, uint32_t n_tokens);
