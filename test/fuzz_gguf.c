/* test/fuzz_gguf.c: a fuzz target: any bytes as a model. They are an error or can be read
 * completely, and a model that can be opened returns logits, hidden states or an error. */
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "models/model.h"
#include "test/fuzz.h"
#include "test/support_gguf.h"
#include <stdlib.h>

/* Applies the block after pooling to a row of zeros. */
static void pool(const struct model *m, struct model_session *s)
{
    const struct model_facts *f = model_facts(m);
    for (int rank = 0; rank < 2; rank++) {
        struct base_error err = BASE_ERROR_INIT;
        const uint32_t size = rank ? f->n_rank : f->n_pooled;
        float *row = calloc(f->n_embd, sizeof *row), *out = calloc(size + 1, sizeof *out);
        if (row && out && size)
            fuzz_check(model_session_pool(s, rank, row, &(uint32_t){0}, 1, out, &err), &err);
        free(row);
        free(out);
    }
}

static void evaluate(const struct gguf_file *file, struct engine *engine)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model *m = model_open(file, engine, NULL, &err);
    fuzz_check(m != NULL, &err);
    if (!m) return;
    struct model_session_options o = model_session_options_default();
    o.n_ctx = 8;
    o.n_batch = 3;
    o.hidden = !model_facts(m)->writes;
    struct model_session *s = model_session_new(m, &o, &err);
    fuzz_check(s != NULL, &err);
    if (s) {
        const int32_t last = (int32_t)model_facts(m)->n_vocab - 1;
        const int32_t ids[] = {0, last, 0, last / 2};
        fuzz_check(model_eval(s, ids, 4, MODEL_LOGITS_LAST, NULL, NULL, &err), &err);
        err = BASE_ERROR_INIT;
        fuzz_check(model_eval(s, ids, 1, MODEL_LOGITS_LAST, NULL, NULL, &err), &err);
        err = BASE_ERROR_INIT;
        if (o.hidden) pool(m, s);
    }
    model_session_free(s);
    model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct engine *engine;
    struct base_error err = BASE_ERROR_INIT;
    if (!engine) {
        struct engine_options o = engine_options_default();
        o.n_threads = 1;
        engine = engine_new(&o, &err);
        if (!engine) abort();
    }
    struct gguf_file *file = gguf_open_memory(bytes, size, "fuzz", &err);
    fuzz_check(file != NULL, &err);
    if (file) {
        volatile uint64_t sum = gguf_touch(file);
        (void)sum;
        evaluate(file, engine);
    }
    gguf_close(file);
    return 0;
}
