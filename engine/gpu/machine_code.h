/* engine/gpu/machine_code.h: the machine code of a GPU for the kernels of this build, from a folder
 * or by the driver's compiler. Private to engine/gpu/. */
#pragma once

#include "engine/gpu/driver.h"
#include "engine/gpu/gpu.h"

/* Loads a module with all kernels. With a folder `cache`, reads it from a file there, or compiles
 * it and writes the file; the name of the file has the capability, the driver's version and a
 * checksum of the build's code. A file that cannot be written changes nothing; one that the driver
 * refuses is replaced. The driver has a cache of its own, but in a folder that a sandbox forbids.
 */
bool engine_gpu_machine_code(const struct engine_gpu_driver *driver,
                             const struct engine_gpu_facts *facts, const char *cache, void **module,
                             struct base_error *err);
