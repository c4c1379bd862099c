/* test/test_token_loop.c: after the start of a text, the loop that generates it allocates nothing:
 * evaluation, sampling, a constraint, detokenizing and stop strings together, as in `run`, and many
 * texts in one session. */
#include "test/support.h"

#include "generate/scheduler.h"
#include "test/support_alloc.h"
#include "test/support_files.h"
#include "test/support_generate.h"
#include "test/support_session.h"
#include <stdio.h>
#include <string.h>

enum { N_WARM = 30, N_TOKENS = 60, N_CTX = 128 };

/* Runs n steps, which must exist. */
static void steps(struct generate_request *r, int n, const char *what)
{
    struct generate_piece piece;
    for (int i = 0; i < n; i++)
        if (!support_request_step(r, &piece)) fail_msg("%s: over after %d tokens", what, i);
}

/* `n_warm` tokens may allocate: caches of masks grow with the states that a constraint reaches. */
static void count(const struct support_generate *s, const struct generate_options *o, int n_warm,
                  const char *what)
{
    static const int32_t prompt[] = {65, 66, 67};
    static const struct generate_thought_marks marks = {.open = "<|im_start|>",
                                                        .close = "<|im_end|>"};
    struct base_error err = BASE_ERROR_INIT;
    struct generate_request *r = support_request(s, o, 0);
    const struct generate_prompt p = {
        .ids = prompt, .n = 3, .continues = true, .seed = 1, .thought = &marks};
    if (!generate_request_begin(r, &p, &err)) fail_msg("%s", err.text);
    steps(r, n_warm, what);
    const int before = atomic_load(&allocations);
    steps(r, N_TOKENS, what);
    const int more = atomic_load(&allocations) - before;
    if (more) fail_msg("%s: %d allocations", what, more);
    generate_request_free(r);
}

static struct generate_options options(const struct constraint *c)
{
    static const char *const stops[] = {"never in this text", "nor\n\n\nthis"};
    struct generate_options o = {.sample = sample_options_default(),
                                 .max_tokens = UINT64_MAX,
                                 .stop = stops,
                                 .n_stop = 2,
                                 .constraint = c,
                                 .max_thought = -1,
                                 .ignore_eos = true,
                                 .show_special = true};
    o.sample.repeat_penalty = 1.1f;
    return o;
}

static void nothing_is_allocated_per_token(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    struct constraint *c = constraint_from_regex("[ -~]*", 6, &err);
    const struct generate_options plain = options(NULL), constrained = options(c);
    assert_non_null(c);
    for (size_t i = 0; support_arch(i); i++) {
        if (support_quick() && !support_arch_is_first(i)) continue;
        struct support_generate s = {0};
        char what[64];
        /* Threads wait for each other longer than they compute. */
        const bool alone = support_quick() ? i > 0 : !support_arch_is_first(i);
        support_generate_open_with(&s, support_arch(i), alone ? 1 : 2, 1, N_CTX);
        assert_true(atomic_load(&allocations) > 0); /* the wrappers are linked */
        count(&s, &plain, 1, support_arch(i));
        snprintf(what, sizeof what, "%s under a constraint", support_arch(i));
        count(&s, &constrained, N_WARM, what);
        support_generate_close(&s);
    }
    constraint_free(c);
}

static bool take(void *user, const struct generate_piece *piece, struct base_error *err)
{
    (void)user;
    (void)err;
    return piece->id >= 0;
}

static bool end(void *user, const struct generate_outcome *outcome, const struct base_error *failed,
                struct base_error *err)
{
    (void)user;
    (void)outcome;
    return base_fail(err, BASE_FAILED, "over: %s", failed ? failed->text : "");
}

static void a_step_of_many_texts_allocates_nothing(void **state)
{
    enum { N = 3 };
    static const int32_t prompt[] = {65, 66, 67};
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    struct generate_job jobs[N];
    (void)state;
    struct constraint *c = constraint_from_regex("[ -~]*", 6, &err);
    const struct generate_options plain = options(NULL), constrained = options(c);
    support_generate_open_with(&s, "llama", 2, N + 1, N_CTX);
    const struct generate_scheduler_options o = {.n_slots = N};
    struct generate_scheduler *scheduler = generate_scheduler_new(&s.parts, &o, &err);
    if (!scheduler) fail_msg("%s", err.text);
    for (int i = 0; i < N; i++) {
        jobs[i] = (struct generate_job){.options = i ? &plain : &constrained,
                                        .prompt = {.ids = prompt, .n = 3, .seed = (uint64_t)i},
                                        .sink = take,
                                        .end = end};
        generate_scheduler_add(scheduler, &jobs[i]);
    }
    int before = 0;
    for (int i = 0; i < N_WARM + N_TOKENS; i++) {
        if (i == N_WARM) before = atomic_load(&allocations);
        if (!generate_scheduler_step(scheduler, &err)) fail_msg("%s", err.text);
    }
    const int more = atomic_load(&allocations) - before;
    if (more) fail_msg("%d allocations", more);
    generate_scheduler_free(scheduler);
    support_generate_close(&s);
    constraint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_per_token),
        cmocka_unit_test(a_step_of_many_texts_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
