/* engine/cpu/pool.c: persistent worker threads, their barrier and their chunk counter.
 *
 * Called by engine.c (creation), backend_cpu.c (run) and by ops (barrier, claim, take).
 *
 * A thread waits for a counter to change: it spins with the processor's pause hint (a graph node
 * takes microseconds; sleeping and waking up takes longer), then sleeps in the kernel. The length
 * of the spin is adapted for each thread and kind of wait: a spin in which the counter changed
 * makes the next one longer, a timeout halves it. On idle processors spins become long. If other
 * programs run (or more threads than processors) they become short, because the thread that changes
 * the counter may need the processor that a long spin occupies. */
#include "engine/cpu/pool.h"
#include "base/os.h"
#include "base/size.h"
#include "engine/cpu/threads.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    POOL_MAX_THREADS = 1024,
    /* Pauses, of 11 to 50 nanoseconds each. The shortest spin is longer than a barrier of running
     * threads (up to a microsecond): otherwise the counter would never change during a spin, and
     * spins would never become longer. The longest one is longer than sleeping and waking up (some
     * 40 microseconds on a virtual machine). */
    POOL_MIN_SPINS = 512,
    POOL_FIRST_SPINS = 2048,
    POOL_MAX_SPINS = 8192,
    POOL_LINE = 64,        /* bytes of a cache line: threads write to different lines */
    POOL_STACK = 512 << 10 /* bytes of stack at least: that with which all jobs were tried */
};

/* A counter that threads wait on. */
struct event {
    _Alignas(POOL_LINE) _Atomic uint32_t count;
    atomic_int sleepers; /* threads that sleep in the kernel or are about to */
};

enum wait_kind { WAIT_START, WAIT_PHASE, WAIT_KINDS };

struct pool_thread {
    _Alignas(POOL_LINE) struct engine_worker worker;
    pthread_t thread;
    int spins[WAIT_KINDS]; /* pauses of the next wait, by kind */
    /* Low half: units claimed from this worker's share; high half: the phase in which they were
     * claimed, so that a barrier need not reset shares. */
    _Alignas(POOL_LINE) _Atomic uint64_t taken;
};

struct engine_pool {
    struct event start; /* incremented for each job, and to end */
    struct event phase; /* incremented when all workers are at the barrier */
    _Alignas(POOL_LINE) atomic_int arrived;
    _Alignas(POOL_LINE) _Atomic int64_t next_chunk;
    _Alignas(POOL_LINE) int n_threads; /* and what follows: read by all, rarely written */
    bool pinned, stop;
    struct engine_cpus caller_cpus; /* the caller's affinity mask, restored at the end */
    void (*job)(const struct engine_worker *, void *);
    void *data;
    struct pool_thread slot[];
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* tens of nanoseconds, as pause; yield takes none */
#endif
}

/* A thread increments `sleepers` before the kernel compares the counter; event_raise changes the
 * counter before it reads `sleepers`. All these accesses are sequentially consistent, so at least
 * one of the two threads reads the other's write, and no wake-up is lost. */
static void event_raise(struct event *s)
{
    atomic_fetch_add(&s->count, 1);
    if (atomic_load(&s->sleepers) > 0) base_os_wake_all(&s->count);
}

/* True if the counter changed from `old` within *spins pauses; adapts *spins. */
static bool spin_wait(struct event *e, uint32_t old, int *spins)
{
    for (int i = 0; i < *spins; ++i) {
        if (atomic_load_explicit(&e->count, memory_order_acquire) != old) {
            *spins += (POOL_MAX_SPINS - *spins) / 8;
            return true;
        }
        pause_cpu();
    }
    if (*spins > POOL_MIN_SPINS) *spins /= 2;
    return false;
}

/* Waits until the counter differs from `old`. */
static void event_wait(struct event *e, uint32_t old, int *spins)
{
    if (spin_wait(e, old, spins)) return;
    atomic_fetch_add(&e->sleepers, 1);
    while (atomic_load(&e->count) == old) base_os_wait(&e->count, old);
    atomic_fetch_sub(&e->sleepers, 1);
}

void engine_pool_barrier(const struct engine_worker *w)
{
    struct engine_pool *pool = w->pool;
    const uint32_t phase = atomic_load_explicit(&pool->phase.count, memory_order_acquire);
    const int before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before < pool->n_threads - 1) {
        event_wait(&pool->phase, phase, &pool->slot[w->ith].spins[WAIT_PHASE]);
        return;
    }
    atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->next_chunk, 0, memory_order_relaxed);
    event_raise(&pool->phase);
}

int64_t engine_pool_claim(const struct engine_worker *w, int64_t n)
{
    return atomic_fetch_add_explicit(&w->pool->next_chunk, n, memory_order_relaxed);
}

/* Claims the next unit of worker i's share of n units; returns n when none is left. */
static int64_t share_claim(struct engine_pool *pool, int i, uint32_t phase, int64_t n)
{
    _Atomic uint64_t *taken = &pool->slot[i].taken;
    uint64_t now = atomic_load_explicit(taken, memory_order_relaxed);
    for (;;) {
        const int64_t claimed = now >> 32 == phase ? (int64_t)(now & UINT32_MAX) : 0;
        if (claimed >= n) return n;
        const uint64_t next = (uint64_t)phase << 32 | (uint64_t)(claimed + 1);
        if (atomic_compare_exchange_weak_explicit(taken, &now, next, memory_order_relaxed,
                                                  memory_order_relaxed))
            return claimed;
    }
}

int64_t engine_pool_take(const struct engine_worker *w, int64_t total)
{
    struct engine_pool *pool = w->pool;
    const uint32_t phase = atomic_load_explicit(&pool->phase.count, memory_order_relaxed);
    for (int k = 0; k < w->nth; ++k) {
        const int i = (w->ith + k) % w->nth;
        const int64_t first = total * i / w->nth, n = total * (i + 1) / w->nth - first;
        const int64_t at = share_claim(pool, i, phase, n);
        if (at < n) return first + at;
    }
    return total;
}

/* Thread function of a worker: waits for a start, runs the job, waits for the others. It cannot
 * miss a start, because the next one follows this worker's arrival at the job's final barrier. */
static void *worker_main(void *arg)
{
    struct pool_thread *slot = arg;
    const struct engine_worker *w = &slot->worker;
    struct engine_pool *pool = w->pool;
    for (uint32_t jobs = 0;; ++jobs) {
        event_wait(&pool->start, jobs, &slot->spins[WAIT_START]);
        if (pool->stop) return NULL;
        pool->job(w, pool->data);
        engine_pool_barrier(w);
    }
}

/* Binds a thread to the i-th allowed processor, cyclically; failure is harmless and ignored. */
static void pin_thread(pthread_t thread, const struct engine_cpus *allowed, int i)
{
    const int n = engine_cpus_count(allowed);
    int left = n > 0 ? i % n : 0;
    for (int cpu = 0; n > 0 && cpu < ENGINE_CPUS_MAX; ++cpu) {
        if (!engine_cpus_has(allowed, cpu) || left-- > 0) continue;
        struct engine_cpus one = {0};
        engine_cpus_add(&one, cpu);
        base_os_cpus_bind(thread, one.word, sizeof one.word);
        return;
    }
}

/* Workers block signals: the program's main thread handles Ctrl-C and similar signals. SIGBUS, for
 * an unreadable page of a mapped file, goes to the thread that reads it. The stack of threads is
 * 128 KB with musl, where a frame of an unoptimized kernel alone is 50. */
static int start_thread(struct pool_thread *slot)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    size_t stack;
    int status = pthread_attr_init(&attributes);
    if (status != 0) return status;
    if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < POOL_STACK)
        pthread_attr_setstacksize(&attributes, POOL_STACK);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(&slot->thread, &attributes, worker_main, slot);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return status;
}

static void stop_threads(struct engine_pool *pool)
{
    pool->stop = true;
    event_raise(&pool->start);
    for (int i = 1; i < pool->n_threads; ++i) pthread_join(pool->slot[i].thread, NULL);
}

struct engine_pool *engine_pool_new(int n_threads, bool pin, struct base_error *err)
{
    if (n_threads < 1 || n_threads > POOL_MAX_THREADS)
        return base_null(
            base_fail(err, BASE_USAGE, "%d threads: choose 1 to %d", n_threads, POOL_MAX_THREADS));
    uint64_t size = sizeof(struct engine_pool) + (uint64_t)n_threads * sizeof(struct pool_thread);
    struct engine_pool *pool = NULL;
    if (!base_align_up(size, POOL_LINE, &size) || !(pool = aligned_alloc(POOL_LINE, size)))
        return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for %d threads", n_threads));
    memset(pool, 0, size);
    pool->n_threads = n_threads;
    for (int i = 0; i < n_threads; ++i) {
        pool->slot[i].worker = (struct engine_worker){.ith = i, .nth = n_threads, .pool = pool};
        for (int k = 0; k < WAIT_KINDS; ++k) pool->slot[i].spins[k] = POOL_FIRST_SPINS;
    }
    /* The pool has only the threads that could be started; they read n_threads after the first
     * start. */
    int n_started = 1;
    while (n_started < n_threads && start_thread(&pool->slot[n_started]) == 0) ++n_started;
    pool->n_threads = n_threads = n_started;
    for (int i = 0; i < n_threads; ++i) pool->slot[i].worker.nth = n_threads;
    if (pin) {
        struct engine_cpus allowed;
        engine_cpus_allowed(&allowed);
        pool->slot[0].thread = pthread_self();
        pool->pinned = true;
        pool->caller_cpus = allowed;
        for (int i = 0; i < n_threads; ++i) pin_thread(pool->slot[i].thread, &allowed, i);
    }
    return pool;
}

void engine_pool_free(struct engine_pool *pool)
{
    if (!pool) return;
    stop_threads(pool);
    if (pool->pinned)
        base_os_cpus_bind(pool->slot[0].thread, pool->caller_cpus.word,
                          sizeof pool->caller_cpus.word);
    free(pool);
}

int engine_pool_threads(const struct engine_pool *pool)
{
    return pool->n_threads;
}

void engine_pool_run(struct engine_pool *pool, void (*job)(const struct engine_worker *, void *),
                     void *data)
{
    pool->job = job;
    pool->data = data;
    if (pool->n_threads > 1) event_raise(&pool->start);
    job(&pool->slot[0].worker, data);
    engine_pool_barrier(&pool->slot[0].worker);
}
