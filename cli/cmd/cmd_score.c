/* cli/cmd/cmd_score.c: `infer score`: computes the probabilities of given continuations of a
 * prompt.
 *
 * The prompt of a line is tokenized as by `run`, and each continuation separately, as continuing
 * text; its tokens follow those of the prompt. Whole texts (`texts`) are tokenized as by `run`; the
 * ids with which all begin are the prompt. The lines that are available are evaluated together
 * (generate/score.h) and answered in their order. */
#include "chat/messages.h"
#include "cli/batch/batch_input.h"
#include "cli/chat/chat_files.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/out/heat.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "generate/score.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STANDARD_SLOTS = 32, LINES_AT_ONCE = 64, BYTES_AT_ONCE = 4 << 20 };

/* A prompt and its continuations. */
struct score_line {
    uint64_t number;                /* number of the line */
    json_t *line;                   /* the line; NULL: none */
    struct base_buffer id;          /* its id, as the line has it; empty: none */
    struct text_ids prompt;         /* the ids of the prompt */
    struct text_ids *ids;           /* [n]: the ids of the continuations */
    struct generate_score_row *row; /* [n] */
    struct base_buffer *text;       /* [n]: the continuations */
    double *logprob;                /* log-probabilities of all rows */
    size_t n;
    struct base_error failed; /* code 0: no error */
};

struct score {
    const struct cli_values *values;
    struct cli_model model;
    struct chat_template template; /* if the model has one */
    struct base_error no_template; /* the error if the model has none */
    struct generate_scorer *scorer;
    struct base_buffer each; /* --each, with escapes as bytes */
    struct cli_batch_input input;
    struct score_line held[LINES_AT_ONCE]; /* the latest lines, which have no answer yet */
    size_t n_held, n_bytes;
    uint64_t n_lines, n_failed;
    struct base_output svg; /* --svg */
};

/* ---- One prompt ---- */

static void free_line(struct score_line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->ids) text_ids_free(&l->ids[i]);
        if (l->text) base_buffer_free(&l->text[i]);
    }
    text_ids_free(&l->prompt);
    free(l->ids);
    free(l->row);
    free(l->text);
    free(l->logprob);
    json_decref(l->line);
    base_buffer_free(&l->id);
    *l = (struct score_line){0};
}

static bool make_parts(struct score_line *l, size_t n, struct base_error *err)
{
    l->ids = calloc(n, sizeof *l->ids);
    l->row = calloc(n, sizeof *l->row);
    l->text = calloc(n, sizeof *l->text);
    l->n = n;
    return (l->ids && l->row && l->text) ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu continuations", n);
}

static bool check_length(const struct score *s, const struct score_line *l, size_t i,
                         struct base_error *err)
{
    const uint32_t n_ctx = model_session_n_ctx(s->model.session);
    const size_t n = l->prompt.count + l->ids[i].count;
    return n - 1 <= n_ctx ||
           base_fail(err, BASE_TOO_LONG,
                     "the prompt and continuation %zu have %zu tokens and the context holds "
                     "%u: shorten it or raise --ctx-size",
                     i + 1, n, n_ctx);
}

/* Encodes continuation i as a text that follows the prompt. */
static bool encode_continuation(const struct score *s, struct score_line *l, size_t i,
                                struct base_error *err)
{
    const struct cli_values *v = s->values;
    const unsigned flags = TEXT_CONTINUES | (v->request.no_special ? 0 : TEXT_PARSE_SPECIAL);
    if (!cli_encode(&v->request, s->model.tokenizer, &l->text[i], NULL, flags, &l->ids[i], err))
        return false;
    if (l->ids[i].count == 0) return base_fail(err, BASE_USAGE, "continuation %zu is empty", i + 1);
    return check_length(s, l, i, err);
}

/* --joined: encodes the prompt and continuation i as one text; its tokens after the `n_own` first
 * ones, as many as the prompt alone has, are the continuation's. */
static bool encode_joined(const struct score *s, struct score_line *l, size_t i,
                          const struct base_buffer *prompt, size_t n_own, struct base_error *err)
{
    struct base_buffer whole = BASE_BUFFER_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    base_buffer_add(&whole, prompt->data, prompt->size);
    base_buffer_add(&whole, l->text[i].data, l->text[i].size);
    bool ok = cli_buffer_check(&whole, err) &&
              cli_input_encode(&s->values->request, s->model.tokenizer, &whole, &ids, err);
    for (size_t k = n_own; ok && k < ids.count; k++) ok = text_ids_add(&l->ids[i], ids.id[k], err);
    base_buffer_free(&whole);
    text_ids_free(&ids);
    if (ok && l->ids[i].count == 0)
        return base_fail(err, BASE_USAGE,
                         "continuation %zu adds no token to those of the prompt (--joined)", i + 1);
    return ok && check_length(s, l, i, err);
}

/* Makes the rows of the continuations, whose ids are set. */
static bool make_row_logprobs(struct score_line *l, struct base_error *err)
{
    const size_t n_prompt = l->prompt.count;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->row[i] =
            (struct generate_score_row){l->ids[i].id, n_prompt + l->ids[i].count, n_prompt, NULL};
        n += l->ids[i].count;
    }
    l->logprob = calloc(n, sizeof *l->logprob);
    if (!l->logprob) return base_fail(err, BASE_NO_MEMORY, "not enough memory to score");
    n = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->row[i].logprob = l->logprob + n;
        n += l->row[i].n - l->row[i].from;
    }
    return true;
}

static bool check_prompt(const struct score_line *l, struct base_error *err)
{
    return l->prompt.count > 0 ||
           base_fail(err, BASE_USAGE,
                     "the prompt is empty, and so is its beginning (--no-bos, or no such token)");
}

/* Makes the rows of the continuations, whose texts are set. `joined`: the prompt, of n_own tokens;
 * NULL: continuations are encoded by themselves. */
static bool make_rows(const struct score *s, struct score_line *l, const struct base_buffer *joined,
                      size_t n_own, struct base_error *err)
{
    if (!check_prompt(l, err)) return false;
    for (size_t i = 0; i < l->n; i++)
        if (!(joined ? encode_joined(s, l, i, joined, n_own, err)
                     : encode_continuation(s, l, i, err)))
            return false;
    return make_row_logprobs(l, err);
}

/* Encodes a conversation; `messages` NULL: only the question. */
static bool encode_chat(struct score *s, const json_t *messages, const struct base_buffer *question,
                        struct text_ids *ids, struct base_error *err)
{
    const struct cli_values *v = s->values;
    struct chat_prompt prompt = {0};
    if (!s->template.template) {
        *err = s->no_template;
        return false;
    }
    json_auto_t *list = chat_messages_of_line(messages, &v->request, question, err);
    const bool ok = list && chat_template_render(&s->template, &v->request, list, &prompt, err);
    if (ok) {
        *ids = prompt.ids;
        prompt.ids = TEXT_IDS_INIT;
    }
    chat_prompt_free(&prompt);
    return ok;
}

/* Begins an empty prompt with the token that separates texts, if the file adds none. */
static bool begin_empty(const struct score *s, struct text_ids *ids, struct base_error *err)
{
    const struct text_tokenizer *t = s->model.tokenizer;
    const int32_t id = text_token_bos(t) >= 0 ? text_token_bos(t) : text_token_eos(t);
    return s->values->request.no_bos || ids->count || id < 0 || text_ids_add(ids, id, err);
}

static bool encode_line(struct score *s, struct score_line *l, const json_t *messages,
                        const struct base_buffer *prompt, struct base_error *err)
{
    struct text_ids *ids = &l->prompt;
    if (messages || s->values->request.chat.chat)
        return encode_chat(s, messages, prompt, ids, err) && make_rows(s, l, NULL, 0, err);
    struct base_buffer own = {.data = prompt->data, .size = prompt->size};
    /* White space at its end joins the next word. */
    while (s->values->joined && own.size && strchr(" \t\r\n", own.data[own.size - 1])) own.size--;
    if (!cli_input_encode(&s->values->request, s->model.tokenizer, &own, ids, err)) return false;
    const size_t n_own = ids->count;
    return begin_empty(s, ids, err) &&
           make_rows(s, l, s->values->joined ? prompt : NULL, n_own, err);
}

/* Returns the number of ids with which all texts begin, less than those of any; of a single text
 * 1. */
static size_t common_of(const struct score_line *l)
{
    size_t common = l->n > 1 ? SIZE_MAX : 1;
    for (size_t k = 0; k < l->n; k++) {
        size_t i = 0;
        while (i < common && i + 1 < l->ids[k].count && l->ids[k].id[i] == l->ids[0].id[i]) i++;
        common = i;
    }
    return common;
}

/* Encodes whole texts: the ids with which all begin are the prompt. */
static bool encode_texts(const struct score *s, struct score_line *l, struct base_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->text[i].size == 0) return base_fail(err, BASE_USAGE, "text %zu is empty", i + 1);
        if (!cli_input_encode(&s->values->request, s->model.tokenizer, &l->text[i], &l->ids[i],
                              err))
            return false;
    }
    const size_t common = common_of(l);
    for (size_t k = 0; k < common; k++)
        if (!text_ids_add(&l->prompt, l->ids[0].id[k], err)) return false;
    if (!begin_empty(s, &l->prompt, err)) return false;
    for (size_t i = 0; i < l->n; i++) {
        struct text_ids *ids = &l->ids[i];
        ids->count -= common;
        memmove(ids->id, ids->id + common, ids->count * sizeof *ids->id);
        if (!check_length(s, l, i, err)) return false;
    }
    return check_prompt(l, err) && make_row_logprobs(l, err);
}

/* ---- Lines ---- */

static bool read_continuations(struct score_line *l, const char *name, struct base_error *err)
{
    const json_t *list = json_object_get(l->line, name);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return base_fail_at(err, BASE_USAGE, name, -1, "is not a list of texts");
    if (!make_parts(l, json_array_size(list), err)) return false;
    for (size_t i = 0; i < l->n; i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_string(one))
            return base_fail_at(err, BASE_USAGE, name, -1, "is not a list of texts");
        base_buffer_add(&l->text[i], json_string_value(one), json_string_length(one));
        if (!cli_buffer_check(&l->text[i], err)) return false;
    }
    return true;
}

static bool check_members(const struct score_line *l, struct base_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(l->line, name, value)
    {
        if (strcmp(name, "id") != 0 && strcmp(name, "prompt") != 0 &&
            strcmp(name, "messages") != 0 && strcmp(name, "continuations") != 0 &&
            strcmp(name, "texts") != 0)
            return base_fail_at(err, BASE_USAGE, name, -1,
                                "is not a member of a line: prompt, messages, continuations, "
                                "texts or id");
    }
    return true;
}

/* Copies the continuations of the command line. */
static bool copy_continuations(const struct score *s, struct score_line *l, struct base_error *err)
{
    const struct cli_values *v = s->values;
    if (!make_parts(l, v->continuation.count, err)) return false;
    for (size_t i = 0; i < l->n; i++) {
        base_buffer_add_text(&l->text[i], v->continuation.item[i]);
        if (!cli_buffer_check(&l->text[i], err)) return false;
    }
    return true;
}

static bool read_plain_line(struct score *s, struct score_line *l, const char *line, size_t size,
                            struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    cli_each_fill(&s->each, line, size, &text);
    return cli_buffer_check(&text, err) && copy_continuations(s, l, err) &&
           encode_line(s, l, NULL, &text, err);
}

static bool read_line(struct score *s, struct score_line *l, const char *line, size_t size,
                      struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    if (s->input.too_long)
        return base_fail(err, BASE_TOO_LONG, "the line is longer than %d MiB",
                         CLI_BATCH_LINE_MAX >> 20);
    if (s->values->each) return read_plain_line(s, l, line, size, err);
    l->line = text_json_parse(line, size, "JSON", err);
    if (!l->line) return false;
    if (!text_json_is_object(l->line))
        return base_fail(err, BASE_USAGE, "the line is not a JSON object");
    if (json_object_get(l->line, "id")) text_json_add_own(&l->id, l->line, line, size, "id");
    if (!cli_buffer_check(&l->id, err)) return false;
    const json_t *prompt = text_json_member(l->line, "prompt");
    const json_t *messages = text_json_member(l->line, "messages");
    if (!check_members(l, err)) return false;
    if (json_object_get(l->line, "texts")) {
        if (prompt || messages || json_object_get(l->line, "continuations"))
            return base_fail_at(err, BASE_USAGE, "texts", -1,
                                "are whole: without prompt, messages and continuations");
        return read_continuations(l, "texts", err) && encode_texts(s, l, err);
    }
    if (!prompt && !messages)
        return base_fail(err, BASE_USAGE, "the line has neither a prompt nor messages");
    if (prompt && !json_is_string(prompt))
        return base_fail_at(err, BASE_USAGE, "prompt", -1, "is no text");
    if (prompt) base_buffer_add(&text, json_string_value(prompt), json_string_length(prompt));
    return cli_buffer_check(&text, err) && read_continuations(l, "continuations", err) &&
           encode_line(s, l, messages, prompt ? &text : NULL, err);
}

/* Reads a line. An error is the line's own, except an interrupt and lack of memory. */
static bool take_line(void *user, const char *line, size_t size, struct base_error *err)
{
    struct score *s = user;
    if (!s->values->each && !s->input.too_long && cli_batch_is_blank(line, size)) return true;
    struct score_line *l = &s->held[s->n_held++];
    *l = (struct score_line){.number = s->input.number, .failed = BASE_ERROR_INIT};
    s->n_bytes += size;
    if (read_line(s, l, line, size, &l->failed)) return true;
    const enum base_code code = l->failed.code;
    if (code != BASE_INTERRUPTED && code != BASE_NO_MEMORY) {
        cli_progress_skip(1);
        return true;
    }
    *err = l->failed;
    return false;
}

/* ---- Answers ---- */

static double sum_of(const struct generate_score_row *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n - r->from; i++) sum += r->logprob[i];
    return sum;
}

static void add_continuation(const struct score_line *l, size_t i, struct base_buffer *out)
{
    const struct generate_score_row *r = &l->row[i];
    base_buffer_add_format(out, "%s{\"logprob\":%.6f,\"tokens\":%zu,\"bytes\":%zu,\"logprobs\":[",
                           i ? "," : "", sum_of(r), r->n - r->from, l->text[i].size);
    for (size_t k = 0; k < r->n - r->from; k++)
        base_buffer_add_format(out, "%s%.6f", k ? "," : "", r->logprob[k]);
    base_buffer_add_text(out, "],\"ids\":[");
    for (size_t k = 0; k < r->n - r->from; k++)
        base_buffer_add_format(out, "%s%d", k ? "," : "", r->ids[k]);
    base_buffer_add_text(out, "]}");
}

/* Appends the answer, without the opening brace. */
static void add_answer(const struct score *s, const struct score_line *l, struct base_buffer *out)
{
    base_buffer_add_format(out, "\"prompt_tokens\":%zu,\"continuations\":[", l->prompt.count);
    for (size_t i = 0; i < l->n; i++) add_continuation(l, i, out);
    base_buffer_add_text(out, "]");
    cli_model_add_approximate(&s->model, out);
    base_buffer_add_text(out, "}\n");
}

static void add_failure(const struct score_line *l, struct base_buffer *out)
{
    char text[900];
    base_error_format(&l->failed, text, sizeof text);
    base_buffer_add_format(out, "\"status\":%d,", (int)l->failed.code);
    base_buffer_add_member(out, "error", text, strlen(text));
    base_buffer_add_text(out, "}\n");
}

static bool write_answer(const struct score *s, const struct score_line *l, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    base_buffer_add_format(&out, "{\"line\":%llu,", (unsigned long long)l->number);
    if (l->id.size) {
        base_buffer_add_text(&out, "\"id\":");
        base_buffer_add(&out, l->id.data, l->id.size);
        base_buffer_add_text(&out, ",");
    }
    if (l->failed.code)
        add_failure(l, &out);
    else
        add_answer(s, l, &out);
    return cli_write_buffer(&out, err);
}

/* Makes NaN logits an error of the line. */
static void check_numbers(struct score_line *l)
{
    for (size_t i = 0; !l->failed.code && i < l->n; i++)
        if (!isfinite(sum_of(&l->row[i])))
            base_fail(&l->failed, BASE_FAILED, "the model gave logits that are not numbers");
}

static bool eval_held(struct score *s, struct base_error *err)
{
    struct generate_score_group group[LINES_AT_ONCE];
    size_t n = 0;
    for (size_t i = 0; i < s->n_held; i++)
        if (!s->held[i].failed.code)
            group[n++] = (struct generate_score_group){.row = s->held[i].row,
                                                       .n = s->held[i].n,
                                                       .prefix = s->held[i].prompt.id,
                                                       .n_prefix = s->held[i].prompt.count};
    if (!generate_scorer_run(s->scorer, group, n, err)) return false;
    for (size_t i = 0; i < s->n_held; i++) check_numbers(&s->held[i]);
    return true;
}

static void drop_held(struct score *s)
{
    while (s->n_held > 0) free_line(&s->held[--s->n_held]);
    s->n_bytes = 0;
}

static bool answer_held(void *user, struct base_error *err)
{
    struct score *s = user;
    bool ok = eval_held(s, err);
    for (size_t i = 0; ok && i < s->n_held; i++) {
        s->n_lines++;
        s->n_failed += s->held[i].failed.code != 0;
        ok = write_answer(s, &s->held[i], err);
    }
    drop_held(s);
    return ok;
}

static uint64_t groups_of(const void *scorer)
{
    return generate_scorer_counts(scorer).n_groups;
}

/* Lines that are wrong are done when they are read. */
static void begin_progress(const struct score *s)
{
    const bool shows = isatty(STDERR_FILENO); /* counting reads all of the input */
    cli_progress_begin("scoring", "lines",
                       shows ? cli_batch_input_count(&s->input, s->values->each) : 0);
    cli_progress_watch(groups_of, s->scorer, 0);
}

static bool answer_lines(struct score *s, struct base_error *err)
{
    const struct cli_batch_groups groups = {.take = take_line,
                                            .answer = answer_held,
                                            .n_items = &s->n_held,
                                            .n_bytes = &s->n_bytes,
                                            .items_max = LINES_AT_ONCE,
                                            .bytes_max = BYTES_AT_ONCE,
                                            .user = s};
    return cli_batch_input_answer(&s->input, &groups, err);
}

/* ---- One prompt on the command line ---- */

static void add_table(const struct score_line *l, struct base_buffer *out)
{
    base_buffer_add_text(out, "     logprob   per token  tokens   bytes  continuation\n");
    for (size_t i = 0; i < l->n; i++) {
        const size_t n = l->row[i].n - l->row[i].from;
        const double sum = sum_of(&l->row[i]);
        base_buffer_add_format(out, "%12.6f%12.6f%8zu%8zu  ", sum, sum / (double)n, n,
                               l->text[i].size);
        base_buffer_add_json(out, l->text[i].size ? l->text[i].data : "", l->text[i].size);
        base_buffer_add_text(out, "\n");
    }
}

/* Makes a row of the text itself: its first token is the prompt, because it has no prediction. */
static bool make_whole(struct score *s, struct score_line *l, const struct base_buffer *text,
                       struct base_error *err)
{
    struct text_ids *ids = &l->prompt;
    if (s->values->request.chat.chat)
        return base_fail_at(err, BASE_USAGE, "--heat", -1,
                            "with --chat needs --continuation, the answer");
    if (!make_parts(l, 1, err) ||
        !cli_input_encode(&s->values->request, s->model.tokenizer, text, ids, err))
        return false;
    if (ids->count < 2)
        return base_fail(err, BASE_USAGE, "the text has %zu tokens: there is nothing to score",
                         ids->count);
    for (size_t i = 1; i < ids->count; i++)
        if (!text_ids_add(&l->ids[0], ids->id[i], err)) return false;
    ids->count = 1;
    return check_length(s, l, 0, err) && make_row_logprobs(l, err);
}

static bool read_one(struct score *s, struct score_line *l, struct base_error *err)
{
    BASE_LOCAL_BUFFER prompt = BASE_BUFFER_INIT;
    bool ok = cli_input_read(s->values, &prompt, err);
    if (s->values->continuation.count)
        ok = ok && copy_continuations(s, l, err) && encode_line(s, l, NULL, &prompt, err);
    else
        ok = ok && make_whole(s, l, &prompt, err);
    return ok;
}

/* ---- --heat ---- */

/* Adds ids; without `logprob` as text that has no probability. */
static bool add_heat(const struct score *s, struct cli_heat *h, const struct text_ids *ids,
                     const double *logprob, struct base_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < ids->count; i++) {
        BASE_LOCAL_BUFFER bytes = BASE_BUFFER_INIT;
        text_token_bytes(s->model.tokenizer, ids->id[i], logprob != NULL, &bytes);
        ok = cli_buffer_check(&bytes, err) &&
             cli_heat_add(h, bytes.size ? bytes.data : "", bytes.size, logprob ? logprob[i] : NAN,
                          err);
    }
    return ok;
}

/* Shows the text, or the prompt and each continuation. */
static bool show_heat(struct score *s, const struct score_line *l, struct base_error *err)
{
    struct cli_heat h;
    const char *svg = s->values->svg;
    cli_heat_begin(&h, svg && strcmp(svg, "-") == 0);
    bool ok = true;
    for (size_t i = 0; ok && i < l->n; i++)
        ok = add_heat(s, &h, &l->prompt, NULL, err) &&
             add_heat(s, &h, &l->ids[i], l->row[i].logprob, err) &&
             (l->n == 1 || cli_heat_next(&h, err));
    ok = ok && cli_heat_end(&h, err);
    ok = ok && (!svg || cli_heat_svg(&h, &s->svg, err));
    cli_heat_free(&h);
    return ok;
}

/* Returns the number of tokens that are evaluated: the prompt, and without their last token the
 * continuations. */
static uint64_t tokens_of(const struct score_line *l)
{
    uint64_t n = l->prompt.count;
    for (size_t i = 0; i < l->n; i++) n += l->ids[i].count - 1;
    return n;
}

static bool answer_one(struct score *s, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    struct score_line *l = &s->held[s->n_held++];
    *l = (struct score_line){.failed = BASE_ERROR_INIT};
    bool ok = read_one(s, l, err);
    ok = ok && (!s->values->svg ||
                cli_output_open(&s->svg, s->values->svg, s->values, s->model.file, err));
    if (ok && !s->values->no_sandbox)
        cli_sandbox_close((s->svg.unfinished ? CLI_SANDBOX_RENAME : 0) | cli_gpu_allows(s->values));
    if (ok) cli_model_progress_tokens(&s->model, "scoring", tokens_of(l));
    ok = ok && eval_held(s, err);
    cli_progress_end();
    if (ok && l->failed.code) {
        *err = l->failed;
        ok = false;
    }
    if (ok && s->values->heat) {
        ok = show_heat(s, l, err);
    } else if (ok && s->values->json) {
        base_buffer_add_text(&out, "{");
        add_answer(s, l, &out);
    } else if (ok) {
        add_table(l, &out);
    }
    return ok && cli_write_buffer(&out, err);
}

/* ---- The command ---- */

/* Returns whether the command line has one prompt, instead of lines. */
static bool is_one(const struct cli_values *v)
{
    return (v->continuation.count || v->heat) && !v->each;
}

static bool open_input(struct score *s, struct base_error *err)
{
    return is_one(s->values) || cli_batch_input_open(&s->input, s->values->file, "score", err);
}

/* Opens the chat template. The model's own one may be missing until a line needs it. */
static bool open_template(struct score *s, struct base_error *err)
{
    const struct cli_values *v = s->values;
    s->no_template = BASE_ERROR_INIT;
    if (cli_template_open(&s->template, &v->request.chat, true, &s->model, NULL, &s->no_template))
        return true;
    chat_template_close(&s->template);
    if (!v->request.chat.chat && !v->request.chat.template && s->no_template.code != BASE_NO_MEMORY)
        return true;
    *err = s->no_template;
    return false;
}

static bool open_all(struct score *s, struct base_error *err)
{
    const struct cli_values *v = s->values;
    uint32_t n_slots;
    if (v->each && !cli_each_read(v, &s->each, err)) return false;
    if (!open_input(s, err) || !cli_model_open_file(&s->model, v, err) ||
        !cli_model_open_tokenizer(&s->model, err) || !open_template(s, err))
        return false;
    if (!v->no_sandbox) cli_sandbox_limit(v->svg);
    if (!cli_model_open_weights(&s->model, v, err) ||
        !cli_model_open_slots(&s->model, v, (uint32_t)v->ctx_size, STANDARD_SLOTS,
                              GENERATE_SCORE_LEAST_SEQ - 1, &n_slots, err))
        return false;
    s->scorer = generate_scorer_new(s->model.engine, s->model.session,
                                    model_facts(s->model.model)->n_vocab, err);
    if (s->scorer && v->verbose) cli_model_note(&s->model);
    return s->scorer != NULL;
}

static bool score_lines(struct score *s, struct base_error *err)
{
    if (!s->values->no_sandbox) cli_sandbox_close(cli_gpu_allows(s->values));
    begin_progress(s);
    const bool ok = answer_lines(s, err);
    cli_progress_end();
    if (!ok) return false;
    const struct generate_score_counts c = generate_scorer_counts(s->scorer);
    if (s->values->verbose)
        cli_note("%llu lines; %llu tokens evaluated of %llu that they have",
                 (unsigned long long)s->n_lines, (unsigned long long)c.n_evaluated,
                 (unsigned long long)c.n_alone);
    if (s->n_failed == 0) return true;
    return base_fail(err, BASE_FAILED, "%llu of %llu lines failed: their answers have an \"error\"",
                     (unsigned long long)s->n_failed, (unsigned long long)s->n_lines);
}

static void close_all(struct score *s)
{
    drop_held(s);
    generate_scorer_free(s->scorer);
    cli_batch_input_free(&s->input);
    base_buffer_free(&s->each);
    if (s->input.fd > STDERR_FILENO) close(s->input.fd);
    chat_template_close(&s->template);
    cli_model_close(&s->model);
    free(s);
}

static bool cmd_score(struct cli_values *values, struct base_error *err)
{
    struct score *s = calloc(1, sizeof *s);
    if (!s) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    s->values = values;
    base_output_init(&s->svg);
    bool ok = open_all(s, err) && (is_one(values) ? answer_one(s, err) : score_lines(s, err));
    ok = cli_output_close(&s->svg, ok, err);
    close_all(s);
    return ok;
}

const struct cli_command cli_command_score = {
    .name = "score",
    .usage = "infer score [-m MODEL] [options] < LINES.jsonl",
    .effect = "probabilities of given continuations of a prompt",
    .about = "Each line is an object with a `prompt` or `messages`, and `continuations`, a\n"
             "list of texts; or with `texts`, which are whole. The answer has the\n"
             "log-probability of each, in total and for each token. With --continuation a\n"
             "single prompt (-p, -f or standard input) is scored, as a table; with --each\n"
             "too, each of many plain lines.",
    .positional = "file",
    .takes = {"FILE"},
    .run = cmd_score,
};
