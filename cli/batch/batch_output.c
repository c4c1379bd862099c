/* cli/batch/batch_output.c: the output of answers. See cli/batch/batch_output.h. */
#include "cli/batch/batch_output.h"
#include "base/list.h"
#include "base/output.h"
#include "base/sha256.h"
#include "cli/batch/batch_input.h"
#include "cli/system.h"
#include "text/json/json_parse.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char model_line[] = "model ";

/* ---- Lists of lines ---- */

static bool add_line(struct cli_batch_lines *l, uint64_t number, uint64_t hash,
                     struct base_error *err)
{
    if (!BASE_LIST_ROOM(l->item, l->count, l->room))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for line numbers");
    l->item[l->count] = (struct cli_batch_line){number, hash, l->count};
    l->count++;
    return true;
}

static int compare_lines(const void *a, const void *b)
{
    const struct cli_batch_line *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_lines(struct cli_batch_lines *l)
{
    if (l->count) qsort(l->item, l->count, sizeof *l->item, compare_lines);
}

/* Returns the latest record of a number, or NULL. */
static const struct cli_batch_line *find_line(const struct cli_batch_lines *l, uint64_t number)
{
    size_t low = 0, high = l->count;
    while (low < high) { /* the records before `low` have this number or a smaller one */
        const size_t middle = low + (high - low) / 2;
        if (l->item[middle].number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && l->item[low - 1].number == number ? &l->item[low - 1] : NULL;
}

/* ---- The answers of an earlier run ---- */

static bool refuse_line(const struct cli_batch_output *o, struct base_error *err)
{
    return base_fail(err, BASE_USAGE,
                     "line %" PRIu64 " is not an answer of `infer batch`: the file was not changed",
                     o->n_held + 1);
}

/* Records which line of the input an object answers. */
static bool take_object(struct cli_batch_output *o, const char *line, size_t size,
                        struct base_error *err)
{
    struct base_error ignored = BASE_ERROR_INIT;
    json_auto_t *object = text_json_parse(line, size, NULL, &ignored);
    const json_t *number = json_object_get(object, "line");
    const json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    const json_t *error = json_object_get(object, "error");
    o->n_failed += error && !json_is_null(error);
    if (ignored.code == BASE_NO_MEMORY) return base_fail(err, BASE_NO_MEMORY, "%s", ignored.text);
    return n < 1 ? refuse_line(o, err) : add_line(&o->done, (uint64_t)n, 0, err);
}

/* Checks that the incomplete last line may be the beginning of an answer. */
static bool check_last(const struct cli_batch_output *o, bool plain, const char *line, size_t size,
                       struct base_error *err)
{
    static const char begin[] = "{\"line\":";
    const size_t n = sizeof begin - 1;
    return plain || memcmp(line, begin, size < n ? size : n) == 0 || refuse_line(o, err);
}

/* Reads the answers; *unfinished is the number of bytes of an incomplete last line. */
static bool read_answers(struct cli_batch_output *o, bool plain, size_t *unfinished,
                         struct base_error *err)
{
    struct cli_batch_input in = {.fd = o->fd, .csv = o->csv};
    enum cli_batch_read got;
    const char *line;
    size_t size;
    bool ok = true;
    *unfinished = 0;
    while (ok && (got = cli_batch_input_next(&in, true, &line, &size, err)) == CLI_BATCH_LINE) {
        if (in.unfinished) {
            ok = check_last(o, plain, line, size, err);
            *unfinished = size;
        } else {
            ok = in.too_long ? refuse_line(o, err) : plain || take_object(o, line, size, err);
            o->n_held++;
        }
    }
    ok = ok && got == CLI_BATCH_END;
    cli_batch_input_free(&in);
    sort_lines(&o->done);
    o->has_header = o->csv && o->n_held > 0;
    o->n_held -= o->has_header;
    if (plain) o->n_plain = o->n_held;
    return ok;
}

/* ---- FILE.input ---- */

static bool fail_write(const char *what, struct base_error *err)
{
    return base_fail(err, BASE_FAILED, "%s: %s", what, strerror(errno));
}

static bool cut_end(int fd, size_t size, struct base_error *err)
{
    struct stat st;
    return size == 0 || (fstat(fd, &st) == 0 && ftruncate(fd, st.st_size - (off_t)size) == 0) ||
           fail_write("cannot remove the last line", err);
}

/* Reads the first line; sets *same if it names this model. */
static bool read_model(const char *model, const char *line, size_t size, bool *same,
                       struct base_error *err)
{
    const size_t n = sizeof model_line - 1;
    if (size != n + strlen(model) || memcmp(line, model_line, n) != 0)
        return base_fail(err, BASE_USAGE, "is not a record of answered lines");
    *same = memcmp(line + n, model, size - n) == 0;
    return true;
}

static bool read_record(struct cli_batch_output *o, const char *line, size_t size,
                        struct base_error *err)
{
    char text[64], more;
    uint64_t number, hash;
    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text - 1), line);
    if (sscanf(text, "%" SCNu64 " %16" SCNx64 "%c", &number, &hash, &more) == 2)
        return add_line(&o->input, number, hash, err);
    return base_fail(err, BASE_USAGE, "is not a record of answered lines");
}

/* Reads the records; *same_model: of this model. An incomplete last record, which has no answer, is
 * removed. */
static bool read_records(struct cli_batch_output *o, const char *model, bool *same_model,
                         struct base_error *err)
{
    struct cli_batch_input in = {.fd = o->input_fd};
    enum cli_batch_read got;
    const char *line;
    size_t size, unfinished = 0;
    bool ok = true;
    while (ok && (got = cli_batch_input_next(&in, true, &line, &size, err)) == CLI_BATCH_LINE) {
        if (in.unfinished)
            unfinished = size;
        else if (in.number == 1)
            o->has_input = ok = read_model(model, line, size, same_model, err);
        else
            ok = read_record(o, line, size, err);
    }
    ok = ok && got == CLI_BATCH_END && cut_end(o->input_fd, unfinished, err);
    cli_batch_input_free(&in);
    sort_lines(&o->input);
    return ok;
}

static bool begin_records(struct cli_batch_output *o, const char *model, struct base_error *err)
{
    char text[sizeof model_line + BASE_SHA256_HEX];
    const int n = snprintf(text, sizeof text, "%s%s\n", model_line, model);
    o->input.count = 0;
    return (ftruncate(o->input_fd, 0) == 0 && base_write_all(o->input_fd, text, (size_t)n)) ||
           fail_write("write failed", err);
}

static bool refuse_text(const struct cli_batch_output *o, struct base_error *err)
{
    return base_fail(err, BASE_USAGE,
                     "is not a file of answers of `infer batch --resume`, as there is no %s.input: "
                     "the file was not changed",
                     o->path);
}

/* Opens FILE.input and checks that the answers of FILE are those of this model. */
static bool open_records(struct cli_batch_output *o, bool plain, const char *model,
                         struct base_error *err)
{
    char path[BASE_PATH_SIZE];
    struct stat st;
    bool same_model = false;
    const bool is_new = fstat(o->fd, &st) == 0 && st.st_size == 0;
    if (snprintf(path, sizeof path, "%s.input", o->path) >= (int)sizeof path)
        return base_fail(err, BASE_USAGE, "the name is too long");
    o->input_fd =
        open(path, O_RDWR | O_APPEND | O_CLOEXEC | (plain && !is_new ? 0 : O_CREAT), 0666);
    if (o->input_fd < 0 && errno == ENOENT && plain) return refuse_text(o, err);
    bool ok =
        (o->input_fd >= 0 || base_fail(err, BASE_USAGE, "cannot write: %s", strerror(errno))) &&
        read_records(o, model, &same_model, err);
    if (!ok) {
        base_error_set_file(err, path);
        return false;
    }
    if (o->n_held > 0 && o->has_input && !same_model)
        return base_fail(err, BASE_USAGE, "its answers are those of another model");
    if (!is_new && !o->has_input && plain) return refuse_text(o, err);
    if (o->n_held > 0 && !o->has_input)
        cli_note("%s: there is no %s.input, so it is not checked that its answers are those of "
                 "this input and model",
                 o->path, o->path);
    return (o->n_held > 0 && o->has_input) || begin_records(o, model, err);
}

/* ---- The file ---- */

static bool check_file(const struct cli_batch_output *o, struct base_error *err)
{
    struct stat own;
    if (fstat(o->fd, &own) != 0 || !S_ISREG(own.st_mode))
        return base_fail(err, BASE_USAGE, "is not a file of answers");
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return base_fail(err, BASE_USAGE, "another process writes it");
    return true;
}

static bool take_up(struct cli_batch_output *o, bool plain, const char *model,
                    struct base_error *err)
{
    size_t unfinished = 0;
    if (strcmp(o->path, "-") == 0)
        return base_fail(err, BASE_USAGE, "standard output holds no answers to go on after");
    o->fd = open(o->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (o->fd < 0) return base_fail(err, BASE_USAGE, "cannot write: %s", strerror(errno));
    return check_file(o, err) && read_answers(o, plain, &unfinished, err) &&
           open_records(o, plain, model, err) && cut_end(o->fd, unfinished, err);
}

bool cli_batch_output_open(struct cli_batch_output *o, const char *path, bool plain, bool csv,
                           const char *model, struct base_error *err)
{
    *o = (struct cli_batch_output){.path = path, .fd = -1, .input_fd = -1, .csv = csv};
    if (!path) return true;
    if (take_up(o, plain, model, err)) return true;
    base_error_set_file(err, path);
    return false;
}

bool cli_batch_output_has(const struct cli_batch_output *o, uint64_t number, uint64_t n,
                          uint64_t hash, bool *has, struct base_error *err)
{
    *has = n < o->n_plain || find_line(&o->done, number);
    const struct cli_batch_line *record = *has ? find_line(&o->input, number) : NULL;
    if (!record || record->hash == hash) return true;
    return base_fail_file(err, BASE_USAGE, o->path, "has the answer to another line %" PRIu64,
                          number);
}

/* Writes to the file, after a record of `n` bytes to FILE.input, and clears the buffer. */
static bool write_line(struct cli_batch_output *o, const char *record, size_t n,
                       struct base_buffer *line, struct base_error *err)
{
    bool ok = cli_buffer_check(line, err);
    if (ok && (!base_write_all(o->input_fd, record, n) ||
               !base_write_all(o->fd, line->data, line->size))) {
        ok = errno == EINTR ? base_goes_on(err) : fail_write("write failed", err);
        base_error_set_file(err, o->path);
    }
    base_buffer_clear(line);
    return ok;
}

/* Writes to the file of -o, or to standard output. */
static bool write_elsewhere(const struct cli_batch_output *o, struct base_buffer *line,
                            struct base_error *err)
{
    if (!o->file) return cli_write_buffer(line, err);
    const bool ok =
        cli_buffer_check(line, err) && base_output_write(o->file, line->data, line->size, err);
    base_buffer_clear(line);
    return ok;
}

bool cli_batch_output_begin(struct cli_batch_output *o, struct base_buffer *header,
                            struct base_error *err)
{
    if (!o->path) return write_elsewhere(o, header, err);
    if (!o->has_header) return write_line(o, "", 0, header, err);
    base_buffer_clear(header);
    return true;
}

bool cli_batch_output_write(struct cli_batch_output *o, uint64_t number, uint64_t hash,
                            struct base_buffer *line, struct base_error *err)
{
    char record[64];
    if (!o->path) return write_elsewhere(o, line, err);
    const int n = snprintf(record, sizeof record, "%" PRIu64 " %016" PRIx64 "\n", number, hash);
    return write_line(o, record, (size_t)n, line, err);
}

void cli_batch_output_close(struct cli_batch_output *o)
{
    if (!o->path) return;
    if (o->fd >= 0) close(o->fd);
    if (o->input_fd >= 0) close(o->input_fd);
    free(o->done.item);
    free(o->input.item);
    *o = (struct cli_batch_output){0};
}
