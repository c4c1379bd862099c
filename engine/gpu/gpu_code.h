/* engine/gpu/gpu_code.h: the code of all kernels for GPUs, as the build embeds it. */
#pragma once

#include "base/error.h"
#include <stddef.h>

/* Whether the build has kernels. A program that only reads this is linked without their code. */
extern const bool engine_gpu_has_code;

/* The PTX of all kernels as an .xz file of *size bytes; NULL in a program that was built without.
 */
const void *engine_gpu_code(size_t *size);

/* Returns the PTX: texts, each of which ends with a zero byte, of *size bytes together; the caller
 * frees it. liblzma is loaded for it. NULL: BASE_FAILED without it, or
 * BASE_NO_MEMORY. The program must have code. */
char *engine_gpu_code_unpack(size_t *size, struct base_error *err);
