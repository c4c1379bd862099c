/* cli/chat/chat_line.c: messages from standard input. See cli/chat/chat_line.h. */
#include "cli/chat/chat_line.h"
#include "base/interrupt.h"
#include "cli/chat/chat_editor.h"
#include "cli/system.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_lines {
    struct cli_editor *editor; /* NULL: plain lines */
    bool colour;
    char bytes[16384];       /* plain lines: read and not used yet */
    size_t n_bytes, at_byte; /* number of bytes, and index of the next one */
    bool waited;             /* for the first of them */
};

/* libedit draws a marked sequence together with the following letter. */
static const wchar_t *const prompts[2][2] = {
    {L"> ", L"... "}, {L"\1\033[1;32m\1>\1\033[0m\1 ", L"\1\033[1;32m\1...\1\033[0m\1 "}};

/* ---- Plain lines ---- */

static bool ends_with(const struct base_buffer *b, size_t from, const char *what)
{
    const size_t n = strlen(what);
    return b->size >= from + n && memcmp(b->data + b->size - n, what, n) == 0;
}

static void cut(struct base_buffer *b, size_t size)
{
    b->size = size;
    if (b->data) b->data[size] = '\0';
}

/* Reads up to the line end, which is LF or CR LF. */
static enum cli_line_result plain_line(struct cli_lines *l, struct base_buffer *out,
                                       struct base_error *err)
{
    const size_t start = out->size;
    for (bool any = false;; any = true) {
        if (l->at_byte == l->n_bytes) {
            if (!l->waited) cli_stdin_announce();
            l->waited = true;
            if (base_interrupted()) return CLI_LINE_INTERRUPTED;
            const ssize_t n = read(STDIN_FILENO, l->bytes, sizeof l->bytes);
            if (n < 0 && errno == EINTR && base_interrupted()) return CLI_LINE_INTERRUPTED;
            if (n < 0 && errno == EAGAIN) /* another process may have set O_NONBLOCK */
                poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
            if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (n < 0) {
                base_fail(err, BASE_FAILED, "standard input: cannot read: %s", strerror(errno));
                return CLI_LINE_FAILED;
            }
            if (n == 0) return any ? CLI_LINE_READ : CLI_LINE_END;
            l->n_bytes = (size_t)n;
            l->at_byte = 0;
        }
        const char *from = l->bytes + l->at_byte;
        const size_t left = l->n_bytes - l->at_byte;
        const char *end = memchr(from, '\n', left);
        base_buffer_add(out, from, end ? (size_t)(end - from) : left);
        l->at_byte += end ? (size_t)(end - from) + 1 : left;
        if (!end) continue;
        if (ends_with(out, start, "\r")) cut(out, out->size - 1);
        return CLI_LINE_READ;
    }
}

/* ---- Messages ---- */

static enum cli_line_result next_line(struct cli_lines *l, bool first, struct base_buffer *out,
                                      struct base_error *err)
{
    enum cli_line_result result;
    result = l->editor ? cli_editor_line(l->editor, prompts[l->colour][!first], out)
                       : plain_line(l, out, err);
    if (!out->failed) return result;
    base_fail(err, BASE_NO_MEMORY, "not enough memory for a line");
    return CLI_LINE_FAILED;
}

/* A fence has at least three quotes. A fence of the same length closes the block, so that shorter
 * ones in the text do not end it. */
enum { FENCE_MIN = 3 };

static size_t fence_before(const struct base_buffer *b, size_t from)
{
    size_t n = 0;
    while (b->size > from + n && b->data[b->size - 1 - n] == '"') n++;
    return n;
}

/* Turns pasted text of several lines into the message: the whole text, or if it is a block with
 * fences the text between them. */
static void take_lines(struct base_buffer *out)
{
    const size_t fence = strspn(out->data, "\"");
    const size_t both = 2 * (fence + 1);
    const char *end = out->data + out->size - fence - 1;
    if (fence < FENCE_MIN || out->data[fence] != '\n' || out->size <= both || *end != '\n' ||
        fence_before(out, 0) != fence)
        return;
    memmove(out->data, out->data + fence + 1, out->size - both);
    cut(out, out->size - both);
}

/* Reads lines up to one that ends with the fence, or to the end of the input. */
static enum cli_line_result read_block(struct cli_lines *l, size_t fence, struct base_buffer *out,
                                       struct base_error *err)
{
    for (;;) {
        const size_t start = out->size;
        const enum cli_line_result result = next_line(l, false, out, err);
        if (result == CLI_LINE_END) return CLI_LINE_READ;
        if (result != CLI_LINE_READ) return result;
        if (fence_before(out, start) >= fence) {
            cut(out, out->size - fence);
            if (out->size == start && start > 0) cut(out, start - 1); /* the line break before */
            return CLI_LINE_READ;
        }
        base_buffer_add(out, "\n", 1);
    }
}

enum cli_line_result cli_lines_next(struct cli_lines *l, struct base_buffer *out, bool *is_text,
                                    struct base_error *err)
{
    base_buffer_clear(out);
    *is_text = false;
    enum cli_line_result result = next_line(l, true, out, err);
    if (result != CLI_LINE_READ || out->size == 0) return result;
    const size_t fence = strspn(out->data, "\"");
    *is_text = fence >= FENCE_MIN || memchr(out->data, '\n', out->size);
    if (memchr(out->data, '\n', out->size)) {
        take_lines(out);
        return CLI_LINE_READ;
    }
    if (fence >= FENCE_MIN) {
        const size_t rest = out->size - fence;
        memmove(out->data, out->data + fence, rest);
        cut(out, rest);
        if (fence_before(out, 0) >= fence) {
            cut(out, rest - fence);
            return CLI_LINE_READ;
        }
        if (rest) base_buffer_add(out, "\n", 1);
        return read_block(l, fence, out, err);
    }
    while (ends_with(out, 0, "\\")) {
        out->data[out->size - 1] = '\n';
        result = next_line(l, false, out, err);
        if (result == CLI_LINE_END) break;
        if (result != CLI_LINE_READ) return result;
    }
    return CLI_LINE_READ;
}

/* ---- Lines and messages ---- */

struct cli_lines *cli_lines_open(bool edit, bool colour, bool keep, struct base_error *err)
{
    struct cli_lines *l = calloc(1, sizeof *l);
    if (l) {
        l->colour = colour;
        if (!edit || cli_editor_open(keep, &l->editor)) return l;
    }
    free(l);
    return base_null(base_fail(err, BASE_NO_MEMORY, "the line editor cannot be started"));
}

void cli_lines_hide_typing(struct cli_lines *l, bool hide)
{
    cli_editor_hide_typing(l->editor, hide);
}

void cli_lines_close(struct cli_lines *l)
{
    if (!l) return;
    cli_editor_close(l->editor);
    free(l);
}
