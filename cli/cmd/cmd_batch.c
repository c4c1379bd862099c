/* cli/cmd/cmd_batch.c: `infer batch`: generates many texts together, one line of input and one line
 * of output each. */
#include "base/clock.h"
#include "cli/batch/batch_input.h"
#include "cli/batch/batch_output.h"
#include "cli/batch/batch_text.h"
#include "cli/batch/shard.h"
#include "cli/cache/prefix_cache.h"
#include "cli/draft_model.h"
#include "cli/gpu_layers.h"
#include "cli/model_hash.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/whole_text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STANDARD_SLOTS = 16,
    SHARED_STORED = 4, /* number of prefixes to store in the prefix cache */
    KEPT = 2,          /* number of prefixes kept in addition to the texts */
    AHEAD = 64,        /* lines read in advance without a slot, and 4 more for each slot: */
    AHEAD_OF_SLOT = 4, /* a prefix can be shared only among lines that were read */
    AHEAD_BYTES = CLI_BATCH_LINE_MAX
};

/* A line whose answer has not been written. */
struct batch_line {
    struct batch *batch;
    struct batch_line *before, *next; /* neighbours in the order of the input */
    size_t size;                      /* bytes of the line */
    uint64_t number, hash;            /* of the line */
    struct cli_batch_text text;
    struct base_buffer answer; /* the complete line, once it is ready */
    bool done;
};

struct batch {
    struct cli_values *values; /* with texts in place of files of constraints */
    struct base_keep keep;     /* these texts */
    struct cli_model model;
    struct cli_batch_context context;
    struct generate_scheduler *scheduler;
    struct cli_draft draft;
    struct cli_prefix_cache *cache; /* NULL: none */
    struct cli_batch_input input;
    struct cli_batch_output output;
    struct base_output file; /* of -o */
    struct cli_shard shard;
    struct batch_line *first, *last;
    uint64_t n_open, n_open_bytes; /* lines without an answer */
    uint64_t n_part;               /* lines of this part, including those with an earlier answer */
    uint64_t n_answers, n_failed;  /* in this run */
    uint64_t n_unanswered;         /* of n_failed: records without an end */
    uint64_t n_read, n_generated;  /* tokens */
    double start;                  /* base_seconds() */
};

/* ---- Options of the command ---- */

static bool read_source(struct batch *b, const char **text, struct base_error *err)
{
    BASE_LOCAL_BUFFER source = BASE_BUFFER_INIT;
    if (cli_source_read(*text, &source, err))
        *text = base_keep_text(&b->keep, source.data, source.size, err);
    return *text && !err->code;
}

/* Checks that outputs are no inputs, before texts replace the names of files. */
static bool check_outputs(const struct cli_values *v, struct base_error *err)
{
    return (!v->resume || cli_output_check(v->resume, v, NULL, err)) &&
           (!v->output || cli_output_check(v->output, v, NULL, err));
}

/* Reads a grammar or schema into memory, before the sandbox forbids opening files, and compiles it,
 * so that an error names the file. The file is read once: it may be a pipe. */
static bool own_constraint(struct batch *b, struct base_error *err)
{
    struct generate_constraint_source *s = &b->values->request.generate.constraint;
    const char **text = s->grammar ? &s->grammar : &s->schema, *file = *text;
    struct cli_generation g = {.no_notes = true, .texts_only = file && access(file, R_OK) == 0};
    const bool is_file = g.texts_only;
    if (is_file && !read_source(b, text, err)) return false;
    const bool ok = cli_generation_prepare(&g, &b->values->request, false, err);
    cli_generation_close(&g);
    if (!ok && is_file &&
        (strcmp(err->item, "--grammar") == 0 || strcmp(err->item, "--json-schema") == 0)) {
        err->item[0] = '\0';
        base_error_set_file(err, file);
    }
    return ok;
}

static bool open_streams(struct batch *b, struct base_error *err)
{
    const struct cli_values *v = b->values;
    const bool plain = cli_batch_is_plain(v);
    char model[BASE_SHA256_HEX] = "";
    if (v->resume) cli_model_hash_pieces(b->model.file, false, model);
    if (plain && v->unordered)
        return base_fail_at(err, BASE_USAGE, "--unordered", -1,
                            "plain answers do not say which line they are of: add --json");
    if (plain && v->request.generate.logprobs >= 0)
        return base_fail_at(err, BASE_USAGE, "--logprobs", -1,
                            "plain answers hold no probabilities: add --json");
    if (!cli_shard_find(v, &b->shard, err) ||
        !cli_batch_input_open(&b->input, v->file, "batch", err) ||
        (v->resume && !cli_output_check(v->resume, v, b->model.file, err)) ||
        !cli_batch_output_open(&b->output, v->resume, plain, plain && v->csv, model, err) ||
        (v->output && !cli_output_open(&b->file, v->output, v, b->model.file, err)))
        return false;
    if (v->output) b->output.file = &b->file;
    return true;
}

/* ---- The session ---- */

static bool is_diffusion(const struct batch *b)
{
    return model_facts(b->model.model)->diffusion;
}

static struct generate_model model_of(const struct batch *b)
{
    return (struct generate_model){
        .model = b->model.model, .tokenizer = b->model.tokenizer, .session = b->model.session};
}

static bool open_scheduler(struct batch *b, struct base_error *err)
{
    const bool alone = is_diffusion(b);
    uint32_t n_slots;
    if (!cli_model_open_slots(&b->model, b->values, (uint32_t)b->values->ctx_size,
                              alone ? 1 : STANDARD_SLOTS, alone ? 0 : KEPT, &n_slots, err) ||
        !cli_draft_open(&b->draft, b->values, &b->model, err))
        return false;
    const struct generate_model model = model_of(b);
    const struct generate_scheduler_options o = {.n_slots = n_slots,
                                                 .n_step = (uint32_t)b->values->batch_size,
                                                 .store = cli_prefix_store(b->cache),
                                                 .draft = b->draft.draft};
    b->scheduler = b->context.profiles.scheduler = generate_scheduler_new(&model, &o, err);
    if (b->scheduler && b->values->verbose) {
        cli_model_note(&b->model);
        cli_note("%u texts together; part %llu of %llu%s%s", n_slots,
                 (unsigned long long)b->shard.index + 1, (unsigned long long)b->shard.count,
                 b->shard.source ? " by " : "", b->shard.source ? b->shard.source : "");
    }
    return b->scheduler != NULL;
}

static bool open_all(struct batch *b, struct cli_values *values, struct base_error *err)
{
    b->values = values;
    b->model.whole = true;
    if ((values->lines || values->csv) && !values->each) values->each = "{}";
    b->input.csv = values->csv;
    if (!cli_prefix_check(values, err) || !check_outputs(values, err) || !own_constraint(b, err) ||
        !cli_model_open_file(&b->model, b->values, err) || !open_streams(b, err) ||
        !cli_model_open_tokenizer(&b->model, err))
        return false;
    b->cache = cli_prefix_open(b->values, SHARED_STORED);
    if (!values->no_sandbox)
        cli_sandbox_limit(values->output ? values->output : cli_prefix_file(b->cache));
    if (!cli_model_open_weights(&b->model, b->values, err)) return false;
    cli_prefix_choose(b->cache, &b->model);
    if (!cli_batch_context_open(&b->context, b->values, &b->model, err) || !open_scheduler(b, err))
        return false;
    if (!values->no_sandbox)
        cli_sandbox_close((b->file.unfinished ? CLI_SANDBOX_RENAME : cli_prefix_allows(b->cache)) |
                          cli_gpu_allows(values));
    return true;
}

/* ---- Answers ---- */

static void free_line(struct batch *b, struct batch_line *l)
{
    *(l->before ? &l->before->next : &b->first) = l->next;
    *(l->next ? &l->next->before : &b->last) = l->before;
    b->n_open--;
    b->n_open_bytes -= l->size;
    cli_batch_text_close(&l->text);
    base_buffer_free(&l->answer);
    free(l);
}

static bool write_answer(struct batch *b, struct batch_line *l, struct base_error *err)
{
    const bool ok = cli_batch_output_write(&b->output, l->number, l->hash, &l->answer, err);
    b->n_answers += ok;
    free_line(b, l);
    return ok;
}

/* Called when an answer is complete: writes the answers that can be written in order. */
static bool finish(struct batch_line *l, struct base_error *err)
{
    struct batch *b = l->batch;
    cli_batch_text_close(&l->text);
    l->done = true;
    cli_progress_add(1);
    if (b->values->unordered) return write_answer(b, l, err);
    while (b->first && b->first->done)
        if (!write_answer(b, b->first, err)) return false;
    return true;
}

static bool fail_line(struct batch_line *l, const struct base_error *failed, struct base_error *err)
{
    l->batch->n_failed++;
    cli_batch_text_fail(&l->text, failed, &l->answer);
    return finish(l, err);
}

static bool take(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct batch_line *l = user;
    return cli_batch_text_take(&l->text, piece, err);
}

static bool end(void *user, const struct generate_outcome *outcome, const struct base_error *failed,
                struct base_error *err)
{
    struct batch_line *l = user;
    bool cut = false;
    if (failed) return fail_line(l, failed, err);
    if (outcome->ending == GENERATE_END_INTERRUPTED)
        return base_fail(err, BASE_INTERRUPTED, "interrupted");
    l->batch->n_read += outcome->n_read;
    l->batch->n_generated += outcome->n_generated;
    if (!cli_batch_text_end(&l->text, outcome, &cut, &l->answer, err)) return false;
    l->batch->n_failed += cut;
    return finish(l, err);
}

/* Writes the answer of a diffusion model, which evaluates one text at a time. */
static bool write_alone(struct batch_line *l, struct base_error *err)
{
    const struct generate_job *job = &l->text.job;
    const struct generate_model model = model_of(l->batch);
    struct base_error own = BASE_ERROR_INIT;
    struct generate_outcome outcome;
    struct generate_request *r = generate_request_new(job->options, &model, 0, &own);
    const struct cli_diffusion d = {l->batch->values, &l->batch->model, job->options, r,
                                    &job->prompt};
    const bool ok = r && generate_request_begin(r, &job->prompt, &own) &&
                    cli_diffusion_run(&d, take, l, &outcome, &own);
    generate_request_free(r);
    return end(l, ok ? &outcome : NULL, ok ? NULL : &own, err);
}

/* ---- Reading lines ---- */

/* Returns a hash of the text of a line and of --each, which makes its prompt. */
static uint64_t hash_of(const struct batch *b, const char *line, size_t size)
{
    char hex[BASE_SHA256_HEX];
    struct base_sha256 h;
    base_sha256_init(&h);
    if (b->values->each) base_sha256_add(&h, b->values->each, strlen(b->values->each) + 1);
    base_sha256_add(&h, line, size);
    base_sha256_hex(&h, hex);
    hex[16] = '\0';
    return strtoull(hex, NULL, 16);
}

static struct batch_line *new_line(struct batch *b, size_t size, uint64_t hash,
                                   struct base_error *err)
{
    struct batch_line *l = calloc(1, sizeof *l);
    if (!l) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for another line"));
    l->batch = b;
    l->size = size;
    l->number = b->input.number;
    l->hash = hash;
    l->before = b->last;
    *(b->last ? &b->last->next : &b->first) = l;
    b->last = l;
    b->n_open++;
    b->n_open_bytes += size;
    return l;
}

static bool begin_table(struct batch *b, const char *line, size_t size, struct base_error *err)
{
    BASE_LOCAL_BUFFER header = BASE_BUFFER_INIT;
    bool ok = cli_batch_context_begin(&b->context, line, size, &header, err);
    if (ok && header.size > 0) ok = cli_batch_output_begin(&b->output, &header, err);
    return ok;
}

/* Returns whether a blank line is one of the texts: a plain line, or a record of one column. */
static bool blanks_count(const struct batch *b)
{
    return b->values->each && (!b->values->csv || b->context.csv.n_columns == 1);
}

static bool take_line(struct batch *b, const char *line, size_t size, struct base_error *err)
{
    const uint64_t number = b->input.number;
    if (!blanks_count(b) && !b->input.too_long && cli_batch_is_blank(line, size)) return true;
    const bool is_header = b->values->csv && !b->context.csv.name;
    const bool is_part = cli_shard_has(&b->shard, number);
    if (is_header || !is_part) cli_progress_skip(1);
    if (is_header) return begin_table(b, line, size, err);
    if (!is_part) return true;
    if (b->values->csv && b->input.unfinished && b->input.quotes == CLI_QUOTES_OPEN) {
        cli_note("record %llu: the quotes that open in it never close", (unsigned long long)number);
        b->n_failed++;
        b->n_unanswered++;
        return true;
    }
    const uint64_t hash = b->output.path ? hash_of(b, line, size) : 0;
    bool has;
    if (!cli_batch_output_has(&b->output, number, b->n_part++, hash, &has, err)) return false;
    if (has) {
        cli_progress_skip(1);
        return true;
    }
    struct base_error wrong = BASE_ERROR_INIT;
    struct batch_line *l = new_line(b, size, hash, err);
    if (!l) return false;
    if (b->input.too_long) {
        l->text = (struct cli_batch_text){.context = &b->context, .number = number};
        base_fail(&wrong, BASE_TOO_LONG, "the line is longer than %d MiB",
                  CLI_BATCH_LINE_MAX >> 20);
        return fail_line(l, &wrong, err);
    }
    if (!cli_batch_text_open(&l->text, &b->context, number, line, size, &wrong))
        return wrong.code == BASE_INTERRUPTED ? base_goes_on(err) : fail_line(l, &wrong, err);
    if (is_diffusion(b)) return write_alone(l, err);
    l->text.job.sink = take;
    l->text.job.end = end;
    l->text.job.user = l;
    generate_scheduler_add(b->scheduler, &l->text.job);
    return true;
}

static bool is_idle(const struct batch *b)
{
    return generate_scheduler_running(b->scheduler) + generate_scheduler_waiting(b->scheduler) == 0;
}

/* Reads available lines as long as there is room for them; waits if there is no other work. */
static bool take_lines(struct batch *b, bool *ended, struct base_error *err)
{
    const uint64_t most = AHEAD + AHEAD_OF_SLOT * (uint64_t)model_session_n_seq(b->model.session);
    while (!*ended && b->n_open < most && b->n_open_bytes < AHEAD_BYTES) {
        const char *line;
        size_t size;
        switch (cli_batch_input_next(&b->input, is_idle(b), &line, &size, err)) {
        case CLI_BATCH_FAILED:
            return false;
        case CLI_BATCH_LATER:
            return true;
        case CLI_BATCH_END:
            *ended = true;
            break;
        case CLI_BATCH_LINE:
            if (!take_line(b, line, size, err)) return false;
        }
    }
    return true;
}

/* ---- The command ---- */

static void begin_progress(const struct batch *b)
{
    const bool shows = isatty(STDERR_FILENO); /* counting reads all of the input */
    cli_progress_begin("answering", "lines",
                       shows ? cli_batch_input_count(&b->input, blanks_count(b)) : 0);
}

static void note_progress(const struct batch *b)
{
    const double seconds = base_seconds() - b->start;
    char failed[32] = "";
    if (b->n_failed)
        snprintf(failed, sizeof failed, "%llu failed, ", (unsigned long long)b->n_failed);
    cli_progress_note("%s%.1f tokens/s", failed,
                      seconds > 0 ? (double)b->n_generated / seconds : 0);
}

static bool answer(struct batch *b, struct base_error *err)
{
    bool ended = false;
    b->start = base_seconds();
    begin_progress(b);
    while (!ended || !is_idle(b)) {
        if (!take_lines(b, &ended, err) || !generate_scheduler_step(b->scheduler, err))
            return false;
        note_progress(b);
    }
    return true;
}

static bool report(const struct batch *b, struct base_error *err)
{
    const double seconds = base_seconds() - b->start;
    const uint64_t n_failed = b->n_failed + b->output.n_failed;
    if (b->values->verbose)
        cli_note("%llu answers in %.1f s; %llu tokens read, %llu generated, %.1f tokens/s",
                 (unsigned long long)b->n_answers, seconds, (unsigned long long)b->n_read,
                 (unsigned long long)b->n_generated,
                 seconds > 0 ? (double)b->n_generated / seconds : 0);
    if (b->values->verbose) cli_draft_note(&b->draft);
    if (b->context.n_empty)
        cli_note("empty answers: %llu of %llu; line %llu: %s",
                 (unsigned long long)b->context.n_empty, (unsigned long long)b->n_answers,
                 (unsigned long long)b->context.empty_line, b->context.empty_why);
    if (n_failed == 0) return true;
    return base_fail(err, BASE_FAILED, "%llu of %llu lines failed%s", (unsigned long long)n_failed,
                     (unsigned long long)(b->n_answers + b->n_unanswered + b->output.n_held),
                     cli_batch_is_plain(b->values) ? "" : ": their answers have an \"error\"");
}

static void close_all(struct batch *b)
{
    while (b->first) free_line(b, b->first);
    generate_scheduler_free(b->scheduler);
    cli_draft_close(&b->draft);
    cli_prefix_close(b->cache);
    cli_batch_context_close(&b->context);
    cli_batch_input_free(&b->input);
    cli_batch_output_close(&b->output);
    if (b->input.fd > STDERR_FILENO) close(b->input.fd);
    cli_model_close(&b->model);
    base_keep_free(&b->keep);
    free(b);
}

static bool cmd_batch(struct cli_values *values, struct base_error *err)
{
    struct batch *b = calloc(1, sizeof *b);
    if (!b) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    base_output_init(&b->file);
    bool ok = open_all(b, values, err);
    if (ok) {
        ok = answer(b, err);
        cli_progress_end();
    }
    ok = cli_output_close(&b->file, ok, err); /* also with lines that failed */
    ok = ok && report(b, err);
    close_all(b);
    return ok;
}

const struct cli_command cli_command_batch = {
    .name = "batch",
    .usage = "infer batch [-m MODEL] [options] < LINES.jsonl",
    .effect = "answer many texts together: JSON lines in, JSON lines out",
    .about = "Each line is an object with a `prompt` or `messages` and options of its own, or\n"
             "with --lines, --each or --csv a text. Answers are those of `infer run`.",
    .positional = "file",
    .takes = {"FILE"},
    .run = cmd_batch,
};
