/* text/chat/reply_formats.h: the formats of replies that a model may have, and texts in which they
 * are recognized. Private to text/chat/reply*.c. */
#pragma once

#include "text/chat/reply.h"
#include "text/chat/reply_rows.h"

enum { TEXT_REPLY_MAX_HEADER = 512 };

/* A mark, and the size of the vocabulary's token with which it begins; 0: it is written by
 * letters. */
struct text_reply_mark {
    const char *text; /* NULL: none */
    size_t size;
    unsigned char token;
};

struct text_reply_format {
    const struct text_reply_row *row;
    struct text_reply_mark open, close, stop[3];
};

struct text_reply_formats {
    struct text_reply_format active[TEXT_REPLY_MAX_ROWS];
    size_t n;
    const struct text_reply_row *think; /* marks of the template, or those of the vocabulary */
};

/* Finds the formats of the template and of the vocabulary (each may be NULL). `declared` NULL: no
 * mark is a token. */
void text_reply_formats_find(struct text_reply_formats *f, const char *template_text,
                             const struct text_tokenizer *t, const struct text_tokenizer *declared);
/* Returns whether a token can be a mark: control or user-defined, of 3 to 255 bytes. */
bool text_reply_is_mark(const struct text_tokenizer *t, int32_t id);

enum text_reply_verdict { TEXT_REPLY_NO, TEXT_REPLY_MAYBE, TEXT_REPLY_YES };
/* Returns whether s[0..n) begins a call without marks: an object whose first key is a common one,
 * or a list whose first item is NAME(. */
enum text_reply_verdict text_reply_bare_begins(char open, const char *s, size_t n);

/* Returns the kind of content after a complete header, and in `tool` the tool that is called. */
enum text_reply_kind text_reply_read_header(const struct text_reply_row *row, const char *header,
                                            char tool[TEXT_REPLY_MAX_HEADER + 1]);

/* Returns the number of bytes of `text` at s: all, 0, or fewer if s ends within it. */
size_t text_reply_match(const char *s, size_t n, const char *text);
/* Returns the size of white space at the beginning; and that of s[0..n) without it at the end. */
size_t text_reply_space_size(const char *s, size_t n);
size_t text_reply_text_size(const char *s, size_t n);
/* Returns the last occurrence of `mark` in s[0..n), or NULL. */
const char *text_reply_find_last(const char *s, size_t n, const char *mark);
bool text_reply_ends_with(const char *s, size_t n, const char *end);

/* Reads calls as text_reply_read_calls. token[i] is the size of the token that begins with s[i], 0:
 * none. Letters that repeat a token of the same call are data. */
bool text_reply_read_masked(const char *s, const char *token, size_t size, const json_t *tools,
                            json_t *calls);
