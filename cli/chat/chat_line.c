/* cli/chat/chat_line.c: messages from standard input. See cli/chat/chat_line.h.
 *
 * libedit draws on standard output if that is a terminal, otherwise on standard error, so that the
 * output of `infer chat >file` has only answers. A function here reads its characters, because
 * Ctrl-C must end a line and nothing else. */
#include "cli/chat/chat_line.h"
#include "base/utf8.h"
#include "cli/chat/chat_history.h"
#include "cli/system.h"
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

struct cli_lines {
    EditLine *edit; /* NULL: plain lines */
    struct cli_history *history;
    FILE *in, *out, *report;
    const wchar_t *prompt;
    bool colour, keep;
    bool marks_pastes;       /* the terminal can mark pasted text */
    bool interrupted;        /* Ctrl-C was typed while a line was edited */
    char bytes[16384];       /* plain lines: read and not used yet */
    size_t n_bytes, at_byte; /* number of bytes, and index of the next one */
    bool waited;             /* for the first of them */
};

/* ---- Editing ---- */

/* libedit draws a marked sequence together with the following letter. */
static const wchar_t *const prompts[2][2] = {
    {L"> ", L"... "}, {L"\1\033[1;32m\1>\1\033[0m\1 ", L"\1\033[1;32m\1...\1\033[0m\1 "}};

static wchar_t *give_prompt(EditLine *edit)
{
    struct cli_lines *l = NULL;
    el_wget(edit, EL_CLIENTDATA, &l);
    return (wchar_t *)(uintptr_t)l->prompt; /* libedit's interface has no const */
}

/* After a pause (Ctrl-Z) the terminal's modes must be restored; after a change of size the line
 * must be drawn again. Both interrupt reading. */
static void on_resume(int number)
{
    (void)number;
}

static void listen_for_resume(void)
{
    struct sigaction action = {.sa_handler = on_resume};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCONT, &action, NULL);
    sigaction(SIGWINCH, &action, NULL);
}

/* Sleeps until a byte or a signal arrives. The signal is blocked outside of the sleep, so that a
 * Ctrl-C just before it ends it too. */
static bool wait_for_byte(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    const bool ready = !base_interrupted() && ppoll(&input, 1, NULL, &before) > 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready;
}

/* Switches the marking of pasted text on or off. */
static void mark_pastes(const struct cli_lines *l, bool on)
{
    if (!l->marks_pastes) return;
    fputs(on ? "\033[?2004h" : "\033[?2004l", l->out);
    fflush(l->out);
}

/* Reads a byte. Returns 1, or 0 at the end of the input, or -1 for Ctrl-C and errors. */
static int read_byte(struct cli_lines *l, char *byte)
{
    for (;;) {
        if (wait_for_byte()) {
            const ssize_t n = read(STDIN_FILENO, byte, 1);
            if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return (int)n;
        }
        if (base_interrupted()) {
            l->interrupted = true;
            return -1;
        }
        el_resize(l->edit);
        el_wset(l->edit, EL_PREP_TERM, 0);
        el_wset(l->edit, EL_PREP_TERM, 1);
        mark_pastes(l, true);
        el_wset(l->edit, EL_REFRESH);
    }
}

static int get_character(EditLine *edit, wchar_t *out)
{
    struct cli_lines *l = NULL;
    char bytes[4];
    size_t n = 0;
    int32_t code;
    el_wget(edit, EL_CLIENTDATA, &l);
    do {
        const int got = read_byte(l, &bytes[n]);
        if (got <= 0) return got;
        n++;
    } while (n < sizeof bytes && base_utf8_open_tail(bytes, n) == n);
    base_utf8_decode(bytes, n, &code);
    *out = code < 0 ? 0xfffd : (wchar_t)code;
    return 1;
}

/* ---- Pasted text ---- */

/* Terminals send these before and after pasted text if bracketed paste is on. */
static const wchar_t paste_begin[] = L"\033[200~";
static const char paste_end[] = "\033[201~";

/* Inserts a character of a pasted text into the line; drops control characters other than TAB and
 * line ends. */
static bool insert(EditLine *edit, int32_t code)
{
    const wchar_t text[] = {code < 0 ? 0xfffd : (wchar_t)code, 0};
    const bool is_control = *text < L' ' || *text == 0x7f;
    return (is_control && *text != L'\n' && *text != L'\t') || el_winsertstr(edit, text) == 0;
}

/* Inserts a pasted text; terminals send its line ends as CR. */
static bool insert_all(EditLine *edit, const struct base_buffer *pasted)
{
    bool ok = !pasted->failed;
    for (size_t i = 0; ok && i < pasted->size;) {
        int32_t code;
        i += base_utf8_decode(pasted->data + i, pasted->size - i, &code);
        ok = insert(edit, code == '\r' ? '\n' : code);
    }
    return ok;
}

/* Runs at the start mark of a paste: inserts the pasted text into the line, without its last line
 * ends. */
static unsigned char take_paste(EditLine *edit, wint_t key)
{
    struct cli_lines *l = NULL;
    struct base_buffer pasted = BASE_BUFFER_INIT;
    const size_t n = sizeof paste_end - 1;
    char byte;
    int got = 1;
    bool ends = false;
    (void)key;
    el_wget(edit, EL_CLIENTDATA, &l);
    while (!ends && (got = read_byte(l, &byte)) > 0) {
        base_buffer_add(&pasted, &byte, 1);
        ends = pasted.size >= n && memcmp(pasted.data + pasted.size - n, paste_end, n) == 0;
    }
    if (ends) pasted.size -= n;
    while (pasted.size && strchr("\r\n", pasted.data[pasted.size - 1])) pasted.size--;
    const bool ok = ends && insert_all(edit, &pasted);
    base_buffer_free(&pasted);
    return ok ? CC_REFRESH : got > 0 ? CC_ERROR : CC_EOF;
}

/* ---- The editor ---- */

/* Sets a UTF-8 locale; without one libedit shows other letters by their numbers. */
static void set_locale(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

static FILE *open_stream(int fd, const char *mode)
{
    const int copy = dup(fd);
    FILE *stream = copy >= 0 ? fdopen(copy, mode) : NULL;
    if (!stream && copy >= 0) close(copy);
    return stream;
}

static bool open_editor(struct cli_lines *l)
{
    const char *term = getenv("TERM");
    set_locale();
    l->in = open_stream(STDIN_FILENO, "r");
    l->out = open_stream(cli_stdout_is_terminal() ? STDOUT_FILENO : STDERR_FILENO, "w");
    l->report = open_stream(STDERR_FILENO, "w");
    if (!l->in || !l->out || !l->report) return false;
    l->edit = el_init("infer", l->in, l->out, l->report);
    if (!l->edit) return false;
    l->history = cli_history_open(l->keep);
    el_wset(l->edit, EL_CLIENTDATA, l);
    el_wset(l->edit, EL_PROMPT_ESC, give_prompt, L'\1');
    el_wset(l->edit, EL_GETCFN, get_character);
    el_wset(l->edit, EL_EDITOR, L"emacs");
    el_wset(l->edit, EL_SIGNAL, 0);
    el_wset(l->edit, EL_BIND, L"^R", L"em-inc-search-prev", NULL);
    el_wset(l->edit, EL_BIND, L"^I", L"ed-insert", NULL);
    el_wset(l->edit, EL_ADDFN, L"take-paste", L"inserts what is pasted", take_paste);
    el_wset(l->edit, EL_BIND, paste_begin, L"take-paste", NULL);
    l->marks_pastes = term && *term && strcmp(term, "dumb") != 0;
    if (l->history) el_wset(l->edit, EL_HIST, history_w, cli_history_list(l->history));
    listen_for_resume();
    return true;
}

static enum cli_line_result edit_line(struct cli_lines *l, struct base_buffer *out)
{
    int n = 0;
    l->interrupted = false;
    el_resize(l->edit);
    mark_pastes(l, true);
    const wchar_t *line = el_wgets(l->edit, &n);
    mark_pastes(l, false);
    if (l->interrupted) {
        cli_interrupt_reset();
        cli_tell("\n");
        return CLI_LINE_INTERRUPTED;
    }
    if (!line || n <= 0) {
        cli_tell("\n");
        return CLI_LINE_END;
    }
    const size_t start = out->size;
    if (line[n - 1] == L'\n') n--;
    for (int i = 0; i < n; i++) {
        char bytes[4];
        base_buffer_add(out, bytes, base_utf8_encode((int32_t)line[i], bytes));
    }
    if (out->size > start && l->history)
        cli_history_add(l->history, out->data + start, out->size - start);
    return CLI_LINE_READ;
}

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
    l->prompt = prompts[l->colour][!first];
    result = l->edit ? edit_line(l, out) : plain_line(l, out, err);
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
        l->keep = keep;
        if (!edit || open_editor(l)) return l;
    }
    cli_lines_close(l);
    base_fail(err, BASE_NO_MEMORY, "the line editor cannot be started");
    return NULL;
}

void cli_lines_close(struct cli_lines *l)
{
    if (!l) return;
    if (l->edit) el_end(l->edit);
    cli_history_close(l->history);
    FILE *const streams[] = {l->in, l->out, l->report};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i]) fclose(streams[i]);
    free(l);
}
