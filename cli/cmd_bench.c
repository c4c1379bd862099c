/* cli/cmd_bench.c: `infer bench`: tokens per second, and how near they come to the machine's
 * limits.
 *
 * Everything runs through model_eval, as in `run`. Work is counted from the file: weights that a
 * token multiplies with (experts by the share in use; embedding rows that are only looked up do not
 * count), plus the cache that attention reads. Products inside attention are not counted. */
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/profile.h"
#include "cli/system.h"
#include "engine/roofline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weights that every token meets, and those of the output product, which only rows with logits
 * meet. */
struct work {
    double body_bytes, body_macs, head_bytes, head_macs;
};

struct result {
    bool is_prompt;
    uint32_t n_tokens;
    double median, low, high; /* tokens per second */
    double of_bandwidth, of_int8;
};

struct bench {
    const struct cli_values *values;
    struct cli_model model;
    struct work work;
    int32_t *ids; /* [n_ids] random ones, the same each time */
    double *rate; /* [repetitions] */
    struct result result[2];
    int n_results;
    double bandwidth, int8; /* bytes and multiply-adds per second */
};

static bool str_is(struct gguf_str s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static double share_of_experts(const struct gguf_file *file, const char *arch)
{
    char key[96];
    uint32_t count = 0, used = 0;
    struct base_error ignored = BASE_ERROR_INIT; /* the model was opened: its keys are sound */
    snprintf(key, sizeof key, "%.64s.expert_count", arch);
    gguf_get_u32(file, key, &count, &ignored);
    snprintf(key, sizeof key, "%.64s.expert_used_count", arch);
    gguf_get_u32(file, key, &used, &ignored);
    return count > 0 && used > 0 ? (double)used / (double)count : 1.0;
}

static struct work count_work(const struct gguf_file *file, const char *arch)
{
    struct work w = {0};
    const double experts = share_of_experts(file, arch);
    const bool tied = gguf_tensor_find(file, "output.weight") == NULL;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        double macs = (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
        double bytes = (double)t->size;
        const bool embedding = str_is(t->name, "token_embd.weight");
        if (memmem(t->name.data, t->name.size, "_exps.", 6)) {
            macs *= experts;
            bytes *= experts;
        }
        if (t->n_dims < 2) macs = 0;
        if ((embedding && tied) || str_is(t->name, "output.weight")) {
            w.head_bytes += bytes;
            w.head_macs += macs;
        } else if (!embedding) {
            w.body_bytes += bytes;
            w.body_macs += macs;
        }
    }
    return w;
}

/* ---- Measuring ---- */

static bool to_depth(struct bench *b, uint32_t depth, struct base_error *err)
{
    uint32_t have = model_session_truncate(b->model.session, depth);
    return have == depth || model_eval(b->model.session, b->ids + have, depth - have,
                                       MODEL_LOGITS_NONE, NULL, NULL, err);
}

/* One measurement; *took is in seconds. */
static bool measure(struct bench *b, bool is_prompt, uint32_t n, double *took,
                    struct base_error *err)
{
    const uint32_t depth = (uint32_t)b->values->n_depth;
    const int32_t *ids = b->ids + depth;
    if (!to_depth(b, depth, err)) return false;
    double start = cli_seconds();
    bool ok = true;
    if (is_prompt) ok = model_eval(b->model.session, ids, n, MODEL_LOGITS_LAST, NULL, NULL, err);
    for (uint32_t i = 0; ok && !is_prompt && i < n; i++)
        ok = model_eval(b->model.session, ids + i, 1, MODEL_LOGITS_LAST, NULL, NULL, err);
    *took = cli_seconds() - start;
    return ok;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Weights and cache that one measurement reads, and its multiply-adds, by the tokens in it. */
static void fill_shares(const struct bench *b, struct result *r)
{
    const struct work *w = &b->work;
    const double n = r->n_tokens, depth = (double)b->values->n_depth;
    const double batch = (double)b->values->batch_size;
    const double cell = (double)model_session_cache_bytes(b->model.session) /
                        (double)model_session_n_ctx(b->model.session);
    const double passes = r->is_prompt ? (double)(uint64_t)((n + batch - 1) / batch) : n;
    const double heads = r->is_prompt ? 1 : n;
    const double bytes = passes * (w->body_bytes + cell * (depth + n / 2)) + heads * w->head_bytes;
    const double macs = n * w->body_macs + heads * w->head_macs;
    const double seconds = n / r->median;
    if (b->bandwidth > 0) r->of_bandwidth = bytes / seconds / b->bandwidth;
    if (b->int8 > 0) r->of_int8 = macs / seconds / b->int8;
}

/* Once more, with the engine counting. */
static bool run_profile(struct bench *b, bool is_prompt, uint32_t n, struct base_error *err)
{
    struct engine_profile profile = {0};
    double took;
    if (!to_depth(b, (uint32_t)b->values->n_depth, err)) return false;
    engine_set_profile(b->model.engine, &profile);
    bool ok = measure(b, is_prompt, n, &took, err);
    engine_set_profile(b->model.engine, NULL);
    if (ok) cli_profile_print(is_prompt ? "prompt" : "generate", &profile, n);
    return ok;
}

static bool run_test(struct bench *b, bool is_prompt, uint32_t n, struct base_error *err)
{
    const int count = (int)b->values->repetitions;
    double took;
    if (!measure(b, is_prompt, is_prompt ? n : 1, &took, err)) return false; /* warm-up */
    for (int i = 0; i < count; i++) {
        if (!measure(b, is_prompt, n, &took, err)) return false;
        b->rate[i] = n / took;
        if (b->values->verbose)
            cli_note("%s %u: %.2f tokens/s", is_prompt ? "prompt" : "generate", n, b->rate[i]);
    }
    qsort(b->rate, (size_t)count, sizeof *b->rate, by_size);
    b->result[b->n_results++] =
        (struct result){.is_prompt = is_prompt,
                        .n_tokens = n,
                        .median = (b->rate[(count - 1) / 2] + b->rate[count / 2]) / 2,
                        .low = b->rate[0],
                        .high = b->rate[count - 1]};
    return !b->values->profile || run_profile(b, is_prompt, n, err);
}

/* The limits are measured before and after; the better figure counts. */
static bool measure_limits(struct bench *b, struct base_error *err)
{
    double bandwidth = engine_roofline_bandwidth(b->model.engine, err);
    double int8 = engine_roofline_int8(b->model.engine);
    if (bandwidth > b->bandwidth) b->bandwidth = bandwidth;
    if (int8 > b->int8) b->int8 = int8;
    return bandwidth > 0;
}

static bool measure_all(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    if (!measure_limits(b, err)) return false;
    if (v->n_prompt > 0 && !run_test(b, true, (uint32_t)v->n_prompt, err)) return false;
    if (v->n_gen > 0 && !run_test(b, false, (uint32_t)v->n_gen, err)) return false;
    if (!measure_limits(b, err)) return false;
    for (int i = 0; i < b->n_results; i++) fill_shares(b, &b->result[i]);
    return true;
}

/* ---- Printing ---- */

static const char *test_name(const struct result *r)
{
    return r->is_prompt ? "prompt" : "generate";
}

static void add_markdown(const struct bench *b, struct base_buffer *out)
{
    const struct model_facts *f = model_facts(b->model.model);
    base_buffer_add_format(out,
                           "%s, %.1f MiB, %s, %d threads, batch %lld\n"
                           "limits here: reading %.1f GB/s, int8 %.1f G multiply-adds/s\n\n"
                           "| test     | tokens | depth | tokens/s |     lowest to highest "
                           "| of bandwidth | of int8 |\n"
                           "|----------|-------:|------:|---------:|----------------------:"
                           "|-------------:|--------:|\n",
                           b->model.name.data, (double)f->weight_bytes / 0x1p20,
                           quant_level_name(b->model.engine->options.level),
                           b->model.engine->options.n_threads, (long long)b->values->batch_size,
                           b->bandwidth / 1e9, b->int8 / 1e9);
    for (int i = 0; i < b->n_results; i++) {
        const struct result *r = &b->result[i];
        base_buffer_add_format(
            out, "| %-8s | %6u | %5lld | %8.2f | %9.2f to %8.2f | %10.1f %% | %5.1f %% |\n",
            test_name(r), r->n_tokens, (long long)b->values->n_depth, r->median, r->low, r->high,
            100 * r->of_bandwidth, 100 * r->of_int8);
    }
}

static void add_json_result(const struct bench *b, const struct result *r, struct base_buffer *out)
{
    base_buffer_add_format(out,
                           "\"test\":\"%s\",\"tokens\":%u,\"depth\":%lld,"
                           "\"tokens_per_second\":%.3f,\"lowest\":%.3f,\"highest\":%.3f,"
                           "\"share_of_bandwidth\":%.4f,\"share_of_int8\":%.4f",
                           test_name(r), r->n_tokens, (long long)b->values->n_depth, r->median,
                           r->low, r->high, r->of_bandwidth, r->of_int8);
}

static void add_json_facts(const struct bench *b, struct base_buffer *out)
{
    const struct model_facts *f = model_facts(b->model.model);
    base_buffer_add_text(out, "\"model\":");
    base_buffer_add_json(out, b->model.name.data, b->model.name.size);
    base_buffer_add_format(out,
                           ",\"weight_bytes\":%llu,\"parameters\":%llu,\"isa\":\"%s\","
                           "\"threads\":%d,\"batch_size\":%lld,\"cache_type_k\":\"%s\","
                           "\"cache_type_v\":\"%s\",\"repetitions\":%lld,"
                           "\"bandwidth_bytes_per_second\":%.0f,\"int8_macs_per_second\":%.0f",
                           (unsigned long long)f->weight_bytes, (unsigned long long)f->n_params,
                           quant_level_name(b->model.engine->options.level),
                           b->model.engine->options.n_threads, (long long)b->values->batch_size,
                           b->values->cache_type_k, b->values->cache_type_v,
                           (long long)b->values->repetitions, b->bandwidth, b->int8);
}

static void add_json(const struct bench *b, bool lines, struct base_buffer *out)
{
    if (!lines) {
        base_buffer_add_text(out, "{");
        add_json_facts(b, out);
        base_buffer_add_text(out, ",\"results\":[");
    }
    for (int i = 0; i < b->n_results; i++) {
        base_buffer_add_text(out, lines ? "{" : i ? ",{" : "{");
        if (lines) {
            add_json_facts(b, out);
            base_buffer_add_text(out, ",");
        }
        add_json_result(b, &b->result[i], out);
        base_buffer_add_text(out, lines ? "}\n" : "}");
    }
    if (!lines) base_buffer_add_text(out, "]}\n");
}

static void add_csv(const struct bench *b, struct base_buffer *out)
{
    base_buffer_add_text(out, "test,tokens,depth,tokens_per_second,lowest,highest,"
                              "share_of_bandwidth,share_of_int8,threads,isa,batch_size,"
                              "bandwidth_bytes_per_second,int8_macs_per_second\n");
    for (int i = 0; i < b->n_results; i++) {
        const struct result *r = &b->result[i];
        base_buffer_add_format(out, "%s,%u,%lld,%.3f,%.3f,%.3f,%.4f,%.4f,%d,%s,%lld,%.0f,%.0f\n",
                               test_name(r), r->n_tokens, (long long)b->values->n_depth, r->median,
                               r->low, r->high, r->of_bandwidth, r->of_int8,
                               b->model.engine->options.n_threads,
                               quant_level_name(b->model.engine->options.level),
                               (long long)b->values->batch_size, b->bandwidth, b->int8);
    }
}

static bool print(struct bench *b, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    const char *format = b->values->format;
    if (strcasecmp(format, "json") == 0)
        add_json(b, false, &out);
    else if (strcasecmp(format, "jsonl") == 0)
        add_json(b, true, &out);
    else if (strcasecmp(format, "csv") == 0)
        add_csv(b, &out);
    else
        add_markdown(b, &out);
    bool ok = cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

/* ---- The command ---- */

static bool open_all(struct bench *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const int64_t longer = v->n_prompt > v->n_gen ? v->n_prompt : v->n_gen;
    const int64_t n_ids = v->n_depth + longer;
    if (longer == 0) return base_fail(err, BASE_USAGE, "nothing to measure: -p and -n are 0");
    if (n_ids > INT32_MAX) return base_fail(err, BASE_USAGE, "--n-depth: too large");
    if (!cli_model_open_file(&b->model, v, err) || !cli_model_open_weights(&b->model, v, err) ||
        !cli_model_open_session(&b->model, v, (uint32_t)n_ids, err))
        return false;
    b->ids = malloc((size_t)n_ids * sizeof *b->ids);
    b->rate = malloc((size_t)v->repetitions * sizeof *b->rate);
    if (!b->ids || !b->rate) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    uint64_t random = 1;
    for (int64_t i = 0; i < n_ids; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (int32_t)((random >> 33) % model_facts(b->model.model)->n_vocab);
    }
    b->work = count_work(b->model.file, model_facts(b->model.model)->arch);
    return true;
}

bool cli_cmd_bench(const struct cli_values *values, struct base_error *err)
{
    struct bench b = {.values = values};
    bool ok = open_all(&b, err);
    if (ok && values->verbose) cli_model_note(&b.model);
    ok = ok && measure_all(&b, err) && print(&b, err);
    free(b.ids);
    free(b.rate);
    cli_model_close(&b.model);
    return ok;
}
