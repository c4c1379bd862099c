/* test/test_identity.c: promise 2: the logits of every position are the same bytes for any thread
 * count, any batch size and any instruction-set level, on a real model.
 *
 * (test_models.c checks the same on tiny random models of every architecture.) */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_level.h"
#include "test/support_session.h"
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_IDS = 300,    /* more than a chunk of keys and a tile of columns */
    N_GEMMA3 = 140, /* its products with the vocabulary take most of the time */
    N_SCALAR = 136  /* scalar kernels take 50 ms for each */
};

struct setting {
    int threads;
    uint32_t batch;
    enum cpu_level level;
};

/* A hash of the bytes of each row of logits. */
struct rows {
    uint64_t hash[N_IDS];
    size_t row_bytes;
};

static bool hash_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct rows *r = user;
    (void)err;
    for (uint64_t i = 0; i < rows; i++) {
        const char *row = (const char *)logits + i * r->row_bytes;
        uint64_t hash = 0, word = 0;
        for (size_t at = 0; at < r->row_bytes; at += sizeof word) {
            memcpy(&word, row + at, sizeof word);
            hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* another one for each word */
        }
        r->hash[first + i] = hash;
    }
    return true;
}

static void eval_with(const char *path, const struct setting *s, const int32_t *ids, size_t n,
                      struct rows *out)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct support_session opened;
    options.n_threads = s->threads;
    options.level = s->level;
    session.n_ctx = N_IDS;
    session.n_batch = s->batch;
    support_session_open(&opened, path, &options, &session);
    out->row_bytes = model_facts(opened.model)->n_vocab * sizeof(float);
    assert_int_equal(out->row_bytes % sizeof(uint64_t), 0);
    if (!model_eval(opened.session, ids, n, MODEL_LOGITS_ALL, hash_rows, out, &err))
        fail_msg("%s: %s", err.item, err.text);
    support_session_close(&opened);
}

static void same_bytes_everywhere(const char *name, size_t n_ids)
{
    const struct setting settings[] = {
        {1, 512, cpu_level_best()}, {2, 512, cpu_level_best()}, {3, 512, cpu_level_best()},
        {7, 512, cpu_level_best()}, {2, 1, cpu_level_best()},   {2, 7, cpu_level_best()},
        {2, 64, cpu_level_best()},  {2, 512, CPU_AVX512BF16},   {2, 512, CPU_AVX512},
        {2, 512, CPU_AVXVNNI},      {2, 512, CPU_AVX2},         {2, 7, CPU_AVX2},
        {2, 1, CPU_AVX2},           {2, 512, CPU_SCALAR},       {2, 5, CPU_SCALAR},
    };
    char path[512];
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    struct rows first = {0}, other;
    size_t size;
    if (!support_model_path(name, path, sizeof path)) support_skip(name);
    /* Any text is suitable; this program's source always exists. */
    char *text = support_read_file("test/test_identity.c", &size);
    if (!text) support_skip("run from the project's root");
    struct gguf_file *file = gguf_open(path, &err);
    struct text_tokenizer *t = file ? text_tokenizer_open(file, &err) : NULL;
    if (!t || !text_encode(t, text, size, TEXT_ADD_SPECIAL, &ids, &err))
        fail_msg("%s: %s", err.item, err.text);
    const size_t n = support_quick() ? 9 : n_ids;
    assert_true(ids.count >= n);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        if (!support_level_runs(s->level)) continue;
        const size_t most = s->level != CPU_SCALAR ? N_IDS : s->batch < 512 ? 40 : N_SCALAR;
        const size_t some = n < most ? n : most;
        eval_with(path, s, ids.id, some, i == 0 ? &first : &other);
        for (size_t row = 0; i > 0 && row < some; row++)
            if (other.hash[row] != first.hash[row])
                fail_msg("%s: position %zu differs with %d threads, batch %u, level %s", name, row,
                         s->threads, s->batch, cpu_level_name(s->level));
    }
    text_ids_free(&ids);
    text_tokenizer_close(t);
    gguf_close(file);
    free(text);
}

static void smollm2_gives_the_same_bits_for_any_setting(void **state)
{
    (void)state;
    same_bytes_everywhere(SUPPORT_SMOLLM2, N_IDS);
}

static void gemma3_gives_the_same_bits_for_any_setting(void **state)
{
    (void)state;
    if (support_quick()) support_skip("bit-identity of Gemma 3 (quick run)");
    same_bytes_everywhere(SUPPORT_GEMMA3, N_GEMMA3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_gives_the_same_bits_for_any_setting),
        cmocka_unit_test(gemma3_gives_the_same_bits_for_any_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
