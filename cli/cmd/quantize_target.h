/* cli/cmd/quantize_target.h: a type for each tensor such that the tensors have at most a given size
 * and the model the least error (quantize --target-size, --target-bpw).
 *
 * The error of a model is the sum over its tensors of a tensor's relative error
 * (cli/cmd/quantize_error.h) times a sensitivity, which depends on its role. */
#pragma once

#include "cli/cmd/quantize_plan.h"
#include "cli/imatrix.h"
#include "engine/cpu/cpu_device.h"

enum { CLI_TARGET_TYPES = 22 }; /* at most; number 0 is the type that the tensors have */

/* Tensors that get one type, and the candidates. */
struct cli_target_unit {
    uint64_t bytes[CLI_TARGET_TYPES]; /* in the file; 0: not possible */
    double error[CLI_TARGET_TYPES];   /* finite, not negative */
    int chosen;
};

/* Chooses a possible candidate for each of n units, each of which has one, so that the sum of the
 * bytes is at most `limit` and the sum of the errors is small: bytes are spent where they reduce
 * the error most, and only where they reduce it. Returns the sum of the bytes, which is above the
 * limit only if that of the smallest candidates is: these are chosen then. BASE_NO_MEMORY: 0. */
uint64_t cli_target_choose(struct cli_target_unit *unit, size_t n, uint64_t limit,
                           struct base_error *err);

struct cli_target {
    const struct cli_quantize_plan *plan; /* made without TYPE */
    const struct cli_imatrix *imatrix;
    const struct engine_cpu *cpu;
    uint64_t alignment; /* of the output */
};

/* Returns the sum of the sizes of all tensors of the plan's file as to[i], each aligned; as the
 * types that they have (not interleaved) where that, or `to`, is NULL. False if it is too large. */
bool cli_target_size(const struct cli_target *target, const struct quant_type *const *to,
                     uint64_t *bytes);

struct cli_target_result {
    uint64_t bytes; /* of all tensors, aligned; above the limit: the smallest possible sum */
    double error;   /* of the model */
};

/* Sets to[i], which is NULL, and error[i], the relative error, of each tensor whose type the plan
 * leaves open, so that the sum of all tensors' sizes is at most `limit`. Measures on all threads.
 * BASE_NO_MEMORY, BASE_INTERRUPTED; BASE_MODEL if sizes are too large. */
bool cli_target_apply(const struct cli_target *target, uint64_t limit, const struct quant_type **to,
                      double *error, struct cli_target_result *result, struct base_error *err);
