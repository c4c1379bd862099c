/* cli/progress.c: shows how far long work is. See cli/progress.h. */
#include "cli/progress.h"
#include "base/clock.h"
#include "base/os.h"
#include "base/output.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    FIRST_MS = 1000,
    EACH_MS = 500,
    BAR_MIN = 8, /* cells */
    BAR_MAX = 24,
    PART_SIZE = 128,
    WIDTH = 80, /* if the terminal does not report its width */
    WIDTH_MAX = 300,
    HOURS_MAX = 100 /* a longer remaining time is not shown: it is inaccurate */
};

/* ---- The text of the line ---- */

static char *add_text(char *at, const char *text)
{
    const size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

static char *add_number(char *at, uint64_t number)
{
    char digits[20];
    size_t n = 0;
    do digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0) *at++ = digits[--n];
    return at;
}

/* Adds a number of tenths: "12.3". */
static char *add_tenths(char *at, uint64_t tenths)
{
    at = add_number(at, tenths / 10);
    *at++ = '.';
    return add_number(at, tenths % 10);
}

static char *add_two_digits(char *at, uint64_t number)
{
    *at++ = (char)('0' + number / 10 % 10);
    *at++ = (char)('0' + number % 10);
    return at;
}

static bool is_bytes(const struct cli_progress_view *v)
{
    return strcmp(v->unit, "bytes") == 0;
}

/* Returns a * b / c without overflow, rounded to the nearest; c > 0. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
    const double x = (double)a * (double)b / (double)c + 0.5;
    return x < 1e18 ? (uint64_t)x : (uint64_t)1e18;
}

static bool is_share(const struct cli_progress_view *v)
{
    return strcmp(v->unit, "%") == 0;
}

static char *add_amount(char *at, const struct cli_progress_view *v, uint64_t n)
{
    if (is_share(v)) return add_number(at, n / 10);
    return is_bytes(v) ? add_tenths(at, n / 100000) : add_number(at, n);
}

/* Adds ", 812/s"; slow work is counted by the minute. */
static char *add_rate(char *at, const struct cli_progress_view *v)
{
    if (v->done <= v->first || v->ms_done == 0 || is_share(v)) return at;
    const uint64_t n = v->done - v->first;
    const uint64_t per_second = scaled(n, is_bytes(v) ? 1 : 10000, v->ms_done); /* tenths */
    at = add_text(at, ", ");
    if (is_bytes(v)) return add_text(add_tenths(at, per_second / 100), " MB/s");
    if (per_second >= 1000) return add_text(add_number(at, (per_second + 5) / 10), "/s");
    if (per_second >= 10) return add_text(add_tenths(at, per_second), "/s");
    return add_text(add_tenths(at, scaled(n, 600000, v->ms_done)), "/min");
}

/* Adds ", 0:39 left": the time that the remaining units take at the rate so far, less the time
 * since the last one was done. */
static char *add_left(char *at, const struct cli_progress_view *v)
{
    if (v->done <= v->first || v->done >= v->total || v->ms_done == 0) return at;
    const uint64_t ms = scaled(v->total - v->done, v->ms_done, v->done - v->first);
    const uint64_t since = v->ms - v->ms_done;
    const uint64_t s = (ms > since ? ms - since + 500 : 0) / 1000;
    if (s >= HOURS_MAX * 3600) return at;
    at = add_text(at, ", ");
    if (s >= 3600) {
        at = add_number(at, s / 3600);
        *at++ = ':';
        at = add_two_digits(at, s / 60 % 60);
    } else {
        at = add_number(at, s / 60);
    }
    *at++ = ':';
    return add_text(add_two_digits(at, s % 60), " left");
}

/* Adds a bar of `cells` cells, filled by eighths of a cell (U+2588 back to U+258F). */
static char *add_bar(char *at, const struct cli_progress_view *v, size_t cells)
{
    const uint64_t eighths = v->done < v->total ? scaled(8 * cells, v->done, v->total) : 8 * cells;
    *at++ = '|';
    for (size_t cell = 0; cell < cells; cell++) {
        const uint64_t here = eighths > 8 * cell ? eighths - 8 * cell : 0;
        const char block[4] = {'\xe2', '\x96', (char)(0x90 - (here < 8 ? here : 8)), '\0'};
        at = add_text(at, here > 0 ? block : " ");
    }
    *at++ = '|';
    return at;
}

size_t cli_progress_format(const struct cli_progress_view *v, size_t width,
                           char out[CLI_PROGRESS_LINE], size_t *columns)
{
    char part[5][PART_SIZE], *end[5], *at = out;
    enum { DONE, UNIT, RATE, LEFT, NOTE };
    static const int order[] = {DONE, UNIT, LEFT, RATE, NOTE}; /* the most important first */
    const size_t room = width > 0 ? width - 1 : 0;
    bool has[5] = {false};
    size_t used = 0;
    end[DONE] = add_text(add_text(part[DONE], v->what), ": ");
    end[DONE] = add_amount(end[DONE], v, v->done < v->total || !v->total ? v->done : v->total);
    if (v->total && !is_share(v)) end[DONE] = add_amount(add_text(end[DONE], " of "), v, v->total);
    end[UNIT] = add_text(add_text(part[UNIT], " "), is_bytes(v) ? "MB" : v->unit);
    end[RATE] = add_rate(part[RATE], v);
    end[LEFT] = add_left(part[LEFT], v);
    end[NOTE] = part[NOTE];
    if (*v->note) end[NOTE] = add_text(add_text(part[NOTE], ", "), v->note);
    for (int i = 0; i < 5; i++) {
        const size_t size = (size_t)(end[order[i]] - part[order[i]]);
        if (used + size > room) break;
        has[order[i]] = true;
        used += size;
    }
    for (int i = 0; i < 5; i++)
        if (has[i]) {
            memcpy(at, part[i], (size_t)(end[i] - part[i]));
            at += end[i] - part[i];
        }
    if (v->total && has[NOTE] && used + 2 + BAR_MIN + 2 <= room) {
        const size_t cells = room - used - 4 < BAR_MAX ? room - used - 4 : BAR_MAX;
        at = add_bar(add_text(at, "  "), v, cells);
        used += cells + 4;
    }
    *columns = used;
    return (size_t)(at - out);
}

/* ---- The line on the terminal ---- */

/* Global: there is one terminal, and whatever writes to it must erase the line first. */
static struct {
    struct cli_progress_view view;
    uint64_t done; /* of cli_progress_set and add */
    cli_progress_count *count;
    const void *object;
    uint64_t origin;
    char note[2][CLI_PROGRESS_NOTE]; /* one is shown while the other is written */
    uint64_t start;                  /* ms of the clock */
    volatile sig_atomic_t hidden;    /* other output has begun */
    size_t columns;                  /* of the line on the terminal; 0: none */
    bool runs;
    struct base_os_timer timer; /* if it runs */
} progress_state;

static uint64_t now_ms(void)
{
    return (uint64_t)(base_seconds() * 1e3);
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return WIDTH;
    return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

static uint64_t done_now(void)
{
    uint64_t done = __atomic_load_n(&progress_state.done, __ATOMIC_RELAXED);
    if (progress_state.count) done += progress_state.count(progress_state.object);
    return done > progress_state.origin ? done - progress_state.origin : 0;
}

/* Shows the line; spaces after it erase the rest of a longer one. Runs on the thread that began the
 * work, between two of its instructions; async-signal-safe. */
static void show(int number, siginfo_t *info, void *context)
{
    struct cli_progress_view *v = &progress_state.view;
    char line[1 + CLI_PROGRESS_LINE + WIDTH_MAX] = "\r";
    size_t columns;
    (void)number;
    (void)context;
    if (!base_os_timer_sent(info) || progress_state.hidden) return;
    const uint64_t done = done_now();
    v->ms = now_ms() - progress_state.start;
    if (done != v->done) v->ms_done = v->ms;
    v->done = done;
    const size_t width = terminal_width();
    size_t size = 1 + cli_progress_format(v, width, line + 1, &columns);
    const size_t before = progress_state.columns < width ? progress_state.columns : width - 1;
    for (size_t i = columns; i < before; i++) line[size++] = ' ';
    base_write_all(STDERR_FILENO, line, size);
    progress_state.columns = columns > before ? columns : before;
}

void cli_progress_begin(const char *what, const char *unit, uint64_t total)
{
    cli_progress_end();
    if (!isatty(STDERR_FILENO)) return;
    progress_state.view = (struct cli_progress_view){
        .what = what, .unit = unit, .note = progress_state.note[0], .total = total};
    progress_state.note[0][0] = '\0';
    progress_state.done = progress_state.origin = 0;
    progress_state.start = now_ms();
    progress_state.count = NULL;
    progress_state.runs = base_os_timer_start(&progress_state.timer, show, FIRST_MS, EACH_MS);
}

void cli_progress_set(uint64_t done)
{
    __atomic_store_n(&progress_state.done, done, __ATOMIC_RELAXED);
}

void cli_progress_add(uint64_t n)
{
    __atomic_fetch_add(&progress_state.done, n, __ATOMIC_RELAXED);
}

void cli_progress_skip(uint64_t n)
{
    cli_progress_add(n);
    progress_state.view.first += n;
}

void cli_progress_note(const char *format, ...)
{
    if (!progress_state.runs) return;
    char *next = progress_state.note[progress_state.view.note == progress_state.note[0]];
    va_list args;
    va_start(args, format);
    vsnprintf(next, CLI_PROGRESS_NOTE, format, args);
    va_end(args);
    __atomic_store_n(&progress_state.view.note, next, __ATOMIC_RELEASE);
}

void cli_progress_watch(cli_progress_count *count, const void *object, uint64_t origin)
{
    if (!progress_state.runs) return;
    progress_state.object = object;
    progress_state.origin = origin;
    __atomic_store_n(&progress_state.count, count, __ATOMIC_RELEASE);
    progress_state.view.first = done_now();
}

void cli_progress_hide(void)
{
    char line[WIDTH_MAX + 2];
    progress_state.hidden = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the handler writes no line after this */
    const size_t n = progress_state.columns;
    if (n == 0) return;
    memset(line, ' ', n + 2);
    line[0] = line[n + 1] = '\r';
    base_write_all(STDERR_FILENO, line, n + 2);
    progress_state.columns = 0;
}

void cli_progress_show(void)
{
    progress_state.hidden = 0;
}

void cli_progress_end(void)
{
    if (!progress_state.runs) return;
    base_os_timer_stop(&progress_state.timer);
    progress_state.runs = false;
    cli_progress_hide();
    cli_progress_show();
}
