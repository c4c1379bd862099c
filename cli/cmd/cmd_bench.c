/* cli/cmd/cmd_bench.c: `infer bench`: tokens per second, and their share of the machine's limits.
 *
 * It uses the same calls as `run`. The work is computed from the file: weights that each token is
 * multiplied with (experts by the share in use, without embedding rows that are only looked up),
 * plus the cache that attention reads. Products inside attention do not count. Of a prompt only the
 * last token is computed after the last layer's attention. */
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/out/bench.h"
#include "cli/out/profile_report.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/roofline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool str_is(struct gguf_str s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

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

static struct cli_bench_work count_work(const struct gguf_file *file,
                                        const struct model_facts *facts)
{
    struct cli_bench_work w = {0};
    char last_ffn[32];
    const size_t length =
        (size_t)snprintf(last_ffn, sizeof last_ffn, "blk.%u.ffn_", facts->n_layer - 1);
    const double experts = share_of_experts(file, facts->arch);
    const bool tied = gguf_tensor_find(file, "output.weight") == NULL;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        double macs = (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
        double bytes = (double)t->size;
        const bool embedding = str_is(t->name, "token_embd.weight");
        const bool looked_up = embedding || str_is(t->name, "per_layer_token_embd.weight") ||
                               str_is(t->name, "position_embd.weight");
        if (memmem(t->name.data, t->name.size, "_exps.", 6)) {
            macs *= experts;
            bytes *= experts;
        }
        if (t->n_dims < 2) macs = 0;
        const bool late = t->name.size > length && memcmp(t->name.data, last_ffn, length) == 0;
        if ((embedding && tied) || late || str_is(t->name, "output.weight")) {
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
static bool to_depth(struct cli_bench *b, const struct cli_bench_result *r, struct base_error *err)
{
    struct model_session *s = b->model.session;
    uint32_t have = model_session_truncate(s, r->depth);
    if (have < r->depth &&
        !model_eval(s, b->ids + have, r->depth - have, MODEL_LOGITS_NONE, NULL, NULL, err))
        return false;
    for (uint32_t seq = 1; seq < r->n_seq; seq++) model_seq_fork(s, 0, seq, r->depth);
    return true;
}

/* Runs step i: one token of each sequence, all different. */
static bool generate_step(struct cli_bench *b, const struct cli_bench_result *r, uint32_t i,
                          struct base_error *err)
{
    for (uint32_t seq = 0; seq < r->n_seq; seq++)
        b->step[seq] = (struct model_token){
            .id = b->ids[(r->depth + i + 31 * seq) % b->n_ids], .seq = seq, .wants_logits = true};
    return model_eval_batch(b->model.session, b->step, r->n_seq, NULL, NULL, err);
}

/* Measures n tokens (per sequence) once; *took is in seconds. */
static bool measure(struct cli_bench *b, const struct cli_bench_result *r, uint32_t n, double *took,
                    struct base_error *err)
{
    if (!to_depth(b, r, err)) return false;
    double start = base_seconds();
    bool ok = true;
    if (r->is_prompt)
        ok = model_eval(b->model.session, b->ids + r->depth, n, MODEL_LOGITS_LAST, NULL, NULL, err);
    else
        for (uint32_t i = 0; ok && i < n; i++) ok = generate_step(b, r, i, err);
    *took = base_seconds() - start;
    return ok;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes the bytes of weights and cache that one measurement reads, and its multiply-adds, per
 * token. A step of several sequences reads the weights once, and each sequence's cache. */
static void fill_shares(const struct cli_bench *b, struct cli_bench_result *r)
{
    const struct cli_bench_work *w = &b->work;
    const struct model_session *s = b->model.session;
    const double n = r->n_tokens, seqs = r->n_seq, batch = (double)b->values->batch_size;
    const double cell = (double)model_session_cache_bytes(s) / (double)model_session_n_seq(s) /
                        (double)model_session_n_ctx(s);
    const double passes = r->is_prompt ? (double)(uint64_t)((n + batch - 1) / batch) : n;
    const double heads = r->is_prompt ? 1 : n;
    const double bytes =
        passes * (w->body_bytes + seqs * cell * (r->depth + n / 2)) + heads * w->head_bytes;
    const double macs = seqs * (n * w->body_macs + heads * w->head_macs);
    const double seconds = seqs * n / r->median;
    if (b->bandwidth > 0) r->of_bandwidth = bytes / seconds / b->bandwidth;
    if (b->int8 > 0) r->of_int8 = macs / seconds / b->int8;
}

/* Measures once more with the engine's profile. */
static bool run_profile(struct cli_bench *b, const struct cli_bench_result *r,
                        struct base_error *err)
{
    struct engine_profile profile = {0};
    double took;
    if (!to_depth(b, r, err)) return false; /* before the profile begins */
    engine_set_profile(b->model.engine, &profile);
    bool ok = measure(b, r, r->n_tokens, &took, err);
    engine_set_profile(b->model.engine, NULL);
    if (ok) cli_profile_print(cli_bench_test_name(r), &profile, r->n_tokens);
    return ok;
}

static bool run_test(struct cli_bench *b, struct cli_bench_result *r, struct base_error *err)
{
    const int count = (int)b->values->repetitions;
    double took;
    if (!measure(b, r, r->is_prompt ? r->n_tokens : 1, &took, err)) return false; /* warm-up */
    for (int i = 0; i < count; i++) {
        if (!measure(b, r, r->n_tokens, &took, err)) return false;
        b->rate[i] = (double)r->n_seq * r->n_tokens / took;
        if (b->values->verbose)
            cli_note("%s %u, depth %u, sequences %u: %.2f tokens/s", cli_bench_test_name(r),
                     r->n_tokens, r->depth, r->n_seq, b->rate[i]);
    }
    qsort(b->rate, (size_t)count, sizeof *b->rate, by_size);
    r->median = (b->rate[(count - 1) / 2] + b->rate[count / 2]) / 2;
    r->low = b->rate[0];
    r->high = b->rate[count - 1];
    return !b->values->profile || run_profile(b, r, err);
}

/* Measures the limits before and after the tests and keeps the higher values. */
static bool measure_limits(struct cli_bench *b, struct base_error *err)
{
    double bandwidth = engine_roofline_bandwidth(b->model.engine, err);
    double int8 = engine_roofline_int8(b->model.engine);
    if (bandwidth > b->bandwidth) b->bandwidth = bandwidth;
    if (int8 > b->int8) b->int8 = int8;
    return base_goes_on(err) && bandwidth > 0;
}

static bool measure_all(struct cli_bench *b, struct base_error *err)
{
    if (!measure_limits(b, err)) return false;
    for (size_t i = 0; i < b->n_results; i++)
        if (!run_test(b, &b->result[i], err)) return false;
    if (!measure_limits(b, err)) return false;
    for (size_t i = 0; i < b->n_results; i++) fill_shares(b, &b->result[i]);
    return true;
}

/* ---- The command ---- */

static int64_t largest(const struct cli_integers *list)
{
    int64_t most = 0;
    for (size_t i = 0; i < list->count; i++) most = list->item[i] > most ? list->item[i] : most;
    return most;
}

static void add_test(struct cli_bench *b, bool is_prompt, int64_t n_tokens, int64_t depth,
                     int64_t n_seq)
{
    if (n_tokens == 0) return;
    b->result[b->n_results++] = (struct cli_bench_result){.is_prompt = is_prompt,
                                                          .n_tokens = (uint32_t)n_tokens,
                                                          .depth = (uint32_t)depth,
                                                          .n_seq = (uint32_t)n_seq};
}

/* Lists all combinations, in an order that fills a context once per depth. */
static bool list_tests(struct cli_bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const struct cli_integers *p = &v->n_prompt, *n = &v->n_gen, *d = &v->n_depth,
                              *np = &v->n_parallel;
    b->result = calloc(d->count * (p->count + n->count * np->count), sizeof *b->result);
    if (!b->result) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    for (size_t i = 0; i < d->count; i++) {
        for (size_t k = 0; k < p->count; k++) add_test(b, true, p->item[k], d->item[i], 1);
        for (size_t k = 0; k < n->count; k++)
            for (size_t q = 0; q < np->count; q++)
                add_test(b, false, n->item[k], d->item[i], np->item[q]);
    }
    if (b->n_results > 0) return true;
    return base_fail(err, BASE_USAGE, "nothing to measure: -p and -n are 0");
}

static bool open_all(struct cli_bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const int64_t most_prompt = largest(&v->n_prompt), most_gen = largest(&v->n_gen);
    const int64_t n_ids = largest(&v->n_depth) + (most_prompt > most_gen ? most_prompt : most_gen);
    const int64_t n_seq = most_gen > 0 ? largest(&v->n_parallel) : 1;
    if (v->plot && strcasecmp(v->format, "md") != 0)
        return base_fail_at(err, BASE_USAGE, "--plot", -1, "goes with --format md only");
    if (!list_tests(b, err)) return false;
    if (n_ids > INT32_MAX / n_seq)
        return base_fail_at(err, BASE_USAGE, "--n-depth", -1, "too large");
    if (!cli_model_open_file(&b->model, v, err) || !cli_model_open_weights(&b->model, v, err) ||
        !cli_model_open_session(&b->model, v, (uint32_t)n_seq, (uint32_t)n_ids, err))
        return false;
    const struct model_facts *facts = model_facts(b->model.model);
    b->n_ids = (uint32_t)n_ids;
    b->ids = malloc((size_t)n_ids * sizeof *b->ids);
    b->step = malloc((size_t)n_seq * sizeof *b->step);
    b->rate = malloc((size_t)v->repetitions * sizeof *b->rate);
    if (!b->ids || !b->step || !b->rate) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    uint64_t random = 1;
    for (int64_t i = 0; i < n_ids; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (int32_t)((random >> 33) % facts->n_vocab);
    }
    b->work = count_work(b->model.file, facts);
    return true;
}

static bool print(struct cli_bench *b, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    if (b->values->svg && strcmp(b->values->svg, "-") == 0)
        return true; /* standard output is for the chart */
    cli_bench_report(b, b->values->format, &out);
    if (b->values->plot) cli_bench_plot(b, &out);
    bool ok = cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

static bool write_svg(struct cli_bench *b, struct base_output *file, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    cli_bench_svg(b, &out);
    bool ok = !out.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
    ok = ok && base_output_write(file, out.data, out.size, err);
    base_buffer_free(&out);
    return ok;
}

bool cli_cmd_bench(const struct cli_values *values, struct base_error *err)
{
    struct cli_bench b = {.values = values};
    struct base_output svg;
    base_output_init(&svg);
    if (!values->no_sandbox) cli_sandbox_limit(values->svg);
    bool ok = open_all(&b, err);
    if (ok && values->verbose) cli_model_note(&b.model);
    /* Opens the output first, so that an error is reported before minutes of measurements. */
    ok = ok && (!values->svg || cli_output_open(&svg, values->svg, values, b.model.file, err));
    if (ok && !values->no_sandbox) cli_sandbox_close(svg.unfinished ? CLI_SANDBOX_RENAME : 0);
    ok = ok && measure_all(&b, err) && print(&b, err) && (!values->svg || write_svg(&b, &svg, err));
    ok = cli_output_close(&svg, ok, err);
    free(b.ids);
    free(b.step);
    free(b.rate);
    free(b.result);
    cli_model_close(&b.model);
    return ok;
}
