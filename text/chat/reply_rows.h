/* text/chat/reply_rows.h: the table of marks and the reading of calls. For text/chat/reply*.c
 * only. */
#ifndef TEXT_CHAT_REPLY_ROWS_H
#define TEXT_CHAT_REPLY_ROWS_H

#include "base/buffer.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum text_reply_role {
    TEXT_REPLY_THINK,   /* open, reasoning, close */
    TEXT_REPLY_TOOL,    /* open, call, close; if there is no close the call ends with its JSON */
    TEXT_REPLY_BARE,    /* a call without marks, at the beginning; open is its first byte */
    TEXT_REPLY_HEAD,    /* open, header, close, content up to a stop or the next open */
    TEXT_REPLY_SKIP,    /* a mark alone */
    TEXT_REPLY_LEFTOVER /* a mark alone, recognised only after a call or reasoning */
};

enum { TEXT_REPLY_MAX_ROWS = 64 };

enum {
    TEXT_REPLY_WHOLE = 1, /* the opening mark is part of the call's text */
    TEXT_REPLY_TO_END = 2 /* only the closing mark or the end of the reply ends it */
};

struct text_reply_row {
    enum text_reply_role role;
    const char *open, *close;
    const char *sign;    /* text that a template with this format contains; NULL: open */
    const char *stop[3]; /* for HEAD: marks that end the content; for TOOL: further closing marks */
    unsigned flags;
};

extern const struct text_reply_row text_reply_rows[];
extern const size_t text_reply_n_rows;

/* Reads the calls of one piece of markup and appends objects {"name", "arguments", "id"} to
 * `calls`; false (and nothing appended) if there is no call or memory is short. The text itself
 * determines the notation. `tools` may be NULL. */
bool text_reply_read_calls(const char *body, size_t size, const json_t *tools, json_t *calls);
/* A call whose name is separate: the body is its arguments, or code for the tool. */
bool text_reply_read_named(const char *name, size_t name_size, const char *body, size_t size,
                           json_t *calls);

/* Adds `value`, whose reference it takes, to an object; false without memory, or for a key with a
 * NUL byte, which Jansson writes and refuses to read. */
bool text_reply_set(json_t *object, const char *key, size_t size, json_t *value);
/* Reads one value in the notations of JSON, Python or their mixtures from at[0] on; NULL if there
 * is none. *used is its size in bytes. */
json_t *text_reply_read_value(const char *at, size_t size, size_t *used);
/* Reads NAME(key=value, ...) at the start; the arguments are a new object, or NULL. */
json_t *text_reply_read_keywords(const char *at, size_t size, char close, size_t *used);

/* Appends compact JSON; floats with the fewest digits that read back as the same number. */
void text_reply_write_json(struct base_buffer *out, const json_t *value);

#endif
