/* engine/place.h: places: this machine's memory, and the memories of further devices.
 *
 * Place 0 is this machine's memory, whose device is the processor. Each tensor lies in one place
 * (engine/tensor.h); a node is computed by the device of its place. Inputs and outputs of a graph
 * lie in place 0, and a planned graph copies what nodes of another place read or give
 * (engine/plan.h). Only a place's device reads and writes its memory: other code calls the
 * functions below. */
#pragma once

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct engine_backend;

enum { ENGINE_PLACES_MAX = 8 };

struct engine_place {
    int index; /* in struct engine */
    const struct engine_backend *backend;
    void *device; /* of the backend, which owns it */
};

/* What a buffer contains: a device may use different kinds of memory. */
enum engine_buffer_kind {
    ENGINE_BUFFER_GRAPH, /* tensors and scratch of a planned graph */
    ENGINE_BUFFER_STATE, /* states of sequences: takes physical memory only where it is written */
    ENGINE_BUFFER_WEIGHTS,
    ENGINE_BUFFER_KINDS
};

struct engine_buffer {
    const struct engine_place *place;
    char *base; /* the data of a tensor is base + offset; 64-byte aligned */
    uint64_t size;
    enum engine_buffer_kind kind;
};

/* Allocates `size` bytes that read as zeros; the caller frees the buffer. False: BASE_NO_MEMORY. */
bool engine_buffer_new(const struct engine_place *place, enum engine_buffer_kind kind,
                       uint64_t size, struct engine_buffer *out, struct base_error *err);
void engine_buffer_free(struct engine_buffer *buffer); /* the buffer may be empty */

/* Copy `size` bytes: _write from this machine's memory to the place's, _read in the other
 * direction. `to` and `from` are addresses within a buffer of the place, or of its tensors. */
void engine_place_write(const struct engine_place *place, char *to, const void *from,
                        uint64_t size);
void engine_place_read(const struct engine_place *place, void *to, const char *from, uint64_t size);

/* A copy from this machine's memory to a place's. */
struct engine_upload {
    char *to;
    const char *from;
    uint64_t size;
};

/* Makes n copies, as engine_place_write does; a device may make them by the threads of the engine.
 * Fails with an error of the device, or BASE_INTERRUPTED; then some are not made. */
bool engine_place_upload(struct engine *e, const struct engine_place *place,
                         const struct engine_upload *uploads, size_t n, struct base_error *err);
