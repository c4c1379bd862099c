/* test/fuzz.h: a fuzz door: one function that takes any bytes and may end in nothing but a return.
 *
 * `make fuzz` builds each door as a libFuzzer program (build/fuzz/DOOR); the suite builds them with
 * the plain main() of test/fuzz_main.c and runs the seeds of test/data/fuzz/DOOR
 * (test/cli/t_fuzz.sh). */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A call says the same by its result and by its error. */
static inline void fuzz_check(bool ok, const struct base_error *err)
{
    if (ok != (err->code == BASE_OK)) abort();
}

#endif
