/* engine/backend.h: a kind of device: one row of functions that allocate memory in its places and
 * run planned graphs there.
 *
 * engine_backend_cpu is the device of place 0; engine_add_place adds others. */
#pragma once

#include "engine/kv.h"

struct engine_plan;
struct engine_segment;
struct engine_tensor;

/* The size of a huge page. Large buffers are aligned to it, so that the system can use huge pages.
 */
enum { ENGINE_HUGE_PAGE = 2 << 20 };

struct engine_backend {
    const char *name;
    /* For place 0: opens and closes the device of an engine with options. */
    bool (*open)(struct engine *e, struct base_error *err);
    void (*close)(struct engine *e);
    /* Allocates out->size bytes of zeros for out->kind; false with BASE_NO_MEMORY. */
    bool (*buffer_new)(const struct engine_place *place, uint64_t size, struct engine_buffer *out,
                       struct base_error *err);
    void (*buffer_free)(struct engine_buffer *buffer);
    /* See engine_place_write and engine_place_read; NULL for place 0. */
    void (*write)(const struct engine_place *place, char *to, const void *from, uint64_t size);
    void (*read)(const struct engine_place *place, void *to, const char *from, uint64_t size);
    /* See engine_place_upload; NULL: by write. */
    bool (*upload)(struct engine *e, const struct engine_place *place,
                   const struct engine_upload *uploads, size_t n, struct base_error *err);

    /* The device's row of the node's op, which it keeps in a step; NULL: it cannot run the op. */
    const void *(*row)(const struct engine_tensor *node);
    /* Whether the simplifier should replace products with two results and the gate of both by
     * `fused`, which computes the gate in the product; NULL: never. */
    bool (*fuses_gate)(const struct engine *engine, const struct engine_tensor *fused);
    /* Sets the scratch bytes of the place in a plan whose nodes have shapes. */
    bool (*measure)(struct engine_plan *plan, const struct engine_segment *segment,
                    const struct engine *engine, struct base_error *err);
    /* Prepares a segment of a plan whose tensors have addresses; forget frees what it allocated and
     * may be NULL. */
    void (*prepare)(struct engine_plan *plan, struct engine_segment *segment);
    void (*forget)(struct engine_segment *segment);
    /* Runs or starts all steps of a segment; no allocation on place 0. BASE_INTERRUPTED when
     * base/interrupt.h's flag is set. A device that starts them does them in the order of the calls
     * for its place; read, and `wait`, return when they are done. */
    bool (*run)(const struct engine_plan *plan, const struct engine_segment *segment,
                const struct engine *engine, struct base_error *err);
    /* Fails if a call for the place failed before; NULL: run has returned all errors. */
    bool (*wait)(const struct engine_place *place, struct base_error *err);

    /* See engine/kv.h; kv_form does not set `bytes`; type NULL: the device has no such cache. */
    struct engine_kv_form (*kv_form)(enum engine_kv_q16 what, const struct quant_type *type,
                                     uint32_t size);
    void (*kv_copy)(const struct engine_place *place, const struct engine_kv_form *form, char *to,
                    uint32_t to_row, const char *from, uint32_t from_row);
};

extern const struct engine_backend engine_backend_cpu;
extern const struct engine_backend engine_backend_plan; /* computes layouts only; cannot run */
