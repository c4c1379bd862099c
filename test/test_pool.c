/* test/test_pool.c: the thread pool: every worker runs every job once, barriers order memory,
 * claims return each unit once, also with far more threads than processors. */
#include "engine/cpu/pool.h"
#include "engine/cpu/threads.h"
#include "test/support.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 16, ROUNDS = 20, UNITS = 1000 };
static const int thread_counts[] = {1, 2, 3, 7, MAX_THREADS};

struct shared {
    int runs[MAX_THREADS]; /* jobs that worker i has run */
    int value[MAX_THREADS];
    int errors[MAX_THREADS];
    atomic_int taken[UNITS];
    int sum;
};

static struct engine_pool *new_pool(int n)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_pool *pool = engine_pool_new(n, false, &err);
    assert_non_null(pool);
    assert_int_equal(err.code, BASE_OK);
    return pool;
}

static void count_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    ++s->runs[w->ith];
}

static void every_worker_runs_every_job(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(thread_counts) / sizeof(thread_counts[0]); ++c) {
        const int n = thread_counts[c];
        struct engine_pool *pool = new_pool(n);
        assert_int_equal(engine_pool_threads(pool), n);
        struct shared s = {0};
        for (int i = 0; i < 1000; ++i) engine_pool_run(pool, count_job, &s);
        for (int i = 0; i < MAX_THREADS; ++i) assert_int_equal(s.runs[i], i < n ? 1000 : 0);
        engine_pool_free(pool);
    }
}

/* One worker writes plain (not atomic) memory and the next one reads it after a barrier: a barrier
 * that releases a worker early causes a wrong value, and a race under ThreadSanitizer. */
static void barrier_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    for (int round = 1; round <= ROUNDS; ++round) {
        s->value[w->ith] = round * 100 + w->ith;
        engine_pool_barrier(w);
        const int next = (w->ith + 1) % w->nth;
        if (s->value[next] != round * 100 + next) ++s->errors[w->ith];
        engine_pool_barrier(w);
    }
}

static void a_barrier_orders_memory(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(thread_counts) / sizeof(thread_counts[0]); ++c) {
        struct engine_pool *pool = new_pool(thread_counts[c]);
        struct shared s = {0};
        for (int i = 0; i < 50; ++i) engine_pool_run(pool, barrier_job, &s);
        for (int i = 0; i < MAX_THREADS; ++i) assert_int_equal(s.errors[i], 0);
        engine_pool_free(pool);
    }
}

/* Two regions in one job, each of which claims all units from 0, in chunks of different sizes. */
static void claim_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    for (int region = 0; region < 3; ++region) {
        const int64_t chunk = 1 + 6 * region;
        for (;;) {
            const int64_t first = engine_pool_claim(w, chunk);
            if (first >= UNITS) break;
            for (int64_t i = first; i < first + chunk && i < UNITS; ++i) {
                atomic_fetch_add(&s->taken[i], 1);
            }
        }
        engine_pool_barrier(w);
    }
}

static void claims_cover_each_unit_once(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(thread_counts) / sizeof(thread_counts[0]); ++c) {
        struct engine_pool *pool = new_pool(thread_counts[c]);
        struct shared *s = calloc(1, sizeof(*s));
        assert_non_null(s);
        for (int i = 0; i < 30; ++i) engine_pool_run(pool, claim_job, s);
        for (int i = 0; i < UNITS; ++i) assert_int_equal(s->taken[i], 3 * 30);
        free(s);
        engine_pool_free(pool);
    }
}

/* Shares: each unit once in every region, a worker's own units first and in order. Totals below and
 * above the number of workers. */
static void take_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    static const int64_t totals[] = {0, 1, 5, UNITS};
    for (int region = 0; region < 4; ++region) {
        const int64_t total = totals[region], own = total * w->ith / w->nth;
        int64_t expected = own;
        bool helping = false;
        for (int64_t i; (i = engine_pool_take(w, total)) < total;) {
            atomic_fetch_add(&s->taken[i], 1);
            const bool mine = i >= own && i < total * (w->ith + 1) / w->nth;
            /* Other workers may have run units of this share. */
            if (mine && (helping || i < expected)) ++s->errors[w->ith];
            if (mine) expected = i + 1;
            helping = helping || !mine;
        }
        engine_pool_barrier(w);
    }
}

static void takes_cover_each_unit_once(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(thread_counts) / sizeof(thread_counts[0]); ++c) {
        struct engine_pool *pool = new_pool(thread_counts[c]);
        struct shared *s = calloc(1, sizeof(*s));
        assert_non_null(s);
        for (int i = 0; i < 30; ++i) engine_pool_run(pool, take_job, s);
        for (int i = 0; i < UNITS; ++i) assert_int_equal(s->taken[i], 30 * (1 + (i < 1) + (i < 5)));
        for (int i = 0; i < MAX_THREADS; ++i) assert_int_equal(s->errors[i], 0);
        free(s);
        engine_pool_free(pool);
    }
}

/* A worker whose share is exhausted runs units of workers that run none. Units left at the end of a
 * region are not run in the next one. */
static void take_all_alone_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    if (w->ith == 1)
        while (engine_pool_take(w, 100) < 100) ++s->runs[1];
    engine_pool_barrier(w);
    if (w->ith == 0 && engine_pool_take(w, 100) == 0) ++s->sum;
}

static void units_of_absent_workers_are_taken(void **state)
{
    (void)state;
    struct engine_pool *pool = new_pool(3);
    struct shared s = {0};
    for (int i = 0; i < 50; ++i) engine_pool_run(pool, take_all_alone_job, &s);
    assert_int_equal(s.runs[1], 50 * 100);
    assert_int_equal(s.sum, 50);
    engine_pool_free(pool);
}

/* The claim counter starts at 0 in the next job even if this one ended within a region. */
static void claim_some_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    const int64_t first = engine_pool_claim(w, 5);
    if (first == 0) ++s->sum;
}

static void claims_restart_with_each_job(void **state)
{
    (void)state;
    struct engine_pool *pool = new_pool(3);
    struct shared s = {0};
    for (int i = 0; i < 100; ++i) engine_pool_run(pool, claim_some_job, &s);
    assert_int_equal(s.sum, 100);
    engine_pool_free(pool);
}

/* After an idle time the workers use no processor time. */
static void idle_workers_sleep(void **state)
{
    (void)state;
    struct engine_pool *pool = new_pool(3);
    struct shared s = {0};
    engine_pool_run(pool, count_job, &s);
    usleep(20000);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(100000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used =
        (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    assert_true(used < 0.05);
    engine_pool_run(pool, count_job, &s);
    for (int i = 0; i < 3; ++i) assert_int_equal(s.runs[i], 2);
    engine_pool_free(pool);
}

static void cpu_job(const struct engine_worker *w, void *data)
{
    struct shared *s = data;
    s->value[w->ith] = sched_getcpu();
    struct engine_cpus mine;
    engine_cpus_allowed(&mine);
    s->errors[w->ith] = engine_cpus_count(&mine) != 1;
}

static void workers_are_pinned_to_the_given_processors(void **state)
{
    (void)state;
    struct engine_cpus before, after;
    engine_cpus_allowed(&before);
    const int n = engine_cpus_count(&before) < MAX_THREADS ? engine_cpus_count(&before) : 4;
    struct base_error err = BASE_ERROR_INIT;
    struct engine_pool *pool = engine_pool_new(n, true, &err);
    assert_non_null(pool);
    struct shared s = {0};
    engine_pool_run(pool, cpu_job, &s);
    for (int i = 0; i < n; ++i) {
        assert_int_equal(s.errors[i], 0);
        for (int j = 0; j < i; ++j) assert_int_not_equal(s.value[i], s.value[j]);
    }
    engine_pool_free(pool);
    engine_cpus_allowed(&after);
    assert_memory_equal(&before, &after, sizeof(before));
}

static void impossible_counts_are_refused(void **state)
{
    (void)state;
    static const int counts[] = {0, -1, 1000000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        struct base_error err = BASE_ERROR_INIT;
        assert_null(engine_pool_new(counts[i], false, &err));
        assert_int_equal(err.code, BASE_USAGE);
    }
    engine_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_runs_every_job),
        cmocka_unit_test(a_barrier_orders_memory),
        cmocka_unit_test(claims_cover_each_unit_once),
        cmocka_unit_test(claims_restart_with_each_job),
        cmocka_unit_test(takes_cover_each_unit_once),
        cmocka_unit_test(units_of_absent_workers_are_taken),
        cmocka_unit_test(idle_workers_sleep),
        cmocka_unit_test(workers_are_pinned_to_the_given_processors),
        cmocka_unit_test(impossible_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
