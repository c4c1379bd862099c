/* cli/cmd/cmd_perplexity.c: `infer perplexity`: measures how well a model predicts a text, and how
 * far its predictions are from saved ones (KL divergence).
 *
 * The ids are cut into chunks. Each chunk is evaluated from an empty context (its first id replaced
 * by the beginning-of-text token if the model adds one), and the predictions of its second half are
 * scored: position j from chunk / 2 on predicts id j + 1. A rest shorter than a chunk is not used.
 * With --stride N chunks begin every N ids, no id is replaced, and the last N predictions of each
 * chunk are scored, except that of the id after the chunk. The engine's threads share the rows. */
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/out/saved_logits.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/cpu/cpu_device.h"
#include "generate/statistics.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct perplexity {
    const struct cli_values *values;
    struct cli_model model;
    struct text_ids ids;
    uint32_t chunk, step, first, rows; /* rows: scored of each chunk, from position `first` on */
    uint32_t n_vocab;
    uint64_t n_chunks;

    struct cli_saved_writer save; /* --save-logits */
    struct cli_saved_reader saved;
    const int32_t *target;            /* [rows]: the next ids in the current chunk */
    struct generate_row_score *score; /* [rows] */
    struct generate_statistics statistics;
};

/* ---- Rows ---- */

struct perplexity_job {
    const float *logits, *base;
    bool base_is_log;
    const int32_t *target;
    struct generate_row_score *score;
    int64_t rows;
    uint32_t n_vocab;
};

static void score_rows(const struct engine_worker *w, void *user)
{
    const struct perplexity_job *j = user;
    for (int64_t r; (r = engine_pool_claim(w, 1)) < j->rows && !base_interrupted();) {
        const struct generate_base_row base = {j->base ? j->base + r * j->n_vocab : NULL,
                                               j->base_is_log};
        j->score[r] =
            generate_row_compare(j->logits + r * j->n_vocab, base, j->n_vocab, j->target[r]);
    }
}

static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct perplexity *p = user;
    struct perplexity_job job = {.logits = logits,
                                 .base_is_log = p->saved.is_log,
                                 .target = p->target + first,
                                 .score = p->score + first,
                                 .rows = (int64_t)rows,
                                 .n_vocab = p->n_vocab};
    if (p->values->kl && !cli_saved_read_rows(&p->saved, rows, &job.base, err)) return false;
    engine_pool_run(p->model.engine->cpu->pool, score_rows, &job);
    return base_goes_on(err) &&
           (!p->values->save_logits || cli_saved_write_rows(&p->save, logits, rows, err));
}

/* ---- All chunks ---- */

static bool eval_chunk(struct perplexity *p, uint64_t index, struct base_error *err)
{
    const int32_t *ids = p->ids.id + index * p->step;
    p->target = ids + p->first + 1;
    model_session_truncate(p->model.session, 0);
    model_seq_adapt_to(p->model.session, 0, NULL, ids, p->first + p->rows);
    if (!model_eval(p->model.session, ids, p->first, MODEL_LOGITS_NONE, NULL, NULL, err) ||
        !model_eval(p->model.session, ids + p->first, p->rows, MODEL_LOGITS_ALL, take_rows, p, err))
        return false;
    for (uint32_t r = 0; r < p->rows; r++) generate_statistics_add(&p->statistics, &p->score[r]);
    cli_progress_note("perplexity %.1f", generate_statistics_perplexity(&p->statistics).value);
    if (p->values->verbose)
        cli_note("chunk %llu of %llu: perplexity so far %.4f", (unsigned long long)index + 1,
                 (unsigned long long)p->n_chunks,
                 generate_statistics_perplexity(&p->statistics).value);
    return true;
}

static bool open_save(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    return !v->save_logits ||
           (cli_output_open(&p->save.file, v->save_logits, v, p->model.file, err) &&
            cli_saved_begin(&p->save, strcmp(v->logits_format, "u16") == 0, p->n_vocab, p->chunk,
                            p->ids.id, p->n_chunks * p->chunk, err));
}

static bool eval_all(struct perplexity *p, struct base_error *err)
{
    p->score = calloc(p->rows, sizeof *p->score);
    if (!p->score) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    bool ok =
        generate_statistics_begin(&p->statistics, p->n_chunks * p->rows, err) && open_save(p, err);
    const bool renames = p->values->save_logits && p->save.file.unfinished;
    if (ok && !p->values->no_sandbox)
        cli_sandbox_close((renames ? CLI_SANDBOX_RENAME : 0) | cli_gpu_allows(p->values));
    if (ok) cli_model_progress_tokens(&p->model, "evaluating", p->n_chunks * (p->first + p->rows));
    for (uint64_t i = 0; ok && i < p->n_chunks; i++) ok = eval_chunk(p, i, err);
    cli_progress_end();
    if (p->values->save_logits) ok = cli_output_close(&p->save.file, ok, err);
    if (ok) generate_statistics_end(&p->statistics);
    return ok;
}

/* ---- The result ---- */

static const struct {
    double fraction;
    const char *name, *json;
} quantiles[] = {{0.001, "0.1 %", "0.001"}, {0.01, "1 %", "0.01"},     {0.05, "5 %", "0.05"},
                 {0.1, "10 %", "0.1"},      {0.25, "25 %", "0.25"},    {0.5, "median", "0.5"},
                 {0.75, "75 %", "0.75"},    {0.9, "90 %", "0.9"},      {0.95, "95 %", "0.95"},
                 {0.99, "99 %", "0.99"},    {0.999, "99.9 %", "0.999"}};
enum { N_QUANTILES = sizeof quantiles / sizeof quantiles[0] };

static void print_quantiles(const struct generate_statistics *j, struct base_buffer *out)
{
    const uint64_t n = j->nll.count;
    base_buffer_add_text(out, "             KL divergence  probability shift\n");
    base_buffer_add_format(out, "smallest     %13.6f  %15.3f %%\n", j->kl_value[0],
                           100 * j->shift_value[0]);
    for (size_t i = 0; i < N_QUANTILES; i++)
        base_buffer_add_format(out, "%-12s %13.6f  %15.3f %%\n", quantiles[i].name,
                               generate_quantile(j->kl_value, n, quantiles[i].fraction),
                               100 * generate_quantile(j->shift_value, n, quantiles[i].fraction));
    base_buffer_add_format(out, "largest      %13.6f  %15.3f %%\n", j->kl_value[n - 1],
                           100 * j->shift_value[n - 1]);
}

static void print_comparison(const struct generate_statistics *j, struct base_buffer *out)
{
    const struct generate_estimate base = generate_statistics_base_perplexity(j);
    const struct generate_estimate ratio = generate_statistics_log_ratio(j);
    const struct generate_estimate difference = generate_statistics_difference(j);
    const struct generate_estimate rms = generate_statistics_rms_shift(j);
    const struct generate_estimate same = generate_statistics_same_top(j);
    const double correlation = generate_statistics_correlation(j);
    base_buffer_add_format(out,
                           "KL divergence %.6f +/- %.6f, largest %.6f\n"
                           "same top token %.3f %% +/- %.3f %%\n"
                           "probability shift %.3f %% +/- %.3f %%, RMS %.3f %% +/- %.3f %%\n",
                           generate_moments_mean(&j->kl), generate_moments_error(&j->kl),
                           j->kl_value[j->nll.count - 1], 100 * same.value, 100 * same.error,
                           100 * generate_moments_mean(&j->shift),
                           100 * generate_moments_error(&j->shift), 100 * rms.value,
                           100 * rms.error);
    base_buffer_add_format(out,
                           "base perplexity %.4f +/- %.4f, ratio %.6f +/- %.6f, "
                           "difference %.6f +/- %.6f",
                           base.value, base.error, exp(ratio.value), exp(ratio.value) * ratio.error,
                           difference.value, difference.error);
    if (isfinite(correlation))
        base_buffer_add_format(out, ", correlation %.2f %%", 100 * correlation);
    base_buffer_add_text(out, "\n");
    print_quantiles(j, out);
}

static void print_text(const struct perplexity *p, struct base_buffer *out)
{
    const struct generate_estimate ppl = generate_statistics_perplexity(&p->statistics);
    base_buffer_add_format(out, "perplexity %.4f +/- %.4f (%llu positions)\n", ppl.value, ppl.error,
                           (unsigned long long)p->statistics.nll.count);
    if (p->values->kl) print_comparison(&p->statistics, out);
}

static void add_quantiles(const double *sorted, uint64_t n, const char *name,
                          struct base_buffer *out)
{
    base_buffer_add_format(out, ",\"%s\":{", name);
    for (size_t i = 0; i < N_QUANTILES; i++)
        base_buffer_add_format(out, "%s\"%s\":%.8f", i ? "," : "", quantiles[i].json,
                               generate_quantile(sorted, n, quantiles[i].fraction));
    base_buffer_add_text(out, "}");
}

static void add_comparison(const struct generate_statistics *j, struct base_buffer *out)
{
    const uint64_t n = j->nll.count;
    const struct generate_estimate base = generate_statistics_base_perplexity(j);
    const struct generate_estimate ratio = generate_statistics_log_ratio(j);
    const struct generate_estimate rms = generate_statistics_rms_shift(j);
    const struct generate_estimate same = generate_statistics_same_top(j);
    const double correlation = generate_statistics_correlation(j);
    base_buffer_add_format(out,
                           ",\"kl\":%.8f,\"kl_standard_error\":%.8f,\"kl_largest\":%.8f,"
                           "\"kl_smallest\":%.8f",
                           generate_moments_mean(&j->kl), generate_moments_error(&j->kl),
                           j->kl_value[n - 1], j->kl_value[0]);
    add_quantiles(j->kl_value, n, "kl_quantiles", out);
    base_buffer_add_format(out, ",\"same_top\":%.6f,\"same_top_standard_error\":%.6f", same.value,
                           same.error);
    base_buffer_add_format(out,
                           ",\"shift\":%.8f,\"shift_standard_error\":%.8f,\"shift_rms\":%.8f,"
                           "\"shift_rms_standard_error\":%.8f,\"shift_largest\":%.8f,"
                           "\"shift_smallest\":%.8f",
                           generate_moments_mean(&j->shift), generate_moments_error(&j->shift),
                           rms.value, rms.error, j->shift_value[n - 1], j->shift_value[0]);
    add_quantiles(j->shift_value, n, "shift_quantiles", out);
    base_buffer_add_format(out,
                           ",\"base_perplexity\":%.6f,\"base_standard_error\":%.6f,"
                           "\"log_ratio\":%.8f,\"log_ratio_standard_error\":%.8f,",
                           base.value, base.error, ratio.value, ratio.error);
    base_buffer_add_format(
        out, isfinite(correlation) ? "\"correlation\":%.6f" : "\"correlation\":null", correlation);
}

static void print_json(const struct perplexity *p, struct base_buffer *out)
{
    const struct generate_statistics *j = &p->statistics;
    const struct generate_estimate ppl = generate_statistics_perplexity(j);
    const uint64_t used = (p->n_chunks - 1) * p->step + p->chunk;
    base_buffer_add_text(out, "{\"model\":");
    base_buffer_add_json(out, p->model.name.data, p->model.name.size);
    base_buffer_add_format(
        out,
        ",\"perplexity\":%.6f,\"standard_error\":%.6f,\"nll\":%.8f,"
        "\"positions\":%llu,\"chunk\":%u,\"chunks\":%llu,\"unused_ids\":%llu",
        ppl.value, ppl.error, generate_moments_mean(&j->nll), (unsigned long long)j->nll.count,
        p->chunk, (unsigned long long)p->n_chunks, (unsigned long long)(p->ids.count - used));
    if (p->values->stride) base_buffer_add_format(out, ",\"stride\":%u", p->step);
    if (p->values->kl) add_comparison(j, out);
    cli_model_add_approximate(&p->model, out);
    base_buffer_add_text(out, "}\n");
}

static bool print(const struct perplexity *p, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    bool ok = (isfinite(p->statistics.nll.sum) && isfinite(p->statistics.kl.sum)) ||
              base_fail(err, BASE_FAILED, "the model gave logits that are not numbers");
    if (ok && p->values->json)
        print_json(p, &out);
    else if (ok)
        print_text(p, &out);
    return ok && cli_write_buffer(&out, err);
}

/* ---- Ids ---- */

/* Cuts overlapping chunks. The last one ends at the text's end or less than a stride before it. */
static bool cut_strides(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    const uint64_t stride = (uint64_t)v->stride;
    if (stride >= p->chunk)
        return base_fail_at(err, BASE_USAGE, "--stride", -1, "%llu is not below --chunk %u",
                            (unsigned long long)stride, p->chunk);
    if (p->ids.count <= p->chunk)
        return base_fail(err, BASE_USAGE,
                         "the text has %zu tokens; with --stride it needs more than --chunk %u",
                         p->ids.count, p->chunk);
    p->step = p->rows = (uint32_t)stride;
    p->first = p->chunk - p->step - 1;
    p->n_chunks = (p->ids.count - p->chunk + stride - 1) / stride;
    if (v->chunks > 0 && p->n_chunks > (uint64_t)v->chunks) p->n_chunks = (uint64_t)v->chunks;
    return true;
}

static bool read_ids(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    p->chunk = (uint32_t)v->chunk;
    if (!(v->kl ? cli_saved_open(&p->saved, v->kl, p->n_vocab, &p->ids, &p->chunk, err)
                : cli_chunks_read(v, p->model.tokenizer, p->n_vocab, &p->ids, err)))
        return false;
    if (v->stride) return cut_strides(p, err);
    if (!cli_chunks_cut(v, &p->ids, &p->chunk, &p->n_chunks, err)) return false;
    p->step = p->chunk;
    p->first = p->chunk / 2;
    p->rows = p->chunk - 1 - p->first;
    if (!v->kl || p->saved.is_log)
        cli_chunks_begin(v, p->model.tokenizer, &p->ids, p->chunk, p->n_chunks);
    return true;
}

static bool open_model(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    if (!v->no_sandbox) cli_sandbox_limit(v->save_logits);
    if (!cli_model_open_file(&p->model, v, err) || !cli_model_open_tokenizer(&p->model, err) ||
        !cli_model_open_weights(&p->model, v, err))
        return false;
    p->n_vocab = model_facts(p->model.model)->n_vocab;
    return true;
}

static bool open_text(struct perplexity *p, struct base_error *err)
{
    if (!read_ids(p, err) || !cli_model_open_session(&p->model, p->values, 1, p->chunk, err))
        return false;
    if (p->values->verbose) cli_model_note(&p->model);
    return true;
}

static bool cmd_perplexity(struct cli_values *values, struct base_error *err)
{
    if (values->save_logits && strcmp(values->save_logits, "-") == 0)
        return base_fail_at(err, BASE_USAGE, "--save-logits", -1,
                            "needs a file: standard output has the result");
    struct perplexity p = {.values = values};
    const bool ok =
        open_model(&p, err) && open_text(&p, err) && eval_all(&p, err) && print(&p, err);
    free(p.score);
    generate_statistics_free(&p.statistics);
    cli_saved_end(&p.save);
    cli_saved_close(&p.saved);
    text_ids_free(&p.ids);
    cli_model_close(&p.model);
    return ok;
}

const struct cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "infer perplexity [-m MODEL] -f FILE [options]",
    .effect = "how well a model predicts a text; KL divergence",
    .about = "Cuts the text into chunks, evaluates each from an empty context and scores\n"
             "its second half. Prints the perplexity and its standard error. --save-logits\n"
             "and --kl compare two models (or two quantizations) position by position.",
    .positional = "file",
    .takes = {"FILE"},
    .run = cmd_perplexity,
};
