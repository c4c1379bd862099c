/* engine/backend.h: the interface between a planned graph and the device that runs it.
 *
 * A backend is one row of functions. Callers of the engine access tensor memory only through `data`
 * of inputs and outputs, which a backend makes valid on the host. */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_plan;
struct engine_tensor;

/* The size of a huge page. Large buffers are aligned to it, so that the system can use huge pages.
 */
enum { ENGINE_HUGE_PAGE = 2 << 20 };

struct engine_buffer {
    void *base; /* tensor data pointers are base + offset; 64-byte aligned */
    uint64_t size;
};

struct engine_backend {
    const char *name;
    /* Allocates `size` zeroed bytes; false with BASE_NO_MEMORY. The caller frees the buffer. */
    bool (*buffer_new)(uint64_t size, struct engine_buffer *out, struct base_error *err);
    void (*buffer_free)(struct engine_buffer *buffer); /* the buffer may be empty */
    /* The device's row of the node's op, which it keeps in a step; NULL: it cannot run the op. */
    const void *(*row)(const struct engine_tensor *node);
    /* Sets the scratch bytes of a plan whose nodes have shapes. */
    bool (*measure)(struct engine_plan *plan, const struct engine *engine, struct base_error *err);
    /* Prepares a plan whose tensors have addresses. */
    void (*prepare)(struct engine_plan *plan);
    /* Runs all steps; no allocation. BASE_INTERRUPTED when base/interrupt.h's flag is set. */
    bool (*run)(const struct engine_plan *plan, const struct engine *engine,
                struct base_error *err);
};

extern const struct engine_backend engine_backend_cpu;
extern const struct engine_backend engine_backend_plan; /* computes layouts only; cannot run */

#endif
