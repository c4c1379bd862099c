/* cli/cmd/cmd_perplexity.c: `infer perplexity`: how well a model predicts a text, and how far its
 * predictions are from logits that were saved before (KL divergence).
 *
 * The ids are cut into chunks; each is evaluated from an empty context (its first id replaced by
 * the beginning-of-text token where the model adds one) and the predictions of its second half are
 * scored: position j from chunk / 2 on predicts id j + 1. A remainder shorter than a chunk is left
 * out. Sums are double, in the order of the text; rows are shared among the engine's threads. */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/out/saved_logits.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct score { /* of one position */
    double nll;
    double kl;
    bool same_top;
};

/* Sum and sum of squares: mean and the standard error of the mean. */
struct mean {
    double sum, squares;
    uint64_t count;
};

struct perplexity {
    const struct cli_values *values;
    struct cli_model model;
    struct text_ids ids;
    uint32_t chunk, n_vocab;
    uint64_t n_chunks;

    struct cli_saved_writer save; /* --save-logits */
    struct cli_saved_reader saved;
    const int32_t *target; /* of the present chunk: [rows] */
    struct score *score;   /* [chunk] */
    struct mean nll, kl, same;
    double max_kl;
};

static void mean_add(struct mean *m, double x)
{
    m->sum += x;
    m->squares += x * x;
    m->count++;
}

static double mean_of(const struct mean *m)
{
    return m->sum / (double)m->count;
}

static double mean_error(const struct mean *m)
{
    if (m->count < 2) return 0;
    double variance = m->squares / (double)m->count - mean_of(m) * mean_of(m);
    return variance > 0 ? sqrt(variance / (double)(m->count - 1)) : 0;
}

/* ---- One row ---- */

static uint32_t best_id(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static double log_sum_exp(const float *logits, uint32_t n, float highest)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)highest);
    return (double)highest + log(sum);
}

/* `base` is the saved row, or NULL. */
static struct score score_row(const float *logits, const float *base, uint32_t n, int32_t target)
{
    const uint32_t top = best_id(logits, n);
    const double total = log_sum_exp(logits, n, logits[top]);
    struct score s = {.nll = total - (double)logits[target]};
    if (!base) return s;
    const uint32_t base_top = best_id(base, n);
    const double base_total = log_sum_exp(base, n, base[base_top]);
    for (uint32_t i = 0; i < n; i++) {
        double log_p = (double)base[i] - base_total, p = exp(log_p);
        if (p > 0) s.kl += p * (log_p - ((double)logits[i] - total));
    }
    s.same_top = top == base_top;
    return s;
}

struct rows_job {
    const float *logits, *base;
    const int32_t *target;
    struct score *score;
    int64_t rows;
    uint32_t n_vocab;
};

static void score_rows(const struct engine_worker *w, void *user)
{
    const struct rows_job *j = user;
    for (int64_t r; (r = engine_pool_claim(w, 1)) < j->rows && !base_interrupted();)
        j->score[r] =
            score_row(j->logits + r * j->n_vocab, j->base ? j->base + r * j->n_vocab : NULL,
                      j->n_vocab, j->target[r]);
}

static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct perplexity *p = user;
    struct rows_job job = {.logits = logits,
                           .target = p->target + first,
                           .score = p->score + first,
                           .rows = (int64_t)rows,
                           .n_vocab = p->n_vocab};
    if (p->values->kl && !cli_saved_read_rows(&p->saved, rows, &job.base, err)) return false;
    engine_pool_run(p->model.engine->pool, score_rows, &job);
    return base_goes_on(err) &&
           (!p->values->save_logits || cli_saved_write_rows(&p->save, logits, rows, err));
}

/* ---- All chunks ---- */

static bool eval_chunk(struct perplexity *p, uint64_t index, struct base_error *err)
{
    const int32_t *ids = p->ids.id + index * p->chunk;
    const uint32_t first = p->chunk / 2, rows = p->chunk - 1 - first;
    p->target = ids + first + 1;
    model_session_truncate(p->model.session, 0);
    if (!model_eval(p->model.session, ids, first, MODEL_LOGITS_NONE, NULL, NULL, err) ||
        !model_eval(p->model.session, ids + first, rows, MODEL_LOGITS_ALL, take_rows, p, err))
        return false;
    for (uint32_t r = 0; r < rows; r++) {
        mean_add(&p->nll, p->score[r].nll);
        mean_add(&p->kl, p->score[r].kl);
        mean_add(&p->same, p->score[r].same_top);
        if (p->score[r].kl > p->max_kl) p->max_kl = p->score[r].kl;
    }
    if (p->values->verbose)
        cli_note("chunk %llu of %llu: perplexity so far %.4f", (unsigned long long)index + 1,
                 (unsigned long long)p->n_chunks, exp(mean_of(&p->nll)));
    return true;
}

static bool eval_all(struct perplexity *p, struct base_error *err)
{
    p->score = calloc(p->chunk, sizeof *p->score);
    if (!p->score) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    bool ok =
        !p->values->save_logits ||
        (cli_output_open(&p->save.file, p->values->save_logits, p->values, p->model.file, err) &&
         cli_saved_begin(&p->save, p->n_vocab, p->chunk, p->ids.id, p->n_chunks * p->chunk, err));
    const bool renames = p->values->save_logits && p->save.file.unfinished;
    if (ok && !p->values->no_sandbox) cli_sandbox_close(renames ? CLI_SANDBOX_RENAME : 0);
    for (uint64_t i = 0; ok && i < p->n_chunks; i++) ok = eval_chunk(p, i, err);
    if (p->values->save_logits) ok = cli_output_close(&p->save.file, ok, err);
    return ok;
}

static void print_text(const struct perplexity *p, struct base_buffer *out)
{
    const double ppl = exp(mean_of(&p->nll));
    base_buffer_add_format(out, "perplexity %.4f +/- %.4f (%llu positions)\n", ppl,
                           ppl * mean_error(&p->nll), (unsigned long long)p->nll.count);
    if (p->values->kl)
        base_buffer_add_format(out,
                               "KL divergence %.6f +/- %.6f, largest %.6f\n"
                               "same top token %.3f %% +/- %.3f %%\n",
                               mean_of(&p->kl), mean_error(&p->kl), p->max_kl,
                               100 * mean_of(&p->same), 100 * mean_error(&p->same));
}

static void print_json(const struct perplexity *p, struct base_buffer *out)
{
    const double ppl = exp(mean_of(&p->nll));
    base_buffer_add_text(out, "{\"model\":");
    base_buffer_add_json(out, p->model.name.data, p->model.name.size);
    base_buffer_add_format(out,
                           ",\"perplexity\":%.6f,\"standard_error\":%.6f,\"nll\":%.8f,"
                           "\"positions\":%llu,\"chunk\":%u,\"chunks\":%llu,\"unused_ids\":%llu",
                           ppl, ppl * mean_error(&p->nll), mean_of(&p->nll),
                           (unsigned long long)p->nll.count, p->chunk,
                           (unsigned long long)p->n_chunks,
                           (unsigned long long)(p->ids.count - p->n_chunks * p->chunk));
    if (p->values->kl)
        base_buffer_add_format(out,
                               ",\"kl\":%.8f,\"kl_standard_error\":%.8f,\"kl_largest\":%.8f,"
                               "\"same_top\":%.6f",
                               mean_of(&p->kl), mean_error(&p->kl), p->max_kl, mean_of(&p->same));
    base_buffer_add_text(out, "}\n");
}

static bool print(const struct perplexity *p, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    bool ok = isfinite(p->nll.sum) ||
              base_fail(err, BASE_FAILED, "the model gave logits that are no numbers");
    if (ok && p->values->json)
        print_json(p, &out);
    else if (ok)
        print_text(p, &out);
    ok = ok && cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

/* ---- Ids ---- */

static bool read_ids(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    struct base_buffer text = BASE_BUFFER_INIT;
    bool ok;
    p->chunk = (uint32_t)v->chunk;
    if (v->kl) {
        ok = cli_saved_open(&p->saved, v->kl, p->n_vocab, &p->ids, &p->chunk, err);
    } else if (v->ids) {
        ok = cli_file_read(v->ids, &text, err) &&
             cli_ids_parse(text.data ? text.data : "", text.size, p->n_vocab, &p->ids, err);
        if (!ok) base_error_set_file(err, v->ids);
    } else {
        ok = cli_input_read(v, &text, err) &&
             cli_input_encode(v, p->model.tokenizer, &text, &p->ids, err);
    }
    base_buffer_free(&text);
    if (!ok) return false;
    if (p->ids.count < p->chunk) p->chunk = (uint32_t)p->ids.count;
    if (p->chunk < 4)
        return base_fail(err, BASE_USAGE, "the text has %zu tokens; it takes 4 at least",
                         p->ids.count);
    p->n_chunks = p->ids.count / p->chunk;
    const bool bos = !v->no_bos && !v->kl && text_adds_bos(p->model.tokenizer);
    for (uint64_t i = 0; bos && i < p->n_chunks; i++)
        p->ids.id[i * p->chunk] = text_token_bos(p->model.tokenizer);
    return true;
}

static bool open_all(struct perplexity *p, struct base_error *err)
{
    const struct cli_values *v = p->values;
    if (!v->no_sandbox) cli_sandbox_limit(v->save_logits);
    if (!cli_model_open_file(&p->model, v, err) || !cli_model_open_tokenizer(&p->model, err) ||
        !cli_model_open_weights(&p->model, v, err))
        return false;
    p->n_vocab = model_facts(p->model.model)->n_vocab;
    return read_ids(p, err) && cli_model_open_session(&p->model, v, 1, p->chunk, err);
}

bool cli_cmd_perplexity(const struct cli_values *values, struct base_error *err)
{
    if (values->save_logits && strcmp(values->save_logits, "-") == 0)
        return base_fail_at(err, BASE_USAGE, "--save-logits", -1,
                            "needs a file: standard output has the result");
    struct perplexity p = {.values = values};
    bool ok = open_all(&p, err);
    if (ok && values->verbose) cli_model_note(&p.model);
    ok = ok && eval_all(&p, err) && print(&p, err);
    free(p.score);
    cli_saved_close(&p.saved);
    text_ids_free(&p.ids);
    cli_model_close(&p.model);
    return ok;
}
