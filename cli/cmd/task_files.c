/* cli/cmd/task_files.c: reads files of tasks. See cli/cmd/task_files.h. */
#include "cli/cmd/task_files.h"
#include "base/interrupt.h"
#include <stdlib.h>
#include <string.h>

enum { LINES_OF_TASK = 6, ENDINGS = 4, ANSWERS_MAX = 100 };

/* ---- The list ---- */

static bool add_task(struct cli_task_list *l, struct cli_task_text before,
                     struct cli_task_text after, struct base_error *err)
{
    if (l->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 64;
        void *more = reallocarray(l->task, room, sizeof *l->task);
        if (!more) return base_fail(err, BASE_NO_MEMORY, "not enough memory for tasks");
        l->task = more;
        l->room = room;
    }
    l->task[l->n++] = (struct cli_task){before, after, l->n_choices, 0};
    return base_goes_on(err);
}

static bool add_choice(struct cli_task_list *l, struct cli_task_text text, bool right,
                       struct base_error *err)
{
    if (l->n_choices == l->choice_room) {
        const size_t room = l->choice_room ? 2 * l->choice_room : 256;
        void *more = reallocarray(l->choice, room, sizeof *l->choice);
        if (!more) return base_fail(err, BASE_NO_MEMORY, "not enough memory for tasks");
        l->choice = more;
        l->choice_room = room;
    }
    l->choice[l->n_choices++] = (struct cli_task_choice){text, right};
    l->task[l->n - 1].n++;
    return true;
}

void cli_task_list_free(struct cli_task_list *l)
{
    free(l->task);
    free(l->choice);
    *l = (struct cli_task_list){0};
}

/* ---- Lines ---- */

struct lines {
    const char *at, *end;
    size_t number; /* number of the latest line, from 1 on */
};

static bool next_line(struct lines *l, struct cli_task_text *out)
{
    if (l->at == l->end) return false;
    const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
    const char *next = stop ? stop + 1 : l->end;
    if (!stop) stop = l->end;
    *out = (struct cli_task_text){l->at, (size_t)(stop - l->at)};
    l->at = next;
    l->number++;
    return true;
}

/* Returns the integer at the beginning of a text, after white space; -1 if there is none, or it is
 * above 99. */
static int number_of(struct cli_task_text t)
{
    size_t i = 0;
    int n = 0;
    while (i < t.size && (t.data[i] == ' ' || t.data[i] == '\t')) i++;
    const size_t start = i;
    for (; i < t.size && t.data[i] >= '0' && t.data[i] <= '9' && i < start + 3; i++)
        n = 10 * n + (t.data[i] - '0');
    return i > start && i < start + 3 ? n : -1;
}

static bool read_lines(struct cli_task_list *list, struct lines *l, struct base_error *err)
{
    static const struct cli_task_text none = {"", 0};
    struct cli_task_text line[LINES_OF_TASK];
    while (next_line(l, &line[0])) {
        for (int i = 1; i < LINES_OF_TASK; i++)
            if (!next_line(l, &line[i]))
                return base_fail(err, BASE_USAGE, "has %zu lines, which is not a multiple of %d",
                                 l->number, LINES_OF_TASK);
        const int right = number_of(line[1]);
        if (right < 0 || right >= ENDINGS)
            return base_fail(err, BASE_USAGE, "line %zu is not the number of an ending, 0 to %d",
                             l->number - LINES_OF_TASK + 2, ENDINGS - 1);
        if (!add_task(list, line[0], none, err)) return false;
        for (int i = 0; i < ENDINGS; i++)
            if (!add_choice(list, line[2 + i], i == right, err)) return false;
    }
    return true;
}

/* ---- CSV ---- */

enum { FIELDS = 5 };

/* Splits a line into fields; the last one is the rest of the line. Commas in quotes do not
 * separate. */
static bool split(struct cli_task_text line, struct cli_task_text field[FIELDS])
{
    size_t start = 0;
    int n = 0;
    bool quoted = false;
    for (size_t i = 0; i < line.size && n < FIELDS - 1; i++) {
        if (line.data[i] == '"') quoted = !quoted;
        if (quoted || line.data[i] != ',') continue;
        field[n++] = (struct cli_task_text){line.data + start, i - start};
        start = i + 1;
    }
    field[n] = (struct cli_task_text){line.data + start, line.size - start};
    return n == FIELDS - 1;
}

static bool read_csv_line(struct cli_task_list *list, struct cli_task_text line, bool *ok,
                          struct base_error *err)
{
    struct cli_task_text f[FIELDS];
    *ok = split(line, f);
    if (!*ok) return true;
    struct cli_task_text sentence = f[1];
    if (sentence.size >= 2 && sentence.data[0] == '"')
        sentence = (struct cli_task_text){sentence.data + 1, sentence.size - 2};
    const char *hole = sentence.size ? memchr(sentence.data, '_', sentence.size) : NULL;
    const int right = number_of(f[4]);
    *ok = hole && (right == 1 || right == 2);
    if (!*ok) return true;
    const size_t n = (size_t)(hole - sentence.data);
    return add_task(list, (struct cli_task_text){sentence.data, n},
                    (struct cli_task_text){hole + 1, sentence.size - n - 1}, err) &&
           add_choice(list, f[2], right == 1, err) && add_choice(list, f[3], right == 2, err);
}

static bool read_csv(struct cli_task_list *list, struct lines *l, struct base_error *err)
{
    struct cli_task_text line;
    while (next_line(l, &line)) {
        bool ok;
        if (!read_csv_line(list, line, &ok, err)) return false;
        if (ok || line.size == 0) continue;
        if (list->n_left_out++ == 0) list->first_left_out = l->number;
    }
    return true;
}

/* ---- Binary ---- */

struct bytes {
    const char *at, *end;
    bool failed; /* a read past the end */
};

static uint32_t take_u32(struct bytes *b)
{
    uint32_t value = 0;
    if ((size_t)(b->end - b->at) < sizeof value) {
        b->failed = true;
        return 0;
    }
    memcpy(&value, b->at, sizeof value);
    b->at += sizeof value;
    return value;
}

static struct cli_task_text take_text(struct bytes *b)
{
    const uint32_t size = take_u32(b);
    if ((size_t)(b->end - b->at) < size) {
        b->failed = true;
        return (struct cli_task_text){"", 0};
    }
    const struct cli_task_text t = {b->at, size};
    b->at += size;
    return t;
}

/* Reads answers and labels; `list` NULL: skips them. */
static bool take_answers(struct cli_task_list *list, struct bytes *b, struct base_error *err)
{
    const uint32_t n = take_u32(b);
    if (n > ANSWERS_MAX) b->failed = true;
    for (uint32_t i = 0; !b->failed && i < n; i++) {
        const struct cli_task_text text = take_text(b);
        if (list && !b->failed && !add_choice(list, text, false, err)) return false;
    }
    for (uint32_t i = 0; !b->failed && i < n; i++) {
        const bool right = take_u32(b) == 1;
        if (list) list->choice[list->n_choices - n + i].right = right;
    }
    return true;
}

static bool read_binary(struct cli_task_list *list, struct bytes *b, struct base_error *err)
{
    static const struct cli_task_text none = {"", 0};
    const uint32_t n = take_u32(b);
    if (n > (size_t)(b->end - b->at) / sizeof n)
        return base_fail(err, BASE_USAGE, "is not a file of tasks, or is damaged");
    b->at += n * sizeof n; /* skips the offsets: tasks are consecutive */
    for (uint32_t i = 0; i < n; i++) {
        const struct cli_task_text question = take_text(b);
        if (b->failed || question.size == 0)
            return base_fail(err, BASE_USAGE, "task %u of %u is damaged", i + 1, n);
        if (!add_task(list, question, none, err) || !take_answers(list, b, err) ||
            !take_answers(NULL, b, err))
            return false;
        const struct cli_task *t = &list->task[list->n - 1];
        bool good = !b->failed && t->n > 0;
        for (size_t k = 0; good && k < t->n; k++) good = list->choice[t->first + k].text.size > 0;
        if (!good) return base_fail(err, BASE_USAGE, "task %u of %u is damaged", i + 1, n);
    }
    return true;
}

bool cli_task_list_read(struct cli_task_list *list, enum cli_task_form form,
                        const struct base_buffer *file, struct base_error *err)
{
    const char *data = file->size ? file->data : "";
    struct lines lines = {data, data + file->size, 0};
    struct bytes bytes = {data, data + file->size, false};
    list->form = form;
    const bool ok = form == CLI_TASKS_LINES ? read_lines(list, &lines, err)
                    : form == CLI_TASKS_CSV ? read_csv(list, &lines, err)
                                            : read_binary(list, &bytes, err);
    return ok && (list->n > 0 || base_fail(err, BASE_USAGE, "has no task"));
}

/* ---- Selecting ---- */

/* The Mersenne Twister MT19937 of Matsumoto and Nishimura. */
struct twister {
    uint32_t word[624];
    size_t at;
};

static void twister_init(struct twister *t, uint32_t seed)
{
    t->word[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->at = 624;
}

static uint32_t twister_next(struct twister *t)
{
    if (t->at == 624) {
        for (size_t i = 0; i < 624; i++) {
            const uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % 624] & 0x7fffffffu);
            t->word[i] = t->word[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->word[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Returns an integer below n, drawn as by std::uniform_int_distribution of the GNU library: the
 * upper half of a product, drawn again if the distribution would not be uniform. */
static uint32_t draw_even(struct twister *t, uint32_t n)
{
    uint64_t product = (uint64_t)twister_next(t) * n;
    if ((uint32_t)product < n)
        while ((uint32_t)product < -n % n) product = (uint64_t)twister_next(t) * n;
    return (uint32_t)(product >> 32);
}

/* Returns an integer below n, made from a random float. */
static uint32_t draw_scaled(struct twister *t, uint32_t n)
{
    const uint32_t i = (uint32_t)(0x1p-32f * (float)twister_next(t) * (float)n);
    return i < n ? i : n - 1;
}

bool cli_task_list_select(struct cli_task_list *l, size_t n, struct base_error *err)
{
    if (n == 0 || n >= l->n) return true;
    struct cli_task *chosen = reallocarray(NULL, n, sizeof *chosen);
    struct twister *t = malloc(sizeof *t);
    const bool ok = chosen && t;
    if (!ok) base_fail(err, BASE_NO_MEMORY, "not enough memory to select tasks");
    if (ok) twister_init(t, 1);
    for (size_t i = 0, left = l->n; ok && i < n; i++, left--) {
        const bool lines = l->form == CLI_TASKS_LINES;
        const uint32_t at = lines ? draw_even(t, (uint32_t)left) : draw_scaled(t, (uint32_t)left);
        chosen[i] = l->task[at];
        if (lines) /* the later ones move down in order; otherwise the last one moves here */
            memmove(l->task + at, l->task + at + 1, (left - 1 - at) * sizeof *l->task);
        else
            l->task[at] = l->task[left - 1];
    }
    if (ok) {
        free(l->task);
        l->task = chosen;
        l->n = l->room = n;
    } else {
        free(chosen);
    }
    free(t);
    return ok;
}

void cli_task_add_text(const struct cli_task_list *list, const struct cli_task *task, size_t choice,
                       bool whole, struct base_buffer *out)
{
    const struct cli_task_text text = list->choice[task->first + choice].text;
    base_buffer_add(out, task->before.data, task->before.size);
    if (list->form != CLI_TASKS_CSV) base_buffer_add_text(out, " ");
    base_buffer_add(out, text.data, text.size);
    if (whole) base_buffer_add(out, task->after.data, task->after.size);
}
