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
#include "text/chat/reply_rows.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALL = 1 << 20, MAX_HEADER = 512, MAX_TRIES = 16, MAX_ROWS = TEXT_REPLY_MAX_ROWS };
enum { MIN_TOKEN = 3, MAX_TOKEN = 255 }; /* sizes of tokens that may be marks */

/* A mark, and the size of the vocabulary's token with which it begins; 0: it is written by
 * letters. */
struct mark {
    const char *text; /* NULL: none */
    size_t size;
    unsigned char token;
};

struct format {
    const struct text_reply_row *row;
    struct mark open, close, stop[3];
};

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

/* A token whose bytes are still to come, or are in `in`. */
struct token {
    uint64_t at;
    unsigned char size;
};

struct text_reply {
    struct format active[MAX_ROWS];
    size_t n_active;
    const struct text_reply_row *think; /* marks of the template, or those of the vocabulary */
    const struct text_tokenizer *tokenizer; /* NULL: no mark is a token */
    const json_t *tools;
    size_t max_call;

    enum state state;
    const struct format *format;
    const struct format *thought; /* in state CALLING: the reasoning that the call may close */
    bool has_call;  /* in reasoning: a call may begin at `at`, which the end of the reply decides */
    int n_rejected; /* number of such beginnings that were no calls */
    bool answered;             /* the answer has begun: it has bytes other than space */
    bool headed;               /* the prompt contains the answer's header */
    bool after_part;           /* a part other than text ended before: space is markup */
    enum text_reply_kind what; /* kind of the content in state CONTENT */
    char tool[MAX_HEADER + 1]; /* in state CONTENT: the tool that is called */
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
        text_reply_write_json(&r->texts, json_object_get(call, "arguments"));
        base_buffer_add(&r->texts, "", 1);
    }
    if (json_array_extend(r->calls, calls)) r->no_memory = true; /* `calls` owns the names */
    r->after_part = true;
}

/* ---- Searching ---- */

/* Returns the number of bytes of `text` at s: all, 0, or fewer if s ends within it. */
static size_t match(const char *s, size_t n, const char *text)
{
    const size_t all = strlen(text), here = n < all ? n : all;
    return memcmp(s, text, here) == 0 ? here : 0;
}

/* Returns the number of bytes of the mark at offset i of `in`. */
static size_t match_mark(const struct text_reply *r, size_t i, const struct mark *mark)
{
    const size_t left = r->in.size - i, here = left < mark->size ? left : mark->size;
    if (mark->token && (unsigned char)r->token.data[i] != mark->token) return 0;
    return memcmp(r->in.data + i, mark->text, here) == 0 ? here : 0;
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

/* Marks to search for. */
struct marks {
    const struct mark *mark[MAX_ROWS + 8];
    const struct format *format[MAX_ROWS + 8]; /* NULL: the mark ends the state */
    size_t n;
};

static void add_mark(struct marks *m, const struct mark *mark, const struct format *format)
{
    if (!mark->text) return;
    m->mark[m->n] = mark;
    m->format[m->n++] = format;
}

/* Adds the opening marks of all formats of a role. */
static void add_role(const struct text_reply *r, struct marks *m, enum text_reply_role role)
{
    for (size_t i = 0; i < r->n_active; i++)
        if (r->active[i].row->role == role) add_mark(m, &r->active[i].open, &r->active[i]);
}

/* Returns the offset from `at` where one of the marks may begin, or the number of bytes. *hit is
 * the index of the mark if it is complete, otherwise m->n. */
static size_t find_mark(const struct text_reply *r, const struct marks *m, size_t *hit)
{
    *hit = m->n;
    for (size_t i = r->seen; i < r->in.size; i++) {
        bool open = false;
        for (size_t k = 0; k < m->n; k++) {
            const size_t got = match_mark(r, i, m->mark[k]);
            open |= got > 0 && !r->over;
            if (got < m->mark[k]->size) continue;
            *hit = k;
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

/* ---- Marks within calls ---- */

/* Letters that repeat a token of the same call are data. MASK takes the place of their first byte,
 * '<', while the call is read. */
enum { MASK = 0x7f };

/* Masks the letters s[0..n) in the copy, where they are no token. */
static void mask_all(struct base_buffer *copy, const char *token, const char *s, size_t n)
{
    char *end = copy->data + copy->size, *hit = copy->data;
    while ((hit = memmem(hit, (size_t)(end - hit), s, n)) != NULL) {
        if (!token[hit - copy->data]) *hit = MASK;
        hit++;
    }
}

/* Copies the first `size` bytes from `from` with such letters masked, for the first texts of
 * tokens. */
static void mask_letters(const struct text_reply *r, size_t from, size_t size,
                         struct base_buffer *copy)
{
    enum { MAX_TEXTS = 16 };
    const char *s = r->in.data + from, *token = r->token.data + from, *done[MAX_TEXTS];
    size_t n_done = 0;
    base_buffer_add(copy, s, size);
    for (size_t i = 0; i < size && n_done < MAX_TEXTS && !copy->failed; i++) {
        const size_t n = (unsigned char)token[i];
        bool known = !n || s[i] != '<' || n > size - i;
        for (size_t k = 0; k < n_done && !known; k++)
            known = (unsigned char)token[done[k] - s] == n && memcmp(done[k], s + i, n) == 0;
        if (known) continue;
        done[n_done++] = s + i;
        mask_all(copy, token, s + i, n);
    }
}

static bool unmask(json_t *value)
{
    const char *key;
    json_t *item;
    bool ok = true;
    for (size_t i = 0; i < json_array_size(value); i++) ok &= unmask(json_array_get(value, i));
    json_object_foreach(value, key, item) ok &= unmask(item);
    const size_t n = json_string_length(value);
    if (!n || !memchr(json_string_value(value), MASK, n)) return ok;
    char *copy = malloc(n);
    if (!copy) return false;
    memcpy(copy, json_string_value(value), n);
    for (size_t i = 0; i < n; i++)
        if (copy[i] == MASK) copy[i] = '<';
    ok = json_string_setn(value, copy, n) == 0;
    free(copy);
    return ok;
}

/* Reads the calls in the next bytes of `in` from offset `from`. */
static bool read_calls(struct text_reply *r, size_t from, size_t size, json_t *calls)
{
    struct base_buffer copy = BASE_BUFFER_INIT;
    const char *s = r->in.data + r->at + from;
    if (memchr(s, MASK, size)) return text_reply_read_calls(s, size, r->tools, calls);
    mask_letters(r, r->at + from, size, &copy);
    const bool ok =
        !copy.failed && text_reply_read_calls(size ? copy.data : "", size, r->tools, calls);
    r->no_memory |= copy.failed || (ok && !unmask(calls));
    base_buffer_free(&copy);
    return ok;
}

/* ---- Reading a call ---- */

/* Returns whether nothing but space, marks and calls may follow the next `size` bytes. */
static bool ends_reply(const struct text_reply *r, size_t size)
{
    const size_t at = r->at + size, left = r->in.size - at;
    const size_t space = space_size(r->in.data + at, left);
    if (space == left) return true;
    for (size_t i = 0; i < r->n_active; i++) {
        const enum text_reply_role role = r->active[i].row->role;
        const struct mark *mark = &r->active[i].open;
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
    json_t *calls = json_array();
    bool ok = calls && read_calls(r, first, last - first, calls);
    if (!ok && row->role == TEXT_REPLY_TOOL && row->flags & TEXT_REPLY_TO_END)
        ok = calls && text_reply_read_named("python", 6, r->in.data + r->at + first, last - first,
                                            calls);
    if (!calls || errno == ENOMEM) r->no_memory = true;
    if (ok) {
        add_part(r, TEXT_REPLY_MARK, r->space);
        give_calls(r, calls, size - r->space);
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
        } else if (r->depth && (c == '"' || (c == '\'' && r->format->row->role == TEXT_REPLY_BARE))) {
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
    const struct format *f = r->format;
    struct marks marks = {0};
    size_t hit;
    if (!f->row->close) return step_json_call(r);
    add_mark(&marks, &f->close, NULL);
    for (size_t i = 0; i < 3; i++) add_mark(&marks, &f->stop[i], NULL);
    add_mark(&marks, &f->open, f); /* the next call, after one without a closing mark */
    const size_t i = find_mark(r, &marks, &hit), n = r->in.size - r->at;
    if (hit < marks.n) {
        const size_t close = marks.format[hit] ? 0 : marks.mark[hit]->size;
        r->seen = r->at + i + marks.mark[hit]->size;
        if (!try_call(r, i + close, close) && ++r->tries == MAX_TRIES) reject_call(r);
        return true;
    }
    r->seen = r->at + i;
    if (!r->over && n <= r->max_call) return false;
    if (!r->over || r->tries || !try_call(r, n, 0)) reject_call(r);
    return true;
}

static void begin_call(struct text_reply *r, const struct format *f, size_t opened)
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

static void open_format(struct text_reply *r, const struct format *f)
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
    if (r->format->row->close[0] == '\n') { /* the header is only a name */
        if (word_after(text, r->format->row->open, tool) && strcmp(tool, "all") != 0)
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
    struct marks marks = {0};
    size_t hit;
    add_mark(&marks, &r->format->close, NULL);
    const size_t i = find_mark(r, &marks, &hit), n = r->in.size - r->at;
    if (hit == 0 && i + r->header.size <= MAX_HEADER) {
        base_buffer_add(&r->header, r->in.data + r->at, i);
        add_part(r, TEXT_REPLY_MARK, i + r->format->close.size);
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
    const char *s = r->in.data + r->at;
    errno = 0;
    json_t *calls = json_array();
    /* Content in tags contains the tool's name too. */
    const bool tags = space_size(s, size) < size && s[space_size(s, size)] == '<';
    if (calls && ((tags && read_calls(r, 0, size, calls)) ||
                  text_reply_read_named(r->tool, strlen(r->tool), s, size, calls))) {
        give_calls(r, calls, size);
    } else {
        r->answered = true;
        add_part(r, TEXT_REPLY_TEXT, size);
    }
    if (!calls || errno == ENOMEM) r->no_memory = true;
    json_decref(calls);
}

/* ---- Reasoning ---- */

/* Reads reasoning up to one of the marks; those with a format other than a call's, or none, end it.
 * Returns whether the state changed. */
static bool step_reasoning(struct text_reply *r, struct marks *marks)
{
    enum { MAX_SPACE = 64 };
    size_t hit;
    if (!r->has_call && r->n_rejected < MAX_TRIES) add_role(r, marks, TEXT_REPLY_TOOL);
    const size_t i = find_mark(r, marks, &hit), n = r->in.size - r->at;
    const struct format *format = hit < marks->n ? marks->format[hit] : NULL;
    const bool is_call = format && format->row->role == TEXT_REPLY_TOOL;
    size_t text = text_size(r->in.data + r->at, i);
    if (i - text > MAX_SPACE) text = i;
    r->seen = r->at + i;
    if (is_call) { /* held back, because the closing mark may follow */
        add_part(r, TEXT_REPLY_REASONING, text);
        r->has_call = true;
        r->seen += marks->mark[hit]->size;
        return true;
    }
    if (r->has_call && hit == marks->n) {
        if (!r->over && n <= r->max_call) return false;
        const struct format *thought = r->format;
        const size_t space = space_size(r->in.data + r->at, n);
        struct marks calls = {0};
        r->has_call = false;
        r->seen = r->at + space;
        add_role(r, &calls, TEXT_REPLY_TOOL);
        find_mark(r, &calls, &hit);
        if (!r->over || hit == calls.n) {
            r->n_rejected = MAX_TRIES;
            return true;
        }
        begin_call(r, calls.format[hit], space + calls.mark[hit]->size);
        r->space = space;
        r->thought = thought;
        return true;
    }
    add_part(r, TEXT_REPLY_REASONING, text);
    r->after_part &= !text;
    if (hit < marks->n) {
        add_part(r, TEXT_REPLY_MARK, i - text + (format ? 0 : marks->mark[hit]->size));
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
    const size_t space = space_size(s, r->in.size - r->at);
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
    size_t hit;
    for (size_t i = 0; i < 3; i++) add_mark(&marks, &r->format->stop[i], NULL);
    add_role(r, &marks, TEXT_REPLY_HEAD); /* a header may follow without a stop mark */
    if (r->what == TEXT_REPLY_REASONING) return step_reasoning(r, &marks);
    if (r->what == TEXT_REPLY_TEXT) add_role(r, &marks, TEXT_REPLY_TOOL);
    const size_t i = find_mark(r, &marks, &hit), n = r->in.size - r->at;
    r->seen = r->at + i;
    const bool ended = hit < marks.n || (r->over && n);
    if (r->what == TEXT_REPLY_CALL && !ended && n > r->max_call) r->what = TEXT_REPLY_TEXT;
    if (r->what == TEXT_REPLY_CALL) {
        if (!ended) return false;
        add_named_call(r, i);
    } else {
        r->answered |= r->what == TEXT_REPLY_TEXT && i;
        add_part(r, r->what, i);
    }
    if (hit < marks.n && !marks.format[hit]) add_part(r, TEXT_REPLY_MARK, marks.mark[hit]->size);
    if (ended) to_answer(r);
    if (hit < marks.n && marks.format[hit]) open_format(r, marks.format[hit]);
    return ended;
}

/* ---- The answer ---- */

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

static bool may_open(const struct text_reply *r, const struct format *f)
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

/* Checks the bytes after `space` bytes of white space, where any part may begin. YES: it opened a
 * part. */
static enum verdict open_here(struct text_reply *r, size_t space)
{
    enum { MAX_SPACE = 256 };
    const size_t n = r->in.size - r->at, at = r->at + space;
    const struct format *hit = NULL;
    enum verdict maybe = NO;
    if (space == n) return !r->over && space < MAX_SPACE ? MAYBE : NO;
    for (size_t i = 0; i < r->n_active && !hit; i++) {
        const struct format *f = &r->active[i];
        if (!may_open(r, f) || f->row->role == TEXT_REPLY_BARE) continue;
        const size_t got = match_mark(r, at, &f->open);
        if (got == f->open.size) hit = f;
        if (got && !r->over) maybe = MAYBE;
    }
    for (size_t i = 0; i < r->n_active && !hit && maybe == NO; i++) {
        const struct format *f = &r->active[i];
        const char open = f->row->open[0];
        if (f->row->role != TEXT_REPLY_BARE || !may_open(r, f) || r->in.data[at] != open) continue;
        const enum verdict bare = bare_begins(open, r->in.data + at, n - space);
        if (bare == YES) hit = f;
        if (bare == MAYBE && !r->over) maybe = MAYBE;
    }
    if (!hit) return maybe;
    add_part(r, TEXT_REPLY_MARK, space);
    open_format(r, hit);
    return YES;
}

static bool step_answer(struct text_reply *r)
{
    struct marks marks = {0};
    const size_t n = r->in.size - r->at;
    size_t hit;
    if (!n) return false;
    const char *s = r->in.data + r->at;
    const size_t space = space_size(s, n);
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
        const enum verdict verdict = open_here(r, space);
        if (verdict != NO) return verdict == YES;
        r->answered = true;
        r->after_part = false;
    }
    for (size_t i = 0; i < r->n_active; i++)
        if (may_open(r, &r->active[i]) && r->active[i].row->role != TEXT_REPLY_BARE)
            add_mark(&marks, &r->active[i].open, &r->active[i]);
    const size_t i = find_mark(r, &marks, &hit);
    add_part(r, TEXT_REPLY_TEXT, i);
    if (hit < marks.n) open_format(r, marks.format[hit]);
    return hit < marks.n;
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

/* Returns whether a token can be a mark. */
static bool is_mark(const struct text_tokenizer *t, int32_t id)
{
    const enum text_token_kind kind = text_token_kind(t, id);
    const size_t size = text_token_raw(t, id).size;
    return (kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_USER) && size >= MIN_TOKEN &&
           size <= MAX_TOKEN;
}

void text_reply_token(struct text_reply *r, int32_t id, uint64_t end)
{
    if (!r->tokenizer || !is_mark(r->tokenizer, id)) return;
    const size_t size = text_token_raw(r->tokenizer, id).size;
    const struct token token = {.at = end - size, .size = (unsigned char)size};
    if (end >= r->n_fed + size) base_buffer_add(&r->later, &token, sizeof token);
}

/* Records the tokens among the last `size` bytes. */
static void place_tokens(struct text_reply *r, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) base_buffer_add(&r->token, "", 1);
    for (struct token token; used < r->later.size; used += sizeof token) {
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

static bool is_text(struct gguf_str token, const char *text)
{
    return token.size == strlen(text) && memcmp(token.data, text, token.size) == 0;
}

/* Finds the vocabulary's longest token with which each mark begins. Marks in found[] the rows whose
 * mark is a token. */
static void find_tokens(const struct text_tokenizer *t, struct format *formats, bool *found)
{
    const uint32_t size = t ? text_vocab_size(t) : 0;
    for (uint32_t id = 0; id < size; id++) {
        const struct gguf_str raw = text_token_raw(t, (int32_t)id);
        const bool special = is_mark(t, (int32_t)id);
        if (raw.size < MIN_TOKEN || (!special && !memchr("<[", raw.data[0], 2))) continue;
        for (size_t i = 0; i < text_reply_n_rows; i++) {
            struct format *f = &formats[i];
            const char *sign = f->row->sign;
            found[i] |= (sign && is_text(raw, sign)) ||
                        ((!sign || f->row->role != TEXT_REPLY_HEAD) && is_text(raw, f->row->open));
            struct mark *const marks[] = {&f->open, &f->close, &f->stop[0], &f->stop[1],
                                          &f->stop[2]};
            for (size_t k = 0; k < 5 && special; k++)
                if (marks[k]->token < raw.size && marks[k]->size >= raw.size &&
                    memcmp(marks[k]->text, raw.data, raw.size) == 0)
                    marks[k]->token = (unsigned char)raw.size;
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
static bool open_header(struct text_reply *r, const struct format *f, const char *s, size_t n)
{
    const struct text_reply_row *row = f->row;
    const char *open = find_last(s, n, row->open);
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

static bool ends_with(const char *s, size_t n, const char *end)
{
    const size_t size = strlen(end);
    return n >= size && memcmp(s + n - size, end, size) == 0;
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
        const struct text_reply_row *row = r->active[i].row;
        r->headed |= row->answer && ends_with(s, text, row->answer);
        if (row->role == TEXT_REPLY_THINK && ends_with(s, text, row->open)) {
            r->format = &r->active[i];
            r->state = THINKING;
            r->after_part = true;
            return;
        }
        if (row->role == TEXT_REPLY_HEAD && open_header(r, &r->active[i], s, n)) return;
    }
}

static struct mark mark_of(const char *text)
{
    return (struct mark){.text = text, .size = text ? strlen(text) : 0};
}

/* Chooses the formats of the template and of the vocabulary. */
static void find_formats(struct text_reply *r, const struct text_reply_options *options)
{
    struct format all[MAX_ROWS] = {0};
    bool found[MAX_ROWS] = {0};
    bool by_template = false;
    for (size_t i = 0; i < text_reply_n_rows; i++) {
        const struct text_reply_row *row = &text_reply_rows[i];
        all[i] = (struct format){
            row,
            mark_of(row->open),
            mark_of(row->close),
            {mark_of(row->stop[0]), mark_of(row->stop[1]), mark_of(row->stop[2])}};
    }
    find_tokens(options->tokenizer, all, found);
    for (size_t i = 0; i < text_reply_n_rows; i++) {
        const struct text_reply_row *row = all[i].row;
        const char *sign = row->sign ? row->sign : row->open;
        const bool shown = options->template_text && strstr(options->template_text, sign);
        if (!found[i] && !shown) continue;
        if (!r->tokenizer)
            all[i].open.token = all[i].close.token = all[i].stop[0].token = all[i].stop[1].token =
                all[i].stop[2].token = 0;
        r->active[r->n_active++] = all[i];
        if ((row->role != TEXT_REPLY_THINK && !row->thought) ||
            (r->think && (by_template || !shown)))
            continue;
        r->think = row;
        by_template = shown;
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
    r->tokenizer = options->letters ? NULL : options->tokenizer;
    r->tools = options->tools;
    r->max_call = options->max_call ? options->max_call : MAX_CALL;
    find_formats(r, options);
    if (options->prompt) read_prompt(r, options->prompt, options->prompt_size);
    if (!r->header.failed) return r;
    text_reply_free(r);
    base_fail(err, BASE_NO_MEMORY, "no memory to parse a reply");
    return NULL;
}

bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks)
{
    const bool thinking = r->state == THINKING, content = r->state == CONTENT;
    const struct text_reply_row *row = thinking || content ? r->format->row : r->think;
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
