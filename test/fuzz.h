/* test/fuzz.h: a fuzz target: one function that takes any bytes and must return.
 *
 * `make fuzz` builds each target as a libFuzzer program (build/fuzz/NAME); the suite builds them
 * with the plain main() of test/fuzz_main.c and runs the seeds in test/data/fuzz/NAME
 * (test/cli/t_fuzz.sh). */
#pragma once

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The result of a call and its error object must be consistent. */
static inline void fuzz_check(bool ok, const struct base_error *err)
{
    if (ok != (err->code == BASE_OK)) abort();
}
