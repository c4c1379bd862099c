/* cli/chat/chat_history.c: history of typed lines. See cli/chat/chat_history.h. */
#include "cli/chat/chat_history.h"
#include "base/buffer.h"
#include "base/output.h"
#include "base/utf8.h"
#include "cli/system.h"
#include "cli/user_folder.h"
#include <fcntl.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MAX = 1000, FILE_MAX = 4 << 20 };

struct cli_history {
    HistoryW *list;
    struct base_buffer path; /* empty: no file */
};

/* ---- The file ---- */

static void find_path(struct cli_history *h)
{
    if (!cli_user_path("XDG_STATE_HOME", ".local/state", "", &h->path)) return;
    if (!h->path.failed) cli_user_make_folder(h->path.data, 0700);
    base_buffer_add_text(&h->path, "history");
    if (h->path.failed) base_buffer_free(&h->path);
}

static void enter(struct cli_history *h, const char *text, size_t size)
{
    wchar_t *line = calloc(size + 1, sizeof *line);
    HistEventW event;
    size_t n = 0;
    for (size_t i = 0; line && i < size;) {
        int32_t code;
        i += base_utf8_decode(text + i, size - i, &code);
        line[n++] = code < 0 ? 0xfffd : (wchar_t)code;
    }
    if (line) history_w(h->list, &event, H_ENTER, line);
    free(line);
}

/* Keeps only the last lines, which bounds the size of the file. */
static void shorten(const struct cli_history *h, const char *from, size_t size)
{
    struct base_output out;
    const bool ok =
        base_output_open(&out, h->path.data, NULL) && base_output_write(&out, from, size, NULL);
    base_output_close(&out, ok, NULL);
}

static void load(struct cli_history *h)
{
    BASE_LOCAL_BUFFER all = BASE_BUFFER_INIT;
    struct stat st;
    size_t n_lines = 0, start;
    if (stat(h->path.data, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX ||
        !cli_file_read(h->path.data, &all, NULL)) {
        return;
    }
    for (start = all.size; start > 0; start--)
        if (start < all.size && all.data[start - 1] == '\n' && ++n_lines == LINES_MAX) break;
    for (size_t at = start; at < all.size;) {
        const char *end = memchr(all.data + at, '\n', all.size - at);
        const size_t size = end ? (size_t)(end - all.data) - at : all.size - at;
        enter(h, all.data + at, size);
        at += size + 1;
    }
    if (start > all.size / 2) shorten(h, all.data + start, all.size - start);
}

static void append(const struct cli_history *h, const char *text, size_t size)
{
    BASE_LOCAL_BUFFER line = BASE_BUFFER_INIT;
    base_buffer_add(&line, text, size);
    base_buffer_add(&line, "\n", 1);
    const int fd = open(h->path.data, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0) {
        if (!line.failed) (void)!write(fd, line.data, line.size);
        close(fd);
    }
}

/* ---- The list ---- */

struct cli_history *cli_history_open(bool keep)
{
    struct cli_history *h = calloc(1, sizeof *h);
    HistEventW event;
    if (!h) return NULL;
    h->list = history_winit();
    if (!h->list) {
        free(h);
        return NULL;
    }
    history_w(h->list, &event, H_SETSIZE, (int)LINES_MAX);
    history_w(h->list, &event, H_SETUNIQUE, 1);
    if (keep) find_path(h);
    if (h->path.size) load(h);
    return h;
}

void cli_history_close(struct cli_history *h)
{
    if (!h) return;
    history_wend(h->list);
    base_buffer_free(&h->path);
    free(h);
}

void *cli_history_list(const struct cli_history *h)
{
    return h->list;
}

void cli_history_add(struct cli_history *h, const char *text, size_t size)
{
    enter(h, text, size);
    if (h->path.size && text[0] != '/' && !memchr(text, '\n', size)) append(h, text, size);
}
