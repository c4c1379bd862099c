/* test/support_files.h: finds models and reference data that are not in the repository. A test
 * without its data prints a line "skipped: ..." and skips. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The path of a model that scripts/fetch-model fetches, by file name; false when it is missing.
 * Searches $INFER_TEST_MODELS, or if unset the user's data folder. */
bool support_model_path(const char *file, char *out, size_t out_size);

/* The path of a file in the folder of reference data beside the project (or $INFER_SHARED). */
bool support_shared_path(const char *file, char *out, size_t out_size);

/* The whole file with a NUL after it, or NULL. The caller frees it. */
char *support_read_file(const char *path, size_t *size);

/* Prints "skipped: WHAT" and skips the running cmocka test. */
void support_skip(const char *what);

/* True with $INFER_TEST_QUICK (sanitizer runs): long tests use a smaller case. */
bool support_quick(void);

#define SUPPORT_SMOLLM2 "SmolLM2-135M-Instruct.Q4_1.gguf"
#define SUPPORT_GEMMA3  "gemma-3-270m-q4_k_m.gguf"
