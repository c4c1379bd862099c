/* cli/cmd/cmd_logits.c: `infer logits`: the raw logits of every position, or the best ids of the
 * last one. */
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct logits_file {
    struct base_output file;
    uint32_t n_vocab;
};

/* Writes rows as they are: float32 is little-endian on every machine that the program supports. */
static bool write_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                       struct base_error *err)
{
    struct logits_file *t = user;
    for (uint64_t i = 0; i < rows * t->n_vocab; i++)
        if (isnan(logits[i]))
            return base_fail(err, BASE_FAILED, "position %llu has logits that are not numbers",
                             (unsigned long long)(first + i / t->n_vocab));
    return base_output_write(&t->file, logits, rows * t->n_vocab * sizeof *logits, err);
}

static bool write_all(struct cli_model *m, const struct cli_values *v, const struct text_ids *ids,
                      struct base_error *err)
{
    struct logits_file t = {.n_vocab = model_facts(m->model)->n_vocab};
    if (strcmp(v->output, "-") == 0 && cli_stdout_is_terminal())
        return base_fail_at(err, BASE_USAGE, "--output", -1,
                            "standard output is a terminal, and the logits are binary: name a "
                            "file, or send them into a pipe");
    bool ok = cli_output_open(&t.file, v->output, v, m->file, err);
    if (ok && !v->no_sandbox)
        cli_sandbox_close((t.file.unfinished ? CLI_SANDBOX_RENAME : 0) | cli_gpu_allows(v));
    model_seq_adapt_to(m->session, 0, NULL, ids->id, ids->count);
    ok = ok && model_eval(m->session, ids->id, ids->count, MODEL_LOGITS_ALL, write_rows, &t, err);
    return cli_output_close(&t.file, ok, err);
}

/* Writes the best n ids, by descending logit, then ascending id, without NaN. Returns their
 * number. */
static uint32_t best_ids(const float *logits, uint32_t n_vocab, uint32_t n, int32_t *best)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < n_vocab; id++) {
        if (isnan(logits[id]) || (count == n && !(logits[id] > logits[best[n - 1]]))) continue;
        uint32_t at = count < n ? count++ : n - 1;
        for (; at > 0 && logits[id] > logits[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = (int32_t)id;
    }
    return count;
}

static double log_sum_exp(const float *logits, uint32_t n_vocab, double highest)
{
    double sum = 0;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (!isnan(logits[i])) sum += exp((double)logits[i] - highest);
    return highest + log(sum);
}

static bool print_best(struct cli_model *m, const struct cli_values *v, const struct text_ids *ids,
                       struct base_error *err)
{
    const uint32_t n_vocab = model_facts(m->model)->n_vocab;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT, text = BASE_BUFFER_INIT;
    int32_t *best = calloc((size_t)v->top, sizeof *best);
    bool ok = best != NULL || base_fail(err, BASE_NO_MEMORY, "not enough memory");
    if (!v->no_sandbox) cli_sandbox_close(cli_gpu_allows(v));
    model_seq_adapt_to(m->session, 0, NULL, ids->id, ids->count);
    ok = ok && model_eval(m->session, ids->id, ids->count, MODEL_LOGITS_LAST, NULL, NULL, err);
    if (!ok) goto done;

    const float *logits = model_last_logits(m->session);
    uint32_t count = best_ids(logits, n_vocab, (uint32_t)v->top, best);
    if (count == 0) {
        ok = base_fail(err, BASE_FAILED, "every logit is NaN");
        goto done;
    }
    double total = log_sum_exp(logits, n_vocab, (double)logits[best[0]]);
    base_buffer_add_text(&out, "{\"model\":");
    base_buffer_add_json(&out, m->name.data, m->name.size);
    base_buffer_add_format(&out, ",\"ids\":%zu,\"vocabulary\":%u,\"top\":[", ids->count, n_vocab);
    for (uint32_t i = 0; i < count; i++) {
        base_buffer_clear(&text);
        base_buffer_add_format(&out, "%s\n{\"id\":%d,\"text\":", i ? "," : "", best[i]);
        if (m->tokenizer) {
            text_token_bytes(m->tokenizer, best[i], true, &text);
            out.failed |= text.failed;
            base_buffer_add_json(&out, text.size ? text.data : "", text.size);
        } else {
            base_buffer_add_text(&out, "null");
        }
        base_buffer_add_format(&out, ",\"logit\":%.9g,\"logprob\":%.6f}", (double)logits[best[i]],
                               (double)logits[best[i]] - total);
    }
    base_buffer_add_text(&out, "\n]}\n");
    cli_progress_end();
    ok = cli_write_buffer(&out, err);

done:
    free(best);
    return ok;
}

static bool read_ids(const struct cli_model *m, const struct cli_values *v,
                     const struct base_buffer *text, struct text_ids *ids, struct base_error *err)
{
    bool ok = v->ids ? cli_ids_parse(text->data ? text->data : "", text->size,
                                     model_facts(m->model)->n_vocab, ids, err)
                     : cli_input_encode(&v->request, m->tokenizer, text, ids, err) &&
                           cli_model_end_source(m, ids, err);
    if (ok && ids->count == 0)
        ok = base_fail(err, BASE_USAGE, "no tokens: give --ids \"1 2 3\" or -p TEXT");
    return ok;
}

static bool open_session(struct cli_model *m, const struct cli_values *v, uint64_t n_ids,
                         struct base_error *err)
{
    uint32_t n_ctx = (uint32_t)v->ctx_size;
    if (n_ctx == 0) n_ctx = cli_model_pick_ctx(m, n_ids);
    if (n_ids > n_ctx)
        return base_fail(err, BASE_TOO_LONG, "%llu tokens do not fit the context of %u",
                         (unsigned long long)n_ids, n_ctx);
    return cli_model_open_session(m, v, 1, n_ctx, err);
}

static bool cmd_logits(struct cli_values *values, struct base_error *err)
{
    struct cli_model m = {.whole = true};
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT;
    bool ok = true;
    if (values->ids)
        base_buffer_add_text(&text, values->ids);
    else
        ok = cli_input_read(values, &text, err);
    ok = ok && cli_buffer_check(&text, err) && cli_model_open_file(&m, values, err);
    /* With --ids no vocabulary is needed, except for the text of the best ids. */
    const bool needs_text = !values->ids || (!values->output && ok && cli_model_has_vocabulary(&m));
    if (!values->no_sandbox) cli_sandbox_limit(values->output);
    ok = ok && (!needs_text || cli_model_open_tokenizer(&m, err)) &&
         cli_model_open_weights(&m, values, err) && read_ids(&m, values, &text, &ids, err) &&
         open_session(&m, values, ids.count, err);
    if (ok && values->verbose) cli_model_note(&m);
    if (ok) {
        cli_model_progress_tokens(&m, "evaluating", ids.count);
        ok = values->output ? write_all(&m, values, &ids, err) : print_best(&m, values, &ids, err);
        cli_progress_end();
    }
    cli_model_close(&m);
    return ok;
}

const struct cli_command cli_command_logits = {
    .name = "logits",
    .usage = "infer logits [-m MODEL] --ids \"1 2 3\" [-o FILE] [options]",
    .effect = "write the logits of every position, or the best of the last",
    .about = "With -o writes little-endian float32 [ids][vocabulary]. Without -o prints the\n"
             "best tokens of the last position as JSON.",
    .positional = "prompt",
    .run = cmd_logits,
};
