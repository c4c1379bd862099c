/* cli/cmd/ranked.c: lines of text with a score each. See cli/cmd/ranked.h. */
#include "cli/cmd/ranked.h"
#include "cli/batch/batch_input.h"
#include "cli/system.h"
#include <stdlib.h>
#include <string.h>

enum { LINES_AT_ONCE = 512 };

bool cli_ranked_split(struct cli_ranked *r, struct base_error *err)
{
    const size_t skipped = cli_mark_size(r->bytes.data, r->bytes.size);
    size_t room = 1;
    for (size_t i = 0; i < r->bytes.size; i++) room += r->bytes.data[i] == '\n';
    r->line = calloc(room, sizeof *r->line);
    if (!r->line) return base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu lines", room);
    uint64_t number = 0;
    for (size_t at = skipped, end; at < r->bytes.size; at = end + 1) {
        const char *text = r->bytes.data + at, *stop = memchr(text, '\n', r->bytes.size - at);
        size_t size = stop ? (size_t)(stop - text) : r->bytes.size - at;
        end = at + size;
        number++;
        if (size > 0 && text[size - 1] == '\r') size--;
        if (!cli_batch_is_blank(text, size))
            r->line[r->n++] = (struct cli_ranked_line){number, text, size, 0};
    }
    return true;
}

bool cli_ranked_read(struct cli_ranked *r, const struct cli_values *values, const char *command,
                     struct base_error *err)
{
    if (!values->file && cli_stdin_is_terminal())
        return base_fail(err, BASE_USAGE, "no lines: infer %s QUERY < FILE", command);
    return cli_file_read(values->file ? values->file : "-", &r->bytes, err) &&
           cli_ranked_split(r, err);
}

static bool fail_line(const struct cli_ranked_line *line, struct base_error *err)
{
    const struct base_error why = *err;
    char text[900];
    if (why.code == BASE_INTERRUPTED || why.code == BASE_NO_MEMORY) return false;
    base_error_format(&why, text, sizeof text);
    *err = BASE_ERROR_INIT;
    return base_fail(err, why.code, "line %llu: %s", (unsigned long long)line->number, text);
}

static uint64_t done_of(const void *embedder)
{
    return generate_embedder_done(embedder);
}

bool cli_ranked_run(struct cli_ranked *r, const struct cli_embed *e, cli_ranked_add add,
                    cli_ranked_score score, void *user, struct base_error *err)
{
    struct cli_embed_rows rows = {0};
    bool ok = true;
    cli_progress_begin("scoring", "lines", r->n);
    cli_progress_watch(done_of, e->embedder, generate_embedder_done(e->embedder));
    for (size_t done = 0, n; ok && done < r->n; done += n) {
        n = r->n - done < LINES_AT_ONCE ? r->n - done : LINES_AT_ONCE;
        for (size_t i = 0; ok && i < n; i++) {
            const struct cli_ranked_line *line = &r->line[done + i];
            ok = add(user, line, &rows, err) || fail_line(line, err);
        }
        ok = ok && cli_embed_run(e, &rows, err);
        for (size_t i = 0; ok && i < n; i++) r->line[done + i].score = score(user, rows.row[i].v);
        cli_embed_rows_clear(&rows);
    }
    cli_progress_end();
    return ok;
}

static int by_score(const void *a, const void *b)
{
    const struct cli_ranked_line *p = a, *q = b;
    return p->score != q->score ? (p->score < q->score) - (p->score > q->score)
                                : (p->number > q->number) - (p->number < q->number);
}

static int by_number(const void *a, const void *b)
{
    const struct cli_ranked_line *p = a, *q = b;
    return (p->number > q->number) - (p->number < q->number);
}

bool cli_ranked_write(struct cli_ranked *r, const struct cli_embed *e, struct base_error *err)
{
    const struct cli_values *values = e->values;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    const size_t n = values->top > 0 && (uint64_t)values->top < r->n ? (size_t)values->top : r->n;
    qsort(r->line, r->n, sizeof *r->line, by_score);
    if (values->in_order) qsort(r->line, n, sizeof *r->line, by_number);
    for (size_t i = 0; i < n; i++) {
        const struct cli_ranked_line *line = &r->line[i];
        if (values->json) {
            base_buffer_add_format(&out, "{\"line\":%llu,\"score\":%.6f,",
                                   (unsigned long long)line->number, line->score);
            base_buffer_add_member(&out, "text", line->text, line->size);
            cli_model_add_approximate(&e->model, &out);
            base_buffer_add_text(&out, "}\n");
        } else {
            base_buffer_add_format(&out, "%.6f\t", line->score);
            base_buffer_add(&out, line->text, line->size);
            base_buffer_add_text(&out, "\n");
        }
    }
    return cli_write_buffer(&out, err);
}

void cli_ranked_free(struct cli_ranked *r)
{
    free(r->line);
    base_buffer_free(&r->bytes);
    *r = (struct cli_ranked){0};
}
