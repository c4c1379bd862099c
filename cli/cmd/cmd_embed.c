/* cli/cmd/cmd_embed.c: `infer embed`: a row of numbers for each text.
 *
 * The lines that are available are evaluated together (generate/embed.h) and written in their
 * order; the forms that are one document (json, npy, --matrix) are written at the end. */
#include "cli/batch/batch_input.h"
#include "cli/commands.h"
#include "cli/embedding.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXTS_AT_ONCE = 512, BYTES_AT_ONCE = 4 << 20 };

enum form { FORM_JSONL, FORM_JSON, FORM_F32, FORM_NPY, FORM_MATRIX };

/* A text and its rows. */
struct embed_text {
    uint64_t number;       /* of the line, or file, from 1 on */
    struct base_buffer id; /* as JSON; empty: none */
    size_t first, n;       /* of the rows */
    float lora[MODEL_ADAPTERS_MAX];
    bool has_lora; /* `lora` is that of the line */
};

struct embed {
    const struct cli_values *values;
    struct cli_embed e;
    enum form form;
    struct base_buffer prefix;
    struct cli_batch_input input;
    struct embed_text held[TEXTS_AT_ONCE]; /* texts that have no answer yet */
    struct cli_embed_rows rows;            /* theirs */
    size_t n_held, n_bytes;
    uint64_t n_rows, n_tokens; /* written, or in `whole` */
    struct base_buffer whole;  /* of json, npy and --matrix: items or numbers, written at the end,
                                  so that an error leaves no part of a document */
    struct base_output file;   /* -o */
};

/* ---- Output ---- */

static bool write_out(struct embed *s, const void *bytes, size_t size, struct base_error *err)
{
    return s->values->output ? base_output_write(&s->file, bytes, size, err)
                             : cli_write(bytes, size, err);
}

static void add_numbers(const struct embed *s, const float *v, struct base_buffer *out)
{
    base_buffer_add_text(out, "[");
    for (uint32_t i = 0; i < s->e.size; i++)
        base_buffer_add_format(out, "%s%.9g", i ? "," : "", (double)v[i]);
    base_buffer_add_text(out, "]");
}

/* Adds {"line":1,"id":"a","part":0,"tokens":7,"embedding":[..]}: "embeddings" without pooling, one
 * for each token, "scores" of a classifier. */
static void add_line(const struct embed *s, const struct embed_text *t, size_t part,
                     const struct cli_embed_row *r, struct base_buffer *out)
{
    const bool many = s->e.pooling == MODEL_POOL_NONE;
    base_buffer_add_format(out, "{\"line\":%llu,", (unsigned long long)t->number);
    if (t->id.size) base_buffer_add_format(out, "\"id\":%s,", t->id.data);
    if (s->values->pieces.count) base_buffer_add_format(out, "\"part\":%zu,", part);
    base_buffer_add_format(out, "\"tokens\":%zu,\"%s\":%s", r->ids.count,
                           many                              ? "embeddings"
                           : s->e.pooling == MODEL_POOL_RANK ? "scores"
                                                             : "embedding",
                           many ? "[" : "");
    for (size_t i = 0; i < r->n_rows; i++) {
        if (i) base_buffer_add_text(out, ",");
        add_numbers(s, cli_embed_row(&s->e, r, i), out);
    }
    if (many) base_buffer_add_text(out, "]");
    cli_model_add_approximate(&s->e.model, out);
    base_buffer_add_text(out, "}\n");
}

/* Adds the items of OpenAI's list: one for each row. */
static void add_data(const struct embed *s, const struct cli_embed_row *r, struct base_buffer *out)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        const uint64_t index = s->n_rows + i;
        base_buffer_add_format(out, "%s{\"object\":\"embedding\",\"index\":%llu,\"embedding\":",
                               index ? ",\n" : "", (unsigned long long)index);
        add_numbers(s, cli_embed_row(&s->e, r, i), out);
        base_buffer_add_text(out, "}");
    }
}

static void add_row(struct embed *s, const struct embed_text *t, size_t part,
                    struct base_buffer *out)
{
    const struct cli_embed_row *r = &s->rows.row[t->first + part];
    struct base_buffer *bytes = s->form == FORM_F32 ? out : &s->whole;
    if (s->form == FORM_JSONL) add_line(s, t, part, r, out);
    if (s->form == FORM_JSON) add_data(s, r, &s->whole);
    for (size_t i = 0; s->form >= FORM_F32 && i < r->n_rows; i++)
        base_buffer_add(bytes, cli_embed_row(&s->e, r, i), s->e.size * sizeof *r->v);
    s->n_rows += r->n_rows;
    s->n_tokens += r->ids.count;
}

static void drop_held(struct embed *s)
{
    while (s->n_held > 0) base_buffer_free(&s->held[--s->n_held].id);
    cli_embed_rows_clear(&s->rows);
    s->n_bytes = 0;
}

static bool answer_held(void *user, struct base_error *err)
{
    struct embed *s = user;
    struct base_buffer out = BASE_BUFFER_INIT;
    bool ok = cli_embed_run(&s->e, &s->rows, err);
    for (size_t i = 0; ok && i < s->n_held; i++)
        for (size_t part = 0; part < s->held[i].n; part++) add_row(s, &s->held[i], part, &out);
    ok = ok && cli_buffer_check(&out, err) && cli_buffer_check(&s->whole, err) &&
         (out.size == 0 || write_out(s, out.data, out.size, err));
    base_buffer_free(&out);
    drop_held(s);
    return ok;
}

/* The header of NumPy's format 1.0: padded so that the numbers begin at a multiple of 64 bytes. */
static bool write_npy(struct embed *s, struct base_error *err)
{
    enum { PREAMBLE = 10, ALIGN = 64 };
    char head[2 * ALIGN + 1];
    memcpy(head, "\x93NUMPY\x01", 8); /* and the second byte of the version, 0 */
    const int n = snprintf(head + PREAMBLE, sizeof head - PREAMBLE,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                           (unsigned long long)s->n_rows, s->e.size);
    const size_t size = (size_t)(PREAMBLE + n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memset(head + PREAMBLE + n, ' ', size - (size_t)(PREAMBLE + n));
    head[size - 1] = '\n';
    head[8] = (char)(size - PREAMBLE);
    head[9] = 0;
    return write_out(s, head, size, err) &&
           (s->whole.size == 0 || write_out(s, s->whole.data, s->whole.size, err));
}

static bool write_matrix(struct embed *s, struct base_error *err)
{
    const float *v = (const float *)(const void *)s->whole.data;
    bool ok = true;
    for (uint64_t i = 0; ok && i < s->n_rows; i++) {
        BASE_LOCAL_BUFFER line = BASE_BUFFER_INIT;
        for (uint64_t k = 0; k < s->n_rows; k++)
            base_buffer_add_format(
                &line, "%s%.6f", k ? "\t" : "",
                generate_embed_cosine(v + i * s->e.size, v + k * s->e.size, s->e.size));
        base_buffer_add_text(&line, "\n");
        ok = base_goes_on(err) && cli_buffer_check(&line, err) &&
             write_out(s, line.data, line.size, err);
    }
    return ok;
}

static bool write_end(struct embed *s, struct base_error *err)
{
    struct base_buffer *out = &s->whole;
    if (s->form == FORM_NPY) return write_npy(s, err);
    if (s->form == FORM_MATRIX) return write_matrix(s, err);
    if (s->form != FORM_JSON) return true;
    base_buffer_add_text(out, s->n_rows ? "\n],\"model\":" : "],\"model\":");
    base_buffer_add_json(out, s->e.model.name.data, s->e.model.name.size);
    base_buffer_add_format(out, ",\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}",
                           (unsigned long long)s->n_tokens, (unsigned long long)s->n_tokens);
    cli_model_add_approximate(&s->e.model, out);
    base_buffer_add_text(out, "}\n");
    return cli_buffer_check(out, err) && write_out(s, out->data, out->size, err);
}

/* ---- Input ---- */

/* Adds a text, whose id is set. */
static bool add_text(struct embed *s, struct embed_text *t, const char *text, size_t size,
                     struct base_error *err)
{
    s->n_bytes += size;
    if (!cli_embed_add(&s->e, &s->prefix, text, size, &s->rows, err)) return false;
    t->n = s->rows.n - t->first;
    for (size_t i = t->first; t->has_lora && i < s->rows.n; i++) s->rows.row[i].lora = t->lora;
    return true;
}

/* Reads the adapters of a line: NAME, NAME:SCALE or a list of them. */
static bool read_lora(const struct embed *s, struct embed_text *t, const json_t *names,
                      struct base_error *err)
{
    const char *name[CLI_LIST_MAX];
    struct base_texts list = {name, 0};
    const size_t n = json_is_array(names) ? json_array_size(names) : 1;
    for (size_t i = 0; i < n && i < CLI_LIST_MAX; i++) {
        name[i] = json_string_value(json_is_array(names) ? json_array_get(names, i) : names);
        if (name[i]) list.count++;
    }
    if (list.count < n)
        return base_fail_at(err, BASE_USAGE, "lora", -1, "needs a text or a list of at most %d",
                            CLI_LIST_MAX);
    t->has_lora = true;
    return cli_adapters_choose(&s->e.model.adapters, &list, t->lora, err);
}

/* Reads a line of JSON: a text, or an object with `text` and perhaps `id` and `lora`. */
static bool read_json(struct embed *s, struct embed_text *t, const char *line, size_t size,
                      struct base_error *err)
{
    json_t *value = text_json_parse(line, size, "JSON", err);
    const size_t n = strlen(err->text);
    if (!value && err->code == BASE_USAGE)
        snprintf(err->text + n, sizeof err->text - n, "; --lines reads plain text");
    if (!value) return false;
    const json_t *text = value;
    bool ok = true;
    if (json_is_object(value)) {
        text = text_json_member(value, "text");
        const json_t *lora = text_json_member(value, "lora");
        const size_t known =
            !!text + !!json_object_get(value, "id") + !!json_object_get(value, "lora");
        if (json_object_size(value) > known)
            ok = base_fail(err, BASE_USAGE, "the members of a line are text, id and lora");
        ok = ok && (!lora || read_lora(s, t, lora, err));
        if (ok && json_object_get(value, "id")) text_json_add_own(&t->id, value, line, size, "id");
        ok = ok && cli_buffer_check(&t->id, err);
    }
    if (ok && !json_is_string(text))
        ok = base_fail(err, BASE_USAGE, "the line is neither a text nor an object with a `text`");
    ok = ok && add_text(s, t, json_string_value(text), json_string_length(text), err);
    json_decref(value);
    return ok;
}

static bool read_line(struct embed *s, struct embed_text *t, const char *line, size_t size,
                      struct base_error *err)
{
    if (s->input.too_long)
        return base_fail(err, BASE_TOO_LONG, "the line is longer than %d MiB",
                         CLI_BATCH_LINE_MAX >> 20);
    if (!s->values->lines) return read_json(s, t, line, size, err);
    if (size > 0 && line[size - 1] == '\r') size--;
    return add_text(s, t, line, size, err);
}

static struct embed_text *new_text(struct embed *s, uint64_t number)
{
    struct embed_text *t = &s->held[s->n_held++];
    *t = (struct embed_text){.number = number, .first = s->rows.n};
    return t;
}

/* Answers the texts before the one that failed; the error then has its file, or without one the
 * number of its line. */
static bool fail_line(struct embed *s, const char *file, struct base_error *err)
{
    const struct base_error why = *err;
    struct base_error later = BASE_ERROR_INIT;
    char text[900];
    const bool fatal = why.code == BASE_INTERRUPTED || why.code == BASE_NO_MEMORY;
    const struct embed_text *t = &s->held[--s->n_held];
    base_buffer_free(&s->held[s->n_held].id);
    cli_embed_rows_cut(&s->rows, t->first);
    if (fatal || (s->n_held && !answer_held(s, &later))) return false;
    base_error_format(&why, text, sizeof text);
    *err = BASE_ERROR_INIT;
    if (file) return base_fail(err, why.code, "%s: %s", file, text);
    return base_fail(err, why.code, "line %llu: %s", (unsigned long long)t->number, text);
}

static bool take_line(void *user, const char *line, size_t size, struct base_error *err)
{
    struct embed *s = user;
    if (!s->values->lines && !s->input.too_long && cli_batch_is_blank(line, size)) return true;
    return read_line(s, new_text(s, s->input.number), line, size, err) || fail_line(s, NULL, err);
}

static uint64_t done_of(const void *embedder)
{
    return generate_embedder_done(embedder);
}

static bool answer_lines(struct embed *s, struct base_error *err)
{
    const bool shows = isatty(STDERR_FILENO); /* counting reads all of the input */
    cli_progress_begin("embedding", "texts",
                       shows ? cli_batch_input_count(&s->input, s->values->lines) : 0);
    cli_progress_watch(done_of, s->e.embedder, 0);
    const struct cli_batch_groups groups = {.take = take_line,
                                            .answer = answer_held,
                                            .n_items = &s->n_held,
                                            .n_bytes = &s->n_bytes,
                                            .items_max = TEXTS_AT_ONCE,
                                            .bytes_max = BYTES_AT_ONCE,
                                            .user = s};
    return cli_batch_input_answer(&s->input, &groups, err);
}

/* Files are read before any evaluation, because the sandbox then forbids it. */
static bool read_files(struct embed *s, struct base_buffer *text, struct base_error *err)
{
    const struct cli_values *v = s->values;
    bool ok = true;
    for (size_t i = 0; ok && i < v->n_arguments; i++)
        ok = cli_file_read(v->arguments[i], &text[i], err);
    return ok;
}

static bool answer_files(struct embed *s, struct base_buffer *text, struct base_error *err)
{
    const struct cli_values *v = s->values;
    for (size_t i = 0; i < v->n_arguments; i++) {
        struct embed_text *t = new_text(s, i + 1);
        base_buffer_add_json(&t->id, v->arguments[i], strlen(v->arguments[i]));
        if (!cli_buffer_check(&t->id, err)) return false;
        if (!add_text(s, t, text[i].data ? text[i].data : "", text[i].size, err))
            return fail_line(s, v->arguments[i], err);
        const bool full = s->n_held == TEXTS_AT_ONCE || s->n_bytes > BYTES_AT_ONCE;
        if ((full || i + 1 == v->n_arguments) && !answer_held(s, err)) return false;
    }
    return true;
}

static bool answer_prompt(struct embed *s, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    cli_input_add(&s->values->request, s->values->prompt, &text);
    return cli_buffer_check(&text, err) &&
           add_text(s, new_text(s, 1), text.data ? text.data : "", text.size, err) &&
           answer_held(s, err);
}

/* ---- The command ---- */

static bool choose_form(struct embed *s, struct base_error *err)
{
    static const char *const names[] = {"jsonl", "json", "f32", "npy"}; /* in the enum's order */
    const struct cli_values *v = s->values;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], v->format) == 0) s->form = (enum form)i;
    if (v->matrix) s->form = FORM_MATRIX;
    const bool binary = s->form == FORM_F32 || s->form == FORM_NPY;
    if (binary && cli_stdout_is_terminal() && (!v->output || strcmp(v->output, "-") == 0))
        return base_fail_at(
            err, BASE_USAGE, "--format", -1,
            "standard output is a terminal, and the numbers are binary: name a file "
            "with -o");
    return true;
}

/* Fails if the texts come from a file of the command line and from elsewhere too. */
static bool check_input(const struct cli_values *v, struct base_error *err)
{
    const char *other = v->prompt ? "-p" : v->file ? "-f" : v->lines ? "--lines" : NULL;
    return !v->n_arguments || !other ||
           base_fail_at(err, BASE_USAGE, v->arguments[0], -1,
                        "a file is one text, which contradicts %s; give one of them%s", other,
                        v->lines ? ", or -f FILE" : "");
}

static bool embed_texts(struct embed *s, struct base_buffer *files, struct base_error *err)
{
    const struct cli_values *v = s->values;
    const enum cli_embed_role role = !v->as                        ? CLI_EMBED_ANY
                                     : strcmp(v->as, "query") == 0 ? CLI_EMBED_QUERY
                                                                   : CLI_EMBED_DOCUMENT;
    const bool one = v->prompt || v->n_arguments;
    if (!check_input(v, err) || !choose_form(s, err) || !read_files(s, files, err) ||
        (!one && !cli_batch_input_open(&s->input, v->file, "embed", err)) ||
        !cli_embed_open(&s->e, v, v->pooling, NULL, err) ||
        !cli_embed_prefix(&s->e, role, &s->prefix, err) ||
        (v->output && !cli_output_open(&s->file, v->output, v, s->e.model.file, err)))
        return false;
    if (!v->no_sandbox)
        cli_sandbox_close((s->file.unfinished ? CLI_SANDBOX_RENAME : 0) | cli_gpu_allows(v));
    if (s->form == FORM_JSON) base_buffer_add_text(&s->whole, "{\"object\":\"list\",\"data\":[\n");
    bool ok = v->prompt        ? answer_prompt(s, err)
              : v->n_arguments ? answer_files(s, files, err)
                               : answer_lines(s, err);
    cli_progress_end();
    return ok && write_end(s, err);
}

static bool cmd_embed(struct cli_values *values, struct base_error *err)
{
    struct embed *s = calloc(1, sizeof *s);
    struct base_buffer *files = calloc(values->n_arguments + 1, sizeof *files);
    bool ok = s && files ? true : base_fail(err, BASE_NO_MEMORY, "not enough memory");
    if (ok) {
        s->values = values;
        base_output_init(&s->file);
        ok = embed_texts(s, files, err);
        ok = cli_output_close(&s->file, ok, err);
        drop_held(s);
        cli_batch_input_free(&s->input);
        if (s->input.fd > STDERR_FILENO) close(s->input.fd);
        base_buffer_free(&s->prefix);
        base_buffer_free(&s->whole);
        cli_embed_close(&s->e);
    }
    for (size_t i = 0; files && i < values->n_arguments; i++) base_buffer_free(&files[i]);
    free(files);
    free(s);
    return ok;
}

const struct cli_command cli_command_embed = {
    .name = "embed",
    .usage = "infer embed [-m MODEL] [FILE].. [options] < LINES.jsonl",
    .effect = "embeddings of texts, by encoders or decoders",
    .about = "Each line is a text as JSON, or an object with `text` and perhaps `id` and `lora`;\n"
             "with --lines plain text; a FILE is one text. Writes a JSON line with the numbers\n"
             "of each text, which do not depend on the other texts.",
    .max_arguments = 1 << 20,
    .takes = {"FILE"},
    .run = cmd_embed,
};
