/* engine/gpu/gpu_upload.c: copies of weights to a GPU.
 *
 * The driver copies memory of a mapped file by one thread, through buffers of its own. Here several
 * threads copy it to page-locked buffers, from which the GPU reads while they fill others:
 *
 *     thread 0   fill A     fill B     wait A, fill A   wait B, fill B ..
 *     thread 1     fill C     fill D     wait C, fill C ..
 *     the GPU           A      C   B      D    A ..
 *
 * The threads claim parts of the file in its order, so that the system reads ahead. */
#include "base/interrupt.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_device.h"
#include "engine/gpu/gpu_device.h"
#include <string.h>

enum {
    BUFFER = 1 << 20,
    LANES = 2,       /* buffers of a thread */
    LOADERS = 8,     /* threads at most: fewer reach the bus's speed */
    SHARE = 4 << 20, /* bytes for which a thread is worth its buffers */
};

struct loader {
    char *buffer;        /* [LANES][BUFFER] */
    void *stream[LANES]; /* of the copies from each of them */
    struct base_error failure;
};

struct gpu_load {
    const struct engine_gpu *gpu;
    const struct engine_upload *uploads, *end;
    struct loader loader[LOADERS];
    int n_loaders;
};

static int64_t n_parts(const struct engine_upload *u)
{
    return (int64_t)((u->size + BUFFER - 1) / BUFFER);
}

/* Copies one part, at `at` of an upload, by a buffer that the GPU has read. */
static bool load_part(const struct gpu_load *l, struct loader *own, int lane,
                      const struct engine_upload *u, uint64_t at)
{
    const struct engine_gpu_driver *d = &l->gpu->driver;
    const uint64_t size = u->size - at < BUFFER ? u->size - at : BUFFER;
    char *buffer = own->buffer + (size_t)lane * BUFFER;
    if (!engine_gpu_check(d, d->stream_wait(own->stream[lane]), "cuStreamSynchronize",
                          &own->failure))
        return false;
    memcpy(buffer, u->from + at, size);
    return engine_gpu_check(
        d, d->write((uint64_t)(uintptr_t)u->to + at, buffer, size, own->stream[lane]),
        "cuMemcpyHtoDAsync", &own->failure);
}

static void load(const struct engine_worker *w, void *user)
{
    struct gpu_load *l = user;
    const struct engine_gpu_driver *d = &l->gpu->driver;
    const struct engine_upload *u = l->uploads;
    int64_t first = 0; /* part of *u */
    if (w->ith >= l->n_loaders) return;
    struct loader *own = &l->loader[w->ith];
    bool ok =
        engine_gpu_check(d, d->context_set(l->gpu->context), "cuCtxSetCurrent", &own->failure);
    for (int turn = 0; ok && !base_interrupted(); turn++) {
        const int64_t part = engine_pool_claim(w, 1);
        while (u < l->end && part - first >= n_parts(u)) first += n_parts(u++);
        if (u == l->end) break;
        ok = load_part(l, own, turn % LANES, u, (uint64_t)(part - first) * BUFFER);
    }
    for (int i = 0; i < LANES; i++)
        (void)engine_gpu_check(d, d->stream_wait(own->stream[i]), "cuStreamSynchronize",
                               &own->failure);
}

static void free_loaders(struct gpu_load *l)
{
    const struct engine_gpu_driver *d = &l->gpu->driver;
    for (int i = 0; i < l->n_loaders; i++)
        for (int k = 0; k < LANES; k++)
            if (l->loader[i].stream[k]) (void)d->stream_free(l->loader[i].stream[k]);
    if (l->loader[0].buffer) (void)d->locked_free(l->loader[0].buffer);
}

/* False, and nothing allocated, if the driver gives no such memory or streams. */
static bool make_loaders(struct gpu_load *l)
{
    const struct engine_gpu_driver *d = &l->gpu->driver;
    void *buffers = NULL;
    if (d->locked_new(&buffers, (size_t)l->n_loaders * LANES * BUFFER, 0) != 0) return false;
    bool ok = true;
    for (int i = 0; i < l->n_loaders; i++) {
        l->loader[i].failure = BASE_ERROR_INIT;
        l->loader[i].buffer = (char *)buffers + (size_t)i * LANES * BUFFER;
        for (int k = 0; ok && k < LANES; k++) ok = d->stream_new(&l->loader[i].stream[k], 0) == 0;
    }
    if (!ok) free_loaders(l);
    return ok;
}

/* Small weights, and all if memory cannot be locked, are copied by the driver alone. */
bool engine_gpu_upload(struct engine *e, const struct engine_place *place,
                       const struct engine_upload *uploads, size_t n, struct base_error *err)
{
    struct engine_gpu *gpu = place->device;
    struct gpu_load l = {.gpu = gpu, .uploads = uploads, .end = uploads + n};
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) total += uploads[i].size;
    const int most = engine_pool_threads(e->cpu->pool);
    l.n_loaders = most < LOADERS ? most : LOADERS;
    if (total / SHARE < (uint64_t)l.n_loaders) l.n_loaders = (int)(total / SHARE);
    /* The buffer's zeros are written before: they are in another stream. */
    if (!engine_gpu_wait(gpu, err)) return false;
    if (l.n_loaders == 0 || !make_loaders(&l)) {
        for (size_t i = 0; i < n && base_goes_on(err); i++)
            engine_gpu_write(place, uploads[i].to, uploads[i].from, uploads[i].size);
        return engine_gpu_wait(gpu, err) && base_goes_on(err);
    }
    engine_pool_run(e->cpu->pool, load, &l);
    free_loaders(&l);
    for (int i = 0; i < l.n_loaders; i++)
        if (!gpu->failure.code) gpu->failure = l.loader[i].failure;
    return engine_gpu_wait(gpu, err) && base_goes_on(err);
}
