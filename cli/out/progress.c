/* cli/out/progress.c: shows a progress line while a prompt is evaluated. See cli/out/progress.h. */
#include "cli/out/progress.h"
#include "base/output.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* not declared by older C libraries */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LINE_SIZE = 80 };

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

/* Prints the progress. Runs on the thread that called cli_progress_begin, between two instructions
 * of the evaluation; async-signal-safe. */
static void show(int number, siginfo_t *info, void *context)
{
    struct cli_progress *p = info->si_value.sival_ptr;
    (void)number;
    (void)context;
    if (info->si_code != SI_TIMER) return;
    char line[LINE_SIZE], *at = add_text(line, "\rreading: ");
    at = add_number(at, model_session_length(p->session));
    at = add_text(at, " of ");
    at = add_number(at, p->n_total);
    at = add_text(at, " tokens");
    base_write_all(STDERR_FILENO, line, (size_t)(at - line));
    p->shown = true;
}

void cli_progress_begin(struct cli_progress *p, const struct model_session *session,
                        uint64_t n_total)
{
    *p = (struct cli_progress){.session = session, .n_total = n_total};
    if (!isatty(STDERR_FILENO)) return;
    const struct itimerspec each_second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
    struct sigaction action = {.sa_sigaction = show, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event.sigev_value.sival_ptr = p;
    event.sigev_notify_thread_id = gettid();
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &p->timer) != 0) return;
    p->runs = true;
    timer_settime(p->timer, 0, &each_second, NULL);
}

void cli_progress_end(struct cli_progress *p)
{
    char line[LINE_SIZE];
    if (!p->runs) return;
    timer_delete(p->timer);
    p->runs = false;
    if (!p->shown) return;
    memset(line, ' ', sizeof line);
    line[0] = line[sizeof line - 1] = '\r';
    base_write_all(STDERR_FILENO, line, sizeof line);
}
