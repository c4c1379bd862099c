/* text/chat/reply.h: what a model wrote, taken apart while it comes: answer, reasoning, tool calls.
 *
 * Owns: the marks of the common formats (a table, text/chat/reply_tables.c), a stream that
 * recognises them wherever the bytes are cut, and the reading of tool calls. No byte is lost: the
 * bytes of all parts, one after the other, are the reply. No part ends inside a mark or shows half
 * of one. What looks like a call and cannot be read is answer text. Refuses: calling tools,
 * changing text.
 *
 * A format is looked for when its mark stands in the model's template or is a token of its
 * vocabulary; reasoning only before the answer begins; calls without a mark (bare JSON) only at the
 * beginning and only when tools were given. Marks are often control tokens, so the reply must be
 * decoded with them shown. */
#ifndef TEXT_CHAT_REPLY_H
#define TEXT_CHAT_REPLY_H

#include "text/tokenizer/tokenizer.h"
#include <jansson.h>

enum text_reply_kind {
    TEXT_REPLY_TEXT,      /* the answer */
    TEXT_REPLY_REASONING, /* thoughts before it */
    TEXT_REPLY_CALL,      /* a call of a tool, as written */
    TEXT_REPLY_MARK       /* what only divides the other kinds, and the space around it */
};

struct text_reply_part {
    enum text_reply_kind kind;
    const char *bytes; /* of the reply, not terminated */
    size_t size;       /* 0 for the second and later calls of one piece of markup */
    /* TEXT_REPLY_CALL, all terminated: */
    const char *name;
    const char *arguments; /* a JSON object, compact */
    const char *id;        /* as the model gave it, or NULL */
};

struct text_reply_options {
    const char *template_text;              /* source of the chat template, or NULL */
    const struct text_tokenizer *tokenizer; /* or NULL */
    const char *prompt;                     /* what stands before the reply, or NULL: */
    size_t prompt_size;                     /*   it may have opened the reasoning already */
    const json_t *tools;                    /* those the model was given; NULL: none. Types of
                                             * parameters decide how values without quotes read */
    size_t max_call;                        /* bytes of one call; longer ones are text. 0: 1 MiB */
};

struct text_reply; /* opaque; the options are not needed after it was made, but for `tools` */

/* NULL and BASE_NO_MEMORY without memory. */
struct text_reply *text_reply_new(const struct text_reply_options *options, struct base_error *err);
void text_reply_free(struct text_reply *r); /* NULL is fine */

/* The marks around thoughts in this reply: those that the prompt opened, else the ones that it is
 * most likely to have. */
struct text_reply_marks {
    const char *open, *close;
    bool opened; /* by the prompt */
};
/* Before the first byte; false when this model is not known to think. The marks live for ever. */
bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks);

/* More of the reply. What can be told is then given out by text_reply_next; the rest is held back
 * until it can. Linear in time. BASE_NO_MEMORY: no further part can be had. */
bool text_reply_feed(struct text_reply *r, const char *bytes, size_t size, struct base_error *err);
/* The reply is over: everything held back comes out. */
bool text_reply_end(struct text_reply *r, struct base_error *err);

/* The next part; false when there is none now. Pointers are valid until the next feed or end. */
bool text_reply_next(struct text_reply *r, struct text_reply_part *part);

#endif
