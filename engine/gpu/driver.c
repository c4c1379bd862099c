/* engine/gpu/driver.c: see engine/gpu/driver.h. */
#include "engine/gpu/driver.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Sets a pointer to a function from a symbol; POSIX has both in the same form. */
static bool load(void *library, const char *symbol, void *function)
{
    void *found = dlsym(library, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

bool engine_gpu_driver_open(const char *library, struct engine_gpu_driver *out,
                            struct base_error *err)
{
    *out = (struct engine_gpu_driver){0};
#ifdef INFER_STATIC /* `make static`: a static program can load no library */
    (void)library;
    return base_fail(err, BASE_USAGE, "no driver for a GPU (this program is one static file)");
#endif
    out->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!out->library) return base_fail(err, BASE_USAGE, "no driver for a GPU (%s)", dlerror());
#define LOAD(name, symbol, parameters)                                                             \
    if (!load(out->library, #symbol, &out->name))                                                  \
        return base_fail(err, BASE_USAGE, "the driver for GPUs lacks %s: it is too old", #symbol);
    ENGINE_GPU_FUNCTIONS(LOAD)
    /* Kernels are loaded when the module is, not at their first call. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    const char *name = "unknown error";
    const int result = out->init(0);
    if (result == 0) return true;
    (void)out->error_name(result, &name);
    return base_fail(err, BASE_USAGE, "no GPU that can be used (%s)", name);
}

void engine_gpu_driver_close(struct engine_gpu_driver *driver)
{
    if (driver->library) dlclose(driver->library);
    driver->library = NULL;
}

bool engine_gpu_check(const struct engine_gpu_driver *driver, int result, const char *function,
                      struct base_error *err)
{
    const char *name = "unknown error";
    if (result == 0) return true;
    (void)driver->error_name(result, &name);
    return base_fail(err, BASE_FAILED, "the GPU's driver: %s: %s (%d)", function, name, result);
}
