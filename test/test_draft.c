/* test/test_draft.c: drafting tokens does not change a text: ids, bytes, ending and the contents of
 * the sequence afterwards, for every kind of state, draft and options. */
#include "test/support.h"

#include "generate/draft.h"
#include "generate/ngram.h"
#include "test/support_alloc.h"
#include "test/support_apart.h"
#include "test/support_files.h"
#include "test/support_generate.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_CTX = 96, MAX_PROMPT = 40 };

struct text {
    struct base_buffer bytes;
    int32_t id[N_CTX + 1];
    size_t n;
    uint32_t held; /* tokens of the sequence at the end */
    struct generate_outcome outcome;
};

static bool sink(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct text *t = user;
    (void)err;
    base_buffer_add(&t->bytes, piece->text, piece->size);
    if (piece->id >= 0) assert_int_equal(piece->index, t->n);
    if (piece->id >= 0) t->id[t->n++] = piece->id;
    return true;
}

static void run(struct generate_request *r, struct generate_draft *d,
                const struct generate_prompt *p, struct text *out)
{
    struct base_error err = BASE_ERROR_INIT;
    base_buffer_free(&out->bytes);
    *out = (struct text){0};
    if (!generate_request_begin(r, p, &err) || !generate_run(r, d, sink, out, &out->outcome, &err))
        fail_msg("%s", err.text);
    base_buffer_add(&out->bytes, "", 0);
    out->held = model_seq_length(generate_request_session(r), generate_request_seq(r));
}

static void compare(const struct text *a, const struct text *b, const char *what)
{
    if (a->n != b->n || memcmp(a->id, b->id, a->n * sizeof *a->id) != 0)
        fail_msg("%s: %zu and %zu tokens, or others", what, a->n, b->n);
    assert_int_equal(a->bytes.size, b->bytes.size);
    assert_memory_equal(a->bytes.data, b->bytes.data, a->bytes.size);
    if (a->outcome.ending != b->outcome.ending)
        fail_msg("%s: ended by %s and %s", what, generate_ending_name[a->outcome.ending],
                 generate_ending_name[b->outcome.ending]);
    assert_ptr_equal(a->outcome.stop_text, b->outcome.stop_text);
    assert_int_equal(a->outcome.n_prompt, b->outcome.n_prompt);
    assert_int_equal(a->outcome.n_generated, b->outcome.n_generated);
    assert_int_equal(a->outcome.complete, b->outcome.complete);
}

/* ---- Options ---- */

struct kit {
    struct constraint *letters, *list;
    struct generate_options options[7];
    size_t n_options;
};

static struct constraint *regex(const char *text)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = constraint_from_regex(text, strlen(text), &err);
    if (!c) fail_msg("%s", err.text);
    return c;
}

static void make_kit(struct kit *k)
{
    static const char *const stops[] = {"aa", "q"};
    k->letters = regex("[ab]{3,}c?");
    k->list = regex("(ab?c, )*end");
    const struct generate_options plain = {.sample = sample_options_default(),
                                           .max_tokens = UINT64_MAX,
                                           .max_thought = -1,
                                           .ignore_eos = true,
                                           .show_special = true};
    struct generate_options *o = k->options;
    for (size_t i = 0; i < sizeof k->options / sizeof *k->options; i++) o[i] = plain;
    o[0].sample.temp = 0; /* until the context is full */
    o[1].sample.temp = 0.3f;
    o[1].sample.repeat_penalty = 1.05f;
    o[1].max_tokens = 33;
    o[2].sample.temp = 0.2f; /* with end-of-text tokens and stop strings */
    o[2].ignore_eos = false;
    o[2].stop = stops;
    o[2].n_stop = 2;
    o[3].constraint = k->letters;
    o[3].max_tokens = 30;
    o[4].constraint = k->list;
    o[4].max_tokens = 40;
    o[4].ignore_eos = false;
    o[5].sample.mirostat = 2;
    o[6].sample.temp = 0; /* reasoning, and an answer under a constraint */
    o[6].constraint = k->list;
    o[6].max_thought = 12;
    o[6].max_tokens = 50;
    k->n_options = 7;
}

/* ---- Texts ---- */

/* A text that repeats itself, so that look-ups find matches. */
static size_t make_prompt(struct sample_random *r, int32_t *ids)
{
    const size_t period = 4 + sample_random_u32(r) % 9, n = 8 + sample_random_u32(r) % 24;
    for (size_t i = 0; i < n; i++)
        ids[i] = i < period ? (int32_t)(65 + sample_random_u32(r) % 60) : ids[i - period];
    return n;
}

struct fixture {
    struct support_generate plain, guessed, other;
    struct model_session *twin; /* session of the model of `guessed` */
    struct generate_draft_counts sum;
};

/* Opens a session that can draft: with an MTP layer, or the drafter (NULL: none). */
static struct model_session *session_of(struct model *m, bool mtp, struct model *drafter)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_session_options o = model_session_options_default();
    o.n_ctx = N_CTX;
    o.mtp = mtp;
    o.drafter = drafter;
    struct model_session *s = model_session_new(m, &o, &err);
    if (!s) fail_msg("%s", err.text);
    return s;
}

/* Consecutive texts, as turns of a conversation: the second continues the first, the third drops
 * the second half of the ids. */
static void compare_turns(struct fixture *f, const struct generate_options *o,
                          const struct generate_draft_options *guesses, uint64_t seed,
                          const char *what)
{
    static const struct generate_thought_marks marks = {
        .open = "<t>", .close = "</t>", .opened = true};
    struct base_error err = BASE_ERROR_INIT;
    struct sample_random random;
    struct text plain = {0}, guessed = {0};
    int32_t ids[N_CTX];
    struct generate_request *a = support_request(&f->plain, o, 0),
                            *b = support_request(&f->guessed, o, 0);
    struct generate_draft *d = generate_draft_new(guesses, &err);
    if (!d) fail_msg("%s", err.text);
    sample_random_seed(&random, seed);
    size_t n = make_prompt(&random, ids);
    for (int turn = 0; turn < 3; turn++) {
        const struct generate_prompt p = {.ids = ids,
                                          .n = n,
                                          .continues = true,
                                          .seed = seed + (uint64_t)turn,
                                          .thought = o->max_thought > 0 ? &marks : NULL};
        run(a, NULL, &p, &plain);
        run(b, d, &p, &guessed);
        compare(&plain, &guessed, what);
        /* Except for snapshots, the sequence has the same tokens as without drafting. */
        if (guessed.held > n + guessed.n) fail_msg("%s: it holds %u", what, guessed.held);
        const size_t more = plain.n < MAX_PROMPT ? plain.n : MAX_PROMPT;
        if (turn == 0 && n + more < N_CTX) memcpy(ids + n, plain.id, more * sizeof *ids);
        n = turn == 0 && n + more < N_CTX ? n + more : n / 2 + 1;
    }
    const struct generate_draft_counts c = generate_draft_counts(d);
    f->sum.n_guesses += c.n_guesses;
    f->sum.n_right += c.n_right;
    generate_draft_free(d);
    generate_request_free(a);
    generate_request_free(b);
    base_buffer_free(&plain.bytes);
    base_buffer_free(&guessed.bytes);
}

static void texts_are_the_same_with_and_without_drafts(void **state)
{
    static const char *const from[] = {"looked up", "looked up where it pays", "by the same model",
                                       "by another model"};
    (void)state;
    struct kit kit = {0};
    make_kit(&kit);
    uint64_t right[4] = {0}, guesses[4] = {0};
    for (size_t i = 0; support_arch(i); i++) {
        if (support_quick() && !support_arch_is_first(i)) continue;
        struct fixture f = {0};
        support_generate_open(&f.plain, support_arch(i), 1, N_CTX);
        support_generate_open(&f.guessed, support_arch(i), 1, N_CTX);
        const char *small = i % 2 ? "llama" : "mamba2";
        if (f.plain.n_vocab != support_model_default(small).n_vocab) small = support_arch(i);
        support_generate_open(&f.other, small, 1, N_CTX);
        f.twin = session_of(f.guessed.model, false, NULL);
        for (size_t k = 0; k < kit.n_options; k++)
            for (int source = 0; source < 4; source++) {
                const struct generate_draft_options o = {.n_ctx = N_CTX,
                                                         .session = source == 2   ? f.twin
                                                                    : source == 3 ? f.other.session
                                                                                  : NULL,
                                                         .always = source != 1};
                char what[96];
                /* A sample of the combinations, a smaller one of other architectures of a kind. */
                const size_t part = support_quick() ? 5 : support_arch_is_first(i) ? 1 : 2;
                if ((k + i) % ((source > 1 ? 4 : 2) * part)) continue;
                snprintf(what, sizeof what, "%s, options %zu, %s", support_arch(i), k,
                         from[source]);
                f.sum = (struct generate_draft_counts){0};
                compare_turns(&f, &kit.options[k], &o, 100 * i + k, what);
                right[source] += f.sum.n_right;
                guesses[source] += f.sum.n_guesses;
            }
        model_session_free(f.twin);
        support_generate_close(&f.plain);
        support_generate_close(&f.guessed);
        support_generate_close(&f.other);
    }
    constraint_free(kit.letters);
    constraint_free(kit.list);
    for (int source = 0; source < 4; source++) {
        print_message("%s: %llu of %llu guesses right\n", from[source],
                      (unsigned long long)right[source], (unsigned long long)guesses[source]);
        if (source != 1) assert_true(right[source] > 0 && right[source] < guesses[source]);
    }
}

/* ---- By hidden states ---- */

static bool ends_with(struct gguf_str name, const char *end)
{
    const size_t n = strlen(end);
    return name.size >= n && memcmp(name.data + name.size - n, end, n) == 0;
}

/* Overwrites the tensors of a file so that the model writes a fixed list: no layer adds anything to
 * the embeddings, token x + 1 follows token x, and the MTP layer passes its embedding on. A drafter
 * passes the hidden state before its token on, which token x + 2 follows. */
static void make_list(const struct gguf_file *file, const char *path)
{
    FILE *out = fopen(path, "r+b");
    const struct gguf_tensor *embd = gguf_tensor_find(file, "token_embd.weight");
    const uint64_t n_embd = embd->ne[0], n_vocab = embd->ne[1],
                   next = model_is_drafter(file) ? 2 : 1;
    assert_non_null(out);
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        const bool is_output = ends_with(t->name, "output.weight") && t->ne[1] == n_vocab;
        const bool passes =
            ends_with(t->name, "nextn.eh_proj.weight") || ends_with(t->name, "fc.weight");
        const bool adds =
            ends_with(t->name, "attn_output.weight") || ends_with(t->name, "ssm_out.weight") ||
            ends_with(t->name, "ffn_down.weight") || ends_with(t->name, "ffn_down_exps.weight") ||
            ends_with(t->name, "ffn_down_shexp.weight");
        if (!is_output && !passes && !adds) continue;
        float *values = calloc(t->size, 1);
        for (uint64_t k = 0; passes && k < n_embd; k++) values[t->ne[0] * k + k] = 1;
        for (uint64_t x = 0; is_output && x < n_vocab; x++)
            memcpy(values + (x + next) % n_vocab * n_embd, (const float *)embd->data + x * n_embd,
                   n_embd * sizeof *values);
        assert_int_equal(fseek(out, (long)t->offset, SEEK_SET), 0);
        assert_int_equal(fwrite(values, t->size, 1, out), 1);
        free(values);
    }
    assert_int_equal(fclose(out), 0);
}

/* Overwrites a tensor, so that the logits of the file's MTP layer are NaN. */
static void spoil_layer(const struct gguf_file *file, const char *path)
{
    FILE *out = fopen(path, "r+b");
    assert_non_null(out);
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (!ends_with(t->name, "nextn.eh_proj.weight")) continue;
        assert_int_equal(fseek(out, (long)t->offset, SEEK_SET), 0);
        for (uint64_t k = 0; k < t->size; k++) fputc(0xff, out);
    }
    assert_int_equal(fclose(out), 0);
}

/* Replaces s->model by the model of a changed fixture; its session keeps the layer's state. */
static void open_changed(struct support_generate *s, const char *name,
                         void (*change)(const struct gguf_file *file, const char *path))
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default(name);
    char path[64];
    support_generate_open(s, name, 1, N_CTX);
    text_tokenizer_close(s->tokenizer);
    model_session_free(s->session);
    model_close(s->model);
    gguf_close(s->file);
    snprintf(path, sizeof path, "/tmp/infer-%d-list.gguf", (int)getpid());
    assert_true(support_model_write(&m, path, &err));
    s->file = gguf_open(path, &err);
    change(s->file, path);
    unlink(path);
    s->model = model_open(s->file, s->engine, NULL, &err);
    if (!s->model) fail_msg("%s: %s", err.item, err.text);
    s->tokenizer = text_tokenizer_open(s->file, &err);
    if (!s->tokenizer) fail_msg("%s: %s", err.item, err.text);
    s->session = session_of(s->model, true, NULL);
    s->parts = (struct generate_model){
        .model = s->model, .tokenizer = s->tokenizer, .session = s->session};
}

/* Returns case i of drafting: models with an MTP layer, then drafters; NULL past the last one. */
static const struct support_fixture *drafting_at(size_t i)
{
    const struct support_fixture *f = support_fixtures;
    for (; f->name; f++)
        if (f->mtp && i-- == 0) return f;
    for (f = support_drafters; f->name; f++)
        if (i-- == 0) return f;
    return NULL;
}

/* Opens the model of a case, and its drafter if it is not in the model's file. */
static void open_drafting(struct support_generate *s, const struct support_fixture *v)
{
    support_generate_open(s, v->base ? v->base : v->name, 1, N_CTX);
    if (v->base) support_generate_add_drafter(s, v->name);
}

static void texts_are_the_same_with_drafts_of_hidden_states(void **state)
{
    struct kit kit = {0};
    uint64_t guesses = 0;
    int n_models = 1;
    (void)state;
    make_kit(&kit);
    const struct support_fixture *v;
    for (size_t i = 0; (v = drafting_at(i)); i++) {
        struct fixture f = {0};
        support_generate_open(&f.plain, v->base ? v->base : v->name, 1, N_CTX);
        support_apart_now = n_models++ % SUPPORT_APARTS;
        open_drafting(&f.guessed, v);
        support_apart_now = SUPPORT_HERE;
        model_session_free(f.guessed.session);
        f.guessed.session = f.guessed.parts.session =
            session_of(f.guessed.model, true, f.guessed.drafter);
        for (size_t k = 0; k < kit.n_options; k++) {
            if (support_quick() && (k + i) % 4) continue;
            const struct generate_draft_options o = {
                .n_ctx = N_CTX, .drafter = f.guessed.session, .always = k % 2 == 0};
            compare_turns(&f, &kit.options[k], &o, k, v->name);
        }
        guesses += f.sum.n_guesses;
        support_generate_close(&f.plain);
        support_generate_close(&f.guessed);
    }
    assert_true(guesses > 500);
    constraint_free(kit.letters);
    constraint_free(kit.list);
}

static void drafts_of_an_mtp_layer_of_nan_change_no_text(void **state)
{
    struct kit kit = {0};
    struct fixture f = {0};
    (void)state;
    make_kit(&kit);
    support_generate_open(&f.plain, "glm4moe-mtp", 1, N_CTX);
    open_changed(&f.guessed, "glm4moe-mtp", spoil_layer);
    const struct generate_draft_options o = {
        .n_ctx = N_CTX, .drafter = f.guessed.session, .always = true};
    for (size_t k = 0; k < kit.n_options; k++)
        compare_turns(&f, &kit.options[k], &o, k, "a spoilt layer");
    assert_true(f.sum.n_guesses > 0);
    support_generate_close(&f.plain);
    support_generate_close(&f.guessed);
    constraint_free(kit.letters);
    constraint_free(kit.list);
}

/* All drafts are right, with a state that can be cut back and with one that cannot. */
/* Generates 60 tokens of a model that counts on (make_list), with drafts of its drafter in all
 * steps. */
static struct generate_draft_counts draft_list(const struct support_generate *s)
{
    const int32_t prompt[] = {70, 80, 90};
    struct generate_options greedy = {.sample = sample_options_default(),
                                      .max_tokens = 60,
                                      .max_thought = -1,
                                      .ignore_eos = true};
    const struct generate_draft_options options = {
        .n_ctx = N_CTX, .drafter = s->session, .always = true};
    struct base_error err = BASE_ERROR_INIT;
    struct text text = {0};
    greedy.sample.temp = 0;
    struct generate_draft *d = generate_draft_new(&options, &err);
    struct generate_request *r = support_request(s, &greedy, 0);
    run(r, d, &(struct generate_prompt){.ids = prompt, .n = 3, .continues = true}, &text);
    assert_int_equal(text.n, 60);
    for (size_t k = 0; k < text.n; k++) assert_int_equal(text.id[k], 91 + k);
    const struct generate_draft_counts c = generate_draft_counts(d);
    base_buffer_free(&text.bytes);
    generate_request_free(r);
    generate_draft_free(d);
    return c;
}

static void drafts_of_a_perfect_mtp_layer_are_all_accepted(void **state)
{
    static const char *const names[] = {"glm4moe-mtp", "qwen35moe-mtp", "step35-mtp"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct support_generate s = {0};
        open_changed(&s, names[i], make_list);
        const struct generate_draft_counts c = draft_list(&s);
        assert_true(c.n_guesses >= 40);
        assert_int_equal(c.n_right, c.n_guesses);
        support_generate_close(&s);
    }
}

/* A drafter that passes on what it reads: the first token of each draft is right, the next ones
 * repeat it. */
static void right_tokens_of_a_drafter_are_accepted(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct support_model m = support_model_default("eagle3-shared");
    char path[64];
    (void)state;
    open_changed(&s, "llama", make_list);
    m.with = "token_embd.weight output.weight=300";
    snprintf(path, sizeof path, "/tmp/infer-%d-drafter.gguf", (int)getpid());
    assert_true(support_model_write(&m, path, &err));
    s.drafter_file = gguf_open(path, &err);
    make_list(s.drafter_file, path);
    unlink(path);
    s.drafter = model_open_drafter(s.drafter_file, s.engine, &err);
    if (!s.drafter) fail_msg("%s: %s", err.item, err.text);
    model_session_free(s.session);
    s.session = s.parts.session = session_of(s.model, false, s.drafter);
    const struct generate_draft_counts c = draft_list(&s);
    assert_true(c.n_batches > 20 && c.n_guesses > c.n_batches);
    assert_int_equal(c.n_right, c.n_batches);
    support_generate_close(&s);
}

/* ---- Keys and values of a drafter ---- */

enum { LONG_CTX = 400, LONG_PROMPT = 150, N_SESSIONS = 2 };

struct drafted {
    struct base_buffer logits;
    size_t n_vocab;
};

static int32_t keep_logits(void *user, const float *logits, struct base_error *err)
{
    struct drafted *d = user;
    (void)err;
    base_buffer_add(&d->logits, logits, d->n_vocab * sizeof *logits);
    return (int32_t)(d->logits.size / 64 % d->n_vocab);
}

/* The logits of a few draft tokens. */
static void guess_bytes(struct model_session *s, uint32_t seq, struct base_buffer *bytes)
{
    struct base_error err = BASE_ERROR_INIT;
    struct drafted d = {.n_vocab = model_session_n_draft_vocab(s)};
    int32_t ids[4] = {70};
    if (!model_seq_draft(s, seq, ids, 1, 3, keep_logits, &d, &err)) fail_msg("%s", err.text);
    *bytes = d.logits;
}

static void same_bytes(const struct base_buffer b[N_SESSIONS], const char *what)
{
    if (b[0].size != b[1].size || memcmp(b[0].data, b[1].data, b[0].size) != 0)
        fail_msg("%s: other bytes", what);
}

static void free_bytes(struct base_buffer b[N_SESSIONS])
{
    for (int i = 0; i < N_SESSIONS; i++) base_buffer_free(&b[i]);
}

/* One random step in both sessions; the first computes keys and values after it. */
static void step_both(struct model_session *s[N_SESSIONS], struct sample_random *r,
                      struct base_error *err)
{
    const uint32_t kind = sample_random_u32(r) % 8;
    const uint32_t n = 1 + sample_random_u32(r) % (kind == 2 ? LONG_PROMPT : 24);
    const uint32_t length = model_session_length(s[0]);
    const uint32_t back = length + n > LONG_CTX - 8 ? length - n : n < length ? n : 0;
    int32_t ids[LONG_PROMPT];
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)(65 + sample_random_u32(r) % 60);
    for (int i = 0; i < N_SESSIONS; i++) {
        if (kind == 0 || length + n > LONG_CTX - 8)
            model_session_truncate(s[i], length - back);
        else if (kind == 1)
            model_seq_fork(s[i], 1, 0, model_seq_fork(s[i], 0, 1, length - n / 8));
        else if (!model_eval(s[i], ids, n, kind == 2 ? MODEL_LOGITS_NONE : MODEL_LOGITS_LAST, NULL,
                             NULL, err))
            fail_msg("%s", err->text);
        if (i == 0 && !model_seq_draft_begin(s[i], 0, err)) fail_msg("%s", err->text);
    }
    assert_int_equal(model_session_length(s[0]), model_session_length(s[1]));
}

/* Loads a saved sequence, at most the first `most` tokens, and saves it; returns their number. */
static uint32_t save_again(struct model_session *s, const struct base_buffer *bytes, uint32_t most,
                           struct base_buffer *again)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_saved from = {bytes, 0};
    const struct model_source source = {support_saved_read, support_saved_pass_over, {&from}, 1};
    const struct model_sink sink = {support_saved_keep, again};
    const uint32_t n = model_seq_load(s, 0, 1, most, &source, &err);
    if (n > 0) model_seq_save(s, 0, &sink, &err);
    if (err.code != BASE_OK) fail_msg("%s", err.text);
    return n;
}

static void open_two(struct support_generate *g, const struct support_fixture *v,
                     struct model_session *s[N_SESSIONS])
{
    struct base_error err = BASE_ERROR_INIT;
    open_drafting(g, v);
    const struct model_session_options o = {.n_seq = 2,
                                            .n_ctx = LONG_CTX,
                                            .n_batch = 100,
                                            .type_k = QUANT_F16,
                                            .type_v = QUANT_F16,
                                            .mtp = true,
                                            .drafter = g->drafter};
    for (int i = 0; i < N_SESSIONS; i++) s[i] = model_session_new(g->model, &o, &err);
    if (!s[0] || !s[1]) fail_msg("%s", err.text);
}

/* A prompt that is one batch without logits: no hidden state of it is kept, and those of an earlier
 * text must not replace them. */
static void a_drafter_uses_no_hidden_states_of_another_text(void **state)
{
    enum { N = 90 };
    int32_t ids[LONG_PROMPT];
    (void)state;
    for (int32_t i = 0; i < LONG_PROMPT; i++) ids[i] = 65 + i % 60;
    const struct support_fixture *v;
    for (size_t k = 0; (v = drafting_at(k)); k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_generate g = {0};
        struct model_session *s[N_SESSIONS];
        struct base_buffer guess[N_SESSIONS],
            bytes[N_SESSIONS] = {BASE_BUFFER_INIT, BASE_BUFFER_INIT};
        open_two(&g, v, s);
        bool ok = model_eval(s[1], ids, LONG_PROMPT, MODEL_LOGITS_LAST, NULL, NULL, &err);
        model_session_truncate(s[1], 0);
        for (int i = 0; i < N_SESSIONS; i++) {
            const struct model_sink sink = {support_saved_keep, &bytes[i]};
            ok = ok && model_eval(s[i], ids + 7, N, MODEL_LOGITS_NONE, NULL, NULL, &err) &&
                 model_seq_save(s[i], 0, &sink, &err);
            if (!ok) fail_msg("%s: %s", v->name, err.text);
            guess_bytes(s[i], 0, &guess[i]);
        }
        same_bytes(bytes, v->name);
        same_bytes(guess, v->name);
        free_bytes(bytes);
        free_bytes(guess);
        for (int i = 0; i < N_SESSIONS; i++) model_session_free(s[i]);
        support_generate_close(&g);
    }
}

static void keys_of_a_drafter_do_not_depend_on_when_they_are_computed(void **state)
{
    (void)state;
    const struct support_fixture *v;
    for (size_t k = 0; (v = drafting_at(k)); k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_generate g = {0};
        struct model_session *s[N_SESSIONS];
        struct base_buffer bytes[N_SESSIONS] = {BASE_BUFFER_INIT, BASE_BUFFER_INIT};
        struct sample_random r;
        open_two(&g, v, s);
        sample_random_seed(&r, 7);
        for (int step = 0; step < 80; step++) {
            step_both(s, &r, &err);
            if (step % 16 != 15) continue;
            for (int i = 0; i < N_SESSIONS; i++) guess_bytes(s[i], 0, &bytes[i]);
            same_bytes(bytes, v->name);
            base_buffer_free(&bytes[1]);
            model_seq_fork(s[0], 0, 1, model_session_length(s[0]));
            guess_bytes(s[0], 1, &bytes[1]);
            same_bytes(bytes, v->name);
            free_bytes(bytes);
        }
        for (int i = 0; i < N_SESSIONS; i++) {
            const struct model_sink sink = {support_saved_keep, &bytes[i]};
            if (!model_seq_save(s[i], 0, &sink, &err)) fail_msg("%s", err.text);
        }
        same_bytes(bytes, v->name);
        base_buffer_free(&bytes[1]);
        const uint32_t n = save_again(s[1], &bytes[0], LONG_CTX, &bytes[1]);
        same_bytes(bytes, v->name);
        /* The beginning, unless a window or a recurrent state is past it. */
        base_buffer_free(&bytes[1]);
        if (save_again(s[1], &bytes[0], n / 2, &bytes[1])) {
            base_buffer_free(&bytes[0]);
            save_again(s[0], &bytes[1], n, &bytes[0]);
            same_bytes(bytes, v->name);
        }
        free_bytes(bytes);
        for (int i = 0; i < N_SESSIONS; i++) model_session_free(s[i]);
        support_generate_close(&g);
    }
}

/* ---- Looking up ---- */

static void the_longest_match_is_found(void **state)
{
    enum { N = 3000 };
    struct base_error err = BASE_ERROR_INIT;
    struct generate_ngram g;
    struct sample_random r;
    (void)state;
    assert_true(generate_ngram_init(&g, N, &err));
    sample_random_seed(&r, 1);
    for (int text = 0; text < 3; text++) {
        generate_ngram_clear(&g);
        uint32_t found = 0, longest = 0;
        while (g.n < N) {
            uint32_t length, best = 0;
            /* Copies of earlier parts and new ids alternate at random. */
            const uint32_t at = g.n ? sample_random_u32(&r) % g.n : 0;
            const uint32_t n = 1 + sample_random_u32(&r) % 12;
            for (uint32_t i = 0; i < n && g.n < N; i++)
                generate_ngram_add(&g, g.n > 20 && text ? g.id[at + i]
                                                        : (int32_t)(sample_random_u32(&r) % 7000));
            const uint32_t place = generate_ngram_find(&g, &length);
            for (uint32_t p = 1; p < g.n; p++) {
                uint32_t same = 0;
                while (same < p && same < GENERATE_NGRAM_MATCH &&
                       g.id[p - 1 - same] == g.id[g.n - 1 - same])
                    same++;
                if (same > best) best = same;
            }
            if (best < GENERATE_NGRAM) {
                assert_int_equal(place, 0);
                continue;
            }
            found++;
            if (!place) continue; /* dropped: too many entries have its hash */
            if (length > best) fail_msg("a match of %u, not %u", length, best);
            longest += length == best; /* a longer match may have been dropped */
            assert_true(place > 0 && place < g.n && length >= GENERATE_NGRAM);
            for (uint32_t i = 1; i <= length; i++) assert_int_equal(g.id[place - i], g.id[g.n - i]);
        }
        if (text) assert_true(found > 100 && longest > found / 2);
    }
    generate_ngram_free(&g);
}

/* ---- Memory ---- */

struct counter {
    size_t n;
    int at_first;
};

static bool count(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct counter *c = user;
    (void)err;
    (void)piece;
    if (c->n++ == 1) c->at_first = atomic_load(&allocations);
    return true;
}

/* The first text plans graphs of all sizes; the next one allocates nothing after its prompt. */
static void drafting_allocates_nothing(void **state)
{
    (void)state;
    for (int source = 0; source < 3; source++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_generate s = {0};
        struct generate_options o = {.sample = sample_options_default(),
                                     .max_tokens = UINT64_MAX,
                                     .max_thought = -1,
                                     .ignore_eos = true};
        struct generate_outcome outcome;
        struct counter c = {0};
        int32_t ids[MAX_PROMPT];
        o.sample.temp = 0;
        if (source == 2)
            open_changed(&s, "glm4moe-mtp", make_list);
        else
            support_generate_open(&s, "llama", 1, N_CTX);
        struct model_session *twin = source == 1 ? session_of(s.model, false, NULL) : NULL;
        const struct generate_draft_options options = {.n_ctx = N_CTX,
                                                       .session = twin,
                                                       .drafter = source == 2 ? s.session : NULL,
                                                       .always = true};
        struct generate_draft *d = generate_draft_new(&options, &err);
        struct generate_request *r = support_request(&s, &o, 0);
        for (int i = 0; i < 20; i++) ids[i] = 65 + i % 7;
        const struct generate_prompt p = {.ids = ids, .n = 20, .continues = true, .seed = 1};
        for (int text = 0; text < 3; text++) {
            c = (struct counter){0};
            if (!generate_request_begin(r, &p, &err) ||
                !generate_run(r, d, count, &c, &outcome, &err))
                fail_msg("%s", err.text);
        }
        assert_true(c.n > 40 && generate_draft_counts(d).n_right > 10);
        assert_int_equal(atomic_load(&allocations) - c.at_first, 0);
        generate_request_free(r);
        generate_draft_free(d);
        model_session_free(twin);
        support_generate_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_same_with_and_without_drafts),
        cmocka_unit_test(texts_are_the_same_with_drafts_of_hidden_states),
        cmocka_unit_test(drafts_of_an_mtp_layer_of_nan_change_no_text),
        cmocka_unit_test(drafts_of_a_perfect_mtp_layer_are_all_accepted),
        cmocka_unit_test(right_tokens_of_a_drafter_are_accepted),
        cmocka_unit_test(a_drafter_uses_no_hidden_states_of_another_text),
        cmocka_unit_test(keys_of_a_drafter_do_not_depend_on_when_they_are_computed),
        cmocka_unit_test(the_longest_match_is_found),
        cmocka_unit_test(drafting_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
