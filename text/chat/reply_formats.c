/* text/chat/reply_formats.c: the formats of replies that a model may have. See
 * text/chat/reply_formats.h. */
#include "text/chat/reply_formats.h"
#include <string.h>

enum { MIN_TOKEN = 3, MAX_TOKEN = 255 }; /* sizes of tokens that may be marks */

/* ---- Texts ---- */

size_t text_reply_match(const char *s, size_t n, const char *text)
{
    const size_t all = strlen(text), here = n < all ? n : all;
    return memcmp(s, text, here) == 0 ? here : 0;
}

size_t text_reply_space_size(const char *s, size_t n)
{
    size_t size = 0;
    while (size < n && memchr(" \t\r\n", s[size], 4)) size++;
    return size;
}

size_t text_reply_text_size(const char *s, size_t n)
{
    while (n && memchr(" \t\r\n", s[n - 1], 4)) n--;
    return n;
}

const char *text_reply_find_last(const char *s, size_t n, const char *mark)
{
    const size_t size = strlen(mark);
    for (size_t at = n >= size ? n - size + 1 : 0; at-- > 0;)
        if (memcmp(s + at, mark, size) == 0) return s + at;
    return NULL;
}

bool text_reply_ends_with(const char *s, size_t n, const char *end)
{
    const size_t size = strlen(end);
    return n >= size && memcmp(s + n - size, end, size) == 0;
}

enum text_reply_verdict text_reply_bare_begins(char open, const char *s, size_t n)
{
    static const char *const keys[] = {"\"name\"", "\"type\"", "\"function\"", "\"parameters\"",
                                       "\"arguments\""};
    size_t at = 1 + text_reply_space_size(s + 1, n - 1), word = 0;
    if (at == n) return TEXT_REPLY_MAYBE;
    if (open == '{') {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const size_t got = text_reply_match(s + at, n - at, keys[k]);
            if (got) return got == strlen(keys[k]) ? TEXT_REPLY_YES : TEXT_REPLY_MAYBE;
        }
        return TEXT_REPLY_NO;
    }
    while (at < n && ((s[at] | 0x20) >= 'a' && (s[at] | 0x20) <= 'z') | (s[at] == '_') |
                         ((s[at] >= '0') & (s[at] <= '9')) | (s[at] == '.')) {
        at++;
        word++;
    }
    if (at == n) return word < 64 ? TEXT_REPLY_MAYBE : TEXT_REPLY_NO;
    return word && s[at] == '(' ? TEXT_REPLY_YES : TEXT_REPLY_NO;
}

/* Copies the word after `mark` in the header, up to the first character that is not part of a
 * name. */
static size_t word_after(const char *header, const char *mark, char out[TEXT_REPLY_MAX_HEADER + 1])
{
    const char *at = strstr(header, mark);
    size_t n = 0;
    if (at)
        for (at += strlen(mark); at[n] && !strchr("<> \t\r\n", at[n]) && n < TEXT_REPLY_MAX_HEADER;
             n++)
            out[n] = at[n];
    out[n] = '\0';
    return n;
}

enum text_reply_kind text_reply_read_header(const struct text_reply_row *row, const char *header,
                                            char tool[TEXT_REPLY_MAX_HEADER + 1])
{
    char channel[TEXT_REPLY_MAX_HEADER + 1];
    if (row->close[0] == '\n') /* the header is only a name */
        return word_after(header, row->open, tool) && strcmp(tool, "all") != 0 ? TEXT_REPLY_CALL
                                                                               : TEXT_REPLY_TEXT;
    word_after(header, "<|channel|>", channel);
    if (!word_after(header, "to=", tool) || strcmp(tool, "user") == 0)
        return strcmp(channel, "analysis") == 0 ? TEXT_REPLY_REASONING : TEXT_REPLY_TEXT;
    if (strcmp(tool, "self") == 0) return TEXT_REPLY_REASONING;
    if (strncmp(tool, "functions.", 10) == 0) memmove(tool, tool + 10, strlen(tool + 10) + 1);
    return TEXT_REPLY_CALL;
}

/* ---- Formats ---- */

bool text_reply_is_mark(const struct text_tokenizer *t, int32_t id)
{
    const enum text_token_kind kind = text_token_kind(t, id);
    const size_t size = text_token_raw(t, id).size;
    return (kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_USER) && size >= MIN_TOKEN &&
           size <= MAX_TOKEN;
}

/* Finds the vocabulary's longest token with which each mark begins. Marks in found[] the rows whose
 * mark is a token. */
static void find_tokens(const struct text_tokenizer *t, struct text_reply_format *formats,
                        bool *found)
{
    const uint32_t size = t ? text_vocab_size(t) : 0;
    for (uint32_t id = 0; id < size; id++) {
        const struct gguf_str raw = text_token_raw(t, (int32_t)id);
        const bool special = text_reply_is_mark(t, (int32_t)id);
        if (raw.size < MIN_TOKEN || (!special && !memchr("<[", raw.data[0], 2))) continue;
        for (size_t i = 0; i < text_reply_n_rows; i++) {
            struct text_reply_format *f = &formats[i];
            const char *sign = f->row->sign;
            found[i] |=
                (sign && gguf_str_is(raw, sign)) ||
                ((!sign || f->row->role != TEXT_REPLY_HEAD) && gguf_str_is(raw, f->row->open));
            struct text_reply_mark *const marks[] = {&f->open, &f->close, &f->stop[0], &f->stop[1],
                                                     &f->stop[2]};
            for (size_t k = 0; k < 5 && special; k++)
                if (marks[k]->token < raw.size && marks[k]->size >= raw.size &&
                    memcmp(marks[k]->text, raw.data, raw.size) == 0)
                    marks[k]->token = (unsigned char)raw.size;
        }
    }
}

static struct text_reply_mark mark_of(const char *text)
{
    return (struct text_reply_mark){.text = text, .size = text ? strlen(text) : 0};
}

static struct text_reply_format format_of(const struct text_reply_row *row)
{
    return (struct text_reply_format){
        row,
        mark_of(row->open),
        mark_of(row->close),
        {mark_of(row->stop[0]), mark_of(row->stop[1]), mark_of(row->stop[2])}};
}

void text_reply_formats_find(struct text_reply_formats *f, const char *template_text,
                             const struct text_tokenizer *t, const struct text_tokenizer *declared)
{
    struct text_reply_format all[TEXT_REPLY_MAX_ROWS] = {0};
    bool found[TEXT_REPLY_MAX_ROWS] = {0};
    bool by_template = false;
    for (size_t i = 0; i < text_reply_n_rows; i++) all[i] = format_of(&text_reply_rows[i]);
    find_tokens(t, all, found);
    for (size_t i = 0; i < text_reply_n_rows; i++) {
        const struct text_reply_row *row = all[i].row;
        const char *sign = row->sign ? row->sign : row->open;
        const bool shown = template_text && strstr(template_text, sign);
        if (!found[i] && !shown) continue;
        f->active[f->n++] = declared ? all[i] : format_of(row);
        if ((row->role != TEXT_REPLY_THINK && !row->thought) ||
            (f->think && (by_template || !shown)))
            continue;
        f->think = row;
        by_template = shown;
    }
}
