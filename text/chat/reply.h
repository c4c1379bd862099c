/* text/chat/reply.h: splits a model's output, while it is generated, into answer, reasoning and
 * tool calls.
 *
 * Contains the marks of the common formats (a table, text/chat/reply_tables.c), a stream that
 * recognizes them however the bytes are divided into pieces, and the parsing of tool calls; it does
 * not call tools. The concatenated parts are the reply, byte for byte. No part ends inside a mark.
 * A call that cannot be parsed is answer text.
 *
 * A format is recognized if its mark occurs in the model's template or is a token of its
 * vocabulary; reasoning only before the answer begins; calls without a mark (bare JSON) only at the
 * beginning of the answer and only if the caller passed tools. A mark that is, or begins with, a
 * control or user-defined token of the vocabulary is that token only, which text_reply_token
 * declares: the same letters in other tokens are text. Marks are often control tokens, so the
 * caller must decode the reply with control tokens shown.
 *
 * Reasoning that the reply never closes ends where the answer's mark or, at the end of the reply,
 * complete calls begin. */
#pragma once

#include "text/tokenizer/tokenizer.h"
#include <jansson.h>

enum text_reply_kind {
    TEXT_REPLY_TEXT,      /* the answer */
    TEXT_REPLY_REASONING, /* thoughts before the answer */
    TEXT_REPLY_CALL,      /* a tool call, as written */
    TEXT_REPLY_MARK       /* marks between the other kinds, with the space around them */
};

struct text_reply_part {
    enum text_reply_kind kind;
    const char *bytes; /* of the reply, not terminated */
    size_t size;       /* 0 for the second and later calls in one piece of markup */
    /* For TEXT_REPLY_CALL, all terminated by a zero: */
    const char *name;
    const char *arguments; /* a JSON object, compact */
    const char *id;        /* as the model wrote it, or NULL */
};

struct text_reply_options {
    const char *template_text;              /* source of the chat template, or NULL */
    const struct text_tokenizer *tokenizer; /* or NULL */
    const char *prompt;                     /* the text before the reply, or NULL; */
    size_t prompt_size;                     /* it may have begun the reasoning */
    const json_t *tools; /* the tools in the prompt; NULL: none. The types of parameters decide how
                          * unquoted values are read */
    size_t max_call;     /* bytes; a longer call is text. 0: 1 MiB */
    bool letters;        /* the tokens of the reply are unknown: letters are marks */
};

struct text_reply; /* opaque */

/* Creates a stream, which the caller frees. Of the options only `tools` must outlive it. Returns
 * NULL with BASE_NO_MEMORY. */
struct text_reply *text_reply_new(const struct text_reply_options *options, struct base_error *err);
void text_reply_free(struct text_reply *r); /* accepts NULL */

/* The marks of reasoning in this reply: those that the prompt opened, otherwise the most likely
 * ones of the model. */
struct text_reply_marks {
    const char *open, *close;
    const char *turn;   /* text between the closing mark and the answer's header; "": none */
    const char *answer; /* header of the answer; "": none */
    bool opened;        /* the prompt has opened the reasoning */
};
/* Returns the marks, static strings, before the first byte is added. false if no reasoning format
 * of the model is known, or the prompt has begun the answer. */
bool text_reply_thought_marks(const struct text_reply *r, struct text_reply_marks *marks);

/* Declares a token of the reply, before its bytes are added: `end` is the offset after its bytes,
 * counted from the first byte that was added. Call it for every token, in order. */
void text_reply_token(struct text_reply *r, int32_t id, uint64_t end);

/* Adds bytes of the reply, in linear time. text_reply_next then returns the parts whose kind is
 * certain. Returns false with BASE_NO_MEMORY; no further part is returned then. */
bool text_reply_feed(struct text_reply *r, const char *bytes, size_t size, struct base_error *err);
/* Ends the reply: text_reply_next then returns all remaining bytes. */
bool text_reply_end(struct text_reply *r, struct base_error *err);

/* Returns the kind of part to which bytes that were added and not returned probably belong. */
enum text_reply_kind text_reply_open_part(const struct text_reply *r);

/* Returns the next part in *part; false if none is available. Its pointers are valid until the next
 * feed or end. */
bool text_reply_next(struct text_reply *r, struct text_reply_part *part);
