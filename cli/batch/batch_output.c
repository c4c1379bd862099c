/* cli/batch/batch_output.c: the output of answers. See cli/batch/batch_output.h. */
#include "cli/batch/batch_output.h"
#include "base/output.h"
#include "cli/chat/messages.h"
#include "cli/system.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MAX = 1 << 30 };

static bool set_done(struct cli_batch_output *o, uint64_t number, struct base_error *err)
{
    if (number >= o->n_done) {
        const uint64_t n = (number / 4096 + 1) * 8192;
        unsigned char *more = realloc(o->done, n / 8);
        if (!more) return base_fail(err, BASE_NO_MEMORY, "not enough memory for line numbers");
        memset(more + o->n_done / 8, 0, (n - o->n_done) / 8);
        o->done = more;
        o->n_done = n;
    }
    o->done[number / 8] |= (unsigned char)(1 << number % 8);
    return true;
}

static bool refuse_line(const struct cli_batch_output *o, struct base_error *err)
{
    return base_fail(err, BASE_USAGE,
                     "line %llu is not an answer of `infer batch`: the file was not changed",
                     (unsigned long long)o->n_held + 1);
}

/* Records which line of the input an object answers. */
static bool take_object(struct cli_batch_output *o, const char *line, size_t size,
                        struct base_error *err)
{
    struct base_error ignored = BASE_ERROR_INIT;
    json_t *object = cli_json_parse(line, size, "", &ignored);
    const json_t *number = json_object_get(object, "line");
    const json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    o->n_failed += json_object_get(object, "error") != NULL;
    json_decref(object);
    if (ignored.code == BASE_NO_MEMORY) return base_fail(err, BASE_NO_MEMORY, "%s", ignored.text);
    if (n < 1 || n > LINES_MAX) return refuse_line(o, err);
    return set_done(o, (uint64_t)n, err);
}

/* Reads the lines of the file; *end is the end of the last complete line. */
static bool take_lines(struct cli_batch_output *o, bool plain, const struct base_buffer *text,
                       size_t *end, struct base_error *err)
{
    static const char begin[] = "{\"line\":";
    const size_t n_begin = sizeof begin - 1;
    *end = 0;
    while (*end < text->size) {
        const char *line = text->data + *end;
        const char *stop = memchr(line, '\n', text->size - *end);
        const size_t left = text->size - *end;
        if (!stop && !plain && memcmp(line, begin, left < n_begin ? left : n_begin) != 0)
            return refuse_line(o, err);
        if (!stop) break;
        if (!plain && !take_object(o, line, (size_t)(stop - line), err)) return false;
        *end += (size_t)(stop - line) + 1;
        o->n_held++;
    }
    if (plain) o->n_plain = o->n_held;
    return true;
}

static bool check_file(const struct cli_batch_output *o, struct base_error *err)
{
    struct stat own;
    if (fstat(o->fd, &own) != 0 || !S_ISREG(own.st_mode))
        return base_fail(err, BASE_USAGE, "is not a file of answers");
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return base_fail(err, BASE_USAGE, "another process writes it");
    return true;
}

static bool take_up(struct cli_batch_output *o, bool plain, struct base_error *err)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    size_t end = 0;
    o->fd = open(o->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (o->fd < 0) {
        o->path = NULL;
        return base_fail(err, BASE_USAGE, "cannot write: %s", strerror(errno));
    }
    bool ok = check_file(o, err) && cli_file_read(o->path, &text, err) &&
              take_lines(o, plain, &text, &end, err);
    if (ok && end < text.size && ftruncate(o->fd, (off_t)end) != 0)
        ok = base_fail(err, BASE_FAILED, "cannot remove its last line: %s", strerror(errno));
    base_buffer_free(&text);
    return ok;
}

bool cli_batch_output_open(struct cli_batch_output *o, const char *path, bool plain,
                           struct base_error *err)
{
    *o = (struct cli_batch_output){.path = path};
    if (!path) return true;
    if (take_up(o, plain, err)) return true;
    base_error_set_file(err, path);
    return false;
}

bool cli_batch_output_has(const struct cli_batch_output *o, uint64_t number, uint64_t n)
{
    return n < o->n_plain || (number < o->n_done && o->done[number / 8] >> number % 8 & 1);
}

bool cli_batch_output_write(struct cli_batch_output *o, struct base_buffer *line,
                            struct base_error *err)
{
    if (!o->path) return cli_write_buffer(line, err);
    bool ok = cli_buffer_check(line, err);
    if (ok && !base_write_all(o->fd, line->data, line->size)) {
        ok = errno == EINTR ? base_goes_on(err)
                            : base_fail(err, BASE_FAILED, "write failed: %s", strerror(errno));
        base_error_set_file(err, o->path);
    }
    base_buffer_clear(line);
    return ok;
}

void cli_batch_output_close(struct cli_batch_output *o)
{
    if (o->path) close(o->fd);
    free(o->done);
    *o = (struct cli_batch_output){0};
}
