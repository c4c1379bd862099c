/* cli/cmd/imatrix_combine.h: adds up importance matrices of one model, without the model. */
#pragma once

#include "cli/options.h"

/* Writes the sums of the matrices of --combine to the output. A tensor that only some have is
 * taken from these. Fails with BASE_USAGE if a file is no importance matrix in GGUF form, or if two
 * have sums of different sizes for a tensor. */
bool cli_imatrix_combine(const struct cli_values *values, struct base_error *err);
