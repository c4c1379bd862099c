/* text/chat/reply.h: splits a model's output while it is generated: answer, reasoning, tool calls.
 *
 * Owns: the marks of the common formats (a table, text/chat/reply_tables.c), a stream that
 * recognises them for any division of the bytes into pieces, and the parsing of tool calls. No byte
 * is lost: the concatenated parts are the reply. No part ends inside a mark or contains half of
 * one. A call that cannot be parsed is answer text. Refuses: calling tools, changing text.
 *
 * A format is recognised when its mark occurs in the model's template or is a token of its
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
    TEXT_REPLY_MARK       /* marks between the other kinds, and the space around them */
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
    const char *prompt;                     /* the text before the reply, or NULL: */
    size_t prompt_size;                     /*   it may have opened the reasoning */
    const json_t *tools; /* given to the model; NULL: none. Parameter types decide how unquoted
                            values are read */
    size_t max_call;     /* bytes of one call; longer ones are text. 0: 1 MiB */
};

struct text_reply; /* opaque; of the options it keeps `tools` only */

/* NULL and BASE_NO_MEMORY without memory. */
struct text_reply *text_reply_new(const struct text_reply_options *options, struct base_error *err);
void text_reply_free(struct text_reply *r); /* NULL is fine */

/* The marks of reasoning in this reply: those that the prompt opened, else the most likely ones of
 * the model. */
struct text_reply_marks {
    const char *open, *close;
    bool opened; /* by the prompt */
};
/* To be called before the first byte. False if no reasoning format of the model is known. The marks
 * are static. */
bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks);

/* Adds bytes of the reply. text_reply_next returns the parts whose kind is certain; the rest is
 * held. Linear in time. BASE_NO_MEMORY: no further part is returned. */
bool text_reply_feed(struct text_reply *r, const char *bytes, size_t size, struct base_error *err);
/* Ends the reply: text_reply_next then returns all held bytes. */
bool text_reply_end(struct text_reply *r, struct base_error *err);

/* Returns the next part; false if none is available. Pointers are valid until the next feed or
 * end. */
bool text_reply_next(struct text_reply *r, struct text_reply_part *part);

#endif
