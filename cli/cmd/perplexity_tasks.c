/* cli/cmd/perplexity_tasks.c: multiple-choice tasks. See cli/cmd/perplexity_tasks.h. */
#include "cli/cmd/perplexity_tasks.h"
#include "cli/cmd/task_files.h"
#include "cli/input.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "generate/score.h"
#include "generate/statistics.h"
#include <math.h>
#include <stdlib.h>

enum {
    SEQUENCES = 48, /* number of sequences in the session */
    TASKS_AT_ONCE = 64,
    LEAST_BEHIND = 3 /* Winogrande: with no more tokens after it, the choice counts too */
};

struct choice {
    struct text_ids ids;
    size_t n_base; /* Winogrande: number of tokens up to the end of the choice */
};

struct tasks {
    const struct cli_values *values;
    struct cli_model *model;
    struct base_buffer file;
    struct cli_task_list list;
    struct choice *choice;          /* [list.n_choices] */
    struct generate_score_row *row; /* [list.n_choices] */
    double *logprob;                /* log-probabilities of all rows */
    size_t n_logprobs;
    uint32_t longest;
    uint64_t n_done, n_right, n_choices; /* n_choices: sum over the completed tasks */
};

bool cli_tasks_asked(const struct cli_values *v)
{
    return v->hellaswag || v->winogrande || v->multiple_choice;
}

/* ---- Tokens ---- */

static bool encode(const struct tasks *t, const struct cli_task *task, size_t k, bool whole,
                   struct text_ids *ids, struct base_error *err)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    cli_task_add_text(&t->list, task, k, whole, &text);
    const bool ok = cli_buffer_check(&text, err) &&
                    cli_input_encode(t->values, t->model->tokenizer, &text, ids, err);
    base_buffer_free(&text);
    return ok;
}

static bool encode_task(struct tasks *t, const struct cli_task *task, struct base_error *err)
{
    for (size_t k = 0; k < task->n; k++) {
        struct choice *c = &t->choice[task->first + k];
        struct text_ids base = TEXT_IDS_INIT;
        bool ok = base_goes_on(err) && encode(t, task, k, true, &c->ids, err);
        if (ok && t->list.form == CLI_TASKS_CSV) ok = encode(t, task, k, false, &base, err);
        c->n_base = base.count;
        text_ids_free(&base);
        if (!ok) return false;
        if (c->ids.count > t->longest) t->longest = (uint32_t)c->ids.count;
    }
    return true;
}

/* Returns the number of tokens with which all choices of a task begin, which is less than the
 * length of any choice. */
static size_t common_of(const struct choice *c, size_t n)
{
    size_t common = c[0].ids.count;
    for (size_t k = 0; k < n; k++) {
        size_t i = 0;
        while (i < common && i + 1 < c[k].ids.count && c[k].ids.id[i] == c[0].ids.id[i]) i++;
        common = i;
    }
    return common;
}

/* Sets the range of tokens that count in each choice. */
static bool make_rows(struct tasks *t, const struct cli_task *task, struct base_error *err)
{
    const struct choice *c = &t->choice[task->first];
    const size_t common = common_of(c, task->n);
    bool behind = t->list.form == CLI_TASKS_CSV;
    for (size_t k = 0; k < task->n; k++) behind &= c[k].ids.count - common > LEAST_BEHIND;
    for (size_t k = 0; k < task->n; k++) {
        struct generate_score_row *r = &t->row[task->first + k];
        const size_t n = c[k].ids.count;
        const size_t base = behind && c[k].n_base < n ? c[k].n_base : common;
        const bool drops = t->list.form == CLI_TASKS_CSV && n - base > 1;
        *r = (struct generate_score_row){.ids = c[k].ids.id, .n = n - drops};
        r->from = base > 0 ? base : 1; /* the first token has no prediction */
        if (r->from >= r->n)
            return base_fail(err, BASE_USAGE, "a choice of task %zu has no token that counts",
                             (size_t)(task - t->list.task) + 1);
        t->n_logprobs += r->n - r->from;
    }
    return true;
}

static bool prepare(struct tasks *t, struct base_error *err)
{
    t->choice = calloc(t->list.n_choices, sizeof *t->choice);
    t->row = calloc(t->list.n_choices, sizeof *t->row);
    if (!t->choice || !t->row) return base_fail(err, BASE_NO_MEMORY, "not enough memory for tasks");
    for (size_t i = 0; i < t->list.n; i++)
        if (!encode_task(t, &t->list.task[i], err) || !make_rows(t, &t->list.task[i], err))
            return false;
    t->logprob = calloc(t->n_logprobs, sizeof *t->logprob);
    if (!t->logprob) return base_fail(err, BASE_NO_MEMORY, "not enough memory for tasks");
    size_t at = 0;
    for (size_t i = 0; i < t->list.n; i++)
        for (size_t k = 0; k < t->list.task[i].n; k++) {
            struct generate_score_row *r = &t->row[t->list.task[i].first + k];
            r->logprob = t->logprob + at;
            at += r->n - r->from;
        }
    return true;
}

/* ---- Evaluating ---- */

static double mean_of(const struct generate_score_row *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n - r->from; i++) sum += r->logprob[i];
    return sum / (double)(r->n - r->from);
}

static bool judge_task(struct tasks *t, const struct cli_task *task, struct base_error *err)
{
    size_t best = 0;
    double highest = 0;
    for (size_t k = 0; k < task->n; k++) {
        const double mean = mean_of(&t->row[task->first + k]);
        if (!isfinite(mean))
            return base_fail(err, BASE_FAILED, "the model gave logits that are not numbers");
        if (k == 0 || mean > highest) {
            best = k;
            highest = mean;
        }
    }
    t->n_done++;
    t->n_choices += task->n;
    t->n_right += t->list.choice[task->first + best].right;
    cli_progress_note("%.1f %% right", 100 * (double)t->n_right / (double)t->n_done);
    if (t->values->verbose)
        cli_note("task %llu: choice %zu (%.6f), %s; %.4f %% so far", (unsigned long long)t->n_done,
                 best + 1, highest, t->list.choice[task->first + best].right ? "right" : "wrong",
                 100 * (double)t->n_right / (double)t->n_done);
    return true;
}

static bool eval_some(struct tasks *t, struct generate_scorer *scorer, size_t first, size_t n,
                      struct base_error *err)
{
    struct generate_score_group group[TASKS_AT_ONCE];
    const struct cli_task *task = t->list.task + first;
    for (size_t i = 0; i < n; i++)
        group[i] = (struct generate_score_group){.row = t->row + task[i].first, .n = task[i].n};
    if (!generate_scorer_run(scorer, group, n, err)) return false;
    for (size_t i = 0; i < n; i++)
        if (!judge_task(t, &task[i], err)) return false;
    return true;
}

static uint64_t groups_of(const void *scorer)
{
    return generate_scorer_counts(scorer).n_groups;
}

static bool eval_all(struct tasks *t, struct base_error *err)
{
    struct cli_model *m = t->model;
    struct generate_scorer *scorer =
        generate_scorer_new(m->engine, m->session, model_facts(m->model)->n_vocab, err);
    bool ok = scorer != NULL;
    cli_progress_begin("evaluating", "tasks", t->list.n);
    if (ok) cli_progress_watch(groups_of, scorer, 0);
    for (size_t i = 0, n; ok && i < t->list.n; i += n) {
        n = t->list.n - i < TASKS_AT_ONCE ? t->list.n - i : TASKS_AT_ONCE;
        ok = eval_some(t, scorer, i, n, err);
    }
    cli_progress_end();
    generate_scorer_free(scorer);
    return ok;
}

/* ---- The result ---- */

static bool print(const struct tasks *t, struct base_error *err)
{
    const double share = (double)t->n_right / (double)t->n_done;
    const double error = generate_share_error(share, t->n_done);
    const double chance = (double)t->n_done / (double)t->n_choices;
    struct base_buffer out = BASE_BUFFER_INIT;
    double low, high;
    generate_share_interval(share, t->n_done, &low, &high);
    if (t->values->json) {
        base_buffer_add_text(&out, "{\"model\":");
        base_buffer_add_json(&out, t->model->name.data, t->model->name.size);
        base_buffer_add_format(&out,
                               ",\"tasks\":%llu,\"right\":%llu,\"accuracy\":%.6f,"
                               "\"standard_error\":%.6f,\"interval\":[%.6f,%.6f],"
                               "\"chance\":%.6f}\n",
                               (unsigned long long)t->n_done, (unsigned long long)t->n_right, share,
                               error, low, high, chance);
    } else {
        base_buffer_add_format(&out,
                               "accuracy %.4f %% +/- %.4f %% (%llu of %llu tasks)\n"
                               "95 %% interval %.4f %% to %.4f %%, chance %.4f %%\n",
                               100 * share, 100 * error, (unsigned long long)t->n_right,
                               (unsigned long long)t->n_done, 100 * low, 100 * high, 100 * chance);
    }
    const bool ok = cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

static bool read_tasks(struct tasks *t, struct base_error *err)
{
    const struct cli_values *v = t->values;
    const enum cli_task_form form = v->hellaswag    ? CLI_TASKS_LINES
                                    : v->winogrande ? CLI_TASKS_CSV
                                                    : CLI_TASKS_BINARY;
    if (!cli_input_read(v, &t->file, err)) return false;
    if (!cli_task_list_read(&t->list, form, &t->file, err)) {
        if (v->file) base_error_set_file(err, v->file);
        return false;
    }
    if (t->list.n_left_out)
        cli_note("%zu lines are not tasks and were skipped; the first is line %zu",
                 t->list.n_left_out, t->list.first_left_out);
    return cli_task_list_select(&t->list, (size_t)v->n_tasks, err);
}

bool cli_tasks_run(const struct cli_values *values, struct cli_model *model, struct base_error *err)
{
    struct tasks t = {.values = values, .model = model};
    bool ok = read_tasks(&t, err) && prepare(&t, err) &&
              cli_model_open_session(model, values, SEQUENCES, t.longest, err);
    if (ok && values->verbose) cli_model_note(model);
    if (ok && !values->no_sandbox) cli_sandbox_close(0);
    ok = ok && eval_all(&t, err) && print(&t, err);
    for (size_t i = 0; t.choice && i < t.list.n_choices; i++) text_ids_free(&t.choice[i].ids);
    free(t.choice);
    free(t.row);
    free(t.logprob);
    cli_task_list_free(&t.list);
    base_buffer_free(&t.file);
    return ok;
}
