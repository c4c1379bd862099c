/* cli/batch/batch_input.c: reads lines as they arrive. See cli/batch/batch_input.h. */
#include "cli/batch/batch_input.h"
#include "base/interrupt.h"
#include "cli/system.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 1 << 16 };

bool cli_batch_input_open(struct cli_batch_input *in, const char *path, const char *command,
                          struct base_error *err)
{
    if (path && strcmp(path, "-") != 0) {
        struct stat st;
        in->fd = open(path, O_RDONLY | O_CLOEXEC);
        const bool is_folder = in->fd >= 0 && fstat(in->fd, &st) == 0 && S_ISDIR(st.st_mode);
        if (in->fd >= 0 && !is_folder) return true;
        const int why = is_folder ? EISDIR : errno;
        if (is_folder) close(in->fd);
        in->fd = 0;
        return base_fail_file(err, BASE_USAGE, path, "cannot read: %s", strerror(why));
    }
    if (path || !cli_stdin_is_terminal()) return true;
    return base_fail(err, BASE_USAGE, "no lines: give -f FILE or pipe them in; see infer %s --help",
                     command);
}

/* Removes the bytes before `at`. */
static void drop_used(struct cli_batch_input *in)
{
    if (in->at == 0) return;
    memmove(in->bytes.data, in->bytes.data + in->at, in->bytes.size - in->at);
    in->bytes.size -= in->at;
    in->looked_at -= in->at;
    in->at = 0;
}

/* Reads more bytes; returns CLI_BATCH_LINE if there are some. */
static enum cli_batch_read read_more(struct cli_batch_input *in, bool wait, struct base_error *err)
{
    char piece[STEP];
    if (wait && in->number == 0 && in->fd == STDIN_FILENO && in->bytes.size == 0)
        cli_stdin_announce();
    for (;;) {
        if (!base_goes_on(err)) return CLI_BATCH_FAILED;
        struct pollfd ready = {.fd = in->fd, .events = POLLIN};
        const int there = poll(&ready, 1, wait ? -1 : 0);
        if (!base_goes_on(err)) return CLI_BATCH_FAILED;
        if (there == 0) return CLI_BATCH_LATER;
        const ssize_t n = there < 0 ? -1 : read(in->fd, piece, sizeof piece);
        if (n == 0) return CLI_BATCH_END;
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) {
            base_fail(err, errno == EISDIR ? BASE_USAGE : BASE_FAILED, "cannot read the lines: %s",
                      strerror(errno));
            return CLI_BATCH_FAILED;
        }
        drop_used(in);
        base_buffer_add(&in->bytes, piece, (size_t)n);
        if (!in->bytes.failed) return CLI_BATCH_LINE;
        base_fail(err, BASE_NO_MEMORY, "not enough memory for line %llu",
                  (unsigned long long)in->number + 1);
        return CLI_BATCH_FAILED;
    }
}

/* Returns the bytes up to `end`; the next line starts at `next`. Leaves out a byte-order mark
 * before the first line. */
static enum cli_batch_read give(struct cli_batch_input *in, size_t end, size_t next,
                                const char **line, size_t *size, struct base_error *err)
{
    if (in->number == 0 && cli_is_utf16(in->bytes.data, in->bytes.size)) {
        base_fail(err, BASE_USAGE, "the input " CLI_UTF16_ADVICE);
        return CLI_BATCH_FAILED;
    }
    if (in->number == 0) in->at += cli_mark_size(in->bytes.data + in->at, end - in->at);
    in->too_long |= end - in->at > CLI_BATCH_LINE_MAX;
    *line = in->bytes.data + in->at;
    *size = in->too_long ? 0 : end - in->at;
    in->at = in->looked_at = next;
    in->number++;
    return CLI_BATCH_LINE;
}

/* Reads a byte of a record. Quotes open at the start of a field; two of them within are one. */
static void step_quotes(struct cli_batch_input *in, const char *at)
{
    const bool starts = at == in->bytes.data + in->at || strchr(",;\t", at[-1]);
    if (*at != '"')
        in->quotes = in->quotes == CLI_QUOTES_OPEN ? CLI_QUOTES_OPEN : CLI_QUOTES_NONE;
    else if (in->quotes == CLI_QUOTES_OPEN)
        in->quotes = CLI_QUOTES_CLOSED;
    else if (in->quotes == CLI_QUOTES_CLOSED || starts)
        in->quotes = CLI_QUOTES_OPEN;
}

/* Returns the end of the latest line, or NULL if it is beyond the bytes. */
static const char *find_end(struct cli_batch_input *in)
{
    const char *at = in->bytes.data + in->looked_at, *end = in->bytes.data + in->bytes.size;
    if (in->looked_at == in->bytes.size) return NULL;
    if (!in->csv) return memchr(at, '\n', (size_t)(end - at));
    for (; at < end; at++) {
        step_quotes(in, at);
        if (*at == '\n' && in->quotes == CLI_QUOTES_NONE) return at;
    }
    return NULL;
}

enum cli_batch_read cli_batch_input_next(struct cli_batch_input *in, bool wait, const char **line,
                                         size_t *size, struct base_error *err)
{
    if (in->looked_at == in->at) in->too_long = false; /* the latest line has ended */
    for (;;) {
        const char *end = find_end(in);
        if (end) {
            const size_t at = (size_t)(end - in->bytes.data);
            return give(in, at, at + 1, line, size, err);
        }
        in->looked_at = in->bytes.size;
        if (in->bytes.size - in->at > CLI_BATCH_LINE_MAX) {
            in->too_long = true;
            in->at = in->bytes.size - 1; /* the line that is too long has not ended */
        }
        const enum cli_batch_read got = in->ended ? CLI_BATCH_END : read_more(in, wait, err);
        if (got == CLI_BATCH_END) {
            in->ended = true;
            if (in->at == in->bytes.size) return CLI_BATCH_END;
            in->unfinished = true;
            return give(in, in->bytes.size, in->bytes.size, line, size, err);
        }
        if (got != CLI_BATCH_LINE) return got;
    }
}

bool cli_batch_input_answer(struct cli_batch_input *in, const struct cli_batch_groups *g,
                            struct base_error *err)
{
    for (;;) {
        const char *line;
        size_t size;
        const bool full = *g->n_items == g->items_max || *g->n_bytes > g->bytes_max;
        const enum cli_batch_read got =
            full ? CLI_BATCH_LATER : cli_batch_input_next(in, *g->n_items == 0, &line, &size, err);
        if (got == CLI_BATCH_FAILED) return false;
        if (got == CLI_BATCH_LINE && !g->take(g->user, line, size, err)) return false;
        if (got != CLI_BATCH_LINE && *g->n_items > 0 && !g->answer(g->user, err)) return false;
        if (got == CLI_BATCH_END) return true;
    }
}

bool cli_batch_is_blank(const char *line, size_t size)
{
    size_t n = 0;
    while (n < size && (line[n] == ' ' || line[n] == '\t' || line[n] == '\r')) n++;
    return n == size;
}

uint64_t cli_batch_input_count(const struct cli_batch_input *in, bool blank)
{
    struct stat st;
    char piece[STEP];
    uint64_t lines = 0;
    bool has_text = false, has_bytes = false, quoted = false; /* of the line so far */
    if (fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
    const off_t start = lseek(in->fd, 0, SEEK_CUR);
    for (off_t at = start < 0 ? 0 : start; !base_interrupted();) {
        const ssize_t n = pread(in->fd, piece, sizeof piece, at);
        if (n <= 0) break;
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            quoted ^= in->csv && piece[i] == '"';
            const bool ends = piece[i] == '\n' && !quoted;
            if (ends) lines += blank || has_text;
            has_bytes = !ends;
            has_text = !ends && (has_text || !cli_batch_is_blank(&piece[i], 1));
        }
    }
    return lines + (blank ? has_bytes : has_text);
}

void cli_batch_input_free(struct cli_batch_input *in)
{
    base_buffer_free(&in->bytes);
}
