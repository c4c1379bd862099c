/* engine/gpu/gpu_code.h: the code of all kernels for GPUs, as the build embeds it. */
#ifndef ENGINE_GPU_GPU_CODE_H
#define ENGINE_GPU_GPU_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* PTX: texts, each of which ends with a zero byte, of *size bytes together. NULL in a program that
 * was built without. */
const char *engine_gpu_code(size_t *size);

/* Whether the build has kernels. A program that only reads this is linked without their PTX. */
extern const bool engine_gpu_has_code;

#endif
