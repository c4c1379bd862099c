/* test/test_scheduler_policy.c: what a scheduler does first: the order of jobs, the tokens of a
 * step, which job waits for a prefix, which prefix is kept, and in which sequence. The bytes of
 * texts are tested in test_scheduler.c. */
#include "test/support.h"

#include "generate/scheduler.h"
#include "test/support_generate.h"
#include <string.h>

enum { N_CTX = 160, MOST_JOBS = 24, MOST_EVENTS = 16 };

/* A job, and the steps (from 1) in which it had its first token and ended; 0: not yet. */
struct task {
    struct generate_job job;
    struct world *world;
    int32_t id[N_CTX];
    int first, last, n_tokens;
    struct generate_outcome outcome;
};

/* A call of the store. */
struct event {
    uint32_t seq;
    size_t n;
    const int32_t *ids;
};

struct world {
    struct support_generate parts;
    struct generate_options options; /* texts of `max_tokens` tokens */
    struct generate_scheduler *scheduler;
    struct task task[MOST_JOBS];
    int n_tasks, step;
    struct event begun[MOST_JOBS],
        saved[MOST_EVENTS]; /* jobs that began; prefixes that were kept */
    int n_begun, n_saved;
};

static bool sink(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct task *t = user;
    (void)err;
    if (piece->id < 0) return true;
    if (t->first == 0) t->first = t->world->step;
    t->n_tokens++;
    return true;
}

static bool end(void *user, const struct generate_outcome *outcome, const struct base_error *failed,
                struct base_error *err)
{
    struct task *t = user;
    (void)err;
    assert_null(failed);
    t->last = t->world->step;
    t->outcome = *outcome;
    return true;
}

static size_t load(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                   size_t n, size_t n_held)
{
    struct world *w = user;
    (void)session, (void)n;
    w->begun[w->n_begun++] = (struct event){seq, n_held, ids};
    return 0;
}

static void save(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                 size_t n, size_t n_held)
{
    struct world *w = user;
    (void)n_held;
    assert_int_equal(model_seq_length(session, seq), n);
    assert_true(w->n_saved < MOST_EVENTS);
    w->saved[w->n_saved++] = (struct event){seq, n, ids};
}

static void open_world(struct world *w, uint32_t n_slots, uint32_t n_kept, uint32_t n_step,
                       uint64_t max_tokens)
{
    struct base_error err = BASE_ERROR_INIT;
    memset(w, 0, sizeof *w);
    support_generate_open(&w->parts, "llama", n_slots + n_kept, N_CTX);
    w->options = (struct generate_options){.sample = sample_options_default(),
                                           .max_tokens = max_tokens,
                                           .max_thought = -1,
                                           .ignore_eos = true};
    const struct generate_scheduler_options o = {
        .n_slots = n_slots, .n_step = n_step, .store = {load, save, w}};
    w->scheduler = generate_scheduler_new(&w->parts.parts, &o, &err);
    if (!w->scheduler) fail_msg("%s", err.text);
}

static void close_world(struct world *w)
{
    generate_scheduler_free(w->scheduler);
    support_generate_close(&w->parts);
}

/* Adds a job with a prompt of n ids: `family` for the first n_shared, then ids of its own. */
static struct task *add(struct world *w, size_t n, int32_t family, size_t n_shared)
{
    struct task *t = &w->task[w->n_tasks++];
    assert_true(w->n_tasks <= MOST_JOBS && n <= N_CTX);
    for (size_t i = 0; i < n; i++) t->id[i] = i < n_shared ? 10 + family : 100 + w->n_tasks;
    t->world = w;
    t->job = (struct generate_job){.options = &w->options,
                                   .prompt = {.ids = t->id, .n = n, .continues = true},
                                   .sink = sink,
                                   .end = end,
                                   .user = t};
    generate_scheduler_add(w->scheduler, &t->job);
    return t;
}

static void step(struct world *w)
{
    struct base_error err = BASE_ERROR_INIT;
    w->step++;
    if (!generate_scheduler_step(w->scheduler, &err)) fail_msg("%s", err.text);
}

static void finish(struct world *w)
{
    while (generate_scheduler_waiting(w->scheduler) || generate_scheduler_running(w->scheduler))
        step(w);
}

/* ---- The tokens of a step ---- */

static void the_oldest_prompt_is_read_first(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 2, 0, 8, 4);
    struct task *brief = add(&w, 1, 0, 0); /* takes slot 0 in steps 1 to 4 */
    step(&w);
    struct task *old = add(&w, 70, 0, 0); /* in slot 1 from step 2 on, beside a generating text */
    while (!brief->last) step(&w);
    struct task *new = add(&w, 70, 0, 0); /* in slot 0 */
    finish(&w);
    /* Steps 2, 3, 4 read 7 tokens of the old prompt, later ones 8, and the new one waits: 21 + 7 *
     * 8 = 77. */
    assert_int_equal(brief->last, 4);
    assert_int_equal(old->first, 4 + 7);
    /* Step 11 has 1 token for the new prompt besides 7 of the old one's; steps 12 to 14 have 7 each
     * beside the old text's tokens, later ones 8: 1 + 21 + 6 * 8 = 70. */
    assert_int_equal(new->first, 11 + 3 + 6);
    close_world(&w);
}

static void every_text_gets_a_token_in_each_step_while_a_prompt_is_read(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 3, 0, 4, 30);
    struct task *a = add(&w, 1, 0, 0), *b = add(&w, 1, 0, 0);
    step(&w);
    struct task *prompt = add(&w, 40, 0, 0); /* two tokens in each step of four */
    for (int i = 1; !prompt->first; i++) {
        assert_int_equal(a->n_tokens, i);
        assert_int_equal(b->n_tokens, i);
        step(&w);
    }
    assert_int_equal(prompt->first, 1 + 40 / 2);
    close_world(&w);
}

static void a_prompt_is_read_on_in_a_step_that_is_full_of_texts(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 4, 0, 1, 30);
    add(&w, 1, 0, 0);
    step(&w);
    struct task *old = add(&w, 10, 0, 0), *new = add(&w, 10, 0, 0);
    while (!new->first) step(&w);
    /* One token a step, and only of the oldest prompt; the last of them is the text's first. */
    assert_int_equal(old->first, 1 + 10);
    assert_int_equal(new->first, 1 + 10 + 9);
    close_world(&w);
}

/* ---- The queue ---- */

static void jobs_start_in_the_order_of_their_arrival(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 1, 0, 512, 1);
    for (int i = 0; i < 6; i++) add(&w, 5, 0, 0);
    finish(&w);
    /* A slot is free for the next job in the step after the one that ended its text. */
    for (int i = 0; i < 6; i++) assert_int_equal(w.task[i].last, i + 1);
    close_world(&w);
}

/* Returns the number of jobs that run after a step with two prompts that share n ids. */
static size_t running_with_shared(size_t n)
{
    struct world w;
    open_world(&w, 2, 0, 4, 4);
    add(&w, 40, 1, n), add(&w, 40, 1, n);
    step(&w);
    const size_t running = generate_scheduler_running(w.scheduler);
    close_world(&w);
    return running;
}

static void a_job_waits_for_a_prefix_of_eight_tokens_or_more(void **state)
{
    (void)state;
    assert_int_equal(running_with_shared(7), 2);
    assert_int_equal(running_with_shared(8), 1);
}

static void a_job_starts_when_less_than_eight_tokens_of_its_prefix_are_missing(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 2, 0, 4, 4);
    add(&w, 60, 1, 20), add(&w, 60, 1, 20);
    for (int n_read = 0; 20 - n_read >= 8; n_read += 4) {
        step(&w);
        assert_int_equal(w.n_begun, 1);
    }
    step(&w);
    assert_int_equal(w.n_begun, 2);
    assert_int_equal(w.begun[1].n, 16);
    close_world(&w);
}

static void a_waiting_job_is_passed_four_times_for_each_slot(void **state)
{
    enum { SLOTS = 2, PASSES = 4 * SLOTS };
    struct world w;
    (void)state;
    open_world(&w, SLOTS, 0, 2, 1);
    struct task *reader = add(&w, 150, 1, 149), *waiting = add(&w, 150, 1, 149);
    for (int i = 0; i < 2 * PASSES; i++) add(&w, 1, 0, 0); /* each ends in one step */
    while (w.n_begun < 2 + PASSES) step(&w);
    assert_int_equal(reader->first, 0); /* still reads */
    for (int i = 0; i < w.n_begun; i++) /* after the reader and those that passed */
        assert_int_equal(w.begun[i].ids == waiting->id, i == 1 + PASSES);
    close_world(&w);
}

/* ---- Prefixes ---- */

/* Prompts of one slot: the first one shares 20 ids with n_short others and 40 with n_long. Returns
 * the length of the prefix that is kept first. */
static size_t kept_of(int n_short, int n_long)
{
    struct world w;
    open_world(&w, 1, 1, 512, 1);
    add(&w, 60, 1, 40);
    for (int i = 0; i < n_short; i++) add(&w, 60, 1, 20);
    for (int i = 0; i < n_long; i++) add(&w, 60, 1, 40);
    step(&w);
    step(&w); /* the first one ended at the mark */
    const size_t n = w.n_saved ? w.saved[0].n : 0;
    close_world(&w);
    return n;
}

static void the_prefix_that_saves_the_waiting_jobs_most_is_kept(void **state)
{
    (void)state;
    /* A prefix saves its length for each job that shares it: 20 * (3 + 1) against 40 * 1. */
    assert_int_equal(kept_of(3, 1), 20);
    assert_int_equal(kept_of(1, 2), 40); /* 20 * 3 < 40 * 2 */
    assert_int_equal(kept_of(0, 1), 40);
    assert_int_equal(kept_of(0, 0), 0);
}

static void a_prefix_that_adds_less_than_eight_tokens_is_not_kept(void **state)
{
    struct world w;
    (void)state;
    for (size_t more = 7; more < 9; more++) {
        open_world(&w, 1, 2, 512, 1);
        add(&w, 60, 1, 20), add(&w, 60, 1, 20);
        finish(&w); /* keeps 20 ids */
        assert_int_equal(w.n_saved, 1);
        add(&w, 60, 1, 20 + more), add(&w, 60, 1, 20 + more);
        finish(&w);
        assert_int_equal(w.n_saved, more < 8 ? 1 : 2);
        close_world(&w);
    }
}

static void the_least_recently_used_prefix_is_replaced(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 1, 2, 512, 1);
    for (int32_t family = 1; family <= 2; family++) {
        add(&w, 60, family, 40), add(&w, 60, family, 40);
        finish(&w);
    }
    add(&w, 60, 1, 40); /* uses the first prefix again */
    finish(&w);
    add(&w, 60, 3, 40), add(&w, 60, 3, 40);
    finish(&w);
    assert_int_equal(w.n_saved, 3);
    assert_int_equal(w.saved[0].seq, 1);
    assert_int_equal(w.saved[1].seq, 2);
    assert_int_equal(w.saved[2].seq, 2);
    const struct task *first = add(&w, 60, 1, 40);
    finish(&w);
    assert_int_equal(first->outcome.n_cached, 40);
    close_world(&w);
}

static void a_job_gets_the_slot_with_its_prefix_or_the_least_recently_used_one(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 3, 0, 512, 1);
    for (int32_t family = 1; family <= 3; family++) add(&w, 20, family, 20);
    finish(&w); /* slots 0, 1, 2 */
    add(&w, 40, 2, 20);
    finish(&w);
    assert_int_equal(w.begun[3].seq, 1);
    assert_int_equal(w.begun[3].n, 20);
    add(&w, 40, 4, 20);
    finish(&w);
    assert_int_equal(w.begun[4].seq, 0);
    add(&w, 40, 5, 20);
    finish(&w);
    assert_int_equal(w.begun[5].seq, 2); /* slot 1 was used again later */
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_prompt_is_read_first),
        cmocka_unit_test(every_text_gets_a_token_in_each_step_while_a_prompt_is_read),
        cmocka_unit_test(a_prompt_is_read_on_in_a_step_that_is_full_of_texts),
        cmocka_unit_test(jobs_start_in_the_order_of_their_arrival),
        cmocka_unit_test(a_job_waits_for_a_prefix_of_eight_tokens_or_more),
        cmocka_unit_test(a_job_starts_when_less_than_eight_tokens_of_its_prefix_are_missing),
        cmocka_unit_test(a_waiting_job_is_passed_four_times_for_each_slot),
        cmocka_unit_test(the_prefix_that_saves_the_waiting_jobs_most_is_kept),
        cmocka_unit_test(a_prefix_that_adds_less_than_eight_tokens_is_not_kept),
        cmocka_unit_test(the_least_recently_used_prefix_is_replaced),
        cmocka_unit_test(a_job_gets_the_slot_with_its_prefix_or_the_least_recently_used_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
