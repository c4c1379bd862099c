/* cli/cmd/cmd_bench.c: `infer bench`: tokens per second, and their share of the machine's limits.
 *
 * It uses the same calls as `run`. The work is computed from the file: weights that each token is
 * multiplied with (experts by the share in use, without embedding rows that are only looked up),
 * plus the cache that attention reads. Products inside attention do not count. Of a prompt only the
 * last token is computed after the last layer's attention. */
#include "base/clock.h"
#include "base/memory.h"
#include "cli/gpu_layers.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/out/bench.h"
#include "cli/out/profile_report.h"
#include "cli/out/zeros_report.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/cpu/roofline.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    LIMIT_PASSES = 2, /* measurements of the limits before the first row of a thread count */
    USUAL_RATIO = 50  /* multiply-adds per byte at the limits, about */
};

/* The weights that every token is multiplied with (body), and those of the output projection, which
 * only rows with logits use (head). */
struct work {
    double body_bytes, body_macs, head_bytes, head_macs;
};

/* The machine's limits with a number of threads: the highest of all measurements so far. */
struct limits {
    double bandwidth, int8;         /* bytes and multiply-adds per second */
    double gpu_bandwidth, gpu_int8; /* of the GPU; 0: none */
};

/* A model on an engine of some number of threads. */
struct subject {
    struct cli_model model;
    struct work work;
    struct limits *limits;
    double disk; /* bytes per second, if experts are read from it; otherwise 0 */
    int io;      /* this process's counters of the disk, if `disk` is known; -1: none */
};

struct bench {
    struct cli_values *values; /* with those of the latest subject and setup */
    struct subject *subject;   /* [models][thread counts] */
    size_t n_subjects;
    struct limits limits[CLI_INTEGERS_MAX]; /* [thread counts] */
    struct cli_bench_setup *setup;          /* [n_setups], subject by subject */
    size_t n_setups;
    struct cli_bench_table table;  /* rows setup by setup */
    size_t n_tests;                /* rows of a setup */
    struct cli_bench_saved *saved; /* --compare; NULL: none */
    int32_t *ids;                  /* [n_ids]: random, the same in each run */
    uint32_t n_ids, n_seq;
    struct model_token *step; /* [n_seq]: one token of each sequence */
    double expected, done;    /* work of all measurements, for the progress */
};

static double share_of_experts(const struct gguf_file *file, const char *arch)
{
    char key[96];
    uint32_t count = 0, used = 0;
    struct base_error ignored = BASE_ERROR_INIT; /* model_open has checked its keys */
    snprintf(key, sizeof key, "%.64s.expert_count", arch);
    gguf_get_u32(file, key, &count, &ignored);
    snprintf(key, sizeof key, "%.64s.expert_used_count", arch);
    gguf_get_u32(file, key, &used, &ignored);
    return count > 0 && used > 0 ? (double)used / (double)count : 1.0;
}

static struct work count_work(const struct gguf_file *file, const struct model_facts *facts)
{
    struct work w = {0};
    char last_ffn[32];
    const size_t length =
        (size_t)snprintf(last_ffn, sizeof last_ffn, "blk.%u.ffn_", facts->n_layer - 1);
    const double experts = share_of_experts(file, facts->arch);
    const bool tied = gguf_tensor_find(file, "output.weight") == NULL;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        double macs = (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
        double bytes = (double)t->size;
        const bool embedding = gguf_str_is(t->name, "token_embd.weight");
        const bool looked_up = embedding || gguf_str_is(t->name, "per_layer_token_embd.weight") ||
                               gguf_str_is(t->name, "position_embd.weight");
        if (memmem(t->name.data, t->name.size, "_exps.", 6)) {
            macs *= experts;
            bytes *= experts;
        }
        if (t->n_dims < 2) macs = 0;
        const bool late = t->name.size > length && memcmp(t->name.data, last_ffn, length) == 0;
        if ((embedding && tied) || late || gguf_str_is(t->name, "output.weight")) {
            w.head_bytes += bytes;
            w.head_macs += macs;
        } else if (!looked_up) {
            w.body_bytes += bytes;
            w.body_macs += macs;
        }
    }
    return w;
}

/* ---- Measuring ---- */

/* Restores sequence 0 to its state at the depth; the other sequences become forks of it. */
static bool to_depth(const struct bench *b, const struct subject *u, const struct cli_bench_row *r,
                     struct base_error *err)
{
    struct model_session *s = u->model.session;
    uint32_t have = model_session_truncate(s, r->depth);
    if (have < r->depth &&
        !model_eval(s, b->ids + have, r->depth - have, MODEL_LOGITS_NONE, NULL, NULL, err))
        return false;
    for (uint32_t seq = 1; seq < r->n_seq; seq++) model_seq_fork(s, 0, seq, r->depth);
    return true;
}

/* Runs step i: one token of each sequence, all different. */
static bool generate_step(const struct bench *b, const struct subject *u,
                          const struct cli_bench_row *r, uint32_t i, struct base_error *err)
{
    for (uint32_t seq = 0; seq < r->n_seq; seq++)
        b->step[seq] = (struct model_token){
            .id = b->ids[(r->depth + i + 31 * seq) % b->n_ids], .seq = seq, .wants_logits = true};
    return model_eval_batch(u->model.session, b->step, r->n_seq, NULL, NULL, err);
}

/* Measures n tokens (per sequence) once; *took is in seconds. */
static bool measure(const struct bench *b, const struct subject *u, const struct cli_bench_row *r,
                    uint32_t n, double *took, struct base_error *err)
{
    if (!to_depth(b, u, r, err)) return false;
    double start = base_seconds();
    bool ok = true;
    if (r->is_prompt)
        ok = model_eval(u->model.session, b->ids + r->depth, n, MODEL_LOGITS_LAST, NULL, NULL, err);
    else
        for (uint32_t i = 0; ok && i < n; i++) ok = generate_step(b, u, r, i, err);
    *took = base_seconds() - start;
    return ok;
}

/* Computes the bytes of weights and cache that one measurement reads, and its multiply-adds. A step
 * of several sequences reads the weights once, and each sequence's cache of `cell` bytes a token.
 */
static void count_test(const struct work *w, const struct cli_bench_row *r, double cell,
                       double *bytes, double *macs)
{
    const double n = r->n_tokens, seqs = r->n_seq, batch = (double)r->setup->batch_size;
    const double passes = r->is_prompt ? (double)(uint64_t)((n + batch - 1) / batch) : n;
    const double heads = r->is_prompt ? 1 : n;
    *bytes = passes * (w->body_bytes + seqs * cell * (r->depth + n / 2)) + heads * w->head_bytes;
    *macs = seqs * (n * w->body_macs + heads * w->head_macs);
}

/* Returns the share of the weights that a GPU reads. */
static double share_on_gpu(const struct subject *u)
{
    const struct model_facts *f = model_facts(u->model.model);
    return (double)f->placed_bytes / (double)f->weight_bytes;
}

/* Returns the limit, with GPUs like the first, of first reading or multiplying the weights here,
 * then those on the GPU. */
static double both(double here, double there, double share_there)
{
    return 1 / ((1 - share_there) / here + (share_there > 0 ? share_there / there : 0));
}

static void fill_shares(const struct subject *u, struct cli_bench_row *r)
{
    const struct model_session *s = u->model.session;
    const double cell = (double)model_session_cache_bytes(s) / (double)model_session_n_seq(s) /
                        (double)model_session_n_ctx(s);
    const double seconds = (double)r->n_seq * r->n_tokens / cli_bench_rate(r);
    double bytes, macs;
    count_test(&u->work, r, cell, &bytes, &macs);
    const double there = share_on_gpu(u);
    r->bandwidth = both(u->limits->bandwidth, u->limits->gpu_bandwidth, there);
    r->int8 = both(u->limits->int8, u->limits->gpu_int8, there);
    r->of_bandwidth = bytes / seconds / r->bandwidth;
    r->of_int8 = macs / seconds / r->int8;
}

/* Returns the work of a measurement relative to others, for the progress: the time at limits in the
 * usual ratio. */
static double expect(const struct subject *u, const struct cli_bench_row *r)
{
    double bytes, macs;
    count_test(&u->work, r, 0, &bytes, &macs);
    return fmax(bytes, macs / USUAL_RATIO);
}

/* Measures once more with the engine's profile. */
static bool run_profile(const struct bench *b, const struct subject *u,
                        const struct cli_bench_row *r, struct base_error *err)
{
    struct engine_profile profile = {0};
    double took;
    if (!to_depth(b, u, r, err)) return false; /* before the profile begins */
    engine_set_profile(u->model.engine, &profile);
    bool ok = measure(b, u, r, r->n_tokens, &took, err);
    engine_set_profile(u->model.engine, NULL);
    if (ok) cli_profile_print(r->is_prompt ? "prompt" : "generate", &profile, r->n_tokens);
    return ok;
}

/* Measures once more and counts zeros. */
static bool run_zeros(const struct bench *b, const struct subject *u, const struct cli_bench_row *r,
                      struct base_error *err)
{
    struct cli_zeros zeros;
    double took;
    if (!to_depth(b, u, r, err)) return false;
    if (!cli_zeros_init(&zeros, model_facts(u->model.model)->n_layer))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    engine_set_observer(u->model.engine, &zeros.observer);
    const bool ok = measure(b, u, r, r->n_tokens, &took, err);
    engine_set_observer(u->model.engine, NULL);
    if (ok) cli_zeros_print(&zeros, r->is_prompt ? "prompt" : "generate", r->n_tokens);
    cli_zeros_free(&zeros);
    return ok;
}

static void show_done(struct bench *b, const struct subject *u, const struct cli_bench_row *r)
{
    b->done += expect(u, r);
    cli_progress_set((uint64_t)(1000 * b->done / b->expected));
}

/* Returns the bytes that this process has read from the disk so far; 0: not known. */
static double read_from_disk(const struct subject *u)
{
    char text[512];
    const ssize_t n = u->disk > 0 ? pread(u->io, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "\nread_bytes: ");
    return at ? strtod(at + strlen("\nread_bytes: "), NULL) : 0;
}

static bool run_test(struct bench *b, const struct subject *u, struct cli_bench_row *r,
                     struct base_error *err)
{
    const size_t count = (size_t)b->values->repetitions;
    double took, total = 0;
    cli_progress_note("row %zu of %zu", (size_t)(r - b->table.row) + 1, b->table.n);
    if (!measure(b, u, r, r->is_prompt ? r->n_tokens : 1, &took, err)) return false; /* warm-up */
    if (r->is_prompt) show_done(b, u, r);
    const double before = read_from_disk(u);
    for (size_t i = 0; i < count; i++) {
        if (!measure(b, u, r, r->n_tokens, &took, err)) return false;
        r->sample[i] = (double)r->n_seq * r->n_tokens / took;
        total += took;
        show_done(b, u, r);
        if (b->values->verbose)
            cli_note("%s %u, depth %u, sequences %u: %.2f tokens/s",
                     r->is_prompt ? "prompt" : "generate", r->n_tokens, r->depth, r->n_seq,
                     r->sample[i]);
    }
    cli_bench_sort(r->sample, count);
    r->n_samples = count;
    r->disk = u->disk;
    r->from_disk = (read_from_disk(u) - before) / total;
    fill_shares(u, r);
    return (!b->values->profile || run_profile(b, u, r, err)) &&
           (!b->values->zeros || run_zeros(b, u, r, err));
}

/* Measures the limits, for tests without repetitions once, and keeps the highest values: before
 * each row, because on shared machines they drift. */
static bool measure_limits(const struct subject *u, int64_t repetitions, struct base_error *err)
{
    struct limits *l = u->limits;
    const int n = l->bandwidth > 0 || repetitions == 1 ? 1 : LIMIT_PASSES;
    for (int pass = 0; pass < n; pass++) {
        const double bandwidth = engine_roofline_bandwidth(u->model.engine->cpu, err);
        const double int8 = engine_roofline_int8(u->model.engine->cpu);
        struct engine_gpu *device = u->model.gpu.device ? u->model.gpu.device->card[0].gpu : NULL;
        const double gpu = device ? engine_gpu_bandwidth(device, err) : 0;
        const double gpu_int8 = device ? engine_gpu_int8(device, err) : 0;
        if (bandwidth > l->bandwidth) l->bandwidth = bandwidth;
        if (gpu > l->gpu_bandwidth) l->gpu_bandwidth = gpu;
        if (gpu_int8 > l->gpu_int8) l->gpu_int8 = gpu_int8;
        if (int8 > l->int8) l->int8 = int8;
        if (!base_goes_on(err) || bandwidth == 0 || err->code) return false;
    }
    return true;
}

/* Checks that there is memory for the cache and the graphs of the longest prompt beside the buffer
 * of measure_limits: the system would end the process. */
static bool check_memory(const struct bench *b, const struct subject *u, struct base_error *err)
{
    const struct cli_integers *p = &b->values->n_prompt;
    struct base_memory memory;
    uint64_t room, graphs, longest = 1;
    if (b->values->device) return true; /* its memory is checked when layers are placed */
    for (size_t i = 0; i < p->count; i++)
        if ((uint64_t)p->item[i] > longest) longest = (uint64_t)p->item[i];
    if (!model_session_plan(u->model.session, longest, &graphs, err)) return false;
    base_memory_read("", &memory);
    if (!base_memory_room(&memory, &room)) return true;
    const uint64_t buffer = engine_roofline_bytes();
    const uint64_t need = graphs + model_session_cache_bytes(u->model.session) + buffer;
    return need <= room - room / 8 || /* some is for what is not counted: weights, other graphs */
           base_fail(
               err, BASE_NO_MEMORY,
               "batches of %u tokens, the cache and what measures the limits need %.1f MB, of "
               "%.1f MB that are free",
               model_session_n_batch(u->model.session), (double)need / 1e6,
               (double)(room - room / 8) / 1e6);
}

/* Measures the rows of a setup and writes each when it is ready. */
static bool run_setup(struct bench *b, struct subject *u, size_t setup, struct base_error *err)
{
    struct cli_bench_setup *s = &b->setup[setup];
    struct base_buffer out = BASE_BUFFER_INIT;
    b->values->batch_size = s->batch_size;
    b->values->cache_type_k = s->type_k;
    b->values->cache_type_v = s->type_v;
    bool ok = cli_model_open_session(&u->model, b->values, b->n_seq, b->n_ids, err);
    ok = ok && check_memory(b, u, err);
    if (ok) s->gpu_layers = cli_gpu_layers(&u->model);
    if (ok && b->values->verbose) cli_model_note(&u->model);
    for (size_t i = setup * b->n_tests; ok && i < (setup + 1) * b->n_tests; i++) {
        ok = measure_limits(u, b->values->repetitions, err) &&
             run_test(b, u, &b->table.row[i], err) &&
             (!b->saved || cli_bench_compare(b->saved, &b->table, i, err));
        if (ok) cli_bench_add_row(&b->table, i, b->values->format, &out);
        ok = ok && cli_write_buffer(&out, err);
    }
    base_buffer_free(&out);
    model_session_free(u->model.session);
    u->model.session = NULL;
    return ok;
}

static bool run_all(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const size_t per_subject = b->n_setups / b->n_subjects;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    for (size_t i = 0; i < b->table.n; i++)
        b->expected += (double)(v->repetitions + b->table.row[i].is_prompt) *
                       expect(&b->subject[i / b->n_tests / per_subject], &b->table.row[i]);
    cli_progress_begin("measuring", "%", 1000);
    cli_bench_begin(&b->table, v->format, &out);
    bool ok = cli_write_buffer(&out, err);
    for (size_t i = 0; ok && i < b->n_setups; i++)
        ok = run_setup(b, &b->subject[i / per_subject], i, err);
    cli_progress_end();
    cli_bench_end(&b->table, v->format, &out);
    if (b->saved && strcasecmp(v->format, "md") == 0)
        cli_bench_add_ratios(b->saved, &b->table, &out);
    if (v->plot) cli_bench_plot(&b->table, cli_stdout_width(), &out);
    return ok && cli_write_buffer(&out, err);
}

/* ---- Preparing ---- */

static int64_t largest(const struct cli_integers *list)
{
    int64_t most = 0;
    for (size_t i = 0; i < list->count; i++) most = list->item[i] > most ? list->item[i] : most;
    return most;
}

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

/* Opens each model on an engine for each number of threads. */
static bool open_subjects(struct bench *b, struct base_error *err)
{
    struct cli_values *v = b->values;
    const size_t n_models = v->models.count ? v->models.count : 1,
                 n_threads = v->thread_counts.count;
    b->subject = calloc(n_models * n_threads, sizeof *b->subject);
    if (!b->subject) return no_memory(err);
    for (size_t i = 0; i < n_models * n_threads; i++) {
        struct subject *u = &b->subject[i];
        v->model = v->models.count ? v->models.item[i / n_threads] : NULL;
        v->threads = v->thread_counts.item[i % n_threads];
        u->limits = &b->limits[i % n_threads];
        b->n_subjects++;
        if (!cli_model_open_file(&u->model, v, err) || !cli_model_open_weights(&u->model, v, err))
            return false;
        u->work = count_work(u->model.file, model_facts(u->model.model));
        if (u->model.stream.on) u->disk = cli_stream_disk_rate(u->model.file);
        if (u->disk > 0) u->io = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    }
    return true;
}

/* Copies item i of a list of choices. */
static void copy_choice(const char *list, size_t i, char out[CLI_BENCH_TYPE_SIZE])
{
    while (i-- > 0) list += strcspn(list, ",") + 1;
    snprintf(out, CLI_BENCH_TYPE_SIZE, "%.*s", (int)strcspn(list, ","), list);
}

static size_t count_choices(const char *list)
{
    size_t n = 1;
    for (; *list; list++) n += *list == ',';
    return n;
}

static bool list_setups(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const size_t n_k = count_choices(v->cache_type_k), n_v = count_choices(v->cache_type_v);
    const size_t each = v->batch_sizes.count * n_k * n_v;
    b->setup = calloc(b->n_subjects * each, sizeof *b->setup);
    if (!b->setup) return no_memory(err);
    for (; b->n_setups < b->n_subjects * each; b->n_setups++) {
        const struct subject *u = &b->subject[b->n_setups / each];
        const struct model_facts *f = model_facts(u->model.model);
        const char *path = gguf_path(u->model.file), *slash = strrchr(path, '/');
        struct cli_bench_setup *s = &b->setup[b->n_setups];
        const size_t i = b->n_setups % each;
        *s = (struct cli_bench_setup){.file = slash ? slash + 1 : path,
                                      .model = u->model.name.data,
                                      .level = cpu_level_name(u->model.engine->options.level),
                                      .gpu = v->device ? v->device->name : NULL,
                                      .weight_bytes = f->weight_bytes,
                                      .n_params = f->n_params,
                                      .threads = u->model.engine->options.n_threads,
                                      .batch_size = v->batch_sizes.item[i / n_v / n_k]};
        copy_choice(v->cache_type_k, i / n_v % n_k, s->type_k);
        copy_choice(v->cache_type_v, i % n_v, s->type_v);
    }
    return true;
}

static bool add_test(struct bench *b, const struct cli_bench_setup *setup, bool is_prompt,
                     int64_t n_tokens, int64_t depth, int64_t n_seq)
{
    if (n_tokens == 0) return true;
    struct cli_bench_row *r = &b->table.row[b->table.n++];
    *r = (struct cli_bench_row){.setup = setup,
                                .is_prompt = is_prompt,
                                .n_tokens = (uint32_t)n_tokens,
                                .depth = (uint32_t)depth,
                                .n_seq = (uint32_t)n_seq};
    r->sample = calloc((size_t)b->values->repetitions, sizeof *r->sample);
    return r->sample != NULL;
}

/* Lists all combinations, in an order that fills a context once per depth. */
static bool list_tests(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const struct cli_integers *p = &v->n_prompt, *n = &v->n_gen, *d = &v->n_depth,
                              *np = &v->n_parallel;
    bool ok = true;
    b->table.row =
        calloc(b->n_setups * d->count * (p->count + n->count * np->count), sizeof *b->table.row);
    if (!b->table.row) return no_memory(err);
    for (size_t s = 0; s < b->n_setups; s++)
        for (size_t i = 0; i < d->count; i++) {
            for (size_t k = 0; k < p->count; k++)
                ok = ok && add_test(b, &b->setup[s], true, p->item[k], d->item[i], 1);
            for (size_t k = 0; k < n->count; k++)
                for (size_t q = 0; q < np->count; q++)
                    ok =
                        ok && add_test(b, &b->setup[s], false, n->item[k], d->item[i], np->item[q]);
        }
    b->n_tests = b->table.n / b->n_setups;
    b->table.compares = v->compare != NULL;
    return ok || no_memory(err);
}

/* Makes the random ids, which are below the vocabulary's size of every model. */
static bool make_ids(struct bench *b, struct base_error *err)
{
    uint32_t n_vocab = UINT32_MAX;
    for (size_t i = 0; i < b->n_subjects; i++) {
        const uint32_t n = model_facts(b->subject[i].model.model)->n_vocab;
        n_vocab = n < n_vocab ? n : n_vocab;
    }
    b->ids = malloc((size_t)b->n_ids * sizeof *b->ids);
    b->step = malloc((size_t)b->n_seq * sizeof *b->step);
    if (!b->ids || !b->step) return no_memory(err);
    uint64_t random = 1;
    for (uint32_t i = 0; i < b->n_ids; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (int32_t)((random >> 33) % n_vocab);
    }
    return true;
}

static bool check_values(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const int64_t most_prompt = largest(&v->n_prompt), most_gen = largest(&v->n_gen);
    const int64_t n_ids = largest(&v->n_depth) + (most_prompt > most_gen ? most_prompt : most_gen);
    const int64_t n_seq = most_gen > 0 ? largest(&v->n_parallel) : 1;
    if (v->plot && strcasecmp(v->format, "md") != 0)
        return base_fail_at(err, BASE_USAGE, "--plot", -1, "goes with --format md only");
    if (most_prompt == 0 && most_gen == 0)
        return base_fail(err, BASE_USAGE, "nothing to measure: -p and -n are 0");
    if (n_ids > INT32_MAX / n_seq)
        return base_fail_at(err, BASE_USAGE, "--n-depth", -1, "too large");
    b->n_ids = (uint32_t)n_ids;
    b->n_seq = (uint32_t)n_seq;
    return true;
}

static bool open_all(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    if (!open_subjects(b, err) || !list_setups(b, err) || !list_tests(b, err) || !make_ids(b, err))
        return false;
    return !v->compare || cli_bench_saved_read(&b->saved, v->compare, &b->table, err);
}

/* ---- The command ---- */

static void free_all(struct bench *b)
{
    for (size_t i = 0; i < b->n_subjects; i++) {
        if (b->subject[i].disk > 0 && b->subject[i].io >= 0) close(b->subject[i].io);
        cli_model_close(&b->subject[i].model);
    }
    for (size_t i = 0; i < b->table.n; i++) free(b->table.row[i].sample);
    cli_bench_saved_free(b->saved);
    free(b->subject);
    free(b->setup);
    free(b->table.row);
    free(b->ids);
    free(b->step);
}

static bool cmd_bench(struct cli_values *values, struct base_error *err)
{
    struct bench b = {.values = values};
    if (!check_values(&b, err)) return false;
    if (!values->no_sandbox) cli_sandbox_limit(NULL);
    bool ok = open_all(&b, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(cli_gpu_allows(values));
    ok = ok && run_all(&b, err);
    free_all(&b);
    return ok;
}

const struct cli_command cli_command_bench = {
    .name = "bench",
    .usage = "infer bench [-m MODEL].. [options]",
    .effect = "measure tokens per second and the machine's limits",
    .about = "Measures reading a prompt and generating, through the code that `run` uses,\n"
             "and each figure's share of the machine's int8 multiply rate and of its streaming\n"
             "read bandwidth, which are measured in the same run. Of lists (-t 1,2 -ctk\n"
             "f16,q8_0, several -m) every combination is measured. With -np N each step\n"
             "evaluates one token of each of N sequences, which share a prefix of -d tokens,\n"
             "and tokens/s counts all; prompts are read one at a time. --compare FILE prints\n"
             "ratios to earlier results, with the interval that their scatter leaves.",
    .positional = "model",
    .takes = {"FILE"},
    .run = cmd_bench,
};
