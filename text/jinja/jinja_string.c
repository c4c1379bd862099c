/* text/jinja/jinja_string.c: the methods of strings. See text/jinja/jinja_run.h.
 *
 * Arguments are checked as strictly as in Python, where the only possible exception is
 * TypeError. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <stdlib.h>
#include <string.h>

/* ---- Functions shared with filters ---- */

static bool has_code(const struct jinja_str *chars, int32_t code)
{
    for (size_t at = 0; at < chars->n;) {
        int32_t other;
        at += base_utf8_decode(chars->s + at, chars->n - at, &other);
        if (other == code) return true;
    }
    return false;
}

/* Returns s without the characters, or NULL: without space, at the named ends. */
static struct jinja_str strip(struct jinja_str s, const struct jinja_str *chars,
                              enum jinja_sides sides)
{
    int32_t code;
    while (sides & JINJA_LEFT && s.n) {
        const size_t used = base_utf8_decode(s.s, s.n, &code);
        if (!(chars ? has_code(chars, code) : jinja_is_space(code))) break;
        s.s += used;
        s.n -= used;
    }
    while (sides & JINJA_RIGHT && s.n) {
        size_t start = s.n - 1;
        while (start > 0 && ((unsigned char)s.s[start] & 0xc0) == 0x80) start--;
        base_utf8_decode(s.s + start, s.n - start, &code);
        if (!(chars ? has_code(chars, code) : jinja_is_space(code))) break;
        s.n = start;
    }
    return s;
}

bool jinja_strip_value(struct jinja_run *r, const struct jinja_call *c, struct jinja_str from,
                       enum jinja_sides sides, struct jinja_value *out)
{
    struct jinja_str chars = {0};
    const bool given = jinja_given(&c->arg[0]) && c->arg[0].kind != JINJA_NONE;
    if (given && !jinja_arg_str(r, c, 0, &chars)) return false;
    const struct jinja_str s = strip(from, given ? &chars : NULL, sides);
    *out = jinja_string(s.s, s.n);
    /* Each code point that was stripped was compared with each of `chars`. */
    return jinja_step(r, (uint64_t)(from.n - s.n) * (1 + chars.n) / JINJA_DECODED);
}

bool jinja_replace(struct jinja_run *r, struct jinja_str s, struct jinja_str old,
                   struct jinja_str by, int64_t count, struct jinja_value *out)
{
    struct jinja_text text = {0};
    size_t at = 0;
    if (!jinja_step(r, (s.n + old.n) / JINJA_MOVED)) return false;
    while (count != 0 && at <= s.n) {
        const char *found = old.n ? memmem(s.s + at, s.n - at, old.s, old.n) : s.s + at;
        if (!found) break;
        const size_t to = (size_t)(found - s.s);
        if (!jinja_add(r, &text, s.s + at, to - at) || !jinja_add(r, &text, by.s, by.n) ||
            !jinja_step(r, 1))
            return false;
        at = to + old.n;
        count -= count > 0;
        if (old.n) continue;
        if (at == s.n) break; /* "" occurs between code points and at both ends */
        const size_t used = jinja_bytes((struct jinja_str){s.s + at, s.n - at}, 1);
        if (!jinja_add(r, &text, s.s + at, used)) return false;
        at += used;
    }
    if (!jinja_add(r, &text, s.s + at, s.n - at)) return false;
    *out = jinja_text_value(&text);
    return true;
}

bool jinja_split_lines(struct jinja_run *r, struct jinja_str s, struct jinja_seq *out)
{
    size_t start = 0;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        size_t next = at + used;
        if (!jinja_is_line_break(code)) {
            at = next;
            continue;
        }
        if (code == '\r' && next < s.n && s.s[next] == '\n') next++;
        if (!jinja_push(r, out, jinja_string(s.s + start, at - start))) return false;
        at = start = next;
    }
    return start == s.n || jinja_push(r, out, jinja_string(s.s + start, s.n - start));
}

/* Copies s without surrounding space and without single underscores between digits. */
static bool plain_number(struct jinja_str s, char *out, size_t room)
{
    size_t n = 0;
    s = strip(s, NULL, JINJA_BOTH);
    if (!s.n || s.n >= room) return false;
    for (size_t i = 0; i < s.n; i++) {
        const bool between = i > 0 && i + 1 < s.n && (unsigned)s.s[i - 1] - '0' < 10 &&
                             (unsigned)s.s[i + 1] - '0' < 10;
        if (s.s[i] == '_' && !between) return false;
        if (s.s[i] != '_') out[n++] = s.s[i];
    }
    out[n] = '\0';
    return true;
}

bool jinja_parse_int(struct jinja_str s, int64_t *out, bool *too_large)
{
    char text[128];
    int64_t value = 0;
    *too_large = false;
    if (!plain_number(s, text, sizeof text)) return false;
    const char *p = text;
    const bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    const bool digits = *p != '\0';
    for (; *p; p++) {
        if (*p < '0' || *p > '9') return false;
        *too_large |= __builtin_mul_overflow(value, 10, &value) ||
                      __builtin_sub_overflow(value, *p - '0', &value);
    }
    /* Digits are added up as a negative number, because the negative range is larger by one. */
    if (!negative) *too_large |= __builtin_sub_overflow((int64_t)0, value, &value);
    *out = value;
    return digits;
}

bool jinja_parse_float(struct jinja_str s, double *out)
{
    char text[512], *end;
    if (!plain_number(s, text, sizeof text)) return false;
    for (const char *p = text; *p; p++) /* hexadecimal floats and similar forms are not numbers
                                         * here */
        if (!strchr("0123456789+-.eEinftyaINFTYA", *p)) return false;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* ---- Methods: helpers ---- */

static struct jinja_str self_of(const struct jinja_call *c)
{
    return c->self->s;
}

/* ---- Case ---- */

static bool m_case(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return jinja_change_case(r, self_of(c), (enum jinja_case)c->form, out);
}

static bool m_capitalize(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return jinja_capitalize(r, self_of(c), out);
}

/* ---- Stripping and splitting ---- */

static bool m_strip(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return jinja_strip_value(r, c, self_of(c), (enum jinja_sides)c->form, out);
}

static bool push_part(struct jinja_run *r, struct jinja_seq *seq, const char *s, size_t n)
{
    return jinja_push(r, seq, jinja_string(s, n)) && jinja_step(r, 1);
}

/* Splits at runs of white space, at most `max_splits` times (negative: no maximum). */
static bool split_space(struct jinja_run *r, const struct jinja_call *c, int64_t max_splits,
                        struct jinja_seq *seq)
{
    struct jinja_str rest = strip(self_of(c), NULL, JINJA_LEFT);
    while (rest.n) {
        size_t n = 0, used;
        int32_t code;
        if (max_splits-- == 0) return push_part(r, seq, rest.s, rest.n); /* the rest, unsplit */
        for (; n < rest.n; n += used) {
            used = base_utf8_decode(rest.s + n, rest.n - n, &code);
            if (jinja_is_space(code)) break;
        }
        if (!push_part(r, seq, rest.s, n)) return false;
        rest = strip((struct jinja_str){rest.s + n, rest.n - n}, NULL, JINJA_LEFT);
    }
    return true;
}

static bool split_at(struct jinja_run *r, const struct jinja_call *c, struct jinja_str sep,
                     int64_t max_splits, struct jinja_seq *seq)
{
    struct jinja_str rest = self_of(c);
    while (max_splits-- != 0) {
        const char *found = memmem(rest.s, rest.n, sep.s, sep.n);
        if (!found) break;
        const size_t before = (size_t)(found - rest.s);
        if (!push_part(r, seq, rest.s, before)) return false;
        rest = (struct jinja_str){found + sep.n, rest.n - before - sep.n};
    }
    return push_part(r, seq, rest.s, rest.n);
}

static bool m_split(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str sep;
    int64_t max_splits;
    if (!jinja_arg_int(r, c, 1, -1, &max_splits) || !jinja_new(r, JINJA_LIST, out) ||
        !jinja_step(r, c->self->s.n / JINJA_DECODED))
        return false;
    if (!jinja_given(&c->arg[0]) || c->arg[0].kind == JINJA_NONE)
        return split_space(r, c, max_splits, out->seq);
    if (!jinja_arg_str(r, c, 0, &sep)) return false;
    if (!sep.n) return jinja_fail(r, "%s: empty separator", c->name);
    return split_at(r, c, sep, max_splits, out->seq);
}

/* ---- Searching ---- */

static bool matches(struct jinja_str s, struct jinja_str part, bool at_end)
{
    return s.n >= part.n && memcmp(at_end ? s.s + s.n - part.n : s.s, part.s, part.n) == 0;
}

enum { AT_START, AT_END };

static bool m_begins_or_ends(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const struct jinja_value *all = &c->arg[0];
    size_t n = 1;
    if (c->arg[0].kind == JINJA_TUPLE) {
        all = c->arg[0].seq->item;
        n = c->arg[0].seq->n;
    }
    *out = jinja_bool(false);
    for (size_t i = 0; i < n && !out->b; i++) {
        if (all[i].kind != JINJA_STR)
            return jinja_fail(r, "%s: a string or a tuple of strings is needed", c->name);
        if (!jinja_step(r, 1 + all[i].s.n / JINJA_MOVED)) return false;
        *out = jinja_bool(matches(self_of(c), all[i].s, c->form == AT_END));
    }
    return true;
}

/* ---- Building ---- */

static bool m_replace(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str old, by;
    int64_t count;
    if (!jinja_arg_str(r, c, 0, &old) || !jinja_arg_str(r, c, 1, &by) ||
        !jinja_arg_int(r, c, 2, -1, &count))
        return false;
    return jinja_replace(r, self_of(c), old, by, count, out);
}

/* Returns the value of a field: "" is the next argument, a number, or a keyword. */
static const struct jinja_value *find_field(const struct jinja_call *c, struct jinja_str field,
                                            size_t *next)
{
    int64_t i;
    bool too_large;
    if (!field.n) return *next < c->n_pos ? &c->pos[(*next)++] : NULL;
    if (!jinja_parse_int(field, &i, &too_large))
        return c->kw ? jinja_dict_word(c->kw, field) : NULL;
    return !too_large && i >= 0 && (uint64_t)i < c->n_pos ? &c->pos[i] : NULL;
}

/* str.format with the fields that templates use: {}, {0}, {name}, and doubled braces. */
static bool m_format(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    const struct jinja_str s = self_of(c);
    size_t next = 0;
    if (!jinja_step(r, s.n / JINJA_DECODED)) return false;
    for (size_t at = 0; at < s.n; at++) {
        const char brace = s.s[at];
        const bool is_brace = brace == '{' || brace == '}';
        if (!is_brace || (at + 1 < s.n && s.s[at + 1] == brace)) {
            if (!jinja_add(r, &text, s.s + at, 1)) return false;
            at += is_brace;
            continue;
        }
        const char *end = memchr(s.s + at, '}', s.n - at);
        if (brace == '}' || !end) return jinja_fail(r, "format: a single '%c'", brace);
        const struct jinja_str field = {s.s + at + 1, (size_t)(end - s.s) - at - 1};
        const struct jinja_value *value = find_field(c, field, &next);
        if (!value)
            return jinja_fail(r, "format: no argument for the field '%.*s'",
                              (int)(field.n > 99 ? 99 : field.n), field.s);
        if (!jinja_str(r, &text, value)) return false;
        at += field.n + 1;
    }
    *out = jinja_text_value(&text);
    return true;
}

const struct jinja_func *jinja_find_str_method(struct jinja_str name)
{
    static const struct jinja_func rows[] = {
        {"strip", m_strip, "chars /", 0, JINJA_BOTH},
        {"lstrip", m_strip, "chars /", 0, JINJA_LEFT},
        {"rstrip", m_strip, "chars /", 0, JINJA_RIGHT},
        {"split", m_split, "sep maxsplit", 0, 0},
        {"startswith", m_begins_or_ends, "prefix /", 1, AT_START},
        {"endswith", m_begins_or_ends, "suffix /", 1, AT_END},
        {"replace", m_replace, "old new count /", 2, 0},
        {"upper", m_case, "", 0, JINJA_UPPER},
        {"lower", m_case, "", 0, JINJA_LOWER},
        {"title", m_case, "", 0, JINJA_TITLE},
        {"capitalize", m_capitalize, "", 0, 0},
        {"format", m_format, NULL, 0, 0}};
    return jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
}
