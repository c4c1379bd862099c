/* test/test_interleaved.c: a model whose rows are interleaved gives the logits of the same model
 * with plain rows. */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_IDS = 6, GROUP = 8, BYTES = 34 }; /* Q8_0_R8: eight rows, blocks of 34 bytes */

/* Interleaves eight rows of n blocks. */
static void interleave(const uint8_t *rows, size_t n, uint8_t *group)
{
    for (size_t b = 0; b < n; b++, group += GROUP * BYTES)
        for (size_t r = 0; r < GROUP; r++) {
            const uint8_t *block = rows + (r * n + b) * BYTES;
            memcpy(group + 2 * r, block, 2);
            for (size_t i = 0; i < 32; i++)
                group[16 + i / 16 * 128 + i % 16 / 4 * 32 + 4 * r + i % 4] = block[2 + i];
        }
}

/* Makes the Q8_0 matrices of a file in memory Q8_0_R8; returns their number. */
static int interleave_file(const char *path, char *bytes, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(path, &err);
    int n = 0;
    assert_non_null(file);
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->type->id != QUANT_Q8_0 || t->ne[1] % GROUP) continue;
        char *name = memmem(bytes, size, t->name.data, t->name.size);
        assert_non_null(name);
        const uint32_t id = QUANT_Q8_0_R8;
        memcpy(name + t->name.size + 4 + 8 * t->n_dims, &id, sizeof id);
        const size_t per_group = GROUP * (size_t)quant_row_size(t->type, (int64_t)t->ne[0]);
        uint8_t *to = (uint8_t *)bytes + t->offset;
        for (size_t at = 0; at < t->size; at += per_group)
            interleave((const uint8_t *)t->data + at, t->ne[0] / 32, to + at);
        n++;
    }
    gguf_close(file);
    return n;
}

/* The bytes of separated rows that a plan counts. */
static uint64_t planned_bytes(const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    options.plan_only = true;
    struct engine *engine = engine_new(&options, &err);
    struct gguf_file *file = gguf_open(path, &err);
    struct model *model = file && engine ? model_open(file, engine, NULL, &err) : NULL;
    assert_non_null(model);
    const uint64_t bytes = model_facts(model)->separated_bytes;
    model_close(model);
    gguf_close(file);
    engine_free(engine);
    return bytes;
}

static float *logits_of(const char *path, size_t *n_vocab, uint64_t *n_params,
                        uint64_t *separated_bytes)
{
    static const int32_t ids[N_IDS] = {5, 17, 3, 99, 42, 7};
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = {
        .n_ctx = 64, .n_batch = 4, .type_k = QUANT_F16, .type_v = QUANT_F16};
    struct support_session opened;
    support_session_open(&opened, path, &options, &session);
    struct support_rows rows = {.n_vocab = model_facts(opened.model)->n_vocab};
    rows.data = calloc(N_IDS * rows.n_vocab, sizeof(float));
    assert_true(
        model_eval(opened.session, ids, N_IDS, MODEL_LOGITS_ALL, support_rows_keep, &rows, &err));
    *n_vocab = rows.n_vocab;
    *n_params = model_facts(opened.model)->n_params;
    *separated_bytes = model_facts(opened.model)->separated_bytes;
    support_session_close(&opened);
    return rows.data;
}

static void interleaved_rows_give_the_logits_of_plain_ones(void **state)
{
    (void)state;
    static const char *const archs[] = {"llama", "qwen3moe"}; /* with and without experts */
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        struct base_error err = BASE_ERROR_INIT;
        char plain[] = "/tmp/infer-test-XXXXXX", other[] = "/tmp/infer-test-XXXXXX";
        struct support_model m = support_model_default(archs[a]);
        size_t size, n_vocab;
        uint64_t n_plain, n_other, separated, none;
        m.type = quant_type_by_id(QUANT_Q8_0);
        close(mkstemp(plain));
        close(mkstemp(other));
        assert_true(support_model_write(&m, plain, &err));
        char *bytes = support_read_file(plain, &size);
        assert_true(interleave_file(plain, bytes, size) > 4);
        FILE *f = fopen(other, "wb");
        assert_int_equal(fwrite(bytes, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
        float *want = logits_of(plain, &n_vocab, &n_plain, &none);
        float *got = logits_of(other, &n_vocab, &n_other, &separated);
        assert_int_equal(n_plain, n_other);
        assert_int_equal(none, 0);
        assert_true(separated > 0);
        assert_int_equal(planned_bytes(other), separated);
        assert_memory_equal(got, want, N_IDS * n_vocab * sizeof *want);
        unlink(plain);
        unlink(other);
        free(bytes);
        free(want);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_rows_give_the_logits_of_plain_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
