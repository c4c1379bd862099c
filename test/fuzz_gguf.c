/* test/fuzz_gguf.c: libFuzzer entry for the reader: any bytes are refused or can be read whole.
 * Built by `make fuzz-gguf`; no part of the suite. */
#include "test/support_gguf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open_memory(bytes, size, "fuzz", &err);
    if ((file != NULL) != (err.code == BASE_OK)) abort();
    if (file) {
        volatile uint64_t sum = gguf_touch(file);
        (void)sum;
    }
    gguf_close(file);
    return 0;
}
