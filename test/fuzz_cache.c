/* test/fuzz_cache.c: a fuzz target: any bytes as an entry of the prefix cache, and as the state in
 * it. A loaded state is saved again and truncated. The first byte selects the kind of model. */
#include "base/buffer.h"
#include "cli/cache/cache_entry.h"
#include "engine/backend.h"
#include "models/state/state.h"
#include "test/fuzz.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_CTX = 80, N_LAYER = 2, N_BATCH = 8 };

/* ---- Only the state: checksums would keep a fuzzer from reaching it ---- */

struct input {
    const uint8_t *bytes;
    size_t size, at;
};

static bool skip(void *user, uint64_t n, struct base_error *err)
{
    struct input *in = user;
    if (n > in->size - in->at) return base_fail(err, BASE_FAILED, "past the end");
    in->at += n;
    return true;
}

static bool copy(void *user, void *to, uint64_t n, struct base_error *err)
{
    struct input *in = user;
    const uint8_t *from = in->bytes + in->at;
    if (!skip(user, n, err)) return false;
    memcpy(to, from, n);
    return true;
}

static bool keep(void *user, const void *bytes, uint64_t n, struct base_error *err)
{
    base_buffer_add(user, bytes, n);
    return err != NULL;
}

static void open_state(struct model_state *s, struct model_layer layer[N_LAYER + 1], unsigned kind)
{
    static const enum quant_id types[] = {QUANT_F16, QUANT_F32, QUANT_Q8_0, QUANT_BF16};
    struct base_error err = BASE_ERROR_INIT;
    static const struct engine_place host = {.backend = &engine_backend_cpu};
    const struct model_params p = {
        .n_layer = N_LAYER, .n_pass = 1, .n_run = N_LAYER, .layer = layer};
    const struct model_state_options o = {.n_seq = 2,
                                          .n_ctx = N_CTX,
                                          .n_batch = N_BATCH,
                                          .type_k = quant_type_by_id(types[kind & 3]),
                                          .type_v = quant_type_by_id(types[kind >> 2 & 3]),
                                          .host = &host,
                                          .drafter = &layer[N_LAYER],
                                          .n_draft = (kind & 160) == 128};
    memset(layer, 0, (N_LAYER + 1) * sizeof *layer);
    layer[N_LAYER].kv = (struct model_kv_shape){.n_head = 1, .size_k = 32, .size_v = 32};
    if (kind & 16) layer[0].kv = (struct model_kv_shape){.n_head = 2, .size_k = 32, .size_v = 32};
    if (kind & 32)
        layer[1].kv = (struct model_kv_shape){
            .n_head = 1, .size_k = 32, .size_v = 64, .window = 16, .chunked = kind >> 7 & 1};
    if (kind & 64)
        layer[0].recurrent = (struct model_recurrent_shape){
            .conv_columns = 2, .conv_channels = 3, .n_head = 2, .rows = 2, .cols = 3};
    if (!model_state_init(s, &p, &o, &err)) abort();
}

static void use_state(unsigned kind, const uint8_t *bytes, size_t size)
{
    struct model_layer layer[N_LAYER + 1];
    struct model_state s;
    struct base_error err = BASE_ERROR_INIT;
    struct input in = {bytes, size, 0};
    struct base_buffer saved = BASE_BUFFER_INIT;
    const struct model_source source = {copy, skip, {&in}, 1};
    const struct model_sink sink = {keep, &saved};
    open_state(&s, layer, kind);
    model_state_append(&s, 1, 5); /* a second sequence beside the loaded one */
    const uint32_t n = model_state_load(&s, 0, 0, N_CTX, &source, NULL, &err);
    if (n > N_CTX || s.length[0] != n || (n > 0 && err.code)) abort();
    if (n > 0) {
        if (!model_state_save(&s, 0, &sink, &err)) abort();
        in = (struct input){(const uint8_t *)saved.data, saved.size, 0};
        if (model_state_load(&s, 1, n, n, &source, NULL, &err) != n) abort();
        model_state_begin(&s);
        for (uint32_t i = n; i < n + 4 && i < N_CTX; i++) model_state_append(&s, 0, 1);
        model_state_truncate(&s, 0, n / 2);
        model_state_fork(&s, 0, 1, n / 3);
    }
    model_state_free(&s);
    base_buffer_free(&saved);
}

/* ---- The file ---- */

static void use_file(const uint8_t *bytes, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct cli_cache_head h;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    const bool ok = cli_cache_head_read(fd, &h, &err);
    fuzz_check(ok, &err);
    if (ok) {
        volatile int32_t last = h.id[h.n_ids - 1];
        (void)last;
        if (h.size != size || h.n_name > CLI_CACHE_NAME_MAX || !memchr(h.key, '\0', sizeof h.key))
            abort();
    }
    cli_cache_head_free(&h);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) return 0;
    use_state(bytes[0], bytes + 1, size - 1);
    use_file(bytes + 1, size - 1);
    return 0;
}
