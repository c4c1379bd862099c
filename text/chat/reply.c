/* text/chat/reply.c: the stream that splits a reply into parts. See text/chat/reply.h.
 *
 * The buffer `in` contains the bytes whose kind is not certain yet; `at` is the first of them. Each
 * step examines them according to the state and either returns a part or needs more bytes. `seen`
 * marks what was examined, so that no byte is examined twice and time is linear.
 *
 *     in      s u m < / t h i n k > 4 2
 *     token   0 0 0 8 0 0 0 0 0 0 0 0 0    the size of the control or user-defined token that
 *                                          begins with this byte; 0: none */
#include "text/chat/reply.h"
#include "base/list.h"
#include "text/chat/reply_formats.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALL = 1 << 20, MAX_TRIES = 16, MAX_ROWS = TEXT_REPLY_MAX_ROWS };
enum state {
    ANSWER,
    THINKING, /* up to the closing mark of `row` */
    CALLING,  /* a call of `row` is being collected */
    HEADER,   /* a header of `row` is being collected */
    CONTENT   /* content whose kind a header specified, up to a stop of `row` */
};

struct reply_item {
    enum text_reply_kind kind;
    size_t start, size;
    const char *name, *id; /* stored in `calls` */
    size_t arguments;      /* offset in `texts` */
};

/* A token whose bytes are still to come, or are in `in`. */
struct reply_token {
    uint64_t at;
    unsigned char size;
};

struct text_reply {
    struct text_reply_formats formats;
    const struct text_tokenizer *tokenizer; /* NULL: no mark is a token */
    const json_t *tools;
    size_t max_call;

    enum state state;
    const struct text_reply_format *format;
    const struct text_reply_format
        *thought;   /* in state CALLING: the reasoning that the call may close */
    bool has_call;  /* in reasoning: a call may begin at `at`, which the end of the reply decides */
    int n_rejected; /* number of such beginnings that were no calls */
    bool answered;  /* the answer has begun: it has bytes other than space */
    bool headed;    /* the prompt contains the answer's header */
    bool after_part;                      /* a part other than text ended before: space is markup */
    enum text_reply_kind what;            /* kind of the content in state CONTENT */
    char tool[TEXT_REPLY_MAX_HEADER + 1]; /* in state CONTENT: the tool that is called */
    struct base_buffer header; /* in state HEADER: the part of the header in the prompt */

    struct base_buffer in, token; /* of the same size */
    size_t at, seen;
    uint64_t n_fed;           /* bytes of the reply so far */
    struct base_buffer later; /* tokens after these */
    size_t opened; /* in state CALLING: size of the opening mark, with the space before it */
    size_t space;  /* in state CALLING: size of that space, after reasoning */
    int tries;     /* in state CALLING: number of closing marks that did not end it */
    int depth;     /* in a JSON call: number of open brackets */
    char quote;    /* in a JSON call: the quote of the open string */
    bool escaped;  /* in a JSON call: the last byte was a backslash */
    bool over;

    struct reply_item *item;
    size_t n_items, room, given;
    json_t *calls;
    struct base_buffer texts;
    bool no_memory;
};

/* ---- Returning parts ---- */

static struct reply_item *new_item(struct text_reply *r, enum text_reply_kind kind, size_t size)
{
    r->no_memory |= !BASE_LIST_ROOM(r->item, r->n_items, r->room);
    if (r->no_memory) return NULL;
    struct reply_item *item = &r->item[r->n_items++];
    *item = (struct reply_item){.kind = kind, .start = r->at, .size = size};
    r->at += size;
    if (r->seen < r->at) r->seen = r->at;
    return item;
}

/* Returns the next `size` bytes of `in` as a part, joined to the part before if both have the same
 * kind. */
static void add_part(struct text_reply *r, enum text_reply_kind kind, size_t size)
{
    struct reply_item *last = r->n_items ? &r->item[r->n_items - 1] : NULL;
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
        struct reply_item *item = new_item(r, TEXT_REPLY_CALL, i ? 0 : size);
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

/* Returns the number of bytes of the mark at offset i of `in`. */
static size_t match_mark(const struct text_reply *r, size_t i, const struct text_reply_mark *mark)
{
    const size_t left = r->in.size - i, here = left < mark->size ? left : mark->size;
    if (mark->token && (unsigned char)r->token.data[i] != mark->token) return 0;
    return memcmp(r->in.data + i, mark->text, here) == 0 ? here : 0;
}

/* Marks to search for. */
struct marks {
    const struct text_reply_mark *mark[MAX_ROWS + 8];
    const struct text_reply_format *format[MAX_ROWS + 8]; /* NULL: the mark ends the state */
    size_t n;
};

static void add_mark(struct marks *m, const struct text_reply_mark *mark,
                     const struct text_reply_format *format)
{
    if (!mark->text) return;
    m->mark[m->n] = mark;
    m->format[m->n++] = format;
}

/* Adds the opening marks of all formats of a role. */
static void add_role(const struct text_reply *r, struct marks *m, enum text_reply_role role)
{
    for (size_t i = 0; i < r->formats.n; i++)
        if (r->formats.active[i].row->role == role)
            add_mark(m, &r->formats.active[i].open, &r->formats.active[i]);
}

/* Returns the offset from `at` where one of the marks may begin, or the number of bytes. *found is
 * the index of the mark if it is complete, otherwise m->n. */
static size_t find_mark(const struct text_reply *r, const struct marks *m, size_t *found)
{
    *found = m->n;
    for (size_t i = r->seen; i < r->in.size; i++) {
        bool open = false;
        for (size_t k = 0; k < m->n; k++) {
            const size_t got = match_mark(r, i, m->mark[k]);
            open |= got > 0 && !r->over;
            if (got < m->mark[k]->size) continue;
            *found = k;
            return i - r->at;
        }
        if (open) return i - r->at;
    }
    return r->in.size - r->at;
}

/* ---- Calls ---- */

static void to_answer(struct text_reply *r)
{
    r->state = ANSWER;
    r->thought = NULL;
    r->has_call = false;
    r->seen = r->at;
}

/* Treats the collected bytes as text: they are not a call. In reasoning only the opening mark is
 * rejected, because a call may follow. */
static void reject_call(struct text_reply *r)
{
    if (r->thought) {
        add_part(r, TEXT_REPLY_REASONING, r->opened);
        r->format = r->thought;
        r->state = r->format->row->role == TEXT_REPLY_THINK ? THINKING : CONTENT;
        r->thought = NULL;
        r->n_rejected++;
        r->after_part = false;
        r->seen = r->at;
        return;
    }
    r->answered = true;
    add_part(r, TEXT_REPLY_TEXT, r->in.size - r->at);
    to_answer(r);
}

/* Reads the calls in the next bytes of `in` from offset `from`. */
static bool read_calls(struct text_reply *r, size_t from, size_t size, json_t *calls)
{
    const size_t at = r->at + from;
    if (!size) return false;
    return text_reply_read_masked(r->in.data + at, r->token.data + at, size, r->tools, calls);
}

/* Returns whether nothing but space, marks and calls may follow the next `size` bytes. */
static bool ends_reply(const struct text_reply *r, size_t size)
{
    const size_t at = r->at + size, left = r->in.size - at;
    const size_t space = text_reply_space_size(r->in.data + at, left);
    if (space == left) return true;
    for (size_t i = 0; i < r->formats.n; i++) {
        const enum text_reply_role role = r->formats.active[i].row->role;
        const struct text_reply_mark *mark = &r->formats.active[i].open;
        if (role != TEXT_REPLY_THINK && role != TEXT_REPLY_BARE &&
            match_mark(r, at + space, mark) == mark->size)
            return true;
    }
    return false;
}

/* Returns whether the bytes may be a call although its closing mark is missing: not only a word. */
static bool is_complete(const char *s, size_t size)
{
    return memchr(s, '{', size) || memchr(s, '<', size) || memchr(s, '(', size);
}

/* Reads the first `size` bytes of `in`, whose last `close` bytes are the closing mark, as a
 * call. */
static bool try_call(struct text_reply *r, size_t size, size_t close)
{
    const struct text_reply_row *row = r->format->row;
    const size_t first = row->flags & TEXT_REPLY_WHOLE ? r->space : r->opened;
    const size_t last = row->flags & TEXT_REPLY_WHOLE ? size : size - close;
    if (r->thought && !ends_reply(r, size)) return false;
    if (row->close && !close && !(row->flags & TEXT_REPLY_TO_END) &&
        !is_complete(r->in.data + r->at + first, last - first))
        return false;
    errno = 0; /* jansson reports a failed allocation as invalid JSON */
    json_auto_t *calls = json_array();
    bool ok = calls && read_calls(r, first, last - first, calls);
    if (!ok && row->role == TEXT_REPLY_TOOL && row->flags & TEXT_REPLY_TO_END)
        ok = calls &&
             text_reply_read_named("python", 6, r->in.data + r->at + first, last - first, calls);
    if (!calls || errno == ENOMEM) r->no_memory = true;
    if (ok) {
        add_part(r, TEXT_REPLY_MARK, r->space);
        give_calls(r, calls, size - r->space);
        to_answer(r);
    }
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
        } else if (r->depth &&
                   (c == '"' || (c == '\'' && r->format->row->role == TEXT_REPLY_BARE))) {
            r->quote = c;
        } else if (c == '{' || c == '[' || c == '(') {
            /* A mark before the arguments does not begin a list. */
            if (r->depth || c != '[' ||
                (!text_reply_match(here, left, "[ARGS]") &&
                 !text_reply_match(here, left, "[CALL_ID]")))
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
    const size_t n = r->in.size - r->at;
    if (scan_brackets(r)) {
        if (!try_call(r, r->seen - r->at, 0)) reject_call(r);
        return true;
    }
    if (!r->over && n <= r->max_call) return false;
    if (!r->over || !try_call(r, n, 0)) reject_call(r);
    return true;
}

static bool step_call(struct text_reply *r)
{
    const struct text_reply_format *f = r->format;
    struct marks marks = {0};
    size_t found;
    if (!f->row->close) return step_json_call(r);
    add_mark(&marks, &f->close, NULL);
    for (size_t i = 0; i < 3; i++) add_mark(&marks, &f->stop[i], NULL);
    add_mark(&marks, &f->open, f); /* the next call, after one without a closing mark */
    const size_t i = find_mark(r, &marks, &found), n = r->in.size - r->at;
    if (found < marks.n) {
        const size_t close = marks.format[found] ? 0 : marks.mark[found]->size;
        r->seen = r->at + i + marks.mark[found]->size;
        if (!try_call(r, i + close, close) && ++r->tries == MAX_TRIES) reject_call(r);
        return true;
    }
    r->seen = r->at + i;
    if (!r->over && n <= r->max_call) return false;
    if (!r->over || r->tries || !try_call(r, n, 0)) reject_call(r);
    return true;
}

static void begin_call(struct text_reply *r, const struct text_reply_format *f, size_t opened)
{
    r->state = CALLING;
    r->format = f;
    r->opened = opened;
    r->space = 0;
    r->tries = 0;
    r->depth = 0;
    r->quote = 0;
    r->escaped = false;
    r->seen = r->at + opened;
    /* A bracket inside the mark counts too. */
    if (!f->row->close && f->row->flags & TEXT_REPLY_WHOLE) r->depth = 1;
    if (f->row->role == TEXT_REPLY_BARE) r->seen = r->at;
}

/* ---- Opening ---- */

static void open_format(struct text_reply *r, const struct text_reply_format *f)
{
    const size_t size = f->open.size;
    const enum text_reply_role role = f->row->role;
    if (role == TEXT_REPLY_TOOL || role == TEXT_REPLY_BARE) {
        begin_call(r, f, role == TEXT_REPLY_BARE ? 0 : size);
        return;
    }
    add_part(r, TEXT_REPLY_MARK, size);
    r->seen = r->at;
    if (role != TEXT_REPLY_THINK && role != TEXT_REPLY_HEAD) return;
    r->format = f;
    r->state = role == TEXT_REPLY_THINK ? THINKING : HEADER;
    r->header.size = 0;
    if (role == TEXT_REPLY_HEAD) base_buffer_add(&r->header, f->row->open, size);
}

/* ---- Headers ---- */

static void to_content(struct text_reply *r)
{
    const char *header = r->header.data ? r->header.data : "";
    r->what = text_reply_read_header(r->format->row, header, r->tool);
    r->header.size = 0;
    r->state = CONTENT;
    r->seen = r->at;
}

static bool step_header(struct text_reply *r)
{
    struct marks marks = {0};
    size_t found;
    add_mark(&marks, &r->format->close, NULL);
    const size_t i = find_mark(r, &marks, &found), n = r->in.size - r->at;
    if (found == 0 && i + r->header.size <= TEXT_REPLY_MAX_HEADER) {
        base_buffer_add(&r->header, r->in.data + r->at, i);
        add_part(r, TEXT_REPLY_MARK, i + r->format->close.size);
        to_content(r);
        return true;
    }
    r->seen = r->at + i;
    if (!r->over && n + r->header.size <= TEXT_REPLY_MAX_HEADER) return false;
    r->header.size = 0;
    reject_call(r); /* not a header: its bytes are text */
    return n > 0;
}

/* Adds the call whose arguments are the first `size` bytes of `in`. */
static void add_named_call(struct text_reply *r, size_t size)
{
    const char *s = r->in.data + r->at;
    errno = 0;
    json_auto_t *calls = json_array();
    /* Content in tags contains the tool's name too. */
    const bool tags =
        text_reply_space_size(s, size) < size && s[text_reply_space_size(s, size)] == '<';
    if (calls && ((tags && read_calls(r, 0, size, calls)) ||
                  text_reply_read_named(r->tool, strlen(r->tool), s, size, calls))) {
        give_calls(r, calls, size);
    } else {
        r->answered = true;
        add_part(r, TEXT_REPLY_TEXT, size);
    }
    if (!calls || errno == ENOMEM) r->no_memory = true;
}

/* ---- Reasoning ---- */

/* Reads reasoning up to one of the marks; those with a format other than a call's, or none, end it.
 * Returns whether the state changed. */
static bool step_reasoning(struct text_reply *r, struct marks *marks)
{
    enum { MAX_SPACE = 64 };
    size_t found;
    if (!r->has_call && r->n_rejected < MAX_TRIES) add_role(r, marks, TEXT_REPLY_TOOL);
    const size_t i = find_mark(r, marks, &found), n = r->in.size - r->at;
    const struct text_reply_format *format = found < marks->n ? marks->format[found] : NULL;
    const bool is_call = format && format->row->role == TEXT_REPLY_TOOL;
    size_t text = text_reply_text_size(r->in.data + r->at, i);
    if (i - text > MAX_SPACE) text = i;
    r->seen = r->at + i;
    if (is_call) { /* held back, because the closing mark may follow */
        add_part(r, TEXT_REPLY_REASONING, text);
        r->has_call = true;
        r->seen += marks->mark[found]->size;
        return true;
    }
    if (r->has_call && found == marks->n) {
        if (!r->over && n <= r->max_call) return false;
        const struct text_reply_format *thought = r->format;
        const size_t space = text_reply_space_size(r->in.data + r->at, n);
        struct marks calls = {0};
        r->has_call = false;
        r->seen = r->at + space;
        add_role(r, &calls, TEXT_REPLY_TOOL);
        find_mark(r, &calls, &found);
        if (!r->over || found == calls.n) {
            r->n_rejected = MAX_TRIES;
            return true;
        }
        begin_call(r, calls.format[found], space + calls.mark[found]->size);
        r->space = space;
        r->thought = thought;
        return true;
    }
    add_part(r, TEXT_REPLY_REASONING, text);
    r->after_part &= !text;
    if (found < marks->n) {
        add_part(r, TEXT_REPLY_MARK, i - text + (format ? 0 : marks->mark[found]->size));
        r->after_part = true;
        to_answer(r);
        return true;
    }
    if (r->over) add_part(r, TEXT_REPLY_MARK, i - text);
    return false;
}

static bool step_thinking(struct text_reply *r)
{
    struct marks marks = {0};
    const char *s = r->in.data + r->at;
    const size_t space = text_reply_space_size(s, r->in.size - r->at);
    if (r->after_part && space && !r->has_call) { /* white space after the opening mark */
        add_part(r, TEXT_REPLY_MARK, space);
        return true;
    }
    add_mark(&marks, &r->format->close, NULL);
    add_role(r, &marks, TEXT_REPLY_BEGIN);
    return step_reasoning(r, &marks);
}

static bool step_content(struct text_reply *r)
{
    struct marks marks = {0};
    size_t found;
    for (size_t i = 0; i < 3; i++) add_mark(&marks, &r->format->stop[i], NULL);
    add_role(r, &marks, TEXT_REPLY_HEAD); /* a header may follow without a stop mark */
    if (r->what == TEXT_REPLY_REASONING) return step_reasoning(r, &marks);
    if (r->what == TEXT_REPLY_TEXT) add_role(r, &marks, TEXT_REPLY_TOOL);
    const size_t i = find_mark(r, &marks, &found), n = r->in.size - r->at;
    r->seen = r->at + i;
    const bool ended = found < marks.n || (r->over && n);
    if (r->what == TEXT_REPLY_CALL && !ended && n > r->max_call) r->what = TEXT_REPLY_TEXT;
    if (r->what == TEXT_REPLY_CALL) {
        if (!ended) return false;
        add_named_call(r, i);
    } else {
        r->answered |= r->what == TEXT_REPLY_TEXT && i;
        add_part(r, r->what, i);
    }
    if (found < marks.n && !marks.format[found])
        add_part(r, TEXT_REPLY_MARK, marks.mark[found]->size);
    if (ended) to_answer(r);
    if (found < marks.n && marks.format[found]) open_format(r, marks.format[found]);
    return ended;
}

/* ---- The answer ---- */

static bool may_open(const struct text_reply *r, const struct text_reply_format *f)
{
    switch (f->row->role) {
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

/* Checks the bytes after `space` bytes of white space, where any part may begin. TEXT_REPLY_YES: it
 * opened a part. */
static enum text_reply_verdict open_here(struct text_reply *r, size_t space)
{
    enum { MAX_SPACE = 256 };
    const size_t n = r->in.size - r->at, at = r->at + space;
    const struct text_reply_format *found = NULL;
    enum text_reply_verdict maybe = TEXT_REPLY_NO;
    if (space == n) return !r->over && space < MAX_SPACE ? TEXT_REPLY_MAYBE : TEXT_REPLY_NO;
    for (size_t i = 0; i < r->formats.n && !found; i++) {
        const struct text_reply_format *f = &r->formats.active[i];
        if (!may_open(r, f) || f->row->role == TEXT_REPLY_BARE) continue;
        const size_t got = match_mark(r, at, &f->open);
        if (got == f->open.size) found = f;
        if (got && !r->over) maybe = TEXT_REPLY_MAYBE;
    }
    for (size_t i = 0; i < r->formats.n && !found && maybe == TEXT_REPLY_NO; i++) {
        const struct text_reply_format *f = &r->formats.active[i];
        const char open = f->row->open[0];
        if (f->row->role != TEXT_REPLY_BARE || !may_open(r, f) || r->in.data[at] != open) continue;
        const enum text_reply_verdict bare =
            text_reply_bare_begins(open, r->in.data + at, n - space);
        if (bare == TEXT_REPLY_YES) found = f;
        if (bare == TEXT_REPLY_MAYBE && !r->over) maybe = TEXT_REPLY_MAYBE;
    }
    if (!found) return maybe;
    add_part(r, TEXT_REPLY_MARK, space);
    open_format(r, found);
    return TEXT_REPLY_YES;
}

static bool step_answer(struct text_reply *r)
{
    struct marks marks = {0};
    const size_t n = r->in.size - r->at;
    size_t found;
    if (!n) return false;
    const char *s = r->in.data + r->at;
    const size_t space = text_reply_space_size(s, n);
    if (r->after_part && space) {
        add_part(r, TEXT_REPLY_MARK, space);
        return true;
    }
    if (r->after_part && r->format && r->format->row->role == TEXT_REPLY_BARE &&
        (*s == ';' || *s == ',')) {
        add_part(r, TEXT_REPLY_MARK, 1);
        return true;
    }
    if (!r->answered || r->after_part) {
        const enum text_reply_verdict verdict = open_here(r, space);
        if (verdict != TEXT_REPLY_NO) return verdict == TEXT_REPLY_YES;
        r->answered = true;
        r->after_part = false;
    }
    for (size_t i = 0; i < r->formats.n; i++)
        if (may_open(r, &r->formats.active[i]) && r->formats.active[i].row->role != TEXT_REPLY_BARE)
            add_mark(&marks, &r->formats.active[i].open, &r->formats.active[i]);
    const size_t i = find_mark(r, &marks, &found);
    add_part(r, TEXT_REPLY_TEXT, i);
    if (found < marks.n) open_format(r, marks.format[found]);
    return found < marks.n;
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
    const size_t left = r->in.size - r->at;
    if (r->at && left) {
        memmove(r->in.data, r->in.data + r->at, left);
        memmove(r->token.data, r->token.data + r->at, left);
    }
    r->in.size = r->token.size = left;
    r->seen -= r->at;
    r->at = 0;
    r->n_items = r->given = 0;
    r->texts.size = 0;
    json_array_clear(r->calls);
}

static bool run(struct text_reply *r, struct base_error *err)
{
    while (!r->no_memory && step(r)) continue;
    if (r->no_memory || r->in.failed || r->token.failed || r->later.failed || r->texts.failed ||
        r->header.failed) {
        r->no_memory = true;
        r->n_items = r->given = 0;
        return base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply");
    }
    return true;
}

void text_reply_token(struct text_reply *r, int32_t id, uint64_t end)
{
    if (!r->tokenizer || !text_reply_is_mark(r->tokenizer, id)) return;
    const size_t size = text_token_raw(r->tokenizer, id).size;
    const struct reply_token token = {.at = end - size, .size = (unsigned char)size};
    if (end >= r->n_fed + size) base_buffer_add(&r->later, &token, sizeof token);
}

/* Records the tokens among the last `size` bytes. */
static void place_tokens(struct text_reply *r, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) base_buffer_add(&r->token, "", 1);
    for (struct reply_token token; used < r->later.size; used += sizeof token) {
        memcpy(&token, r->later.data + used, sizeof token);
        if (token.at >= r->n_fed + size) break;
        if (!r->token.failed)
            r->token.data[r->token.size - size + (size_t)(token.at - r->n_fed)] = (char)token.size;
    }
    if (used) memmove(r->later.data, r->later.data + used, r->later.size - used);
    r->later.size -= used;
    r->n_fed += size;
}

bool text_reply_feed(struct text_reply *r, const char *bytes, size_t size, struct base_error *err)
{
    drop_returned(r);
    base_buffer_add(&r->in, bytes, size);
    place_tokens(r, size);
    return run(r, err);
}

bool text_reply_end(struct text_reply *r, struct base_error *err)
{
    drop_returned(r);
    r->over = true;
    return run(r, err);
}

enum text_reply_kind text_reply_open_part(const struct text_reply *r)
{
    switch (r->state) {
    case THINKING:
        return TEXT_REPLY_REASONING;
    case CALLING:
        return TEXT_REPLY_CALL;
    case HEADER:
        return TEXT_REPLY_MARK;
    case CONTENT:
        return r->what;
    case ANSWER:
        break;
    }
    return TEXT_REPLY_TEXT;
}

bool text_reply_next(struct text_reply *r, struct text_reply_part *part)
{
    if (r->given == r->n_items) return false;
    const struct reply_item *item = &r->item[r->given++];
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

/* Opens a header that the prompt began, or the content whose kind it specified. */
static bool open_header(struct text_reply *r, const struct text_reply_format *f, const char *s,
                        size_t n)
{
    const struct text_reply_row *row = f->row;
    const char *open = text_reply_find_last(s, n, row->open);
    if (!open) return false;
    const size_t left = n - (size_t)(open - s);
    const char *close = memmem(open, left, row->close, strlen(row->close));
    const char *after = close ? close : open;
    for (size_t i = 0; i < 3 && row->stop[i]; i++)
        if (memmem(after, left - (size_t)(after - open), row->stop[i], strlen(row->stop[i])))
            return false;
    r->format = f;
    base_buffer_add(&r->header, open, close ? (size_t)(close - open) : left);
    r->state = HEADER;
    if (close) to_content(r);
    return true;
}

/* Opens the part that the end of the prompt has begun. */
static void read_prompt(struct text_reply *r, const char *s, size_t n)
{
    if (n > TEXT_REPLY_MAX_HEADER) {
        s += n - TEXT_REPLY_MAX_HEADER;
        n = TEXT_REPLY_MAX_HEADER;
    }
    const size_t text = text_reply_text_size(s, n);
    for (size_t i = 0; i < r->formats.n; i++) {
        const struct text_reply_row *row = r->formats.active[i].row;
        r->headed |= row->answer && text_reply_ends_with(s, text, row->answer);
        if (row->role == TEXT_REPLY_THINK && text_reply_ends_with(s, text, row->open)) {
            r->format = &r->formats.active[i];
            r->state = THINKING;
            r->after_part = true;
            return;
        }
        if (row->role == TEXT_REPLY_HEAD && open_header(r, &r->formats.active[i], s, n)) return;
    }
}

struct text_reply *text_reply_new(const struct text_reply_options *options, struct base_error *err)
{
    struct text_reply *r = calloc(1, sizeof *r);
    if (!r || !(r->calls = json_array())) {
        free(r);
        return base_null(base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply"));
    }
    r->tokenizer = options->letters ? NULL : options->tokenizer;
    r->tools = options->tools;
    r->max_call = options->max_call ? options->max_call : MAX_CALL;
    text_reply_formats_find(&r->formats, options->template_text, options->tokenizer, r->tokenizer);
    if (options->prompt) read_prompt(r, options->prompt, options->prompt_size);
    if (!r->header.failed) return r;
    text_reply_free(r);
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply"));
}

bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks)
{
    const bool thinking = r->state == THINKING, content = r->state == CONTENT;
    const struct text_reply_row *row = thinking || content ? r->format->row : r->formats.think;
    const bool opened = thinking || (content && r->what == TEXT_REPLY_REASONING);
    if (!row || r->headed || (content && !opened)) return false;
    if (row->role != TEXT_REPLY_THINK && !row->thought) return false;
    const bool head = row->role == TEXT_REPLY_HEAD;
    *marks = (struct text_reply_marks){.open = head ? row->thought : row->open,
                                       .close = head ? row->stop[0] : row->close,
                                       .turn = row->turn ? row->turn : "",
                                       .answer = row->answer ? row->answer : "",
                                       .opened = opened};
    return true;
}

void text_reply_free(struct text_reply *r)
{
    if (!r) return;
    base_buffer_free(&r->header);
    base_buffer_free(&r->in);
    base_buffer_free(&r->token);
    base_buffer_free(&r->later);
    base_buffer_free(&r->texts);
    json_decref(r->calls);
    free(r->item);
    free(r);
}
