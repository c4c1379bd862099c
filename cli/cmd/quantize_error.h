/* cli/cmd/quantize_error.h: decodes rows of a file, and measures the error that a type would cause
 * in each tensor of a model on a sample of its rows. */
#pragma once

#include "cli/imatrix.h"
#include "engine/cpu/cpu_device.h"
#include "gguf/gguf.h"

/* A tensor as a type: the file's rows are decoded, encoded as the type and decoded again. */
struct cli_quantize_trial {
    const struct gguf_tensor *tensor;
    const struct quant_type *type;              /* with an encoder, whose block divides a row */
    const struct cli_imatrix_entry *importance; /* a value for each element of a row of each matrix;
                                                   NULL: none */
    /* Sum of w (difference)^2 / sum of w (weight)^2, where w is the root of the importance, 1
     * without; infinity if a weight is not finite afterwards, 0 of a tensor of zeros. */
    double error;
};

/* Decodes row r, which begins at `in`, of a tensor with rows of `len` elements, and returns the
 * bytes that were decoded: `in`, or `room` if the rows are interleaved, which then has the
 * separated row.
 */
const char *cli_quantize_decode_row(const struct engine_cpu *cpu, const struct quant_type *type,
                                    uint64_t len, uint64_t r, const char *in, void *room,
                                    float *out);

/* Measures n trials on all threads. The rows are the same for all types, at equal distances, about
 * 262,144 elements of each tensor (all, if there are fewer); errors have the same bits with
 * any number of threads on any machine. BASE_NO_MEMORY, BASE_INTERRUPTED. */
bool cli_quantize_measure(const struct engine_cpu *cpu, struct cli_quantize_trial *trial, size_t n,
                          struct base_error *err);
