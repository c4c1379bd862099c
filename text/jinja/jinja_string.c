/* text/jinja/jinja_string.c: the methods of strings. See text/jinja/jinja_run.h.
 *
 * Python knows no failure but TypeError here; arguments are checked as strictly as it does. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- Pieces that filters use too ---- */

static bool has_code(const struct jinja_str *chars, int32_t code)
{
    for (size_t at = 0; at < chars->n;) {
        int32_t other;
        at += base_utf8_decode(chars->s + at, chars->n - at, &other);
        if (other == code) return true;
    }
    return false;
}

struct jinja_str jinja_strip(struct jinja_str s, const struct jinja_str *chars, bool left,
                             bool right)
{
    int32_t code;
    while (left && s.n) {
        const size_t used = base_utf8_decode(s.s, s.n, &code);
        if (!(chars ? has_code(chars, code) : jinja_is_space(code))) break;
        s.s += used;
        s.n -= used;
    }
    while (right && s.n) {
        size_t start = s.n - 1;
        while (start > 0 && ((unsigned char)s.s[start] & 0xc0) == 0x80) start--;
        base_utf8_decode(s.s + start, s.n - start, &code);
        if (!(chars ? has_code(chars, code) : jinja_is_space(code))) break;
        s.n = start;
    }
    return s;
}

bool jinja_replace(struct jinja_run *r, struct jinja_str s, struct jinja_str old,
                   struct jinja_str by, int64_t count, struct jinja_value *out)
{
    struct jinja_text text = {0};
    size_t at = 0;
    while (count != 0 && at <= s.n) {
        const char *hit = old.n ? memmem(s.s + at, s.n - at, old.s, old.n) : s.s + at;
        if (!hit) break;
        const size_t to = (size_t)(hit - s.s);
        if (!jinja_add(r, &text, s.s + at, to - at) || !jinja_add(r, &text, by.s, by.n) ||
            !jinja_step(r, 1))
            return false;
        at = to + old.n;
        count -= count > 0;
        if (old.n) continue;
        if (at == s.n) break; /* between code points, and at both ends */
        const size_t used = jinja_bytes((struct jinja_str){s.s + at, s.n - at}, 1);
        if (!jinja_add(r, &text, s.s + at, used)) return false;
        at += used;
    }
    if (!jinja_add(r, &text, s.s + at, s.n - at) || !jinja_step(r, s.n / 64)) return false;
    *out = jinja_text_value(&text);
    return true;
}

bool jinja_split_lines(struct jinja_run *r, struct jinja_str s, bool keep, struct jinja_seq *out)
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
        if (!jinja_push(r, out, jinja_string(s.s + start, (keep ? next : at) - start)))
            return false;
        at = start = next;
    }
    return start == s.n || jinja_push(r, out, jinja_string(s.s + start, s.n - start));
}

bool jinja_center(struct jinja_run *r, struct jinja_str s, int64_t width, struct jinja_str fill,
                  int where, struct jinja_value *out)
{
    struct jinja_text text = {0};
    const int64_t n = (int64_t)jinja_count(s), pad = width > n ? width - n : 0;
    const int64_t left = where < 0 ? 0 : where > 0 ? pad : pad / 2 + (pad & width & 1);
    if (pad > (int64_t)r->limit.max_memory) return jinja_fail(r, "a field that is too wide");
    for (int64_t i = 0; i <= pad; i++) {
        if (i == left && !jinja_add(r, &text, s.s, s.n)) return false;
        if (i < pad && !jinja_add(r, &text, fill.s, fill.n)) return false;
    }
    *out = jinja_text_value(&text);
    return jinja_step(r, (uint64_t)pad);
}

/* Copies s without surrounding space and with single underscores between digits left out. */
static bool plain_number(struct jinja_str s, char *out, size_t room)
{
    size_t n = 0;
    s = jinja_strip(s, NULL, true, true);
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

bool jinja_parse_int(struct jinja_str s, int base, int64_t *out, bool *too_large)
{
    char text[128];
    int64_t value = 0;
    bool digits = false;
    *too_large = false;
    if (!plain_number(s, text, sizeof text)) return false;
    const char *p = text;
    const bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char mark = *p == '0' ? (char)(p[1] | 0x20) : 0;
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == marked || base == 0)) {
        base = marked;
        p += 2;
    }
    if (base == 0) base = 10;
    for (; *p; p++) {
        const char low = (char)(*p | 0x20);
        const int digit = *p >= '0' && *p <= '9'     ? *p - '0'
                          : low >= 'a' && low <= 'z' ? low - 'a' + 10
                                                     : 99;
        if (digit >= base) return false;
        digits = true;
        *too_large |= __builtin_mul_overflow(value, (int64_t)base, &value) ||
                      __builtin_sub_overflow(value, (int64_t)digit, &value);
    }
    /* Computed below zero, where the range is larger by one. */
    if (!negative) *too_large |= __builtin_sub_overflow((int64_t)0, value, &value);
    *out = value;
    return digits;
}

bool jinja_parse_float(struct jinja_str s, double *out)
{
    char text[512], *end;
    if (!plain_number(s, text, sizeof text)) return false;
    for (const char *p = text; *p; p++) /* hexadecimal floats and the like are no numbers here */
        if (!strchr("0123456789+-.eEinftyaINFTYA", *p)) return false;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* ---- Methods: helpers ---- */

static struct jinja_str self_of(const struct jinja_call *c)
{
    return c->self->s;
}

/* What a method makes of a marked string is marked too. */
static bool give(const struct jinja_call *c, struct jinja_str s, struct jinja_value *out)
{
    *out = jinja_string(s.s, s.n);
    out->safe = c->self->safe;
    return true;
}

static bool mark(const struct jinja_call *c, struct jinja_value *out, bool ok)
{
    if (ok) out->safe = c->self->safe;
    return ok;
}

/* ---- Case ---- */

static bool m_upper(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return mark(c, out, jinja_change_case(r, self_of(c), JINJA_UPPER, out));
}

static bool m_lower(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return mark(c, out, jinja_change_case(r, self_of(c), JINJA_LOWER, out));
}

static bool m_title(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return mark(c, out, jinja_change_case(r, self_of(c), JINJA_TITLE, out));
}

static bool m_capitalize(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return mark(c, out, jinja_capitalize(r, self_of(c), out));
}

static bool m_swapcase(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    const struct jinja_str s = self_of(c);
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        at += base_utf8_decode(s.s + at, s.n - at, &code);
        const bool upper = utf8proc_category(code) == UTF8PROC_CATEGORY_LU;
        if (!jinja_add_case(r, &text, code, upper ? JINJA_LOWER : JINJA_UPPER)) return false;
    }
    return give(c, jinja_text_value(&text).s, out);
}

static bool m_casefold(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    const struct jinja_str s = self_of(c);
    for (size_t at = 0; at < s.n;) {
        int32_t code, folded[8];
        int boundary = 0;
        at += base_utf8_decode(s.s + at, s.n - at, &code);
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(code, folded, 8, UTF8PROC_CASEFOLD, &boundary);
        for (utf8proc_ssize_t i = 0; i < n && i < 8; i++)
            if (!jinja_add_code(r, &text, folded[i])) return false;
    }
    return give(c, jinja_text_value(&text).s, out);
}

/* ---- Stripping and splitting ---- */

static bool strip(struct jinja_run *r, struct jinja_call *c, bool left, bool right,
                  struct jinja_value *out)
{
    struct jinja_str chars;
    if (!jinja_given(&c->arg[0]) || c->arg[0].kind == JINJA_NONE)
        return give(c, jinja_strip(self_of(c), NULL, left, right), out);
    return jinja_arg_str(r, c, 0, &chars) && jinja_step(r, c->self->s.n / 64) &&
           give(c, jinja_strip(self_of(c), &chars, left, right), out);
}

static bool m_strip(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return strip(r, c, true, true, out);
}

static bool m_lstrip(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return strip(r, c, true, false, out);
}

static bool m_rstrip(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return strip(r, c, false, true, out);
}

/* The last hit of `part` in s, or NULL. */
static const char *find_last(struct jinja_str s, struct jinja_str part)
{
    for (size_t at = s.n >= part.n ? s.n - part.n + 1 : 0; at-- > 0;)
        if (memcmp(s.s + at, part.s, part.n) == 0) return s.s + at;
    return NULL;
}

static bool push_part(struct jinja_run *r, const struct jinja_call *c, struct jinja_seq *seq,
                      const char *s, size_t n)
{
    struct jinja_value part = jinja_string(s, n);
    part.safe = c->self->safe;
    return jinja_push(r, seq, part) && jinja_step(r, 1);
}

/* By runs of white space; `most` splits at most (all: < 0), from the right if `right`. */
static bool split_space(struct jinja_run *r, const struct jinja_call *c, int64_t most, bool right,
                        struct jinja_seq *seq)
{
    struct jinja_str rest = jinja_strip(self_of(c), NULL, !right, right);
    while (rest.n) {
        struct jinja_str word = rest;
        size_t n = 0;
        int32_t code;
        if (most-- == 0) return push_part(r, c, seq, rest.s, rest.n); /* as it is */
        while (n < rest.n) {
            size_t at = right ? rest.n - n - 1 : n;
            while (right && at > 0 && ((unsigned char)rest.s[at] & 0xc0) == 0x80) at--;
            const size_t used = base_utf8_decode(rest.s + at, rest.n - at, &code);
            if (jinja_is_space(code)) break;
            n += used;
        }
        word.n = n;
        if (right)
            word.s = rest.s + rest.n - n;
        else
            rest.s += n;
        rest.n -= n;
        if (!push_part(r, c, seq, word.s, word.n)) return false;
        rest = jinja_strip(rest, NULL, !right, right);
    }
    return true;
}

static bool split_at(struct jinja_run *r, const struct jinja_call *c, struct jinja_str sep,
                     int64_t most, bool right, struct jinja_seq *seq)
{
    struct jinja_str rest = self_of(c);
    while (most-- != 0) {
        const char *hit = right ? find_last(rest, sep) : memmem(rest.s, rest.n, sep.s, sep.n);
        if (!hit) break;
        const size_t before = (size_t)(hit - rest.s), after = rest.n - before - sep.n;
        if (!push_part(r, c, seq, right ? hit + sep.n : rest.s, right ? after : before))
            return false;
        rest = right ? (struct jinja_str){rest.s, before} : (struct jinja_str){hit + sep.n, after};
    }
    return push_part(r, c, seq, rest.s, rest.n);
}

static bool split(struct jinja_run *r, struct jinja_call *c, bool right, struct jinja_value *out)
{
    struct jinja_str sep;
    int64_t most;
    bool ok;
    if (!jinja_arg_int(r, c, 1, -1, &most) || !jinja_new(r, JINJA_LIST, out) ||
        !jinja_step(r, c->self->s.n / 16))
        return false;
    if (!jinja_given(&c->arg[0]) || c->arg[0].kind == JINJA_NONE) {
        ok = split_space(r, c, most, right, out->seq);
    } else {
        if (!jinja_arg_str(r, c, 0, &sep)) return false;
        if (!sep.n) return jinja_fail(r, "%s: empty separator", c->name);
        ok = split_at(r, c, sep, most, right, out->seq);
    }
    for (size_t i = 0, j = out->seq->n; ok && right && i + 1 < j--; i++) {
        const struct jinja_value swapped = out->seq->item[i];
        out->seq->item[i] = out->seq->item[j];
        out->seq->item[j] = swapped;
    }
    return ok;
}

static bool m_split(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return split(r, c, false, out);
}

static bool m_rsplit(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return split(r, c, true, out);
}

static bool m_splitlines(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    bool keep;
    return jinja_arg_truth(r, c, 0, false, &keep) && jinja_new(r, JINJA_LIST, out) &&
           jinja_split_lines(r, self_of(c), keep, out->seq);
}

static bool partition(struct jinja_run *r, struct jinja_call *c, bool right,
                      struct jinja_value *out)
{
    const struct jinja_str s = self_of(c);
    struct jinja_str sep;
    if (!jinja_arg_str(r, c, 0, &sep) || !jinja_new(r, JINJA_TUPLE, out)) return false;
    if (!sep.n) return jinja_fail(r, "%s: empty separator", c->name);
    const char *hit = right ? find_last(s, sep) : memmem(s.s, s.n, sep.s, sep.n);
    if (!hit && right)
        return push_part(r, c, out->seq, "", 0) && push_part(r, c, out->seq, "", 0) &&
               push_part(r, c, out->seq, s.s, s.n);
    const size_t n = hit ? (size_t)(hit - s.s) : s.n, m = hit ? sep.n : 0;
    return push_part(r, c, out->seq, s.s, n) && push_part(r, c, out->seq, hit ? hit : "", m) &&
           push_part(r, c, out->seq, s.s + n + m, s.n - n - m);
}

static bool m_partition(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return partition(r, c, false, out);
}

static bool m_rpartition(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return partition(r, c, true, out);
}

/* ---- Searching ---- */

/* The part of self that the optional start and end (arguments 1 and 2) name; *before gets the code
 * points in front of it. False in *valid when the start lies behind the end. */
static bool search_range(struct jinja_run *r, struct jinja_call *c, struct jinja_str *part,
                         int64_t *before, bool *valid)
{
    const struct jinja_str s = self_of(c);
    int64_t start = 0, end, n = (int64_t)jinja_count(s);
    for (int i = 1; i <= 2; i++)
        if (c->arg[i].kind == JINJA_NONE) c->arg[i].kind = JINJA_MISSING;
    if (!jinja_arg_int(r, c, 1, 0, &start) || !jinja_arg_int(r, c, 2, n, &end) ||
        !jinja_step(r, s.n / 32))
        return false;
    if (start < 0) start = start + n > 0 ? start + n : 0;
    if (end < 0) end = end + n > 0 ? end + n : 0;
    if (end > n) end = n;
    *before = start;
    *valid = start <= end;
    if (!*valid) return true;
    const size_t from = jinja_bytes(s, (size_t)start);
    part->s = s.s + from;
    part->n = jinja_bytes((struct jinja_str){s.s + from, s.n - from}, (size_t)(end - start));
    return true;
}

static bool find(struct jinja_run *r, struct jinja_call *c, bool right, bool strict,
                 struct jinja_value *out)
{
    struct jinja_str part, what;
    int64_t before;
    bool valid;
    const char *hit = NULL;
    if (!jinja_arg_str(r, c, 0, &what) || !search_range(r, c, &part, &before, &valid)) return false;
    if (valid) hit = right ? find_last(part, what) : memmem(part.s, part.n, what.s, what.n);
    if (!hit && strict) return jinja_fail(r, "%s: the text is not there", c->name);
    *out = jinja_int(
        hit ? before + (int64_t)jinja_count((struct jinja_str){part.s, (size_t)(hit - part.s)})
            : -1);
    return true;
}

static bool m_find(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return find(r, c, false, false, out);
}

static bool m_rfind(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return find(r, c, true, false, out);
}

static bool m_index(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return find(r, c, false, true, out);
}

static bool m_rindex(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return find(r, c, true, true, out);
}

static bool m_count(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str part, what;
    int64_t before, count = 0;
    bool valid;
    if (!jinja_arg_str(r, c, 0, &what) || !search_range(r, c, &part, &before, &valid)) return false;
    if (valid && !what.n) count = (int64_t)jinja_count(part) + 1;
    while (valid && what.n) {
        const char *hit = memmem(part.s, part.n, what.s, what.n);
        if (!hit) break;
        count++;
        part.n -= (size_t)(hit - part.s) + what.n;
        part.s = hit + what.n;
    }
    *out = jinja_int(count);
    return true;
}

static bool matches(struct jinja_str s, struct jinja_str part, bool at_end)
{
    return s.n >= part.n && memcmp(at_end ? s.s + s.n - part.n : s.s, part.s, part.n) == 0;
}

static bool begins_or_ends(struct jinja_run *r, struct jinja_call *c, bool at_end,
                           struct jinja_value *out)
{
    struct jinja_str part, what;
    int64_t before;
    bool valid, yes = false;
    if (!search_range(r, c, &part, &before, &valid)) return false;
    if (c->arg[0].kind == JINJA_TUPLE) {
        const struct jinja_seq *all = c->arg[0].seq;
        for (size_t i = 0; i < all->n && !yes; i++) {
            if (all->item[i].kind != JINJA_STR)
                return jinja_fail(r, "%s: a tuple of strings is needed", c->name);
            yes = valid && matches(part, all->item[i].s, at_end);
        }
    } else {
        if (!jinja_arg_str(r, c, 0, &what)) return false;
        yes = valid && matches(part, what, at_end);
    }
    *out = jinja_bool(yes);
    return true;
}

static bool m_startswith(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return begins_or_ends(r, c, false, out);
}

static bool m_endswith(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return begins_or_ends(r, c, true, out);
}

static bool m_removeprefix(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str part, s = self_of(c);
    if (!jinja_arg_str(r, c, 0, &part)) return false;
    if (matches(s, part, false)) s = (struct jinja_str){s.s + part.n, s.n - part.n};
    return give(c, s, out);
}

static bool m_removesuffix(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str part, s = self_of(c);
    if (!jinja_arg_str(r, c, 0, &part)) return false;
    if (matches(s, part, true)) s.n -= part.n;
    return give(c, s, out);
}

/* ---- Building ---- */

static bool m_replace(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str old, by;
    int64_t count;
    struct jinja_value escaped;
    if (!jinja_arg_str(r, c, 0, &old) || !jinja_arg_str(r, c, 1, &by) ||
        !jinja_arg_int(r, c, 2, -1, &count))
        return false;
    if (c->self->safe) {
        if (!jinja_escape(r, &c->arg[1], &escaped)) return false;
        by = escaped.s;
    }
    return mark(c, out, jinja_replace(r, self_of(c), old, by, count, out));
}

static bool m_join(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_seq *items;
    if (!jinja_items(r, &c->arg[0], &items)) return false;
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value item = items->item[i];
        if (item.kind != JINJA_STR && !c->self->safe)
            return jinja_fail(r, "join: item %zu is no string but '%s'", i,
                              jinja_type(&items->item[i]));
        if (c->self->safe && !jinja_escape(r, &items->item[i], &item)) return false;
        if ((i && !jinja_add(r, &text, c->self->s.s, c->self->s.n)) ||
            !jinja_add(r, &text, item.s.s, item.s.n))
            return false;
    }
    return give(c, jinja_text_value(&text).s, out);
}

static bool justify(struct jinja_run *r, struct jinja_call *c, int where, struct jinja_value *out)
{
    struct jinja_str fill = {" ", 1};
    int64_t width;
    if (!jinja_arg_int(r, c, 0, 0, &width) ||
        (jinja_given(&c->arg[1]) && !jinja_arg_str(r, c, 1, &fill)))
        return false;
    if (jinja_count(fill) != 1) return jinja_fail(r, "%s: the fill must be one character", c->name);
    return mark(c, out, jinja_center(r, self_of(c), width, fill, where, out));
}

static bool m_center(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return justify(r, c, 0, out);
}

static bool m_ljust(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return justify(r, c, -1, out);
}

static bool m_rjust(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return justify(r, c, 1, out);
}

static bool m_zfill(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_str s = self_of(c);
    int64_t width;
    const int64_t n = (int64_t)jinja_count(s);
    if (!jinja_arg_int(r, c, 0, 0, &width)) return false;
    const size_t sign = s.n && (s.s[0] == '-' || s.s[0] == '+');
    const uint64_t zeros = width > n ? (uint64_t)(width - n) : 0;
    return jinja_add(r, &text, s.s, sign) && jinja_add_char(r, &text, '0', zeros) &&
           jinja_add(r, &text, s.s + sign, s.n - sign) && give(c, jinja_text_value(&text).s, out);
}

static bool m_expandtabs(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    const struct jinja_str s = self_of(c);
    int64_t size, column = 0;
    if (!jinja_arg_int(r, c, 0, 8, &size)) return false;
    for (size_t i = 0; i < s.n; i++) {
        const bool tab = s.s[i] == '\t';
        const int64_t pad = tab && size > 0 ? size - column % size : 0;
        if (!(tab ? jinja_add_char(r, &text, ' ', (size_t)pad)
                  : jinja_add_char(r, &text, s.s[i], 1)))
            return false;
        if (((unsigned char)s.s[i] & 0xc0) != 0x80) column += tab ? pad : 1;
        if (s.s[i] == '\n' || s.s[i] == '\r') column = 0;
    }
    return give(c, jinja_text_value(&text).s, out);
}

static bool m_format(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    if (c->self->safe) return jinja_fail(r, "format of a marked string is not supported");
    return jinja_format_braces(r, self_of(c), c, out);
}

static bool m_format_map(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_call inner = {.name = c->name, .self = c->self};
    if (c->n_pos != 1 || c->kw || c->pos[0].kind != JINJA_DICT)
        return jinja_fail(r, "format_map: needs one mapping");
    inner.kw = c->pos[0].dict;
    return m_format(r, &inner, out);
}

/* ---- Questions ---- */

enum question { ALNUM, ALPHA, ASCII, DECIMAL, DIGIT, NUMERIC, PRINTABLE, SPACE };

static bool is_digit(int32_t code)
{
    return code == 0xb2 || code == 0xb3 || code == 0xb9 || code == 0x2070 ||
           (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
           (code >= 0x2460 && code <= 0x2468) || utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}

static bool answers(enum question q, int32_t code)
{
    const utf8proc_category_t k = utf8proc_category(code);
    switch (q) {
    case ALNUM:
        return jinja_is_word(code) && code != '_';
    case ALPHA:
        return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
    case ASCII:
        return code < 0x80;
    case DECIMAL:
        return k == UTF8PROC_CATEGORY_ND;
    case DIGIT:
        return is_digit(code);
    case NUMERIC:
        return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
    case PRINTABLE:
        return jinja_is_printable(code);
    default:
        return jinja_is_space(code);
    }
}

/* True when all code points answer yes; an empty string is only ASCII and printable. */
static bool ask(struct jinja_run *r, struct jinja_call *c, enum question q, struct jinja_value *out)
{
    const struct jinja_str s = self_of(c);
    bool yes = s.n || q == ASCII || q == PRINTABLE;
    for (size_t at = 0; yes && at < s.n;) {
        int32_t code;
        at += base_utf8_decode(s.s + at, s.n - at, &code);
        yes = answers(q, code);
    }
    *out = jinja_bool(yes);
    return jinja_step(r, s.n / 16);
}

static bool m_isalnum(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, ALNUM, out);
}

static bool m_isalpha(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, ALPHA, out);
}

static bool m_isascii(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, ASCII, out);
}

static bool m_isdecimal(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, DECIMAL, out);
}

static bool m_isdigit(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, DIGIT, out);
}

static bool m_isnumeric(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, NUMERIC, out);
}

static bool m_isprintable(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, PRINTABLE, out);
}

static bool m_isspace(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return ask(r, c, SPACE, out);
}

static bool m_isidentifier(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const struct jinja_str s = self_of(c);
    bool yes = s.n && !((unsigned)s.s[0] - '0' < 10);
    for (size_t at = 0; yes && at < s.n;) {
        int32_t code;
        at += base_utf8_decode(s.s + at, s.n - at, &code);
        yes = jinja_is_word(code);
    }
    *out = jinja_bool(yes);
    return jinja_step(r, 1);
}

static bool m_islower(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    *out = jinja_bool(jinja_is_cased(self_of(c), JINJA_LOWER));
    return jinja_step(r, 1);
}

static bool m_isupper(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    *out = jinja_bool(jinja_is_cased(self_of(c), JINJA_UPPER));
    return jinja_step(r, 1);
}

static bool m_istitle(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    *out = jinja_bool(jinja_is_cased(self_of(c), JINJA_TITLE));
    return jinja_step(r, 1);
}

const struct jinja_func *jinja_find_str_method(struct jinja_str name)
{
    static const struct jinja_func rows[] = {{"strip", m_strip, "chars /", 0},
                                             {"lstrip", m_lstrip, "chars /", 0},
                                             {"rstrip", m_rstrip, "chars /", 0},
                                             {"split", m_split, "sep maxsplit", 0},
                                             {"rsplit", m_rsplit, "sep maxsplit", 0},
                                             {"splitlines", m_splitlines, "keepends", 0},
                                             {"partition", m_partition, "sep /", 1},
                                             {"rpartition", m_rpartition, "sep /", 1},
                                             {"startswith", m_startswith, "prefix start end /", 1},
                                             {"endswith", m_endswith, "suffix start end /", 1},
                                             {"find", m_find, "sub start end /", 1},
                                             {"rfind", m_rfind, "sub start end /", 1},
                                             {"index", m_index, "sub start end /", 1},
                                             {"rindex", m_rindex, "sub start end /", 1},
                                             {"count", m_count, "sub start end /", 1},
                                             {"removeprefix", m_removeprefix, "prefix /", 1},
                                             {"removesuffix", m_removesuffix, "suffix /", 1},
                                             {"replace", m_replace, "old new count /", 2},
                                             {"join", m_join, "iterable /", 1},
                                             {"upper", m_upper, "", 0},
                                             {"lower", m_lower, "", 0},
                                             {"title", m_title, "", 0},
                                             {"capitalize", m_capitalize, "", 0},
                                             {"swapcase", m_swapcase, "", 0},
                                             {"casefold", m_casefold, "", 0},
                                             {"center", m_center, "width fillchar /", 1},
                                             {"ljust", m_ljust, "width fillchar /", 1},
                                             {"rjust", m_rjust, "width fillchar /", 1},
                                             {"zfill", m_zfill, "width /", 1},
                                             {"expandtabs", m_expandtabs, "tabsize", 0},
                                             {"format", m_format, NULL, 0},
                                             {"format_map", m_format_map, NULL, 0},
                                             {"isalnum", m_isalnum, "", 0},
                                             {"isalpha", m_isalpha, "", 0},
                                             {"isascii", m_isascii, "", 0},
                                             {"isdecimal", m_isdecimal, "", 0},
                                             {"isdigit", m_isdigit, "", 0},
                                             {"isidentifier", m_isidentifier, "", 0},
                                             {"islower", m_islower, "", 0},
                                             {"isnumeric", m_isnumeric, "", 0},
                                             {"isprintable", m_isprintable, "", 0},
                                             {"isspace", m_isspace, "", 0},
                                             {"istitle", m_istitle, "", 0},
                                             {"isupper", m_isupper, "", 0}};
    return jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
}
