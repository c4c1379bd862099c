/* cli/cmd/cmd_similar.c: `infer similar`: the lines whose meaning is nearest to a query's.
 *
 * An index (-o FILE, then --index FILE) is the rows and texts of lines, for other queries:
 *
 *     "INFERIDX" | u64 rows | u64 numbers of a row | u64 checksum of what follows the hash
 *     SHA-256 of the model with adapters and settings, 64 hex digits
 *     float32 [rows][numbers] | the texts, a line each
 *
 * in the byte order of this machine. */
#include "base/checksum.h"
#include "cli/cmd/ranked.h"
#include "cli/commands.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/model_hash.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct index_header {
    char magic[8];
    uint64_t rows, size, checksum;
    char hash[BASE_SHA256_HEX - 1];
};
static const char magic[] = "INFERIDX";

struct similar {
    struct cli_embed e;
    char hash[BASE_SHA256_HEX]; /* of the model */
    struct base_buffer prefix;  /* of lines */
    struct cli_embed_rows query;
    struct base_buffer rows; /* for -o: [lines][numbers] */
    char *index;             /* --index, mapped */
    size_t index_size;
    struct base_output file;
};

static bool add_line(void *user, const struct cli_ranked_line *line, struct cli_embed_rows *rows,
                     struct base_error *err)
{
    const struct similar *s = user;
    return cli_embed_add(&s->e, &s->prefix, line->text, line->size, rows, err);
}

static double score_of(void *user, const float *row)
{
    struct similar *s = user;
    if (s->e.values->output) base_buffer_add(&s->rows, row, s->e.size * sizeof *row);
    return s->query.n ? generate_embed_cosine(s->query.row[0].v, row, s->e.size) : 0;
}

/* ---- The index ---- */

static bool map_index(struct similar *s, const char *path, struct base_error *err)
{
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *data = MAP_FAILED;
    if (fd < 0) return base_fail_at(err, BASE_USAGE, path, -1, "cannot read: %s", strerror(errno));
    if (fstat(fd, &facts) == 0 && (size_t)facts.st_size >= sizeof(struct index_header))
        data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data != MAP_FAILED) {
        s->index = data;
        s->index_size = (size_t)facts.st_size;
        if (memcmp(data, magic, sizeof magic - 1) == 0) return true;
    }
    return base_fail_at(err, BASE_USAGE, path, -1, "no index of infer similar");
}

static uint64_t checksum_of(const void *numbers, size_t n, const char *texts, size_t size)
{
    return base_checksum(texts, size, base_checksum(numbers, n * sizeof(float), 0));
}

/* Checks the index and makes its texts the lines, with their scores. */
static bool score_index(struct similar *s, struct cli_ranked *lines, struct base_error *err)
{
    const char *path = s->e.values->index;
    struct index_header h;
    memcpy(&h, s->index, sizeof h);
    if (memcmp(h.hash, s->hash, sizeof h.hash) != 0)
        return base_fail_at(err, BASE_USAGE, path, -1,
                            "made with another model, other adapters or other settings");
    const float *row = (const float *)(const void *)(s->index + sizeof h);
    const uint64_t room = (s->index_size - sizeof h) / sizeof *row;
    const uint64_t n = h.rows * h.size;
    const char *texts = (const char *)(row + n), *end = s->index + s->index_size;
    if (h.size != s->e.size || h.rows > room / h.size ||
        h.checksum != checksum_of(row, n, texts, (size_t)(end - texts)))
        return base_fail_at(err, BASE_USAGE, path, -1, "damaged: its checksum is another");
    base_buffer_add(&lines->bytes, texts, (size_t)(end - texts));
    if (!cli_buffer_check(&lines->bytes, err) || !cli_ranked_split(lines, err)) return false;
    if (lines->n != h.rows)
        return base_fail_at(err, BASE_USAGE, path, -1, "damaged: not a row for each text");
    for (size_t i = 0; i < lines->n; i++) lines->line[i].score = score_of(s, row + i * h.size);
    return true;
}

static bool write_index(struct similar *s, const struct cli_ranked *lines, struct base_error *err)
{
    struct index_header h = {.rows = lines->n, .size = s->e.size};
    BASE_LOCAL_BUFFER texts = BASE_BUFFER_INIT;
    memcpy(h.magic, magic, sizeof h.magic);
    memcpy(h.hash, s->hash, sizeof h.hash);
    for (size_t i = 0; i < lines->n; i++) {
        base_buffer_add(&texts, lines->line[i].text, lines->line[i].size);
        base_buffer_add_text(&texts, "\n");
    }
    if (!cli_buffer_check(&texts, err) || !cli_buffer_check(&s->rows, err)) return false;
    h.checksum = checksum_of(s->rows.data, lines->n * s->e.size, texts.data, texts.size);
    return base_output_write(&s->file, &h, sizeof h, err) &&
           base_output_write(&s->file, s->rows.data, s->rows.size, err) &&
           base_output_write(&s->file, texts.data, texts.size, err);
}

/* ---- The command ---- */

/* Computes the row of the query, if there is one. */
static bool embed_query(struct similar *s, struct base_error *err)
{
    BASE_LOCAL_BUFFER prefix = BASE_BUFFER_INIT, text = BASE_BUFFER_INIT;
    const char *query = s->e.values->prompt;
    if (!query) return true;
    cli_input_add(&s->e.values->request, query, &text);
    return cli_embed_prefix(&s->e, CLI_EMBED_QUERY, &prefix, err) && cli_buffer_check(&text, err) &&
           cli_embed_add(&s->e, &prefix, text.data, text.size, &s->query, err) &&
           cli_embed_run(&s->e, &s->query, err);
}

static bool find(struct similar *s, const struct cli_values *v, struct cli_ranked *lines,
                 struct base_error *err)
{
    if (v->prompt ? !*v->prompt : !v->output)
        return base_fail(err, BASE_USAGE, "no query: infer similar QUERY < LINES");
    if (!(v->index ? map_index(s, v->index, err) : cli_ranked_read(lines, v, "similar", err)) ||
        !cli_embed_open(&s->e, v, NULL, v->index || v->output ? s->hash : NULL, err) ||
        !cli_embed_prefix(&s->e, CLI_EMBED_DOCUMENT, &s->prefix, err) ||
        (v->output && !cli_output_open(&s->file, v->output, v, s->e.model.file, err)))
        return false;
    if (s->e.pooling == MODEL_POOL_NONE || s->e.pooling == MODEL_POOL_RANK)
        return base_fail(err, BASE_USAGE, "the model makes no embedding of a text");
    if (!v->no_sandbox)
        cli_sandbox_close((s->file.unfinished ? CLI_SANDBOX_RENAME : 0) | cli_gpu_allows(v));
    return embed_query(s, err) &&
           (v->index ? score_index(s, lines, err)
                     : cli_ranked_run(lines, &s->e, add_line, score_of, s, err)) &&
           (!v->output || write_index(s, lines, err)) &&
           (!v->prompt || cli_ranked_write(lines, &s->e, err));
}

static bool cmd_similar(struct cli_values *values, struct base_error *err)
{
    struct similar s = {.index = NULL};
    struct cli_ranked lines = {0};
    base_output_init(&s.file);
    bool ok = find(&s, values, &lines, err);
    ok = cli_output_close(&s.file, ok, err);
    if (s.index) munmap(s.index, s.index_size);
    cli_ranked_free(&lines);
    cli_embed_rows_clear(&s.query);
    base_buffer_free(&s.rows);
    base_buffer_free(&s.prefix);
    cli_embed_close(&s.e);
    return ok;
}

const struct cli_command cli_command_similar = {
    .name = "similar",
    .usage = "infer similar [-m MODEL] QUERY [options] < LINES",
    .effect = "the lines whose meaning is nearest to a query's",
    .about = "Writes cosine and line, best first. With -o the rows of the lines become an\n"
             "index; with --index queries use it instead of lines.",
    .positional = "prompt",
    .run = cmd_similar,
};
