/* cli/cmd/imatrix_statistics.h: `infer imatrix --statistics FILE`: figures of an importance
 * matrix. */
#pragma once

#include "base/error.h"
#include "cli/options.h"

/* Prints a line for each matrix of the model, the largest sum first: of the mean squares of its
 * inputs the sum, mean, standard deviation, least and largest one, and their evenness: the entropy
 * of their shares of the sum, relative to that of equal shares. */
bool cli_imatrix_statistics(const struct cli_values *values, struct base_error *err);
