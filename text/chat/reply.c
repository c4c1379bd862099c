/* text/chat/reply.c: the stream that splits a reply into parts. See text/chat/reply.h.
 *
 * The buffer `in` contains the bytes whose kind is not certain yet; `at` is the first of them. Each
 * step examines them according to the state and either returns a part or needs more bytes. `seen`
 * marks what was examined, so that no byte is examined twice and time is linear. */
#include "text/chat/reply.h"
#include "text/chat/reply_rows.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALL = 1 << 20, MAX_HEADER = 512, MAX_TRIES = 16, MAX_ROWS = TEXT_REPLY_MAX_ROWS };

enum state {
    ANSWER,
    THINKING, /* up to the closing mark of `row` */
    CALLING,  /* a call of `row` is being collected */
    HEADER,   /* a header of `row` is being collected */
    CONTENT   /* content whose kind a header specified, up to a stop of `row` */
};

struct item {
    enum text_reply_kind kind;
    size_t start, size;
    const char *name, *id; /* stored in `calls` */
    size_t arguments;      /* offset in `texts` */
};

struct text_reply {
    const struct text_reply_row *active[MAX_ROWS];
    size_t n_active;
    const struct text_reply_row *think; /* marks of the template, or those of the vocabulary */
    const json_t *tools;
    size_t max_call;

    enum state state;
    const struct text_reply_row *row;
    bool answered;             /* the answer has begun: it has bytes other than space */
    bool after_part;           /* a part other than text ended before: space is markup */
    enum text_reply_kind what; /* kind of the content in state CONTENT */
    char tool[MAX_HEADER + 1]; /* in state CONTENT: the tool that is called */
    struct base_buffer header; /* in state HEADER: the part of the header in the prompt */

    struct base_buffer in;
    size_t at, seen;
    size_t opened; /* in state CALLING: size of the opening mark */
    int tries;     /* in state CALLING: number of closing marks that did not end it */
    int depth;     /* in a JSON call: number of open brackets */
    char quote;    /* in a JSON call: the quote of the open string */
    bool escaped;  /* in a JSON call: the last byte was a backslash */
    bool over;

    struct item *item;
    size_t n_items, room, given;
    json_t *calls;
    struct base_buffer texts;
    bool no_memory;
};

/* ---- Returning parts ---- */

static struct item *new_item(struct text_reply *r, enum text_reply_kind kind, size_t size)
{
    if (r->n_items == r->room) {
        const size_t room = r->room ? r->room * 2 : 16;
        struct item *more = reallocarray(r->item, room, sizeof *more);
        if (!more) {
            r->no_memory = true;
            return NULL;
        }
        r->item = more;
        r->room = room;
    }
    struct item *item = &r->item[r->n_items++];
    *item = (struct item){.kind = kind, .start = r->at, .size = size};
    r->at += size;
    if (r->seen < r->at) r->seen = r->at;
    return item;
}

/* Returns the next `size` bytes of `in` as a part, joined to the part before if both have the same
 * kind. */
static void add_part(struct text_reply *r, enum text_reply_kind kind, size_t size)
{
    struct item *last = r->n_items ? &r->item[r->n_items - 1] : NULL;
    if (!size) return;
    if (last && last->kind == kind && kind != TEXT_REPLY_CALL) {
        last->size += size;
        r->at += size;
        if (r->seen < r->at) r->seen = r->at;
    } else {
        new_item(r, kind, size);
    }
    r->after_part = kind != TEXT_REPLY_TEXT;
}

static void give_calls(struct text_reply *r, json_t *calls, size_t size)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        struct item *item = new_item(r, TEXT_REPLY_CALL, i ? 0 : size);
        if (!item) return;
        item->name = json_string_value(json_object_get(call, "name"));
        item->id = json_string_value(json_object_get(call, "id"));
        item->arguments = r->texts.size;
        text_json_write(&r->texts, json_object_get(call, "arguments"), false);
        base_buffer_add(&r->texts, "", 1);
    }
    if (json_array_extend(r->calls, calls)) r->no_memory = true; /* `calls` owns the names */
    r->after_part = true;
}

/* ---- Searching ---- */

static const char *waiting(const struct text_reply *r, size_t *size)
{
    *size = r->in.size - r->at;
    return *size ? r->in.data + r->at : "";
}

/* Returns the number of bytes of `mark` at s: all, 0, or fewer if s ends within the mark. */
static size_t match(const char *s, size_t n, const char *mark)
{
    const size_t all = strlen(mark), here = n < all ? n : all;
    return memcmp(s, mark, here) == 0 ? here : 0;
}

static size_t space_size(const char *s, size_t n)
{
    size_t size = 0;
    while (size < n && memchr(" \t\r\n", s[size], 4)) size++;
    return size;
}

/* Returns the length of s[0..n) without white space at its end. */
static size_t text_size(const char *s, size_t n)
{
    while (n && memchr(" \t\r\n", s[n - 1], 4)) n--;
    return n;
}

/* Returns the offset in s[0..n) where one of the marks may begin, or n. *hit is the index of the
 * mark if it is complete, otherwise n_marks. */
static size_t find_mark(const struct text_reply *r, const char *const marks[], size_t n_marks,
                        size_t *hit)
{
    size_t n;
    const char *s = waiting(r, &n);
    for (size_t i = r->seen - r->at; i < n; i++) {
        bool open = false;
        for (size_t k = 0; k < n_marks; k++) {
            if (!marks[k]) continue;
            const size_t got = match(s + i, n - i, marks[k]);
            open |= got > 0 && !r->over;
            if (got < strlen(marks[k])) continue;
            *hit = k;
            return i;
        }
        if (!open) continue;
        *hit = n_marks;
        return i;
    }
    *hit = n_marks;
    return n;
}

/* ---- Calls ---- */

static void to_answer(struct text_reply *r)
{
    r->state = ANSWER;
    r->seen = r->at;
}

/* Treats the collected bytes as text: they are not a call. */
static void reject_call(struct text_reply *r)
{
    size_t n;
    waiting(r, &n);
    r->answered = true;
    add_part(r, TEXT_REPLY_TEXT, n);
    to_answer(r);
}

/* Reads the first `size` bytes of `in`, whose last `close` bytes are the closing mark, as a
 * call. */
static bool try_call(struct text_reply *r, size_t size, size_t close)
{
    size_t n;
    const char *s = waiting(r, &n);
    const size_t first = r->row->flags & TEXT_REPLY_WHOLE ? 0 : r->opened;
    const size_t last = r->row->flags & TEXT_REPLY_WHOLE ? size : size - close;
    errno = 0; /* jansson reports a failed allocation as invalid JSON */
    json_t *calls = json_array();
    bool ok = calls && text_reply_read_calls(s + first, last - first, r->tools, calls);
    if (!ok && r->row->role == TEXT_REPLY_TOOL && r->row->flags & TEXT_REPLY_TO_END)
        ok = calls && text_reply_read_named("python", 6, s + first, last - first, calls);
    if (!calls || errno == ENOMEM) r->no_memory = true;
    if (ok) {
        give_calls(r, calls, size);
        to_answer(r);
    }
    json_decref(calls);
    return ok;
}

/* Scans to the end of the JSON (or of a list of calls). Returns whether it reached the end. */
static bool scan_brackets(struct text_reply *r)
{
    for (; r->seen < r->in.size; r->seen++) {
        const char *here = r->in.data + r->seen, c = *here;
        const size_t left = r->in.size - r->seen;
        if (r->escaped) {
            r->escaped = false;
        } else if (r->quote) {
            r->escaped = c == '\\';
            if (c == r->quote) r->quote = 0;
        } else if (r->depth && (c == '"' || (c == '\'' && r->row->role == TEXT_REPLY_BARE))) {
            r->quote = c;
        } else if (c == '{' || c == '[' || c == '(') {
            /* A mark before the arguments does not begin a list. */
            if (r->depth || c != '[' ||
                (!match(here, left, "[ARGS]") && !match(here, left, "[CALL_ID]")))
                r->depth++;
            else if (left == 1)
                return false; /* the decision needs the next byte */
        } else if ((c == '}' || c == ']' || c == ')') && r->depth && --r->depth == 0) {
            r->seen++;
            return true;
        }
    }
    return false;
}

/* Handles a call that ends with its JSON. Returns whether the state changed. */
static bool step_json_call(struct text_reply *r)
{
    if (scan_brackets(r)) {
        if (!try_call(r, r->seen - r->at, 0)) reject_call(r);
        return true;
    }
    size_t n;
    waiting(r, &n);
    if (!r->over && n <= r->max_call) return false;
    if (!r->over || !try_call(r, n, 0)) reject_call(r);
    return true;
}

static bool step_call(struct text_reply *r)
{
    const struct text_reply_row *row = r->row;
    const char *const closes[] = {row->close, row->stop[0], row->stop[1], row->stop[2]};
    size_t n, hit;
    if (!row->close) return step_json_call(r);
    const size_t i = find_mark(r, closes, 4, &hit);
    waiting(r, &n);
    if (hit < 4) {
        const size_t size = i + strlen(closes[hit]);
        r->seen = r->at + size;
        if (!try_call(r, size, strlen(closes[hit])) && ++r->tries == MAX_TRIES) reject_call(r);
        return true;
    }
    r->seen = r->at + i;
    if (!r->over && n <= r->max_call) return false;
    if (!r->over || r->tries || !try_call(r, n, 0)) reject_call(r);
    return true;
}

static void begin_call(struct text_reply *r, const struct text_reply_row *row, size_t opened)
{
    r->state = CALLING;
    r->row = row;
    r->opened = opened;
    r->tries = 0;
    r->depth = 0;
    r->quote = 0;
    r->escaped = false;
    r->seen = r->at + opened;
    /* A bracket inside the mark counts too. */
    if (!row->close && row->flags & TEXT_REPLY_WHOLE) r->depth = 1;
    if (row->role == TEXT_REPLY_BARE) r->seen = r->at;
}

/* ---- Headers ---- */

/* Copies the word after `mark` in the header, up to the first character that is not part of a
 * name. */
static size_t word_after(const char *header, const char *mark, char out[MAX_HEADER + 1])
{
    const char *at = strstr(header, mark);
    size_t n = 0;
    if (at)
        for (at += strlen(mark); at[n] && !strchr("<> \t\r\n", at[n]) && n < MAX_HEADER; n++)
            out[n] = at[n];
    out[n] = '\0';
    return n;
}

/* Sets the kind of the content from a complete header. */
static void read_header(struct text_reply *r)
{
    const char *text = r->header.data ? r->header.data : "";
    char channel[MAX_HEADER + 1], tool[MAX_HEADER + 1];
    r->what = TEXT_REPLY_TEXT;
    r->tool[0] = '\0';
    if (r->row->close[0] == '\n') { /* the header is only a name */
        if (word_after(text, r->row->open, tool) && strcmp(tool, "all") != 0)
            r->what = TEXT_REPLY_CALL;
    } else {
        word_after(text, "<|channel|>", channel);
        if (word_after(text, "to=", tool) && strcmp(tool, "user") != 0)
            r->what = strcmp(tool, "self") == 0 ? TEXT_REPLY_REASONING : TEXT_REPLY_CALL;
        else if (strcmp(channel, "analysis") == 0)
            r->what = TEXT_REPLY_REASONING;
    }
    if (r->what == TEXT_REPLY_CALL)
        strcpy(r->tool, strncmp(tool, "functions.", 10) == 0 ? tool + 10 : tool);
}

static void to_content(struct text_reply *r)
{
    read_header(r);
    r->header.size = 0;
    r->state = CONTENT;
    r->seen = r->at;
}

static bool step_header(struct text_reply *r)
{
    size_t n, hit;
    const char *s = waiting(r, &n);
    const size_t i = find_mark(r, &r->row->close, 1, &hit);
    if (hit == 0 && i + r->header.size <= MAX_HEADER) {
        base_buffer_add(&r->header, s, i);
        add_part(r, TEXT_REPLY_MARK, i + strlen(r->row->close));
        to_content(r);
        return true;
    }
    r->seen = r->at + i;
    if (!r->over && n + r->header.size <= MAX_HEADER) return false;
    r->header.size = 0;
    reject_call(r); /* not a header: its bytes are text */
    return n > 0;
}

/* Adds the call whose arguments are the first `size` bytes of `in`. */
static void add_named_call(struct text_reply *r, size_t size)
{
    size_t n;
    const char *s = waiting(r, &n);
    errno = 0;
    json_t *calls = json_array();
    if (calls && text_reply_read_named(r->tool, strlen(r->tool), s, size, calls)) {
        give_calls(r, calls, size);
    } else {
        r->answered = true;
        add_part(r, TEXT_REPLY_TEXT, size);
    }
    if (!calls || errno == ENOMEM) r->no_memory = true;
    json_decref(calls);
}

static bool step_content(struct text_reply *r)
{
    const struct text_reply_row *row = r->row;
    /* A header may follow without a stop mark. */
    const char *const stops[] = {row->stop[0], row->stop[1], row->stop[2], row->open};
    size_t n, hit;
    const size_t i = find_mark(r, stops, 4, &hit);
    waiting(r, &n);
    r->seen = r->at + i;
    const bool ended = hit < 4 || (r->over && n);
    if (r->what == TEXT_REPLY_CALL && !ended && n > r->max_call) r->what = TEXT_REPLY_TEXT;
    if (r->what == TEXT_REPLY_CALL) {
        if (!ended) return false;
        add_named_call(r, i);
    } else {
        r->answered |= r->what == TEXT_REPLY_TEXT && i;
        add_part(r, r->what, i);
    }
    if (hit < 3) add_part(r, TEXT_REPLY_MARK, strlen(stops[hit]));
    if (ended) to_answer(r);
    return ended;
}

/* ---- Reasoning ---- */

static bool step_thinking(struct text_reply *r)
{
    enum { MAX_SPACE = 64 };
    size_t n, hit;
    const char *s = waiting(r, &n);
    if (r->after_part && space_size(s, n)) { /* white space after the opening mark */
        add_part(r, TEXT_REPLY_MARK, space_size(s, n));
        return true;
    }
    const size_t i = find_mark(r, &r->row->close, 1, &hit);
    size_t text = text_size(s, i);
    if (i - text > MAX_SPACE) text = i;
    r->seen = r->at + i;
    add_part(r, TEXT_REPLY_REASONING, text);
    r->after_part &= !text;
    if (hit == 0) {
        add_part(r, TEXT_REPLY_MARK, i - text + strlen(r->row->close));
        to_answer(r);
        return true;
    }
    if (r->over) add_part(r, TEXT_REPLY_MARK, i - text);
    return false;
}

/* ---- The answer ---- */

static void open_row(struct text_reply *r, const struct text_reply_row *row)
{
    const size_t size = strlen(row->open);
    if (row->role == TEXT_REPLY_TOOL || row->role == TEXT_REPLY_BARE) {
        begin_call(r, row, row->role == TEXT_REPLY_BARE ? 0 : size);
        return;
    }
    add_part(r, TEXT_REPLY_MARK, size);
    r->seen = r->at;
    if (row->role == TEXT_REPLY_THINK) {
        r->row = row;
        r->state = THINKING;
    } else if (row->role == TEXT_REPLY_HEAD) {
        r->row = row;
        r->state = HEADER;
        r->header.size = 0;
        base_buffer_add(&r->header, row->open, size);
    }
}

enum verdict { NO, MAYBE, YES };

/* Returns whether s[0..n) begins a call without marks: an object whose first key is a common one,
 * or a list whose first item is NAME(. */
static enum verdict bare_begins(char open, const char *s, size_t n)
{
    static const char *const keys[] = {"\"name\"", "\"type\"", "\"function\"", "\"parameters\"",
                                       "\"arguments\""};
    size_t at = 1 + space_size(s + 1, n - 1), word = 0;
    if (at == n) return MAYBE;
    if (open == '{') {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const size_t got = match(s + at, n - at, keys[k]);
            if (got) return got == strlen(keys[k]) ? YES : MAYBE;
        }
        return NO;
    }
    while (at < n && ((s[at] | 0x20) >= 'a' && (s[at] | 0x20) <= 'z') | (s[at] == '_') |
                         ((s[at] >= '0') & (s[at] <= '9')) | (s[at] == '.')) {
        at++;
        word++;
    }
    if (at == n) return word < 64 ? MAYBE : NO;
    return word && s[at] == '(' ? YES : NO;
}

static bool may_open(const struct text_reply *r, const struct text_reply_row *row)
{
    switch (row->role) {
    case TEXT_REPLY_THINK:
        return !r->answered;
    case TEXT_REPLY_BARE:
        return !r->answered && r->tools;
    case TEXT_REPLY_LEFTOVER:
        return r->after_part;
    default:
        return true;
    }
}

/* Checks the bytes after `space` bytes of white space, where any part may begin. YES: it opened a
 * part. */
static enum verdict open_here(struct text_reply *r, size_t space)
{
    enum { MAX_SPACE = 256 };
    size_t n;
    const char *s = waiting(r, &n);
    const struct text_reply_row *hit = NULL;
    enum verdict maybe = NO;
    if (space == n) return !r->over && space < MAX_SPACE ? MAYBE : NO;
    for (size_t i = 0; i < r->n_active && !hit; i++) {
        const struct text_reply_row *row = r->active[i];
        if (!may_open(r, row) || row->role == TEXT_REPLY_BARE) continue;
        const size_t got = match(s + space, n - space, row->open);
        if (got == strlen(row->open)) hit = row;
        if (got && !r->over) maybe = MAYBE;
    }
    for (size_t i = 0; i < r->n_active && !hit && maybe == NO; i++) {
        const struct text_reply_row *row = r->active[i];
        if (row->role != TEXT_REPLY_BARE || !may_open(r, row) || s[space] != row->open[0]) continue;
        const enum verdict bare = bare_begins(row->open[0], s + space, n - space);
        if (bare == YES) hit = row;
        if (bare == MAYBE && !r->over) maybe = MAYBE;
    }
    if (!hit) return maybe;
    add_part(r, TEXT_REPLY_MARK, space);
    open_row(r, hit);
    return YES;
}

static bool step_answer(struct text_reply *r)
{
    const char *marks[MAX_ROWS];
    size_t n, hit;
    const char *s = waiting(r, &n);
    if (!n) return false;
    const size_t space = space_size(s, n);
    if (r->after_part && space) {
        add_part(r, TEXT_REPLY_MARK, space);
        return true;
    }
    if (r->after_part && r->row && r->row->role == TEXT_REPLY_BARE && (*s == ';' || *s == ',')) {
        add_part(r, TEXT_REPLY_MARK, 1);
        return true;
    }
    if (!r->answered || r->after_part) {
        const enum verdict verdict = open_here(r, space);
        if (verdict != NO) return verdict == YES;
        r->answered = true;
        r->after_part = false;
    }
    for (size_t i = 0; i < r->n_active; i++)
        marks[i] = may_open(r, r->active[i]) ? r->active[i]->open : NULL;
    const size_t i = find_mark(r, marks, r->n_active, &hit);
    add_part(r, TEXT_REPLY_TEXT, i);
    if (hit < r->n_active) open_row(r, r->active[hit]);
    return hit < r->n_active;
}

/* ---- The stream ---- */

static bool step(struct text_reply *r)
{
    switch (r->state) {
    case THINKING:
        return step_thinking(r);
    case CALLING:
        return step_call(r);
    case HEADER:
        return step_header(r);
    case CONTENT:
        return step_content(r);
    default:
        return step_answer(r);
    }
}

/* Removes the returned bytes from `in`. */
static void drop_returned(struct text_reply *r)
{
    if (r->at) memmove(r->in.data, r->in.data + r->at, r->in.size - r->at);
    r->in.size -= r->at;
    r->seen -= r->at;
    r->at = 0;
    r->n_items = r->given = 0;
    r->texts.size = 0;
    json_array_clear(r->calls);
}

static bool run(struct text_reply *r, struct base_error *err)
{
    while (!r->no_memory && step(r)) continue;
    if (r->no_memory || r->in.failed || r->texts.failed || r->header.failed) {
        r->no_memory = true;
        r->n_items = r->given = 0;
        return base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply");
    }
    return true;
}

bool text_reply_feed(struct text_reply *r, const char *bytes, size_t size, struct base_error *err)
{
    drop_returned(r);
    base_buffer_add(&r->in, bytes, size);
    return run(r, err);
}

bool text_reply_end(struct text_reply *r, struct base_error *err)
{
    drop_returned(r);
    r->over = true;
    return run(r, err);
}

bool text_reply_next(struct text_reply *r, struct text_reply_part *part)
{
    if (r->given == r->n_items) return false;
    const struct item *item = &r->item[r->given++];
    const bool call = item->kind == TEXT_REPLY_CALL;
    *part = (struct text_reply_part){.kind = item->kind,
                                     .bytes = r->in.data + item->start,
                                     .size = item->size,
                                     .name = item->name,
                                     .id = item->id,
                                     .arguments = call ? r->texts.data + item->arguments : NULL};
    return true;
}

/* ---- Creation ---- */

/* Marks in found[] the rows whose mark is a token. */
static void find_tokens(const struct text_tokenizer *t, bool *found)
{
    const uint32_t size = t ? text_vocab_size(t) : 0;
    for (uint32_t id = 0; id < size; id++) {
        const struct gguf_str raw = text_token_raw(t, (int32_t)id);
        if (raw.size < 3 || !memchr("<[", raw.data[0], 2)) continue;
        for (size_t i = 0; i < text_reply_n_rows; i++) {
            const struct text_reply_row *row = &text_reply_rows[i];
            const char *mark = row->role == TEXT_REPLY_HEAD && row->sign ? row->sign : row->open;
            found[i] |= raw.size == strlen(mark) && memcmp(raw.data, mark, raw.size) == 0;
        }
    }
}

/* Returns the last occurrence of `mark` in s[0..n), or NULL. */
static const char *find_last(const char *s, size_t n, const char *mark)
{
    const size_t size = strlen(mark);
    for (size_t at = n >= size ? n - size + 1 : 0; at-- > 0;)
        if (memcmp(s + at, mark, size) == 0) return s + at;
    return NULL;
}

/* Opens a header that the prompt began, or the content whose kind it specified. */
static bool open_header(struct text_reply *r, const struct text_reply_row *row, const char *s,
                        size_t n)
{
    const char *open = find_last(s, n, row->open);
    if (!open) return false;
    const size_t left = n - (size_t)(open - s);
    const char *close = memmem(open, left, row->close, strlen(row->close));
    const char *after = close ? close : open;
    for (size_t i = 0; i < 3 && row->stop[i]; i++)
        if (memmem(after, left - (size_t)(after - open), row->stop[i], strlen(row->stop[i])))
            return false;
    r->row = row;
    base_buffer_add(&r->header, open, close ? (size_t)(close - open) : left);
    r->state = HEADER;
    if (close) to_content(r);
    return true;
}

/* Opens the part that the end of the prompt has begun. */
static void read_prompt(struct text_reply *r, const char *s, size_t n)
{
    if (n > MAX_HEADER) {
        s += n - MAX_HEADER;
        n = MAX_HEADER;
    }
    const size_t text = text_size(s, n);
    for (size_t i = 0; i < r->n_active; i++) {
        const struct text_reply_row *row = r->active[i];
        const size_t size = strlen(row->open);
        if (row->role == TEXT_REPLY_THINK && text >= size &&
            memcmp(s + text - size, row->open, size) == 0) {
            r->row = row;
            r->state = THINKING;
            r->after_part = true;
            return;
        }
        if (row->role == TEXT_REPLY_HEAD && open_header(r, row, s, n)) return;
    }
}

struct text_reply *text_reply_new(const struct text_reply_options *options, struct base_error *err)
{
    struct text_reply *r = calloc(1, sizeof *r);
    if (!r || !(r->calls = json_array())) {
        free(r);
        base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply");
        return NULL;
    }
    r->tools = options->tools;
    r->max_call = options->max_call ? options->max_call : MAX_CALL;
    bool found[MAX_ROWS] = {0};
    bool by_template = false;
    find_tokens(options->tokenizer, found);
    for (size_t i = 0; i < text_reply_n_rows; i++) {
        const struct text_reply_row *row = &text_reply_rows[i];
        const char *sign = row->sign ? row->sign : row->open;
        const bool shown = options->template_text && strstr(options->template_text, sign);
        if (!found[i] && !shown) continue;
        r->active[r->n_active++] = row;
        if (row->role != TEXT_REPLY_THINK || (r->think && (by_template || !shown))) continue;
        r->think = row;
        by_template = shown;
    }
    if (options->prompt) read_prompt(r, options->prompt, options->prompt_size);
    if (!r->header.failed) return r;
    text_reply_free(r);
    base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply");
    return NULL;
}

bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks)
{
    const bool opened = r->state == THINKING;
    const struct text_reply_row *row = opened ? r->row : r->think;
    if (!row) return false;
    *marks = (struct text_reply_marks){row->open, row->close, opened};
    return true;
}

void text_reply_free(struct text_reply *r)
{
    if (!r) return;
    base_buffer_free(&r->header);
    base_buffer_free(&r->in);
    base_buffer_free(&r->texts);
    json_decref(r->calls);
    free(r->item);
    free(r);
}
