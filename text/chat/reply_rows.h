/* text/chat/reply_rows.h: the table of marks, and the functions that read calls. Private to
 * text/chat/reply*.c. */
#pragma once

#include "base/buffer.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum text_reply_role {
    TEXT_REPLY_THINK,   /* open, reasoning, close */
    TEXT_REPLY_TOOL,    /* open, call, close; without a close the call ends with its JSON */
    TEXT_REPLY_BARE,    /* a call without marks, at the beginning; open is its first byte */
    TEXT_REPLY_HEAD,    /* open, header, close, content up to a stop or the next open */
    TEXT_REPLY_SKIP,    /* a mark by itself */
    TEXT_REPLY_BEGIN,   /* a mark by itself, which begins the answer: it ends unclosed reasoning */
    TEXT_REPLY_LEFTOVER /* a mark by itself, recognized only after a call or reasoning */
};

enum { TEXT_REPLY_MAX_ROWS = 80 };

enum {
    TEXT_REPLY_WHOLE = 1, /* the opening mark is part of the call's text */
    TEXT_REPLY_TO_END = 2 /* only the closing mark or the end of the reply ends it */
};

struct text_reply_row {
    enum text_reply_role role;
    const char *open, *close;
    const char *sign;    /* text that templates of this format contain; NULL: open */
    const char *stop[3]; /* for HEAD: marks that end the content; for TOOL: further closing marks */
    unsigned flags;
    /* For HEAD: the header of reasoning, or NULL. */
    const char *thought;
    /* For THINK, and HEAD with `thought`: text after the reasoning's closing mark, and the header
     * of the answer, which also follows a prompt without reasoning; NULL: none. */
    const char *turn, *answer;
};

extern const struct text_reply_row text_reply_rows[];
extern const size_t text_reply_n_rows;

/* Reads the calls in one piece of markup and appends objects {"name", "arguments", "id"} to
 * `calls`. The text itself determines the notation. `tools` may be NULL. Returns false, with
 * nothing appended, if there is no call or no memory. */
bool text_reply_read_calls(const char *body, size_t size, const json_t *tools, json_t *calls);
/* Reads a call whose name is separate: `body` is its arguments, or code for the tool. */
bool text_reply_read_named(const char *name, size_t name_size, const char *body, size_t size,
                           json_t *calls);

/* Adds `value`, of which it takes over the reference, to an object. Returns false without memory,
 * or for a key with a zero byte, which jansson could write but not read again. */
bool text_reply_set(json_t *object, const char *key, size_t size, json_t *value);
/* Reads one value at the start of at[0..size), in the notation of JSON, of Python or a mixture;
 * NULL if there is none. *used is its size in bytes. */
json_t *text_reply_read_value(const char *at, size_t size, size_t *used);
/* Reads NAME(key=value, ...) at the start. Returns the arguments as a new object, or NULL. */
json_t *text_reply_read_keywords(const char *at, size_t size, char close, size_t *used);
