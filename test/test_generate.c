/* test/test_generate.c: requests: two in one session write the same as each by itself; tokens that
 * a sequence already has are not evaluated again; reasoning ends as specified; a constraint begins
 * with the answer. */
#include "test/support.h"

#include "base/interrupt.h"
#include "test/support_generate.h"
#include <string.h>

enum { N_CTX = 128, MOST = 64 };

static const struct generate_thought_marks marks = {.open = "<t>", .close = "</t>"};
static const struct generate_thought_marks opened = {
    .open = "<t>", .close = "</t>", .opened = true};

/* A collected text. */
struct text {
    struct base_buffer bytes;
    int32_t id[N_CTX];
    size_t n, n_forced; /* n_forced: tokens without logits */
    struct generate_outcome outcome;
};

static void add(struct text *t, const struct generate_piece *piece)
{
    base_buffer_add(&t->bytes, piece->text, piece->size);
    t->n_forced += piece->id >= 0 && !piece->logits;
    if (piece->id >= 0) t->id[t->n++] = piece->id;
}

static bool sink(void *user, const struct generate_piece *piece, struct base_error *err)
{
    (void)err;
    add(user, piece);
    return true;
}

static void clear(struct text *t)
{
    base_buffer_free(&t->bytes);
    *t = (struct text){0};
}

static struct generate_options options(uint64_t max_tokens, const struct constraint *c)
{
    struct generate_options o = {.sample = sample_options_default(),
                                 .max_tokens = max_tokens,
                                 .constraint = c,
                                 .max_thought = -1,
                                 .show_special = true};
    o.sample.temp = 2.0f;
    return o;
}

static struct generate_prompt prompt_of(const struct text_ids *ids, uint64_t seed,
                                        const struct generate_thought_marks *thought)
{
    return (struct generate_prompt){
        .ids = ids->id, .n = ids->count, .continues = true, .seed = seed, .thought = thought};
}

static struct text_ids ids_of(const struct support_generate *s, const char *text)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    if (!text_encode(s->tokenizer, text, strlen(text), 0, &ids, &err)) fail_msg("%s", err.text);
    return ids;
}

static void run(struct generate_request *r, const struct generate_prompt *p, struct text *out)
{
    struct base_error err = BASE_ERROR_INIT;
    clear(out);
    if (!generate_request_begin(r, p, &err) ||
        !generate_run(r, NULL, sink, out, &out->outcome, &err))
        fail_msg("%s", err.text);
    base_buffer_add(&out->bytes, "", 0);
}

/* ---- Several requests ---- */

/* One batch with the next ids of both requests. Each row of logits goes to its request. */
struct both {
    struct generate_request *r[2];
    struct text text[2];
    int owner[2]; /* of each row, in order */
};

static bool give_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct both *b = user;
    for (uint64_t i = 0; i < rows; i++) {
        const int k = b->owner[first + i];
        struct generate_piece piece;
        if (!generate_request_take(b->r[k], logits + i * 300, &piece, err)) return false;
        add(&b->text[k], &piece);
    }
    return true;
}

static bool step_both(struct both *b, struct model_session *session)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_token tokens[2 * MOST];
    size_t total = 0, rows = 0;
    for (int k = 0; k < 2; k++) {
        size_t n;
        const int32_t *ids = generate_request_next_ids(b->r[k], &n);
        for (size_t i = 0; i < n; i++)
            tokens[total++] =
                (struct model_token){ids[i], generate_request_seq(b->r[k]), i + 1 == n};
        if (n) b->owner[rows++] = k;
    }
    if (total && !model_eval_batch(session, tokens, total, give_rows, b, &err))
        fail_msg("%s", err.text);
    return total > 0;
}

static void two_requests_are_each_what_they_are_alone(void **state)
{
    static const char *const archs[] = {"llama", "gemma3"};
    static const char *const texts[2] = {"the cat in the hat", "x"};
    static const char *const stops[] = {"q", "zz"};
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    struct constraint *c = constraint_from_regex("([a-z]+ ){3,9}\\.", 16, &err);
    assert_non_null(c);
    const struct generate_options plain = options(40, NULL);
    struct generate_options constrained = options(50, c);
    constrained.stop = stops;
    constrained.n_stop = 2;
    for (size_t a = 0; a < 2; a++) {
        struct support_generate s = {0};
        support_generate_open(&s, archs[a], 2, N_CTX);
        assert_int_equal(s.n_vocab, 300);
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct both b = {0};
            struct text alone[2] = {0};
            struct text_ids ids[2];
            for (int k = 0; k < 2; k++) {
                ids[k] = ids_of(&s, texts[k]);
                b.r[k] = support_request(&s, k ? &constrained : &plain, (uint32_t)k);
                const struct generate_prompt p = prompt_of(&ids[k], seed, NULL);
                run(b.r[k], &p, &alone[k]);
                model_seq_truncate(s.session, (uint32_t)k, 0);
            }
            for (int k = 0; k < 2; k++) {
                const struct generate_prompt p = prompt_of(&ids[k], seed, NULL);
                assert_true(generate_request_begin(b.r[k], &p, &err));
            }
            while (step_both(&b, s.session)) continue;
            for (int k = 0; k < 2; k++) {
                struct generate_piece piece;
                assert_true(generate_request_end(b.r[k], &piece, &b.text[k].outcome, &err));
                add(&b.text[k], &piece);
                assert_true(alone[k].n > 0);
                assert_int_equal(b.text[k].n, alone[k].n);
                assert_memory_equal(b.text[k].id, alone[k].id, alone[k].n * sizeof *alone[k].id);
                assert_int_equal(b.text[k].bytes.size, alone[k].bytes.size);
                assert_memory_equal(b.text[k].bytes.data, alone[k].bytes.data, alone[k].bytes.size);
                assert_int_equal(b.text[k].outcome.ending, alone[k].outcome.ending);
                generate_request_free(b.r[k]);
                text_ids_free(&ids[k]);
                clear(&alone[k]);
                clear(&b.text[k]);
            }
        }
        support_generate_close(&s);
    }
    constraint_free(c);
}

/* ---- Contents of the sequence ---- */

static void a_common_beginning_is_not_evaluated_again(void **state)
{
    struct support_generate s = {0};
    struct text first = {0}, again = {0}, fresh = {0};
    const struct generate_options o = options(10, NULL);
    (void)state;
    support_generate_open(&s, "llama", 2, N_CTX);
    struct generate_request *r = support_request(&s, &o, 0), *other = support_request(&s, &o, 1);
    struct text_ids ids = ids_of(&s, "the first question");
    struct generate_prompt p = prompt_of(&ids, 1, NULL);
    run(r, &p, &first);
    assert_int_equal(first.outcome.n_cached, 0);
    assert_int_equal(first.outcome.n_read, ids.count);
    run(r, &p, &again); /* evaluates only the last id, for the first logits */
    assert_int_equal(again.outcome.n_cached, ids.count - 1);
    assert_int_equal(again.outcome.n_read, 1);
    assert_memory_equal(again.id, first.id, first.n * sizeof *first.id);
    struct base_error err = BASE_ERROR_INIT;
    for (size_t i = 0; i < first.n; i++) assert_true(text_ids_add(&ids, first.id[i], &err));
    assert_true(text_ids_add(&ids, 70, &err));
    p = prompt_of(&ids, 2, NULL);
    run(r, &p, &again);
    assert_int_equal(again.outcome.n_cached, ids.count - 2); /* the last token was not evaluated */
    run(other, &p, &fresh);
    assert_int_equal(fresh.outcome.n_cached, 0);
    assert_int_equal(again.n, fresh.n);
    assert_memory_equal(again.id, fresh.id, fresh.n * sizeof *fresh.id);
    p.n = 0;
    assert_false(generate_request_begin(r, &p, &err));
    assert_int_equal(err.code, BASE_USAGE);
    generate_request_free(r);
    generate_request_free(other);
    text_ids_free(&ids);
    clear(&first), clear(&again), clear(&fresh);
    support_generate_close(&s);
}

/* ---- Thoughts ---- */

/* The text after the closing mark; NULL without one. */
static const char *answer_of(const struct text *t)
{
    const char *close = strstr(t->bytes.data, marks.close);
    return close ? close + strlen(marks.close) : NULL;
}

static void a_constraint_begins_with_the_answer(void **state)
{
    static const char *const choices[] = {"yes", "no"};
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_choices(choices, 2, &err);
    struct text_ids ids = ids_of(&s, "x");
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct generate_options o = options(40, c);
        o.max_thought = seed % 2 ? 5 : -1;
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, seed, &opened);
        run(r, &p, &text);
        const char *answer = answer_of(&text);
        assert_non_null(answer);
        assert_true(strcmp(answer, "yes") == 0 || strcmp(answer, "no") == 0);
        assert_true(text.outcome.complete);
        assert_int_equal(text.outcome.ending, GENERATE_END_CONSTRAINT);
        /* "</t>" is 4 tokens here, the answer 2 or 3. */
        if (seed % 2) assert_true(text.n <= 5 + 4 + 3);
        generate_request_free(r);
    }
    constraint_free(c);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

static void the_answer_keeps_its_share_of_the_limit(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_regex("[a-z]{30}", 9, &err);
    struct text_ids ids = ids_of(&s, "x");
    for (uint64_t n = 34; n < 60; n += 5) {
        struct generate_options o = options(n, c);
        o.ignore_eos = true;
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, n, &opened);
        run(r, &p, &text);
        assert_true(text.n <= n);
        if (!text.outcome.complete) fail_msg("limit %d: %s", (int)n, text.bytes.data);
        generate_request_free(r);
    }
    const struct generate_options o = options(20, c); /* too few from the start */
    struct generate_request *r = support_request(&s, &o, 0);
    const struct generate_prompt p = prompt_of(&ids, 1, &opened);
    run(r, &p, &text);
    assert_false(text.outcome.complete);
    assert_int_equal(text.outcome.ending, GENERATE_END_LIMIT);
    generate_request_free(r);
    constraint_free(c);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* The model opens the thought itself, enforced by biases. */
static void reasoning_that_the_model_opens_is_recognized(void **state)
{
    static const struct generate_thought_marks special = {.open = "<|im_start|>",
                                                          .close = "<|endoftext|>"};
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    struct text_ids mark = TEXT_IDS_INIT;
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    assert_true(text_encode(s.tokenizer, special.open, strlen(special.open), TEXT_PARSE_SPECIAL,
                            &mark, &err));
    assert_int_equal(mark.count, 1);
    struct constraint *c = constraint_from_regex("[0-9]{3}", 8, &err);
    struct text_ids ids = ids_of(&s, "x");
    const struct sample_bias bias = {mark.id[0], 1000.0f};
    struct generate_options o = options(40, c);
    o.sample.bias = &bias;
    o.sample.n_biases = 1;
    o.max_thought = 3;
    for (int budget = 3; budget >= 0; budget -= 3) {
        o.max_thought = budget;
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, 1, &special);
        run(r, &p, &text);
        const bool thought = strstr(text.bytes.data, special.open) == text.bytes.data;
        assert_int_equal(thought, budget > 0); /* without a budget the mark is not offered */
        const size_t n = strspn(text.bytes.data + text.bytes.size - 3, "0123456789");
        assert_int_equal(n, 3);
        assert_true(text.outcome.complete);
        assert_int_equal(text.n, thought ? 1 + 3 + 1 + 3 : 3);
        generate_request_free(r);
    }
    constraint_free(c);
    text_ids_free(&mark);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* The constraint accepts the tokens of a mark also as text; the following text determines which it
 * is. */
static void an_incomplete_marker_is_text(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_regex("(<[a-z]|[0-9])[0-9]{3}", 22, &err);
    struct text_ids ids = ids_of(&s, "x"), mark = ids_of(&s, marks.open);
    assert_int_equal(mark.count, 3);
    const struct sample_bias bias[3] = {
        {mark.id[0], 1000.0f}, {mark.id[1], 9.0f}, {mark.id[2], 2.0f}};
    struct generate_options o = options(40, c);
    o.sample.bias = bias;
    o.sample.n_biases = 3;
    o.sample.top_k = 0;
    o.sample.top_p = 1.0f;
    o.sample.min_p = 0.0f;
    int thoughts = 0, answers = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, seed, &marks);
        o.max_thought = 4;
        run(r, &p, &text);
        const bool thought = strncmp(text.bytes.data, "<t>", 3) == 0;
        const char *answer = thought ? answer_of(&text) : text.bytes.data;
        bool accepted = false;
        size_t used;
        struct constrain_state *state_of = constrain_state_new(c, &err);
        if (answer && constrain_state_feed(state_of, answer, strlen(answer), &used, &err))
            accepted = used == strlen(answer) && constrain_state_may_end(state_of);
        constrain_state_free(state_of);
        if (!accepted || !text.outcome.complete) fail_msg("%s", text.bytes.data);
        thoughts += thought;
        answers += !thought;
        generate_request_free(r);
    }
    if (thoughts == 0 || answers == 0) fail_msg("%d thoughts, %d answers", thoughts, answers);
    constraint_free(c);
    text_ids_free(&mark);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* A control token represents its letters only if they are marks of the constraint; the constraint
 * must allow a given beginning of a text. */
static void markers_are_tokens_and_a_given_beginning_is_continued(void **state)
{
    enum { MOST_TOKENS = 40 };
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    static const char pattern[] = "<\\|im_(start|end)\\|>[a-c]{2}";
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_regex(pattern, strlen(pattern), &err);
    struct text_ids mark = TEXT_IDS_INIT, ids = ids_of(&s, "x");
    assert_true(text_encode(s.tokenizer, "<|im_start|>", 12, TEXT_PARSE_SPECIAL, &mark, &err));
    assert_int_equal(mark.count, 1);
    int tokens[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct generate_options o = options(MOST_TOKENS, c);
        o.marks = k ? "<|im_start|>" : NULL;
        o.sample.temp = 20;
        struct generate_request *r = support_request(&s, &o, 0);
        for (uint64_t seed = 0; seed < 400; seed++) {
            const struct generate_prompt p = prompt_of(&ids, seed, NULL);
            run(r, &p, &text);
            assert_true(text.outcome.complete);
            tokens[k] += text.id[0] == mark.id[0];
            for (size_t i = 0; i < text.n; i++)
                if (text.id[i] != mark.id[0])
                    assert_int_not_equal(text_token_kind(s.tokenizer, text.id[i]),
                                         TEXT_TOKEN_CONTROL);
        }
        struct generate_prompt begun = prompt_of(&ids, 1, NULL);
        begun.begun = "<|im_end|>a";
        begun.n_begun = 11;
        run(r, &begun, &text);
        assert_true(text.outcome.complete);
        assert_int_equal(text.bytes.size, 1);
        begun.begun = "<|im_end|>d";
        assert_false(generate_request_begin(r, &begun, &err));
        assert_int_equal(err.code, BASE_USAGE);
        err = BASE_ERROR_INIT;
        generate_request_free(r);
    }
    assert_int_equal(tokens[0], 0);
    assert_true(tokens[1] > 0);
    constraint_free(c);
    text_ids_free(&mark);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* Runs a request without drafting twice: with all logits, and without the logits of forced
 * tokens. */
static void compare_forced(const struct support_generate *s, const struct generate_options *o,
                           const struct generate_prompt *p, struct text *text)
{
    struct generate_options all = *o;
    struct text full = {0};
    struct generate_request *a = support_request(s, o, 0), *b = support_request(s, &all, 1);
    all.all_logits = true;
    run(a, p, text);
    run(b, p, &full);
    assert_int_equal(full.n_forced, 0);
    assert_int_equal(text->n, full.n);
    assert_memory_equal(text->id, full.id, full.n * sizeof *full.id);
    assert_int_equal(text->bytes.size, full.bytes.size);
    assert_memory_equal(text->bytes.data, full.bytes.data, full.bytes.size);
    assert_int_equal(text->outcome.ending, full.outcome.ending);
    assert_int_equal(text->outcome.complete, full.outcome.complete);
    generate_request_free(a);
    generate_request_free(b);
    clear(&full);
}

static void tokens_that_a_constraint_determines_are_not_evaluated(void **state)
{
    static const char *const choices[] = {"yes, certainly", "no", "nobody"};
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    size_t n_forced = 0;
    (void)state;
    support_generate_open(&s, "llama", 2, N_CTX);
    struct constraint *c = constraint_from_choices(choices, 3, &err),
                      *inner = constraint_from_regex("(the end, ){2}[ab]x", 19, &err);
    struct text_ids ids = ids_of(&s, "x");
    const struct generate_prompt plain = prompt_of(&ids, 1, NULL);
    struct generate_options o = options(40, c);
    o.sample.temp = 2;
    for (uint64_t seed = 0; seed < 12; seed++) {
        const struct generate_prompt p = prompt_of(&ids, seed, seed % 2 ? &opened : NULL);
        o.max_thought = seed % 4 == 3 ? 3 : -1;
        compare_forced(&s, &o, &p, &text);
        assert_true(text.outcome.complete);
        if (seed % 2 == 0 && text.bytes.data[0] == 'y') /* the first token determines the rest */
            assert_int_equal(text.n_forced, text.n - 1);
        n_forced += text.n_forced;
    }
    assert_true(n_forced > 0);
    o = options(40, inner); /* forced tokens before a choice are evaluated, because the choice
                               depends on them */
    compare_forced(&s, &o, &plain, &text);
    assert_int_equal(text.n_forced, 1);
    o = options(8, c); /* the limit determines the ending */
    compare_forced(&s, &o, &plain, &text);
    assert_true(text.outcome.complete);
    constraint_free(c);
    constraint_free(inner);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

static void an_interruption_ends_a_text(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    struct generate_piece piece;
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct generate_options o = options(40, NULL);
    o.ignore_eos = true;
    struct generate_request *r = support_request(&s, &o, 0);
    struct text_ids ids = ids_of(&s, "x");
    const struct generate_prompt p = prompt_of(&ids, 1, NULL);
    assert_true(generate_request_begin(r, &p, &err));
    for (int i = 0; i < 5; i++) assert_true(support_request_step(r, &piece));
    base_interrupt();
    assert_true(generate_request_take(r, model_last_logits(s.parts.session), &piece, &err));
    base_interrupt_clear();
    assert_int_equal(piece.id, -1);
    assert_false(support_request_step(r, &piece));
    assert_true(generate_request_end(r, &piece, &text.outcome, &err));
    assert_int_equal(text.outcome.ending, GENERATE_END_INTERRUPTED);
    assert_int_equal(text.outcome.n_generated, 5);
    generate_request_free(r);
    text_ids_free(&ids);
    support_generate_close(&s);
}

/* ---- Shares of a limit ---- */

/* Returns the number of reasoning tokens before the closing mark, which is of n tokens. */
static uint64_t thought_of(const struct support_generate *s, const struct generate_options *o)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text text = {0};
    struct text_ids ids = ids_of(s, "x"), close = TEXT_IDS_INIT;
    struct generate_request *r = support_request(s, o, 0);
    const struct generate_prompt p = prompt_of(&ids, 3, &opened);
    assert_true(text_encode(s->tokenizer, marks.close, strlen(marks.close), TEXT_PARSE_SPECIAL,
                            &close, &err));
    assert_int_equal(close.count, 4);
    run(r, &p, &text);
    assert_true(text.outcome.complete);
    size_t at = 0;
    while (at + close.count <= text.n && memcmp(text.id + at, close.id, 4 * sizeof(int32_t)) != 0)
        at++;
    assert_true(at + close.count < text.n);
    generate_request_free(r);
    text_ids_free(&ids);
    text_ids_free(&close);
    clear(&text);
    return at;
}

/* Reasoning without end, and an answer that may be short or long. */
static void reasoning_leaves_a_quarter_of_the_limit_or_the_shortest_answer(void **state)
{
    static const struct {
        const char *answer;
        uint64_t limit, shortest;
    } cases[] = {{"[a-z]{1,60}", 40, 1},
                 {"[a-z]{1,60}", 80, 1},
                 {"[a-z]{9,60}", 40, 9},
                 {"[a-z]{11,60}", 40, 11},
                 {"[a-z]{30,60}", 60, 30}};
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c =
            constraint_from_regex(cases[i].answer, strlen(cases[i].answer), &err);
        struct generate_options o = options(cases[i].limit, c);
        o.ignore_eos = true;
        const uint64_t quarter = cases[i].limit / 4;
        const uint64_t kept = quarter > cases[i].shortest ? quarter : cases[i].shortest;
        assert_int_equal(thought_of(&s, &o), cases[i].limit - 4 - kept);
        o.max_thought = 7; /* the smaller limit applies */
        assert_int_equal(thought_of(&s, &o), 7);
        constraint_free(c);
    }
    support_generate_close(&s);
}

/* A text ends with the token that reaches the limit, or with the one for which the context has no
 * room. */
static void a_text_has_the_tokens_of_the_limit_or_of_the_context(void **state)
{
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct text_ids ids = ids_of(&s, "some words of a prompt");
    /* The last token is not evaluated, so the context has one more. */
    const uint64_t room = N_CTX - ids.count + 1;
    for (uint64_t limit = room - 1; limit <= room + 1; limit++) {
        struct generate_options o = options(limit, NULL);
        o.ignore_eos = true;
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, 1, NULL);
        run(r, &p, &text);
        assert_int_equal(text.n, limit < room ? limit : room);
        assert_int_equal(text.outcome.ending,
                         limit <= room ? GENERATE_END_LIMIT : GENERATE_END_CONTEXT);
        generate_request_free(r);
    }
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* A constrained text is completed within any limit that its shortest form fits into. */
static void a_constrained_text_is_complete_within_the_fewest_tokens(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_regex("([0-9]{5}|[A-Z]{9})(;[0-9]{5})*!", 32, &err);
    struct text_ids ids = ids_of(&s, "x");
    for (uint64_t limit = 5; limit < 40; limit++) {
        struct generate_options o = options(limit, c);
        struct generate_request *r = support_request(&s, &o, 0);
        const struct generate_prompt p = prompt_of(&ids, limit, NULL);
        run(r, &p, &text);
        assert_int_equal(text.outcome.complete, limit >= 5 + 1);
        assert_true(text.n <= limit);
        generate_request_free(r);
    }
    constraint_free(c);
    text_ids_free(&ids);
    clear(&text);
    support_generate_close(&s);
}

/* The context limits a constrained text as max_tokens does: its last token is the one after the
 * last place of the context. */
static void a_constrained_text_ends_with_the_last_token_that_the_context_allows(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct text text = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, N_CTX);
    struct constraint *c = constraint_from_regex("[a-z]*!", 7, &err);
    struct text_ids ids = ids_of(&s, "some words"), mark = ids_of(&s, "!");
    assert_int_equal(mark.count, 1);
    const struct sample_bias bias = {mark.id[0], -1000.0f}; /* only if nothing else fits */
    struct generate_options o = options(UINT64_MAX, c);
    o.sample.bias = &bias;
    o.sample.n_biases = 1;
    struct generate_request *r = support_request(&s, &o, 0);
    const struct generate_prompt p = prompt_of(&ids, 1, NULL);
    run(r, &p, &text);
    assert_true(text.outcome.complete);
    assert_int_equal(text.n, N_CTX - ids.count + 1);
    assert_int_equal(text.id[text.n - 1], mark.id[0]);
    generate_request_free(r);
    constraint_free(c);
    text_ids_free(&ids);
    text_ids_free(&mark);
    clear(&text);
    support_generate_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_requests_are_each_what_they_are_alone),
        cmocka_unit_test(a_common_beginning_is_not_evaluated_again),
        cmocka_unit_test(a_constraint_begins_with_the_answer),
        cmocka_unit_test(the_answer_keeps_its_share_of_the_limit),
        cmocka_unit_test(reasoning_that_the_model_opens_is_recognized),
        cmocka_unit_test(an_incomplete_marker_is_text),
        cmocka_unit_test(markers_are_tokens_and_a_given_beginning_is_continued),
        cmocka_unit_test(tokens_that_a_constraint_determines_are_not_evaluated),
        cmocka_unit_test(an_interruption_ends_a_text),
        cmocka_unit_test(reasoning_leaves_a_quarter_of_the_limit_or_the_shortest_answer),
        cmocka_unit_test(a_text_has_the_tokens_of_the_limit_or_of_the_context),
        cmocka_unit_test(a_constrained_text_is_complete_within_the_fewest_tokens),
        cmocka_unit_test(a_constrained_text_ends_with_the_last_token_that_the_context_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
