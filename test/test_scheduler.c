/* test/test_scheduler.c: requests that arrive, end and are cancelled at random in one session write
 * the same as each by itself; common prefixes are evaluated once; the failure of a job affects no
 * other. */
#include "test/support.h"

#include "generate/scheduler.h"
#include "test/support_files.h"
#include "test/support_generate.h"
#include "test/support_random.h"
#include <stdlib.h>
#include <string.h>

enum { N_CTX = 160, N_JOBS = 40, N_OPTIONS = 7, N_BEGINNINGS = 3, MOST_IDS = 100 };

struct text {
    struct base_buffer bytes;
    int32_t id[N_CTX];
    size_t n;
    struct generate_outcome outcome;
    enum base_code failed;
    int n_ends;
};

struct entry {
    struct generate_job job;
    int32_t id[MOST_IDS];
    uint64_t cancel_at; /* tokens after which it is cancelled; UINT64_MAX: never */
    struct text text;
};

static void clear(struct text *t)
{
    base_buffer_free(&t->bytes);
    *t = (struct text){0};
}

static bool add(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct text *t = user;
    (void)err;
    base_buffer_add(&t->bytes, piece->text, piece->size);
    if (piece->id >= 0) t->id[t->n++] = piece->id;
    return true;
}

static bool add_entry(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct entry *e = user;
    add(&e->text, piece, err);
    if (e->text.n == e->cancel_at) generate_scheduler_cancel(&e->job);
    return true;
}

static bool end_entry(void *user, const struct generate_outcome *outcome,
                      const struct base_error *failed, struct base_error *err)
{
    struct entry *e = user;
    (void)err;
    assert_true(!outcome == !!failed);
    if (outcome) e->text.outcome = *outcome;
    if (failed) e->text.failed = failed->code;
    e->text.n_ends++;
    return true;
}

/* ---- Jobs ---- */

struct set {
    struct constraint *regex, *choices;
    struct generate_options options[N_OPTIONS];
    int32_t beginning[N_BEGINNINGS][MOST_IDS];
    struct entry entry[N_JOBS];
};

static const char *const stops[] = {"q", "zz", "\n"};

static void make_options(struct set *set)
{
    static const char *const choices[] = {"yes", "no", "neither of them"};
    struct base_error err = BASE_ERROR_INIT;
    set->regex = constraint_from_regex("([a-z]+ ){3,9}\\.", 16, &err);
    set->choices = constraint_from_choices(choices, 3, &err);
    if (!set->regex || !set->choices) fail_msg("%s", err.text);
    for (int i = 0; i < N_OPTIONS; i++) {
        struct generate_options *o = &set->options[i];
        *o = (struct generate_options){.sample = sample_options_default(),
                                       .max_tokens = (uint64_t)(10 * i + 1),
                                       .max_thought = -1,
                                       .show_special = true};
        o->sample.temp = 2.0f;
    }
    set->options[1].constraint = set->choices;
    set->options[2].constraint = set->regex;
    set->options[2].max_tokens = UINT64_MAX;
    set->options[3].stop = stops;
    set->options[3].n_stop = 3;
    set->options[4].constraint = set->regex;
    set->options[4].stop = stops;
    set->options[4].n_stop = 2;
    set->options[5].sample.repeat_penalty = 1.3f;
    set->options[5].ignore_eos = true;
    set->options[6].sample.temp = 0; /* repeats itself, so that drafts are accepted */
    set->options[6].ignore_eos = true;
}

static void make_jobs(struct set *set, uint64_t *random)
{
    for (int b = 0; b < N_BEGINNINGS; b++)
        for (int i = 0; i < MOST_IDS; i++)
            set->beginning[b][i] = (int32_t)support_random_below(random, 256) + 3;
    for (int k = 0; k < N_JOBS; k++) {
        struct entry *e = &set->entry[k];
        const size_t n = 1 + support_random_below(random, MOST_IDS);
        const size_t shared = support_random_below(random, (uint32_t)n + 1);
        const int b = (int)support_random_below(random, N_BEGINNINGS);
        for (size_t i = 0; i < n; i++)
            e->id[i] =
                i < shared ? set->beginning[b][i] : (int32_t)support_random_below(random, 256) + 3;
        e->cancel_at =
            support_random_below(random, 5) ? UINT64_MAX : support_random_below(random, 12);
        e->job =
            (struct generate_job){.options = &set->options[support_random_below(random, N_OPTIONS)],
                                  .prompt = {.ids = e->id,
                                             .n = n,
                                             .continues = true,
                                             .seed = support_random_below(random, 1000)},
                                  .sink = add_entry,
                                  .end = end_entry,
                                  .user = e};
    }
}

static void free_set(struct set *set)
{
    for (int k = 0; k < N_JOBS; k++) clear(&set->entry[k].text);
    constraint_free(set->regex);
    constraint_free(set->choices);
    free(set);
}

static struct set *make_set(uint64_t *random)
{
    struct set *set = calloc(1, sizeof *set);
    assert_non_null(set);
    make_options(set);
    make_jobs(set, random);
    return set;
}

/* ---- Running ---- */

/* Adds jobs at random between steps, until all have ended. */
static void run_all(struct support_generate *s, const struct generate_scheduler_options *o,
                    struct set *set, uint64_t *random)
{
    struct base_error err = BASE_ERROR_INIT;
    struct generate_scheduler *scheduler = generate_scheduler_new(&s->parts, o, &err);
    if (!scheduler) fail_msg("%s", err.text);
    for (int added = 0; added < N_JOBS || generate_scheduler_waiting(scheduler) ||
                        generate_scheduler_running(scheduler);) {
        for (uint32_t n = support_random_below(random, 4); n > 0 && added < N_JOBS; n--) {
            struct entry *e = &set->entry[added++];
            clear(&e->text);
            generate_scheduler_add(scheduler, &e->job);
            if (e->cancel_at == 0) generate_scheduler_cancel(&e->job);
        }
        if (!generate_scheduler_step(scheduler, &err)) fail_msg("%s", err.text);
        assert_true(generate_scheduler_running(scheduler) <= o->n_slots);
    }
    generate_scheduler_free(scheduler);
}

static bool same_text(const struct text *a, const struct text *b)
{
    return a->n == b->n && memcmp(a->id, b->id, a->n * sizeof *a->id) == 0 &&
           a->bytes.size == b->bytes.size &&
           (a->bytes.size == 0 || memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0) &&
           a->outcome.ending == b->outcome.ending && a->outcome.complete == b->outcome.complete &&
           a->outcome.n_generated == b->outcome.n_generated &&
           a->outcome.stop_text == b->outcome.stop_text;
}

static void run_alone(const struct support_generate *lone, const struct entry *e, uint64_t seed,
                      struct text *out)
{
    struct base_error err = BASE_ERROR_INIT;
    struct generate_request *r = support_request(lone, e->job.options, 0);
    struct generate_prompt p = e->job.prompt;
    p.n_held = 0;
    p.seed = seed;
    clear(out);
    if (!generate_request_begin(r, &p, &err) ||
        !generate_run(r, NULL, add, out, &out->outcome, &err))
        fail_msg("%s", err.text);
    generate_request_free(r);
}

/* Each text must equal that of the job by itself, or, if cancelled, be a prefix of it. Returns the
 * number of failed jobs. */
static int check(const struct support_generate *lone, const struct set *set, const char *what)
{
    struct text alone = {0};
    int n_failed = 0;
    for (int k = 0; k < N_JOBS; k++) {
        const struct entry *e = &set->entry[k];
        const struct text *t = &e->text;
        if (t->n_ends != 1) fail_msg("%s: job %d ended %d times", what, k, t->n_ends);
        if (t->failed) {
            n_failed++;
            continue;
        }
        run_alone(lone, e, e->job.prompt.seed, &alone);
        const bool cut = alone.n > e->cancel_at || e->cancel_at == 0;
        if (cut) {
            assert_int_equal(t->outcome.ending, GENERATE_END_INTERRUPTED);
            assert_int_equal(t->n, e->cancel_at);
            assert_memory_equal(t->id, alone.id, t->n * sizeof *t->id);
        } else if (alone.n < e->cancel_at && !same_text(t, &alone)) {
            fail_msg("%s: job %d of %d ids: '%s', alone '%s'", what, k, (int)e->job.prompt.n,
                     t->bytes.data, alone.bytes.data);
        }
    }
    clear(&alone);
    return n_failed;
}

static void every_text_is_what_it_is_alone(void **state)
{
    static const char *const archs[] = {"llama", "gemma3", "mamba2"};
    const struct generate_draft_options guesses = {.n_ctx = N_CTX, .always = true};
    struct generate_draft_counts sum = {0};
    struct base_error err = BASE_ERROR_INIT;
    static const struct {
        uint32_t n_slots, n_kept, n_step;
    } cases[] = {{1, 0, 512}, {2, 1, 3}, {5, 0, 16}, {5, 2, 40}, {8, 2, 512}, {4, 1, 1}};
    uint64_t random = 7;
    (void)state;
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            if (support_quick() && (a + c / 2) % 3) continue; /* each case with one architecture */
            struct support_generate s = {0}, lone = {0};
            struct set *set = make_set(&random);
            support_generate_open(&s, archs[a], cases[c].n_slots + cases[c].n_kept, N_CTX);
            support_generate_open(&lone, archs[a], 1, N_CTX);
            struct generate_draft *draft = c % 3 == 0 ? generate_draft_new(&guesses, &err) : NULL;
            const struct generate_scheduler_options o = {
                .n_slots = cases[c].n_slots, .n_step = cases[c].n_step, .draft = draft};
            run_all(&s, &o, set, &random);
            assert_int_equal(check(&lone, set, archs[a]), 0);
            if (draft) {
                const struct generate_draft_counts counts = generate_draft_counts(draft);
                sum.n_guesses += counts.n_guesses;
                sum.n_right += counts.n_right;
            }
            generate_draft_free(draft);
            support_generate_close(&s);
            support_generate_close(&lone);
            free_set(set);
        }
    assert_true(sum.n_right > 0 && sum.n_right < sum.n_guesses);
}

/* The comparison detects another seed. */
static void another_seed_gives_another_text(void **state)
{
    uint64_t random = 3;
    struct support_generate s = {0}, lone = {0};
    struct set *set = make_set(&random);
    struct text alone = {0};
    int n_other = 0;
    (void)state;
    support_generate_open(&s, "llama", 4, N_CTX);
    support_generate_open(&lone, "llama", 1, N_CTX);
    const struct generate_scheduler_options o = {.n_slots = 4, .n_step = 64};
    run_all(&s, &o, set, &random);
    for (int k = 0; k < N_JOBS; k++) {
        run_alone(&lone, &set->entry[k], set->entry[k].job.prompt.seed + 1, &alone);
        n_other += !same_text(&set->entry[k].text, &alone);
    }
    if (n_other < N_JOBS / 2) fail_msg("%d of %d texts differ", n_other, N_JOBS);
    clear(&alone);
    support_generate_close(&s);
    support_generate_close(&lone);
    free_set(set);
}

/* ---- Common prefixes ---- */

/* Jobs with a common prefix; returns the number of evaluated ids of all prompts. */
static uint64_t read_of(const char *arch, uint32_t n_slots, uint32_t n_kept, size_t n_shared)
{
    uint64_t random = 5;
    struct support_generate s = {0};
    struct base_error err = BASE_ERROR_INIT;
    struct set *set = make_set(&random);
    uint64_t n_read = 0;
    support_generate_open(&s, arch, n_slots + n_kept, N_CTX);
    const struct generate_scheduler_options o = {.n_slots = n_slots, .n_step = 512};
    struct generate_scheduler *scheduler = generate_scheduler_new(&s.parts, &o, &err);
    for (int k = 0; k < N_JOBS; k++) {
        struct entry *e = &set->entry[k];
        for (size_t i = 0; i < n_shared; i++) e->id[i] = set->beginning[0][i];
        e->id[n_shared] = k + 3; /* the rest differs between jobs */
        e->job.prompt.n = n_shared + 10;
        e->job.options = &set->options[5];
        e->cancel_at = UINT64_MAX;
        generate_scheduler_add(scheduler, &e->job);
    }
    while (generate_scheduler_waiting(scheduler) || generate_scheduler_running(scheduler))
        if (!generate_scheduler_step(scheduler, &err)) fail_msg("%s", err.text);
    for (int k = 0; k < N_JOBS; k++) n_read += set->entry[k].text.outcome.n_read;
    generate_scheduler_free(scheduler);
    support_generate_close(&s);
    free_set(set);
    return n_read;
}

static void a_shared_beginning_is_read_once(void **state)
{
    (void)state;
    for (uint32_t n_kept = 0; n_kept < 2; n_kept++) {
        assert_int_equal(read_of("llama", 4, n_kept, 80), 80 + 10 * N_JOBS);
        assert_int_equal(read_of("llama", 1, n_kept, 80), 80 + 10 * N_JOBS);
    }
    assert_int_equal(read_of("gemma3", 4, 1, 80), 80 + 10 * N_JOBS); /* a window below 80 tokens */
}

/* ---- Failures ---- */

static void a_failure_ends_only_its_own_job(void **state)
{
    uint64_t random = 11;
    struct support_generate s = {0}, lone = {0};
    struct base_error err = BASE_ERROR_INIT;
    struct set *set = make_set(&random);
    struct generate_options wrong = set->options[0];
    int32_t long_prompt[N_CTX + 1] = {0};
    (void)state;
    wrong.sample.temp = -1.0f;
    set->entry[3].job.options = &wrong;
    set->entry[5].job.prompt.n = N_CTX + 1;
    set->entry[5].job.prompt.ids = long_prompt;
    set->entry[7].job.prompt.n = 0;
    for (int k = 3; k <= 7; k += 2) set->entry[k].cancel_at = UINT64_MAX;
    support_generate_open(&s, "llama", 4, N_CTX);
    support_generate_open(&lone, "llama", 1, N_CTX);
    const struct generate_scheduler_options o = {.n_slots = 3, .n_step = 64};
    run_all(&s, &o, set, &random);
    static const enum base_code codes[] = {BASE_USAGE, BASE_TOO_LONG, BASE_USAGE};
    for (int k = 3; k <= 7; k += 2) {
        assert_int_equal(set->entry[k].text.failed, codes[(k - 3) / 2]);
        assert_int_equal(set->entry[k].text.n_ends, 1);
    }
    assert_int_equal(check(&lone, set, "beside failures"), 3);
    const struct generate_scheduler_options more = {.n_slots = 5, .n_step = 64};
    assert_null(generate_scheduler_new(&s.parts, &more, &err));
    assert_int_equal(err.code, BASE_USAGE);
    support_generate_close(&s);
    support_generate_close(&lone);
    free_set(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_is_what_it_is_alone),
        cmocka_unit_test(another_seed_gives_another_text),
        cmocka_unit_test(a_shared_beginning_is_read_once),
        cmocka_unit_test(a_failure_ends_only_its_own_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
