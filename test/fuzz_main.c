/* test/fuzz_main.c: main() of a fuzz target without libFuzzer: runs each file of the command line,
 * whole and truncated. */
#include "test/fuzz.h"
#include <stdio.h>

enum { SIZE_MAX_SEED = 1 << 20, CUTS = 16 };

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        static uint8_t bytes[SIZE_MAX_SEED];
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (size_t cut = 0; cut <= CUTS; cut++) {
            /* An exactly sized copy, so that AddressSanitizer detects reads past the end. */
            const size_t n = size - size * cut / CUTS;
            uint8_t *copy = malloc(n ? n : 1);
            if (!copy) return 1;
            for (size_t k = 0; k < n; k++) copy[k] = bytes[k];
            LLVMFuzzerTestOneInput(copy, n);
            free(copy);
        }
    }
    printf("%d seeds\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
