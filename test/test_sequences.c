/* test/test_sequences.c: several sequences in one session have the same bytes as each by itself:
 * random interleavings, forks, truncations, saving, loading and failed batches, with tiny models of
 * every architecture, in this machine's memory, half or all of them on a device with its own
 * memory, compared with a session that evaluates the tokens of one sequence from the start. The
 * test keeps the ids of all sequences; the tokens that the session reports as kept must have the
 * logits of these ids. */
#include "test/support.h"

#include "base/buffer.h"
#include "base/interrupt.h"
#include "models/model.h"
#include "test/support_apart.h"
#include "test/support_files.h"
#include "test/support_model.h"
#include "test/support_random.h"
#include "test/support_session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SEQ = 4, N_CTX = 48, MOST_TOKENS = 40, MOST_SOURCE = 7, STEPS = 30, N_VOCAB = 300 };

struct variant {
    const char *name, *arch;
    uint32_t n_expert;
};

static const struct variant llama = {"llama", "llama", 0};
/* Experts after the mixer, in addition to a network, and routed by the layer's input; an encoder
 * before the decoder. */
static const struct variant experts[] = {{"llama-moe", "llama", 4},
                                         {"arctic-moe", "arctic", 4},
                                         {"smallthinker-moe", "smallthinker", 4},
                                         {"deepseek2-moe", "deepseek2", 8},
                                         {"t5", "t5", 0}};

struct setting {
    int threads;
    uint32_t n_batch;
    enum quant_id cache;
    enum support_apart apart;
};

struct world {
    struct gguf_file *file;
    struct engine *engine, *alone; /* of the setting's threads, and of one */
    struct model *m, *here;        /* the same model, in its place and in this machine's memory */
    struct model_session *many, *one; /* N_SEQ sequences of m; the reference */
    uint64_t random;
    int32_t ids[N_SEQ][N_CTX];
    uint32_t length[N_SEQ];
    uint64_t rows_seen;
    float rows[MOST_TOKENS][N_VOCAB]; /* of the last batch */
    float expected[N_CTX][N_VOCAB];
    struct base_buffer saved; /* a saved sequence */
};

static uint32_t below(struct world *w, uint32_t n)
{
    return support_random_below(&w->random, n);
}

static struct world *open_world(const struct variant *v, const struct setting *s)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model tiny = support_model_default(v->arch);
    struct engine_options options = engine_options_default();
    struct model_session_options session = {.n_seq = N_SEQ,
                                            .n_ctx = N_CTX,
                                            .n_batch = s->n_batch,
                                            .whole = true,
                                            .type_k = s->cache,
                                            .type_v = s->cache};
    struct world *w = calloc(1, sizeof *w);
    char path[64];
    assert_non_null(w);
    tiny.n_expert = v->n_expert;
    tiny.n_expert_used = v->n_expert / 2;
    tiny.n_embd = 128;
    tiny.head_dim = 32; /* a block of the quantized caches */
    tiny.n_vocab = N_VOCAB;
    options.n_threads = s->threads;
    snprintf(path, sizeof path, "/tmp/infer-sequences-%d.gguf", (int)getpid());
    if (!support_model_write(&tiny, path, &err)) fail_msg("%s", err.text);
    w->random = (uint64_t)s->cache * 1000 + s->n_batch;
    w->file = gguf_open(path, &err);
    w->engine = engine_new(&options, &err);
    options.n_threads = 1;
    w->alone = w->engine ? engine_new(&options, &err) : NULL;
    w->here = w->file && w->alone ? model_open(w->file, w->alone, NULL, &err) : NULL;
    w->m = w->here ? support_apart_open(w->file, w->engine, s->apart, &err) : NULL;
    w->many = w->m ? model_session_new(w->m, &session, &err) : NULL;
    if (err.code == BASE_USAGE) { /* the fixture's heads are shorter than a block of the cache */
        print_message("%s with a cache of F16: %s\n", v->arch, err.text);
        err = (struct base_error)BASE_ERROR_INIT;
        session.type_k = session.type_v = QUANT_F16;
        w->many = model_session_new(w->m, &session, &err);
    }
    session.n_seq = 0;
    session.n_batch = 512;
    w->one = w->many ? model_session_new(w->here, &session, &err) : NULL;
    if (!w->one) fail_msg("%s: %s", err.item, err.text);
    unlink(path);
    return w;
}

static void close_world(struct world *w)
{
    model_session_free(w->many);
    model_session_free(w->one);
    model_close(w->m);
    model_close(w->here);
    engine_free(w->engine);
    engine_free(w->alone);
    gguf_close(w->file);
    base_buffer_free(&w->saved);
    free(w);
}

/* ---- Sinks ---- */

static bool keep_batch(void *user, uint64_t first, uint64_t n, const float *logits,
                       struct base_error *err)
{
    struct world *w = user;
    (void)err;
    assert_int_equal(first, w->rows_seen);
    memcpy(w->rows[first], logits, n * sizeof w->rows[0]);
    w->rows_seen += n;
    return true;
}

static bool keep_expected(void *user, uint64_t first, uint64_t n, const float *logits,
                          struct base_error *err)
{
    struct world *w = user;
    (void)err;
    memcpy(w->expected[first], logits, n * sizeof w->expected[0]);
    return true;
}

/* ---- Steps ---- */

/* Returns whether a sequence was cut back to its text for the encoder. */
static bool lacks_start(const struct world *w, uint32_t seq, int32_t start)
{
    for (uint32_t i = 0; i < w->length[seq]; i++)
        if (w->ids[seq][i] == start) return false;
    return true;
}

/* A random batch of sequences that have room; its tokens are not yet in w->ids. */
static uint32_t random_batch(struct world *w, struct model_token *tokens)
{
    uint32_t n = 0, want = 1 + below(w, MOST_TOKENS - MOST_SOURCE), room[N_SEQ];
    for (uint32_t q = 0; q < N_SEQ; q++) room[q] = N_CTX - w->length[q];
    for (uint32_t tries = 0; n < want && tries < 200; tries++) {
        /* Most tokens form runs of one sequence, like a prompt while others generate. */
        uint32_t seq = n > 0 && below(w, 3) ? tokens[n - 1].seq : below(w, N_SEQ);
        const int32_t start = model_facts(w->m)->start_id;
        const uint32_t pushed = N_CTX - w->length[seq] - room[seq];
        if (start >= 0 && pushed == 0 && w->length[seq] > 0 && lacks_start(w, seq, start)) {
            tokens[n++] = (struct model_token){.id = start, .seq = seq};
            room[seq]--;
            continue;
        }
        if (start >= 0 && room[seq] == N_CTX) { /* a text for the encoder */
            const uint32_t length = 1 + below(w, MOST_SOURCE - 1);
            for (uint32_t i = 0; i < length; i++)
                tokens[n++] =
                    (struct model_token){.id = (int32_t)below(w, (uint32_t)start), .seq = seq};
            tokens[n++] =
                (struct model_token){.id = start, .seq = seq, .wants_logits = below(w, 2)};
            room[seq] -= length + 1;
            continue;
        }
        if (room[seq] == 0) continue;
        room[seq]--;
        tokens[n++] = (struct model_token){
            .id = (int32_t)below(w, N_VOCAB), .seq = seq, .wants_logits = below(w, 2)};
    }
    return n;
}

static void expect_row(const struct world *w, const char *name, uint32_t seq, uint32_t position,
                       const float *row)
{
    if (memcmp(row, w->expected[position], sizeof w->expected[0]) != 0)
        fail_msg("%s: sequence %u, position %u differs from the sequence alone", name, seq,
                 position);
}

static void check_batch(struct world *w, const char *name, const struct model_token *tokens,
                        uint32_t n, const uint32_t before[N_SEQ])
{
    struct base_error err = BASE_ERROR_INIT;
    for (uint32_t seq = 0; seq < N_SEQ; seq++) {
        uint32_t row = 0, position = before[seq];
        if (before[seq] == w->length[seq]) continue;
        model_session_truncate(w->one, 0);
        if (!model_eval(w->one, w->ids[seq], w->length[seq], MODEL_LOGITS_ALL, keep_expected, w,
                        &err))
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < n; i++) {
            if (tokens[i].wants_logits && tokens[i].seq == seq)
                expect_row(w, name, seq, position, w->rows[row]);
            row += tokens[i].wants_logits;
            position += tokens[i].seq == seq;
        }
    }
}

static void eval_step(struct world *w, const char *name)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_token tokens[MOST_TOKENS];
    uint32_t before[N_SEQ], n = random_batch(w, tokens), wanted = 0;
    memcpy(before, w->length, sizeof before);
    if (below(w, 4) == 0) { /* interrupted: must have no effect */
        base_interrupt();
        assert_false(n > 0 && model_eval_batch(w->many, tokens, n, keep_batch, w, &err));
        base_interrupt_clear();
        err = (struct base_error)BASE_ERROR_INIT;
    }
    w->rows_seen = 0;
    if (!model_eval_batch(w->many, tokens, n, keep_batch, w, &err)) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n; i++) {
        w->ids[tokens[i].seq][w->length[tokens[i].seq]++] = tokens[i].id;
        wanted += tokens[i].wants_logits;
    }
    assert_int_equal(w->rows_seen, wanted);
    check_batch(w, name, tokens, n, before);
    if (wanted) assert_memory_equal(model_last_logits(w->many), w->rows[wanted - 1], N_VOCAB * 4);
}

static void truncate_step(struct world *w)
{
    uint32_t seq = below(w, N_SEQ), length = below(w, w->length[seq] + 1);
    if (below(w, 2) && w->length[seq] > 3) length = w->length[seq] - 3; /* windows may hold it */
    uint32_t left = model_seq_truncate(w->many, seq, length);
    assert_true(left <= length);
    w->length[seq] = left;
}

static void fork_step(struct world *w)
{
    uint32_t from = below(w, N_SEQ), to = below(w, N_SEQ);
    uint32_t length = below(w, 3) ? w->length[from] : below(w, w->length[from] + 1);
    uint32_t left = model_seq_fork(w->many, from, to, length);
    assert_true(left <= length);
    if (length == w->length[from]) assert_int_equal(left, length);
    memmove(w->ids[to], w->ids[from], left * sizeof w->ids[0][0]);
    w->length[to] = left;
}

static void save(struct world *w, struct model_session *s, uint32_t seq)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct model_sink sink = {support_saved_keep, &w->saved};
    base_buffer_clear(&w->saved);
    if (!model_seq_save(s, seq, &sink, &err)) fail_msg("%s", err.text);
    assert_false(w->saved.failed);
}

static uint32_t load(struct world *w, struct model_session *s, uint32_t seq, uint32_t least,
                     uint32_t most, struct base_error *err)
{
    struct model_source source = {.read = support_saved_read, .pass_over = support_saved_pass_over};
    struct support_saved reader[MODEL_READERS_MAX];
    source.n_users = 1 + below(w, MODEL_READERS_MAX);
    for (unsigned i = 0; i < source.n_users; i++) {
        reader[i] = (struct support_saved){&w->saved, 0};
        source.user[i] = &reader[i];
    }
    return model_seq_load(s, seq, least, most, &source, err);
}

/* Loading a saved sequence, or a prefix of it, has the effect of a fork; and another session saves
 * the same bytes of it. */
static void save_step(struct world *w)
{
    struct base_error err = BASE_ERROR_INIT;
    const uint32_t from = below(w, N_SEQ), to = below(w, N_SEQ), length = w->length[from];
    const uint32_t most = below(w, 3) ? length : below(w, length + 1);
    if (length == 0) return;
    save(w, w->many, from);
    const uint32_t left = load(w, w->many, to, 0, most, &err);
    assert_int_equal(err.code, BASE_OK);
    assert_true(left <= most && (most < length || left == length));
    if (left > 0) { /* otherwise `to` is unchanged */
        memmove(w->ids[to], w->ids[from], left * sizeof w->ids[0][0]);
        w->length[to] = left;
        assert_int_equal(load(w, w->many, to, left + 1, left, &err), 0);
    }
    struct base_buffer first = w->saved;
    assert_int_equal(load(w, w->one, 0, 0, length, &err), length);
    w->saved = BASE_BUFFER_INIT;
    save(w, w->one, 0);
    assert_int_equal(w->saved.size, first.size);
    assert_memory_equal(w->saved.data, first.data, first.size);
    base_buffer_free(&first);
    w->saved.size = below(w, (uint32_t)w->saved.size);
    assert_int_equal(load(w, w->one, 0, 1, length, &err), 0);
    assert_int_equal(err.code, BASE_FAILED);
}

static void random_walk(const struct variant *v, const struct setting *s, int threads, size_t apart)
{
    struct setting setting = *s;
    setting.threads = threads;
    setting.apart = apart % SUPPORT_APARTS;
    struct world *w = open_world(v, &setting);
    for (int step = 0; step < STEPS; step++) {
        switch (below(w, 6)) {
        case 0:
            fork_step(w);
            break;
        case 5:
            save_step(w);
            break;
        case 1:
            truncate_step(w);
            model_seq_mark(w->many, below(w, N_SEQ),
                           (uint32_t[]){below(w, N_CTX), below(w, N_CTX)});
            break;
        default:
            eval_step(w, v->name);
        }
        for (uint32_t seq = 0; seq < N_SEQ; seq++)
            assert_int_equal(model_seq_length(w->many, seq), w->length[seq]);
    }
    close_world(w);
}

/* ---- Tests ---- */

static void sequences_together_are_each_what_they_are_alone(void **state)
{
    enum { N_SETTINGS = 5 };
    static const struct setting settings[N_SETTINGS] = {
        {1, 512, QUANT_F16, 0}, {2, 7, QUANT_F32, 0},  {3, 512, QUANT_Q8_0, 0},
        {7, 16, QUANT_Q4_0, 0}, {2, 1, QUANT_BF16, 0},
    };
    (void)state;
    for (size_t i = 0; i < N_SETTINGS; i++) {
        for (size_t e = 0; e < sizeof experts / sizeof *experts; e++)
            if (!support_quick() || (e + i) % 2 == 0)
                random_walk(&experts[e], &settings[i], settings[i].threads, e + i);
        for (size_t a = 0, kinds = 0; support_arch(a); a++) {
            const bool first = support_arch_is_first(a);
            const size_t kind = first ? kinds++ : 0;
            /* Short runs use one architecture of each kind with one of the settings. */
            if (support_quick() && (!first || kind % N_SETTINGS != i)) continue;
            /* The others of a kind have one thread and three settings, with each place. */
            if (!first && i != 2 && (i < 2) != (a % 2 == 0)) continue;
            /* The first ones have several threads in half of the settings. */
            const bool several = first && (support_quick() || (kind + i) % 2 == 0);
            random_walk(&(struct variant){support_arch(a), support_arch(a), 0}, &settings[i],
                        several ? settings[i].threads : 1, a + i);
        }
    }
}

/* Errors are detected before any evaluation. */
static void a_refused_batch_changes_nothing(void **state)
{
    const struct setting s = {2, 16, QUANT_F16, SUPPORT_HERE};
    struct world *w = open_world(&llama, &s);
    struct model_token tokens[N_CTX + 1] = {{.id = 1, .seq = 0}, {.id = 1, .seq = N_SEQ}};
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    assert_false(model_eval_batch(w->many, tokens, 2, NULL, NULL, &err));
    assert_int_equal(err.code, BASE_FAILED);
    err = (struct base_error)BASE_ERROR_INIT;
    tokens[1] = (struct model_token){.id = N_VOCAB, .seq = 1};
    assert_false(model_eval_batch(w->many, tokens, 2, NULL, NULL, &err));
    assert_int_equal(err.code, BASE_FAILED);
    err = (struct base_error)BASE_ERROR_INIT;
    for (int i = 0; i <= N_CTX; i++) tokens[i] = (struct model_token){.id = 1, .seq = 2};
    assert_false(model_eval_batch(w->many, tokens, N_CTX + 1, NULL, NULL, &err));
    assert_int_equal(err.code, BASE_TOO_LONG);
    for (uint32_t seq = 0; seq < N_SEQ; seq++) assert_int_equal(model_seq_length(w->many, seq), 0);
    err = (struct base_error)BASE_ERROR_INIT;
    assert_true(model_eval_batch(w->many, tokens, N_CTX, NULL, NULL, &err));
    assert_int_equal(model_seq_length(w->many, 2), N_CTX);
    assert_null(model_last_logits(w->many));
    close_world(w);
}

/* ---- States that cannot be shortened ---- */

static const struct variant recurrent = {"lfm2", "lfm2", 0};

/* Evaluates n more tokens of a sequence in one batch and compares with the sequence by itself. */
static void eval_more(struct world *w, uint32_t seq, uint32_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_token tokens[MOST_TOKENS];
    uint32_t before[N_SEQ];
    memcpy(before, w->length, sizeof before);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t id = (int32_t)below(w, N_VOCAB);
        tokens[i] = (struct model_token){.id = id, .seq = seq, .wants_logits = true};
        w->ids[seq][w->length[seq]++] = id;
    }
    w->rows_seen = 0;
    if (!model_eval_batch(w->many, tokens, n, keep_batch, w, &err)) fail_msg("%s", err.text);
    check_batch(w, "recurrent", tokens, n, before);
}

static void go_back(struct world *w, uint32_t seq, uint32_t length, uint32_t held)
{
    w->length[seq] = model_seq_truncate(w->many, seq, length);
    assert_int_equal(w->length[seq], held);
}

static void recurrent_states_are_held_at_the_borders_of_prompts(void **state)
{
    const struct setting s = {2, 512, QUANT_F16, SUPPORT_HERE};
    struct world *w = open_world(&recurrent, &s);
    (void)state;
    eval_more(w, 0, 10);
    for (int i = 0; i < 5; i++) eval_more(w, 0, 1);
    eval_more(w, 0, 8);
    for (int i = 0; i < 3; i++) eval_more(w, 0, 1);
    assert_int_equal(model_seq_fork(w->many, 0, 1, 20), 15);
    memcpy(w->ids[1], w->ids[0], sizeof w->ids[0]);
    w->length[1] = 15;
    go_back(w, 0, 24, 23); /* the end of the second prompt */
    eval_more(w, 0, 2);
    go_back(w, 0, 22, 15); /* before it */
    eval_more(w, 0, 4);
    eval_more(w, 1, 6);    /* the fork is independent */
    go_back(w, 0, 14, 10); /* the end of the first one */
    go_back(w, 0, 9, 0);
    go_back(w, 1, 20, 15);
    eval_more(w, 1, 1);
    eval_more(w, 0, 3);
    close_world(w);
}

/* A sequence can be truncated at a mark within a prompt and batch. */
static void recurrent_states_are_held_at_marks(void **state)
{
    const struct setting s = {2, 512, QUANT_F16, SUPPORT_HERE};
    struct world *w = open_world(&recurrent, &s);
    (void)state;
    model_seq_mark(w->many, 0, (const uint32_t[]){19, 7});
    eval_more(w, 0, 20);
    go_back(w, 0, 19, 19);
    eval_more(w, 0, 1);
    go_back(w, 0, 18, 7);
    model_seq_mark(w->many, 0, (const uint32_t[]){0, 0});
    eval_more(w, 0, 10);
    go_back(w, 0, 16, 7);
    close_world(w);
}

/* Many prompts: old snapshots are thinned out, the latest are kept. */
static void recurrent_states_of_many_prompts_are_thinned_out(void **state)
{
    const struct setting s = {1, 512, QUANT_F16, SUPPORT_HERE};
    struct world *w = open_world(&recurrent, &s);
    (void)state;
    for (int i = 0; i < N_CTX / 2; i++) eval_more(w, 0, 2);
    go_back(w, 0, N_CTX - 1, N_CTX - 2);
    for (uint32_t left = N_CTX - 2; left > 0; eval_more(w, 0, 1)) {
        const uint32_t below_it = model_seq_truncate(w->many, 0, left - 1);
        assert_true(below_it < left && left - below_it <= 8);
        left = w->length[0] = below_it;
    }
    close_world(w);
}

static bool fail_later(void *user, uint64_t first, uint64_t n, const float *logits,
                       struct base_error *err)
{
    (void)user;
    (void)logits;
    return first + n < 7 || base_fail(err, BASE_FAILED, "enough");
}

/* A batch of mixed tokens needs several runs of the graph; if a later one fails, all are undone. */
static void a_batch_of_several_runs_that_fails_leaves_no_trace(void **state)
{
    static const uint32_t seqs[] = {0, 1, 0, 1, 1, 0, 0, 0, 2, 1};
    const struct setting s = {2, 512, QUANT_F16, SUPPORT_HERE};
    struct world *w = open_world(&recurrent, &s);
    struct model_token tokens[10];
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    for (int i = 0; i < 10; i++)
        tokens[i] = (struct model_token){.id = i, .seq = seqs[i], .wants_logits = true};
    eval_more(w, 0, 1);
    eval_more(w, 0, 1);
    eval_more(w, 1, 3);
    assert_false(model_eval_batch(w->many, tokens, 10, fail_later, NULL, &err));
    for (uint32_t seq = 0; seq < N_SEQ; seq++)
        assert_int_equal(model_seq_length(w->many, seq), w->length[seq]);
    for (uint32_t seq = 0; seq < N_SEQ; seq++) eval_more(w, seq, 2);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_states_are_held_at_the_borders_of_prompts),
        cmocka_unit_test(recurrent_states_are_held_at_marks),
        cmocka_unit_test(recurrent_states_of_many_prompts_are_thinned_out),
        cmocka_unit_test(a_batch_of_several_runs_that_fails_leaves_no_trace),
        cmocka_unit_test(sequences_together_are_each_what_they_are_alone),
        cmocka_unit_test(a_refused_batch_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
