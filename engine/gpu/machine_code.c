/* engine/gpu/machine_code.c: see engine/gpu/machine_code.h.
 *
 *      file   checksum of the code (8 bytes, little-endian), code */
#include "engine/gpu/machine_code.h"
#include "base/checksum.h"
#include "base/output.h"
#include "engine/gpu/gpu_code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 64 << 20 };

static bool load_file(const struct engine_gpu_driver *driver, const char *path, void **module)
{
    FILE *file = fopen(path, "rb");
    char *code = file ? malloc(MAX_CODE) : NULL;
    uint64_t checksum;
    bool ok = code && fread(&checksum, sizeof checksum, 1, file) == 1;
    const size_t size = ok ? fread(code, 1, MAX_CODE, file) : 0;
    ok = ok && base_checksum(code, size, 0) == checksum && driver->module_load(module, code) == 0;
    free(code);
    if (file) fclose(file);
    return ok;
}

static void store(const char *path, const void *code, size_t size)
{
    struct base_error ignored = BASE_ERROR_INIT;
    struct base_output out;
    const uint64_t checksum = base_checksum(code, size, 0);
    base_output_init(&out);
    const bool ok = base_output_open(&out, path, &ignored) &&
                    base_output_write(&out, &checksum, sizeof checksum, &ignored) &&
                    base_output_write(&out, code, size, &ignored);
    (void)base_output_close(&out, ok, &ignored);
}

/* Compiles and links all PTX, and loads the result. */
static bool compile(const struct engine_gpu_driver *driver, const char *path, void **module,
                    struct base_error *err)
{
    size_t ptx_size, size;
    char *ptx = engine_gpu_code_unpack(&ptx_size, err);
    void *link = NULL, *code;
    bool ok = ptx &&
              engine_gpu_check(driver, driver->link_new(0, NULL, NULL, &link), "cuLinkCreate", err);
    for (size_t at = 0; ok && at < ptx_size; at += strlen(ptx + at) + 1)
        ok = engine_gpu_check(driver,
                              driver->link_add(link, ENGINE_GPU_LINK_PTX, ptx + at,
                                               strlen(ptx + at) + 1, "infer", 0, NULL, NULL),
                              "cuLinkAddData", err);
    ok = ok &&
         engine_gpu_check(driver, driver->link_end(link, &code, &size), "cuLinkComplete", err) &&
         engine_gpu_check(driver, driver->module_load(module, code), "cuModuleLoadData", err);
    if (ok && path) store(path, code, size);
    if (link) (void)driver->link_free(link);
    free(ptx);
    return ok;
}

bool engine_gpu_machine_code(const struct engine_gpu_driver *driver,
                             const struct engine_gpu_facts *facts, const char *cache, void **module,
                             struct base_error *err)
{
    char path[BASE_PATH_SIZE];
    size_t size;
    const void *code = engine_gpu_code(&size);
    if (!cache) return compile(driver, NULL, module, err);
    snprintf(path, sizeof path, "%s/gpu-%016llx-sm_%d%d-%d", cache,
             (unsigned long long)base_checksum(code, size, 0), facts->major, facts->minor,
             facts->driver);
    return load_file(driver, path, module) || compile(driver, path, module, err);
}
