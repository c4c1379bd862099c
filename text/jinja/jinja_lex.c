/* text/jinja/jinja_lex.c: splits template text into tokens, by jinja2's rules for whitespace around
 * tags (trim_blocks and lstrip_blocks on). See text/jinja/jinja_ast.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_ast.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BRACKETS = 512 };

struct lexer {
    struct jinja_parser *p;
    const char *s;
    size_t n, at;
    size_t counted; /* bytes whose newlines are in `line` already */
    int line;
    bool line_starts; /* the latest token ended a line */
    char open[MAX_BRACKETS];
    int n_open;
};

static int line_at(struct lexer *x, size_t at)
{
    for (; x->counted < at; x->counted++) x->line += x->s[x->counted] == '\n';
    return x->line;
}

static bool add(struct lexer *x, struct jinja_token token)
{
    struct jinja_tokens *ts = &x->p->tokens;
    if (!JINJA_ROOM(&x->p->t->pool, ts->token, ts->n, ts->room, x->p->err)) return false;
    ts->token[ts->n++] = token;
    return true;
}

static bool has_text(const struct lexer *x, size_t at, const char *word)
{
    const size_t n = strlen(word);
    return x->n - at >= n && memcmp(x->s + at, word, n) == 0;
}

static size_t skip_space(const struct lexer *x, size_t at)
{
    while (at < x->n) {
        int32_t code;
        const size_t used = base_utf8_decode(x->s + at, x->n - at, &code);
        if (!jinja_is_space(code)) break;
        at += used;
    }
    return at;
}

static size_t trim_right(const char *s, size_t n)
{
    while (n > 0) {
        size_t start = n - 1;
        while (start > 0 && ((unsigned char)s[start] & 0xc0) == 0x80) start--;
        int32_t code;
        base_utf8_decode(s + start, n - start, &code);
        if (!jinja_is_space(code)) break;
        n = start;
    }
    return n;
}

/* Reads the end of a tag: "+%}", "-%}" with all whitespace after it, or "%}" with one newline if
 * `trim`. Returns the offset past it, or 0. */
static size_t tag_end(const struct lexer *x, size_t at, const char *end, bool trim, bool plus)
{
    if (at < x->n && x->s[at] == '-' && has_text(x, at + 1, end)) return skip_space(x, at + 3);
    if (plus && at < x->n && x->s[at] == '+' && has_text(x, at + 1, end)) return at + 3;
    if (!has_text(x, at, end)) return 0;
    at += 2;
    return trim && at < x->n && x->s[at] == '\n' ? at + 1 : at;
}

static void ended_at(struct lexer *x, size_t at)
{
    x->line_starts = at > 0 && x->s[at - 1] == '\n';
    x->at = at;
}

/* Adds the text [start, end) before a tag whose sign is '-', '+' or 0. */
static bool add_data(struct lexer *x, size_t start, size_t end, char sign, bool variable)
{
    const char *text = x->s + start;
    size_t n = end - start;
    if (sign == '-') {
        n = trim_right(text, n);
    } else if (sign != '+' && !variable) {
        size_t line = n;
        while (line > 0 && text[line - 1] != '\n') line--;
        if ((line > 0 || x->line_starts) && trim_right(text + line, n - line) == 0) n = line;
    }
    if (n == 0) return true;
    return add(x, (struct jinja_token){
                      .kind = JINJA_T_DATA, .line = line_at(x, start), .text = {text, n}});
}

static char sign_at(const struct lexer *x, size_t at)
{
    return at < x->n && (x->s[at] == '-' || x->s[at] == '+') ? x->s[at] : 0;
}

/* Returns the offset past "{%- raw -%}" if it is here, otherwise 0. */
static size_t raw_begin(const struct lexer *x, size_t at)
{
    at += 2;
    if (sign_at(x, at)) at++;
    at = skip_space(x, at);
    if (!has_text(x, at, "raw")) return 0;
    return tag_end(x, skip_space(x, at + 3), "%}", false, false);
}

static bool lex_raw(struct lexer *x, size_t start)
{
    ended_at(x, start);
    for (size_t at = start; at + 1 < x->n; at++) {
        if (!has_text(x, at, "{%")) continue;
        const char sign = sign_at(x, at + 2);
        size_t end = skip_space(x, at + 2 + (sign != 0));
        if (!has_text(x, end, "endraw")) continue;
        end = tag_end(x, skip_space(x, end + 6), "%}", true, true);
        if (!end) continue;
        if (!add_data(x, start, at, sign, false)) return false;
        ended_at(x, end);
        return true;
    }
    return jinja_syntax(x->p, line_at(x, start), "this raw block has no endraw");
}

static bool lex_comment(struct lexer *x, size_t start)
{
    for (size_t at = start; at + 1 < x->n; at++) {
        const size_t end = tag_end(x, at, "#}", true, true);
        if (!end) continue;
        ended_at(x, end);
        return true;
    }
    return jinja_syntax(x->p, line_at(x, start), "this comment has no end");
}

/* ---- Inside tags ---- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

/* Returns the offset past digits with single underscores between (or before) them; `at` if there
 * are none. */
static size_t digits_end(const struct lexer *x, size_t at, int base, bool lead)
{
    size_t end = at;
    while (at < x->n) {
        if (x->s[at] == '_' && (end == at) && (lead || end > 0)) {
            at++;
            continue;
        }
        if (digit_value(x->s[at]) >= base) break;
        end = ++at;
        lead = true;
    }
    return end;
}

/* Returns the offset past a float that begins here, or 0. */
static size_t float_end(const struct lexer *x, size_t at)
{
    if (at > 0 && x->s[at - 1] == '.') return 0;
    size_t end = digits_end(x, at, 10, false);
    bool is_float = false;
    if (end == at) return 0;
    if (end < x->n && x->s[end] == '.') {
        const size_t part = digits_end(x, end + 1, 10, false);
        if (part > end + 1) {
            end = part;
            is_float = true;
        }
    }
    if (end < x->n && (x->s[end] | 0x20) == 'e') {
        const size_t first = end + 1 + (sign_at(x, end + 1) != 0);
        const size_t part = digits_end(x, first, 10, false);
        if (part > first) {
            end = part;
            is_float = true;
        }
    }
    return is_float ? end : 0;
}

static bool lex_number(struct lexer *x)
{
    const size_t start = x->at;
    struct jinja_token token = {.kind = JINJA_T_FLOAT, .line = line_at(x, start)};
    int base = 10;
    size_t end = float_end(x, start), first = start;
    char digits[128];
    size_t n = 0;
    if (!end) {
        const char mark = start + 1 < x->n ? (char)(x->s[start + 1] | 0x20) : 0;
        token.kind = JINJA_T_INT;
        if (x->s[start] == '0') base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 1;
        if (base != 10 && base != 1) {
            first = start + 2;
            end = digits_end(x, first, base, true);
            if (end == first) base = 1;
        }
        if (base == 1) /* zeros only */
            end = digits_end(x, first = start, 1, false);
        else if (base == 10)
            end = digits_end(x, start, 10, false);
        if (base == 1) base = 10;
    }
    for (size_t i = first; i < end; i++) {
        if (x->s[i] == '_') continue;
        if (n + 1 == sizeof digits) return jinja_syntax(x->p, token.line, "number too long");
        digits[n++] = x->s[i];
    }
    digits[n] = '\0';
    token.text = (struct jinja_str){x->s + start, end - start};
    errno = 0;
    if (token.kind == JINJA_T_FLOAT)
        token.f = strtod(digits, NULL);
    else
        token.i = strtoll(digits, NULL, base);
    if (token.kind == JINJA_T_INT && errno == ERANGE)
        return jinja_syntax(x->p, token.line, "the number %s has more than 64 bits", digits);
    x->at = end;
    return add(x, token);
}

/* Reads `count` hexadecimal digits (or up to three octal ones) of an escape. */
static bool read_code(const char *s, size_t n, size_t count, int base, int32_t *code, size_t *used)
{
    *code = 0;
    for (*used = 0; *used < count && *used < n && digit_value(s[*used]) < base; ++*used)
        *code = *code * base + digit_value(s[*used]);
    return base == 8 ? *used > 0 : *used == count;
}

/* Decodes one escape at s[0..n), after the backslash. An unknown one is unchanged. */
static bool decode_escape(const char *s, size_t n, char *out, size_t *n_out, size_t *used)
{
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const char *found = memchr(names, s[0], sizeof names - 1);
    int32_t code;
    *used = 1;
    *n_out = 0;
    if (s[0] == '\n') return true; /* a continued line */
    if (found) {
        out[(*n_out)++] = values[found - names];
        return true;
    }
    const size_t count = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (count) {
        if (!read_code(s + 1, n - 1, count, 16, &code, used)) return false;
        ++*used;
    } else if (!read_code(s, n, 3, 8, &code, used)) {
        out[0] = '\\';
        *n_out = 1;
        *used = 0; /* the character after the backslash is read as usual */
        return true;
    }
    if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    *n_out = base_utf8_encode(code, out);
    return true;
}

static bool lex_string(struct lexer *x)
{
    const char quote = x->s[x->at];
    const int line = line_at(x, x->at);
    const size_t start = x->at + 1;
    size_t end = start, n = 0;
    while (end < x->n && x->s[end] != quote) end += x->s[end] == '\\' ? 2 : 1;
    if (end >= x->n) return jinja_syntax(x->p, line, "this string has no end");
    char *text = jinja_alloc(&x->p->t->pool, end - start + 1, x->p->err);
    if (!text) return false;
    for (size_t i = start; i < end;) {
        if (x->s[i] != '\\') {
            text[n++] = x->s[i++];
            continue;
        }
        size_t used, wrote;
        char code[4];
        if (x->s[i + 1] == 'N')
            return jinja_syntax(x->p, line, "characters by name (\\N{...}) are not supported");
        if (!decode_escape(x->s + i + 1, end - i - 1, code, &wrote, &used))
            return jinja_syntax(x->p, line, "bad escape \\%c in a string", x->s[i + 1]);
        memcpy(text + n, code, wrote);
        n += wrote;
        i += 1 + used;
    }
    x->at = end + 1;
    return add(x, (struct jinja_token){.kind = JINJA_T_STRING, .line = line, .text = {text, n}});
}

static bool is_name_at(const struct lexer *x, size_t at, size_t *used)
{
    int32_t code;
    if (at >= x->n) return false;
    *used = base_utf8_decode(x->s + at, x->n - at, &code);
    return jinja_is_word(code);
}

static bool lex_operator(struct lexer *x)
{
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    const char c = x->s[x->at];
    size_t n = 0;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (has_text(x, x->at, two[i])) n = 2;
    if (!n && strchr("+-/*%~[](){}><=.:|,;", c) && c) n = 1;
    if (!n) return jinja_syntax(x->p, line_at(x, x->at), "unexpected character '%c'", c);
    if (n == 1 && strchr("([{", c)) {
        if (x->n_open == MAX_BRACKETS)
            return jinja_syntax(x->p, line_at(x, x->at), "too many open brackets");
        x->open[x->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (n == 1 && strchr(")]}", c)) {
        if (x->n_open == 0 || x->open[--x->n_open] != c)
            return jinja_syntax(x->p, line_at(x, x->at), "unexpected '%c'", c);
    }
    x->at += n;
    return add(x, (struct jinja_token){.kind = JINJA_T_OP,
                                       .line = line_at(x, x->at - n),
                                       .text = {x->s + x->at - n, n}});
}

/* Reads the rest of a tag, after its beginning. */
static bool lex_tag(struct lexer *x, bool block)
{
    x->n_open = 0;
    while (x->at < x->n) {
        const size_t end = x->n_open ? 0 : tag_end(x, x->at, block ? "%}" : "}}", block, block);
        size_t used;
        if (end) {
            const int line = line_at(x, x->at);
            ended_at(x, end);
            return add(x, (struct jinja_token){.kind = block ? JINJA_T_BLOCK_END : JINJA_T_VAR_END,
                                               .line = line});
        }
        const size_t start = skip_space(x, x->at);
        if (start != x->at) {
            x->at = start;
            continue;
        }
        const char c = x->s[x->at];
        if (c >= '0' && c <= '9') {
            if (!lex_number(x)) return false;
        } else if (is_name_at(x, x->at, &used)) {
            size_t past = x->at;
            while (is_name_at(x, past, &used)) past += used;
            if (!add(x, (struct jinja_token){.kind = JINJA_T_NAME,
                                             .line = line_at(x, x->at),
                                             .text = {x->s + x->at, past - x->at}}))
                return false;
            x->at = past;
        } else if (c == '\'' || c == '"') {
            if (!lex_string(x)) return false;
        } else if (!lex_operator(x)) {
            return false;
        }
    }
    return true; /* the parser reports the missing end */
}

/* Returns the offset of the next "{{", "{%" or "{#" from `at` on, or the end. */
static size_t find_tag(const struct lexer *x, size_t at)
{
    for (; at + 1 < x->n; at++)
        if (x->s[at] == '{' && memchr("{%#", x->s[at + 1], 3)) return at;
    return x->n;
}

bool jinja_lex(struct jinja_parser *p, struct jinja_str source)
{
    struct lexer x = {.p = p, .s = source.s, .n = source.n, .line = 1, .line_starts = true};
    while (x.at < x.n) {
        const size_t start = x.at, tag = find_tag(&x, start);
        if (tag == x.n) {
            if (!add_data(&x, start, x.n, '+', true)) return false;
            break;
        }
        const char kind = x.s[tag + 1], sign = sign_at(&x, tag + 2);
        const size_t raw = kind == '%' ? raw_begin(&x, tag) : 0;
        if (!add_data(&x, start, tag, sign, kind == '{')) return false;
        x.at = tag + 2 + (sign != 0);
        x.line_starts = false;
        bool ok;
        if (raw) {
            ok = lex_raw(&x, raw);
        } else if (kind == '#') {
            ok = lex_comment(&x, x.at);
        } else {
            ok = add(&x, (struct jinja_token){.kind = kind == '%' ? JINJA_T_BLOCK_BEGIN
                                                                  : JINJA_T_VAR_BEGIN,
                                              .line = line_at(&x, tag)}) &&
                 lex_tag(&x, kind == '%');
        }
        if (!ok) return false;
    }
    return add(&x, (struct jinja_token){.kind = JINJA_T_END, .line = line_at(&x, x.n)});
}
