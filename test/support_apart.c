/* test/support_apart.c: see test/support_apart.h. */
#include "test/support_apart.h"
#include "engine/cpu/cpu_plan.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFERS_MAX = 4096, PAGE = 4096 };
#define ARENA_BYTES ((uint64_t)4 << 30)

/* All buffers lie in one mapping, so that one call makes all of them accessible. */
static struct {
    pthread_mutex_t lock;
    char *arena;
    uint64_t used; /* bytes of the arena; 0 again when no buffer is left */
    struct engine_buffer buffer[BUFFERS_MAX];
    int n_buffers;
    struct support_apart_counts counts;
} apart = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum support_apart support_apart_now = SUPPORT_HERE;
const char *const support_apart_names[SUPPORT_APARTS] = {"here", "half", "all"};

static bool apart_buffer_new(const struct engine_place *place, uint64_t size,
                             struct engine_buffer *out, struct base_error *err)
{
    const uint64_t bytes = (size / PAGE + 1) * PAGE;
    (void)place;
    pthread_mutex_lock(&apart.lock);
    if (!apart.arena) {
        void *arena =
            mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena != MAP_FAILED) apart.arena = arena;
    }
    const bool fits =
        apart.arena && bytes <= ARENA_BYTES - apart.used && apart.n_buffers < BUFFERS_MAX;
    if (fits) {
        out->base = apart.arena + apart.used;
        out->size = bytes;
        apart.used += bytes;
        apart.buffer[apart.n_buffers++] = *out;
    }
    pthread_mutex_unlock(&apart.lock);
    return fits || base_fail(err, BASE_NO_MEMORY, "no memory for a buffer apart");
}

static void apart_buffer_free(struct engine_buffer *buffer)
{
    pthread_mutex_lock(&apart.lock);
    for (int i = 0; i < apart.n_buffers; i++)
        if (apart.buffer[i].base == buffer->base) apart.buffer[i] = apart.buffer[--apart.n_buffers];
    madvise(buffer->base, buffer->size, MADV_DONTNEED);
    if (apart.n_buffers == 0) apart.used = 0;
    pthread_mutex_unlock(&apart.lock);
}

/* Returns the buffer of an address, or NULL. */
static const struct engine_buffer *buffer_of(const char *data)
{
    for (int i = 0; i < apart.n_buffers; i++)
        if (data >= apart.buffer[i].base && data < apart.buffer[i].base + apart.buffer[i].size)
            return &apart.buffer[i];
    return NULL;
}

static void allow(const char *data, bool access)
{
    const struct engine_buffer *buffer = buffer_of(data);
    if (buffer) mprotect(buffer->base, buffer->size, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void allow_all(bool access)
{
    mprotect(apart.arena, apart.used, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void apart_write(const struct engine_place *place, char *to, const void *from, uint64_t size)
{
    (void)place;
    pthread_mutex_lock(&apart.lock);
    allow(to, true);
    memcpy(to, from, size);
    allow(to, false);
    apart.counts.bytes += size;
    pthread_mutex_unlock(&apart.lock);
}

static void apart_read(const struct engine_place *place, void *to, const char *from, uint64_t size)
{
    (void)place;
    pthread_mutex_lock(&apart.lock);
    allow(from, true);
    memcpy(to, from, size);
    allow(from, false);
    apart.counts.bytes += size;
    pthread_mutex_unlock(&apart.lock);
}

static void apart_kv_copy(const struct engine_place *place, const struct engine_kv_form *form,
                          char *to, uint32_t to_row, const char *from, uint32_t from_row)
{
    pthread_mutex_lock(&apart.lock);
    allow(to, true);
    allow(from, true);
    engine_cpu_kv_copy(place, form, to, to_row, from, from_row);
    allow(to, false);
    allow(from, false);
    pthread_mutex_unlock(&apart.lock);
}

static bool check_apart(const struct engine_tensor *t, const struct engine_tensor *node,
                        struct base_error *err)
{
    return !t || buffer_of(t->data) ||
           base_fail_at(err, BASE_FAILED, node->name, -1, "%s of %s is not apart", t->name,
                        node->name);
}

static bool apart_run(const struct engine_plan *plan, const struct engine_segment *segment,
                      const struct engine *engine, struct base_error *err)
{
    bool ok = true;
    pthread_mutex_lock(&apart.lock);
    for (int s = segment->first_step; ok && s < segment->first_step + segment->n_steps; s++) {
        const struct engine_tensor *node = plan->steps[s].node;
        ok = check_apart(node, node, err);
        for (int k = 0; ok && k < ENGINE_MAX_SRC; k++) ok = check_apart(node->src[k], node, err);
    }
    allow_all(true);
    ok = ok && engine_cpu_run(plan, segment, engine, err);
    allow_all(false);
    apart.counts.runs++;
    pthread_mutex_unlock(&apart.lock);
    return ok;
}

static const struct engine_backend backend = {
    .name = "apart",
    .buffer_new = apart_buffer_new,
    .buffer_free = apart_buffer_free,
    .write = apart_write,
    .read = apart_read,
    .row = engine_cpu_row,
    .fuses_gate = engine_cpu_fuses_gate,
    .measure = engine_cpu_measure,
    .prepare = engine_cpu_prepare,
    .run = apart_run,
    .kv_form = engine_cpu_kv_form,
    .kv_copy = apart_kv_copy,
};

struct model *support_apart_open(const struct gguf_file *file, struct engine *engine,
                                 enum support_apart how, struct base_error *err)
{
    struct model_placement placement = {.n_layers = UINT32_MAX, .output = true};
    if (how == SUPPORT_HERE) return model_open(file, engine, NULL, err);
    placement.place = engine_add_place(engine, &backend, NULL, err);
    if (!placement.place) return NULL;
    if (how == SUPPORT_HALF) {
        struct model *all = model_open(file, engine, NULL, err);
        if (!all) return NULL;
        placement.n_layers = (model_facts(all)->n_layer + 1) / 2;
        placement.output = false;
        model_close(all);
    }
    return model_open(file, engine, &placement, err);
}

struct support_apart_counts support_apart_counts(void)
{
    pthread_mutex_lock(&apart.lock);
    const struct support_apart_counts counts = apart.counts;
    pthread_mutex_unlock(&apart.lock);
    return counts;
}
