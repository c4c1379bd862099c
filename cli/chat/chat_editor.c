/* cli/chat/chat_editor.c: edited lines, by libedit. See cli/chat/chat_editor.h.
 *
 * libedit draws on standard output if that is a terminal, otherwise on standard error, so that the
 * output of `infer chat >file` has only answers. A function here reads its characters, because
 * Ctrl-C must end a line and nothing else. */
#include "cli/chat/chat_editor.h"
#include "base/utf8.h"
#include "cli/chat/chat_history.h"
#include "cli/signals.h"
#include "cli/system.h"
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

struct cli_editor {
    EditLine *edit;
    struct cli_history *history;
    FILE *in, *out, *report;
    const wchar_t *prompt;
    bool marks_pastes;    /* the terminal can mark pasted text */
    bool interrupted;     /* Ctrl-C was typed while a line was edited */
    struct termios modes; /* of the terminal, outside of editing */
    bool has_modes;
};

/* ---- Editing ---- */

static wchar_t *give_prompt(EditLine *edit)
{
    struct cli_editor *l = NULL;
    el_wget(edit, EL_CLIENTDATA, &l);
    return (wchar_t *)(uintptr_t)l->prompt; /* libedit's interface has no const */
}

/* After a pause (Ctrl-Z) the terminal's modes must be restored; after a change of size the line
 * must be drawn again. Both interrupt reading. */
static void on_resume(int number)
{
    (void)number;
}

void cli_editor_hide_typing(struct cli_editor *l, bool hide)
{
    if (!l || !l->has_modes) return;
    struct termios hidden = l->modes;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    tcsetattr(STDIN_FILENO, TCSANOW, hide ? &hidden : &l->modes);
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
    fd_set input;
    sigset_t interrupt, before;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    const bool ready =
        !base_interrupted() && pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before) > 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready;
}

/* Switches the marking of pasted text on or off. */
static void mark_pastes(const struct cli_editor *l, bool on)
{
    if (!l->marks_pastes) return;
    fputs(on ? "\033[?2004h" : "\033[?2004l", l->out);
    fflush(l->out);
}

/* Reads a byte. Returns 1, or 0 at the end of the input, or -1 for Ctrl-C and errors. */
static int read_byte(struct cli_editor *l, char *byte)
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
    struct cli_editor *l = NULL;
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
    struct cli_editor *l = NULL;
    BASE_LOCAL_BUFFER pasted = BASE_BUFFER_INIT;
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
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *stream = copy >= 0 ? fdopen(copy, mode) : NULL;
    if (!stream && copy >= 0) close(copy);
    return stream;
}

static bool open_editor(struct cli_editor *l, bool keep)
{
    const char *term = getenv("TERM");
    set_locale();
    l->in = open_stream(STDIN_FILENO, "r");
    l->out = open_stream(cli_stdout_is_terminal() ? STDOUT_FILENO : STDERR_FILENO, "w");
    l->report = open_stream(STDERR_FILENO, "w");
    if (!l->in || !l->out || !l->report) return false;
    l->edit = el_init("infer", l->in, l->out, l->report);
    if (!l->edit) return false;
    l->history = cli_history_open(keep);
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
    l->has_modes = tcgetattr(STDIN_FILENO, &l->modes) == 0;
    if (l->has_modes) cli_signals_terminal(&l->modes);
    return true;
}

enum cli_line_result cli_editor_line(struct cli_editor *l, const wchar_t *prompt,
                                     struct base_buffer *out)
{
    int n = 0;
    l->prompt = prompt;
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

bool cli_editor_open(bool keep, struct cli_editor **out)
{
    *out = calloc(1, sizeof **out);
    if (*out && open_editor(*out, keep)) return true;
    cli_editor_close(*out);
    return false;
}

void cli_editor_close(struct cli_editor *l)
{
    if (!l) return;
    if (l->edit) el_end(l->edit);
    cli_signals_terminal(NULL);
    cli_history_close(l->history);
    FILE *const streams[] = {l->in, l->out, l->report};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i]) fclose(streams[i]);
    free(l);
}
