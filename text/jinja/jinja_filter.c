/* text/jinja/jinja_filter.c: filters of one value: strings, numbers, JSON; and finding a filter by
 * name. See text/jinja/jinja_run.h; filters of sequences are in jinja_filter_list.c and
 * jinja_filter_choice.c. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Finding ---- */

const struct jinja_func *jinja_find_filter(struct jinja_str name)
{
    const struct jinja_func *hit =
        jinja_find_row(jinja_string_filters, jinja_n_string_filters, name);
    if (!hit) hit = jinja_find_row(jinja_sequence_filters, jinja_n_sequence_filters, name);
    if (!hit) hit = jinja_find_row(jinja_choice_filters, jinja_n_choice_filters, name);
    return hit;
}

bool jinja_filter_refused(struct jinja_str name)
{
    static const char *const refused[] = {"random", "urlize", "wordwrap"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (jinja_str_is(name, refused[i])) return true;
    return false;
}

bool jinja_apply_filter(struct jinja_run *r, struct jinja_str name,
                        const struct jinja_value *subject, struct jinja_call *c,
                        struct jinja_value *out)
{
    const struct jinja_func *filter = jinja_find_filter(name);
    /* The result may go where the subject is. */
    const struct jinja_value self = *subject;
    if (!filter) return jinja_fail(r, "no filter named '%.*s'", (int)name.n, name.s);
    c->self = &self;
    return jinja_invoke(r, filter, c, out);
}

/* The subject as a string: markup stays marked. */
static bool subject(struct jinja_run *r, const struct jinja_call *c, struct jinja_value *out)
{
    return jinja_to_str(r, c->self, out);
}

static bool mark(const struct jinja_value *like, struct jinja_value *out, bool ok)
{
    if (ok) out->safe = like->safe;
    return ok;
}

/* ---- Case and space ---- */

static bool f_upper(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && mark(&s, out, jinja_change_case(r, s.s, JINJA_UPPER, out));
}

static bool f_lower(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && mark(&s, out, jinja_change_case(r, s.s, JINJA_LOWER, out));
}

static bool f_capitalize(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && mark(&s, out, jinja_capitalize(r, s.s, out));
}

/* Words begin after space, hyphens and opening brackets; unlike the method title(). */
static bool f_title(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value s;
    bool begins = true;
    if (!subject(r, c, &s)) return false;
    for (size_t at = 0; at < s.s.n;) {
        int32_t code;
        const size_t before = text.n;
        const char *source = s.s.s + at;
        at += base_utf8_decode(source, s.s.n - at, &code);
        if (!jinja_add_case(r, &text, code, begins ? JINJA_UPPER : JINJA_LOWER)) return false;
        jinja_mark_like(r, &text, before, source);
        begins = jinja_is_space(code) || (code < 0x80 && strchr("-({[<", code));
    }
    *out = jinja_text_value(&text);
    return jinja_step(r, s.s.n / 16);
}

static bool f_trim(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    struct jinja_str chars;
    const bool given = jinja_given(&c->arg[0]) && c->arg[0].kind != JINJA_NONE;
    if (!subject(r, c, &s) || (given && !jinja_arg_str(r, c, 0, &chars))) return false;
    const struct jinja_str result = jinja_strip(s.s, given ? &chars : NULL, true, true);
    *out = jinja_string(result.s, result.n);
    return mark(&s, out, jinja_step(r, s.s.n / 64));
}

static bool f_center(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    int64_t width;
    return subject(r, c, &s) && jinja_arg_int(r, c, 0, 80, &width) &&
           mark(&s, out, jinja_center(r, s.s, width, (struct jinja_str){" ", 1}, 0, out));
}

static bool f_indent(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0}, spaces = {0};
    struct jinja_seq *lines = jinja_seq(r, 0);
    struct jinja_str pad;
    int64_t width = 4;
    bool first, blank;
    if (c->self->kind != JINJA_STR)
        return jinja_fail(r, "indent: a string is needed, not '%s'", jinja_type(c->self));
    if (!lines || !jinja_arg_truth(r, c, 1, false, &first) ||
        !jinja_arg_truth(r, c, 2, false, &blank))
        return false;
    if (c->arg[0].kind == JINJA_STR) {
        pad = c->arg[0].s;
    } else {
        if (!jinja_arg_int(r, c, 0, 4, &width)) return false;
        if (width > (int64_t)r->limit.max_memory) return jinja_fail(r, "indent: too wide");
        if (!jinja_add_char(r, &spaces, ' ', width > 0 ? (size_t)width : 0)) return false;
        pad = jinja_text_value(&spaces).s;
    }
    /* A line break is added, because splitting drops the last one. */
    const struct jinja_value newline = jinja_string("\n", 1);
    struct jinja_value whole;
    if (!jinja_binary(r, JINJA_ADD, c->self, &newline, &whole) ||
        !jinja_split_lines(r, whole.s, false, lines))
        return false;
    for (size_t i = 0; i < lines->n; i++) {
        const struct jinja_str line = lines->item[i].s;
        const bool padded = i ? line.n || blank : first;
        if ((i && !jinja_add_char(r, &text, '\n', 1)) ||
            (padded && !jinja_add(r, &text, pad.s, pad.n)) ||
            !jinja_add(r, &text, line.s, line.n) || !jinja_step(r, 1))
            return false;
    }
    *out = jinja_text_value(&text);
    return mark(c->self, out, true);
}

/* ---- Changing text ---- */

static bool f_replace(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s, old, by;
    int64_t count;
    if (c->arg[2].kind == JINJA_NONE) c->arg[2].kind = JINJA_MISSING;
    return subject(r, c, &s) && jinja_to_str(r, &c->arg[0], &old) &&
           jinja_to_str(r, &c->arg[1], &by) && jinja_arg_int(r, c, 2, -1, &count) &&
           jinja_replace(r, s.s, old.s, by.s, count, out);
}

static bool f_truncate(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_str end = {"...", 3};
    struct jinja_value s;
    int64_t length, leeway;
    bool kill;
    if (c->arg[3].kind == JINJA_NONE) c->arg[3].kind = JINJA_MISSING;
    if (!subject(r, c, &s) || !jinja_arg_int(r, c, 0, 255, &length) ||
        !jinja_arg_truth(r, c, 1, false, &kill) ||
        (jinja_given(&c->arg[2]) && !jinja_arg_str(r, c, 2, &end)) ||
        !jinja_arg_int(r, c, 3, 5, &leeway))
        return false;
    const int64_t n = (int64_t)jinja_count(end);
    if (length < n || leeway < 0)
        return jinja_fail(r, "truncate: a length below %lld or a negative leeway", (long long)n);
    *out = *c->self;
    size_t size;
    if (!jinja_has_length(c->self))
        return jinja_fail(r, "truncate: a value of type '%s'", jinja_type(c->self));
    if (!jinja_length(r, c->self, &size)) return false;
    if ((int64_t)size <= length + leeway) return true;
    if (c->self->kind != JINJA_STR)
        return jinja_fail(r, "truncate: a value of type '%s'", jinja_type(c->self));
    struct jinja_str kept = {s.s.s, jinja_bytes(s.s, (size_t)(length - n))};
    const char *space = kill ? NULL : memrchr(kept.s, ' ', kept.n);
    if (space) kept.n = (size_t)(space - kept.s);
    if (!jinja_add(r, &text, kept.s, kept.n) || !jinja_add(r, &text, end.s, end.n)) return false;
    *out = jinja_text_value(&text);
    return true;
}

static bool f_wordcount(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    int64_t words = 0;
    bool inside = false;
    if (!subject(r, c, &s)) return false;
    for (size_t at = 0; at < s.s.n;) {
        int32_t code;
        at += base_utf8_decode(s.s.s + at, s.s.n - at, &code);
        const bool word = jinja_is_word(code);
        words += word && !inside;
        inside = word;
    }
    *out = jinja_int(words);
    return jinja_step(r, s.s.n / 16);
}

/* The character that an entity behind a '&' stands for, and its bytes; 0: none begins here, -1: one
 * that is not known. */
static int32_t read_entity(struct jinja_str s, size_t *used)
{
    static const struct {
        const char *name;
        int32_t code;
    } known[] = {{"amp;", '&'},      {"lt;", '<'},       {"gt;", '>'},        {"quot;", '"'},
                 {"apos;", '\''},    {"nbsp;", 0xa0},    {"copy;", 0xa9},     {"reg;", 0xae},
                 {"ndash;", 0x2013}, {"mdash;", 0x2014}, {"hellip;", 0x2026}, {"euro;", 0x20ac}};
    if (!s.n || strchr("\t\n\f <&;", s.s[0])) return 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        *used = strlen(known[i].name);
        if (s.n >= *used && memcmp(s.s, known[i].name, *used) == 0) return known[i].code;
    }
    if (s.s[0] != '#') return -1;
    const bool hex = s.n > 1 && (s.s[1] | 0x20) == 'x';
    int32_t code = 0;
    size_t at = 1 + hex;
    for (; at < s.n && at < 10; at++) {
        const char low = (char)(s.s[at] | 0x20);
        const int digit = s.s[at] >= '0' && s.s[at] <= '9'  ? s.s[at] - '0'
                          : hex && low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                            : -1;
        if (digit < 0) break;
        code = code * (hex ? 16 : 10) + digit;
        if (code > 0xffff) return -1;
    }
    *used = at + (at < s.n && s.s[at] == ';');
    if (at == 1u + hex) return 0;
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0xd800) ? code : -1;
}

static bool unescape(struct jinja_run *r, struct jinja_str s, struct jinja_value *out)
{
    struct jinja_text text = {0};
    for (size_t at = 0, used; at < s.n;) {
        const char *amp = memchr(s.s + at, '&', s.n - at);
        const size_t plain = amp ? (size_t)(amp - s.s) - at : s.n - at;
        if (!jinja_add(r, &text, s.s + at, plain)) return false;
        at += plain;
        if (!amp) break;
        const int32_t code = read_entity((struct jinja_str){amp + 1, s.n - ++at}, &used);
        if (code < 0) return jinja_fail(r, "striptags: an entity that is not supported");
        if (!jinja_add_code(r, &text, code ? code : '&')) return false;
        if (code) at += used;
    }
    *out = jinja_text_value(&text);
    return true;
}

/* Takes tags and comments out, makes runs of space single, and entities characters. */
static bool f_striptags(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value s;
    if (!subject(r, c, &s)) return false;
    bool space = false;
    for (size_t at = 0; at < s.s.n;) {
        const char *here = s.s.s + at, *end;
        const size_t left = s.s.n - at;
        int32_t code;
        const bool comment = left >= 4 && memcmp(here, "<!--", 4) == 0;
        end = comment        ? memmem(here + 4, left - 4, "-->", 3)
              : *here == '<' ? memchr(here, '>', left)
                             : NULL;
        if (end) {
            at = (size_t)(end - s.s.s) + (comment ? 3 : 1);
            continue;
        }
        if (*here == '<' && !jinja_step(r, left / 16)) return false;
        const size_t used = base_utf8_decode(here, left, &code);
        at += used;
        const bool blank = jinja_is_space(code);
        if (!blank && ((space && text.n && !jinja_add_char(r, &text, ' ', 1)) ||
                       !jinja_add(r, &text, here, used)))
            return false;
        space = blank || (space && blank);
    }
    return jinja_step(r, s.s.n / 16) && unescape(r, jinja_text_value(&text).s, out);
}

static bool f_xmlattr(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    bool space;
    if (c->self->kind != JINJA_DICT || !jinja_arg_truth(r, c, 0, true, &space))
        return jinja_fail(r, "xmlattr: a mapping is needed");
    const struct jinja_dict *d = c->self->dict;
    for (uint32_t i = 0; i < d->n; i++) {
        struct jinja_value key = d->key[i], value = d->value[i];
        if (value.kind == JINJA_NONE || value.kind == JINJA_UNDEFINED) continue;
        if (key.kind != JINJA_STR) return jinja_fail(r, "xmlattr: a name that is no string");
        for (size_t k = 0; k < key.s.n; k++)
            if (memchr(" \t\n\r\f\v/>=", key.s.s[k], 9))
                return jinja_fail(r, "xmlattr: '%c' in a name", key.s.s[k]);
        if (((space || text.n) && !jinja_add_char(r, &text, ' ', 1)) ||
            !jinja_escape(r, &d->key[i], &key) || !jinja_escape(r, &d->value[i], &value) ||
            !jinja_add(r, &text, key.s.s, key.s.n) || !jinja_add_word(r, &text, "=\"") ||
            !jinja_add(r, &text, value.s.s, value.s.n) || !jinja_add_char(r, &text, '"', 1))
            return false;
    }
    *out = jinja_text_value(&text);
    return true;
}

static bool f_filesizeformat(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    static const char *const units[] = {"kB",  "MB",  "GB",  "TB",  "PB",  "EB",  "ZB",  "YB",
                                        "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    struct jinja_text text = {0};
    char digits[400];
    double f;
    bool binary;
    if (!jinja_arg_truth(r, c, 0, false, &binary)) return false;
    if (c->self->kind == JINJA_STR ? !jinja_parse_float(c->self->s, &f)
                                   : !jinja_as_number(c->self, &f))
        return jinja_fail(r, "filesizeformat: no number");
    const double base = binary ? 1024 : 1000;
    if (f == 1 || f < base) {
        snprintf(digits, sizeof digits, f == 1 ? "%.0f Byte" : "%.0f Bytes", trunc(f) + 0.0);
    } else {
        double unit = base * base;
        size_t i = 0;
        for (; i < 7 && !(f < unit); i++) unit *= base;
        snprintf(digits, sizeof digits, "%.1f %s", base * f / unit, units[i + 8 * binary]);
    }
    if (!jinja_add_word(r, &text, digits)) return false;
    *out = jinja_text_value(&text);
    return true;
}

/* The value with the keys of its mappings in order, as pprint shows it; only what can fit a line.
 */
static bool sort_deep(struct jinja_run *r, const struct jinja_value *v, struct jinja_value *out)
{
    enum { MAX_WIDTH = 80 };
    struct jinja_value item;
    bool ok = true;
    *out = *v;
    if (v->kind != JINJA_LIST && v->kind != JINJA_TUPLE && v->kind != JINJA_DICT) return true;
    const size_t n = v->kind == JINJA_DICT ? v->dict->n : v->seq->n;
    if (n > MAX_WIDTH) return jinja_fail(r, "pprint: a value wider than 80 columns");
    if (!jinja_new(r, v->kind, out) || !jinja_enter(r)) return false;
    uint32_t order[MAX_WIDTH];
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t at = i;
        int sign = 0;
        for (; ok && v->kind == JINJA_DICT && at > 0; at--) {
            ok = jinja_order(r, &v->dict->key[i], &v->dict->key[order[at - 1]], &sign);
            if (!ok || sign >= 0) break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (size_t i = 0; ok && i < n; i++) {
        ok = sort_deep(r, v->kind == JINJA_DICT ? &v->dict->value[order[i]] : &v->seq->item[i],
                       &item) &&
             (v->kind == JINJA_DICT ? jinja_dict_set(r, out->dict, v->dict->key[order[i]], item)
                                    : jinja_push(r, out->seq, item));
    }
    jinja_leave(r);
    return ok;
}

static bool f_pprint(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value sorted;
    if (!sort_deep(r, c->self, &sorted) || !jinja_repr(r, &text, &sorted)) return false;
    *out = jinja_text_value(&text);
    /* Beyond that Python breaks lines by rules of its own. */
    return jinja_count(out->s) <= 80 || jinja_fail(r, "pprint: a value wider than 80 columns");
}

static bool quote(struct jinja_run *r, struct jinja_text *out, struct jinja_str s, bool query)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                           (c && strchr(query ? "_.-~" : "_.-~/", c));
        char code[8];
        snprintf(code, sizeof code, query && c == ' ' ? "+" : "%%%02X", c);
        if (!(plain ? jinja_add_char(r, out, (char)c, 1) : jinja_add_word(r, out, code)))
            return false;
    }
    return jinja_step(r, s.n);
}

static bool quote_pair(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *key,
                       const struct jinja_value *value)
{
    struct jinja_value k, v;
    return jinja_to_str(r, key, &k) && jinja_to_str(r, value, &v) &&
           (!out->n || jinja_add_char(r, out, '&', 1)) && quote(r, out, k.s, true) &&
           jinja_add_char(r, out, '=', 1) && quote(r, out, v.s, true);
}

static bool f_urlencode(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value s;
    struct jinja_seq *items, *pair;
    if (c->self->kind == JINJA_DICT) {
        const struct jinja_dict *d = c->self->dict;
        for (uint32_t i = 0; i < d->n; i++)
            if (!quote_pair(r, &text, &d->key[i], &d->value[i])) return false;
    } else if (c->self->kind == JINJA_STR || !jinja_has_length(c->self)) {
        if (!subject(r, c, &s) || !quote(r, &text, s.s, false)) return false;
    } else {
        if (!jinja_items(r, c->self, &items)) return false;
        for (size_t i = 0; i < items->n; i++) {
            if (!jinja_items(r, &items->item[i], &pair)) return false;
            if (pair->n != 2) return jinja_fail(r, "urlencode: an item is not a pair");
            if (!quote_pair(r, &text, &pair->item[0], &pair->item[1])) return false;
        }
    }
    *out = jinja_text_value(&text);
    return true;
}

static bool f_format(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s, args = {.kind = JINJA_DICT, .dict = c->kw};
    if (!subject(r, c, &s)) return false;
    if (c->kw && c->n_pos) return jinja_fail(r, "format: positional and keyword arguments at once");
    if (!c->kw) {
        args = jinja_of_seq(JINJA_TUPLE, jinja_seq(r, c->n_pos));
        if (!args.seq) return false;
        if (c->n_pos) memcpy(args.seq->item, c->pos, c->n_pos * sizeof *c->pos);
        args.seq->n = c->n_pos;
    }
    return jinja_format_percent(r, s.s, &args, out);
}

/* ---- Kinds of values ---- */

static bool f_string(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return subject(r, c, out);
}

static bool f_safe(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    if (!subject(r, c, out)) return false;
    out->safe = true;
    return true;
}

static bool f_escape(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return jinja_escape(r, c->self, out);
}

static bool f_forceescape(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    if (!subject(r, c, &s)) return false;
    s.safe = false;
    return jinja_escape(r, &s, out);
}

static bool f_default(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    bool by_truth, is_true;
    if (!jinja_arg_truth(r, c, 1, false, &by_truth) || !jinja_truth(r, c->self, &is_true))
        return false;
    const bool replace = c->self->kind == JINJA_UNDEFINED || (by_truth && !is_true);
    *out = !replace ? *c->self : jinja_given(&c->arg[0]) ? c->arg[0] : jinja_string("", 0);
    return true;
}

/* Python's int(): false where it raises what the filter catches. */
static bool to_int(const struct jinja_value *v, int64_t base, int64_t *out, bool *too_large)
{
    double f;
    if (v->kind == JINJA_STR && jinja_parse_int(v->s, (int)base, out, too_large)) return true;
    if (jinja_as_int(v, out)) return true;
    if (v->kind == JINJA_STR ? !jinja_parse_float(v->s, &f) : !jinja_as_number(v, &f)) return false;
    if (isnan(f) || isinf(f)) return false;
    *too_large = fabs(f) >= 9.2e18;
    if (!*too_large) *out = (int64_t)f;
    return true;
}

static bool f_int(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t base, i;
    bool too_large = false;
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    if (!jinja_arg_int(r, c, 1, 10, &base)) return false;
    if (base != 0 && (base < 2 || base > 36)) return jinja_fail(r, "int: a base of 2 to 36");
    if (!to_int(c->self, base, &i, &too_large)) {
        *out = jinja_given(&c->arg[0]) ? c->arg[0] : jinja_int(0);
        return true;
    }
    *out = jinja_int(i);
    return !too_large || jinja_fail(r, "int: a number of more than 64 bits");
}

static bool f_float(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    double f;
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    if (c->self->kind == JINJA_STR ? jinja_parse_float(c->self->s, &f)
                                   : jinja_as_number(c->self, &f))
        *out = jinja_float(f);
    else
        *out = jinja_given(&c->arg[0]) ? c->arg[0] : jinja_float(0);
    return true;
}

static bool f_abs(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t i;
    if (c->self->kind == JINJA_FLOAT) {
        *out = jinja_float(fabs(c->self->f));
        return true;
    }
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    if (!jinja_as_int(c->self, &i) || i == INT64_MIN)
        return jinja_fail(r, "abs: a bad operand of type '%s'", jinja_type(c->self));
    *out = jinja_int(i < 0 ? -i : i);
    return true;
}

/* Rounds half to even, on the exact decimal value, as Python does. */
static bool round_common(struct jinja_run *r, const struct jinja_value *v, int64_t precision,
                         struct jinja_value *out)
{
    char text[800];
    int64_t i;
    if (jinja_as_int(v, &i)) {
        if (precision < 0) return jinja_fail(r, "round: of an integer to tens");
        *out = jinja_int(i);
        return true;
    }
    if (precision < 0) return jinja_fail(r, "round: a negative precision is not supported");
    if (precision > 300 || isnan(v->f) || isinf(v->f)) {
        *out = *v;
        return true;
    }
    snprintf(text, sizeof text, "%.*f", (int)precision, v->f);
    *out = jinja_float(strtod(text, NULL));
    return true;
}

static bool f_round(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t precision;
    double f;
    struct jinja_str method = {"common", 6};
    if (!jinja_arg_int(r, c, 0, 0, &precision) ||
        (jinja_given(&c->arg[1]) && !jinja_arg_str(r, c, 1, &method)))
        return false;
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    if (!jinja_as_number(c->self, &f))
        return jinja_fail(r, "round: a number is needed, not '%s'", jinja_type(c->self));
    if (jinja_str_is(method, "common")) return round_common(r, c->self, precision, out);
    const bool up = jinja_str_is(method, "ceil");
    if (!up && !jinja_str_is(method, "floor"))
        return jinja_fail(r, "round: the method must be common, ceil or floor");
    if (precision < 0 || precision > 300 || isnan(f) || isinf(f))
        return jinja_fail(r, "round: this precision or number is not supported");
    const double scale = pow(10, (double)precision);
    *out = jinja_float((up ? ceil(f * scale) : floor(f * scale)) / scale);
    return true;
}

/* ---- JSON ---- */

static bool separators(struct jinja_run *r, const struct jinja_value *v, struct jinja_json *how)
{
    struct jinja_seq *pair;
    if (!jinja_given(v) || v->kind == JINJA_NONE) {
        how->item = how->lines ? (struct jinja_str){",", 1} : (struct jinja_str){", ", 2};
        how->key = (struct jinja_str){": ", 2};
        return true;
    }
    if (!jinja_items(r, v, &pair)) return false;
    if (pair->n != 2 || pair->item[0].kind != JINJA_STR || pair->item[1].kind != JINJA_STR)
        return jinja_fail(r, "tojson: separators must be two strings");
    how->item = pair->item[0].s;
    how->key = pair->item[1].s;
    return true;
}

static bool f_tojson(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_json how = {0};
    struct jinja_text text = {0}, spaces = {0};
    int64_t width;
    const struct jinja_value *indent = &c->arg[1];
    if (!jinja_arg_truth(r, c, 0, false, &how.ascii) || !jinja_arg_truth(r, c, 3, false, &how.sort))
        return false;
    how.lines = jinja_given(indent) && indent->kind != JINJA_NONE;
    if (how.lines && indent->kind == JINJA_STR) {
        how.indent = indent->s;
    } else if (how.lines) {
        if (!jinja_arg_int(r, c, 1, 0, &width)) return false;
        if (width > 1000) return jinja_fail(r, "tojson: an indent of more than 1000");
        if (!jinja_add_char(r, &spaces, ' ', width > 0 ? (size_t)width : 0)) return false;
        how.indent = jinja_text_value(&spaces).s;
    }
    if (!separators(r, &c->arg[2], &how) || !jinja_to_json(r, &text, c->self, &how, 0))
        return false;
    *out = jinja_text_value(&text);
    return true;
}

const struct jinja_func jinja_string_filters[] = {
    {"tojson", f_tojson, "ensure_ascii indent separators sort_keys", 0},
    {"trim", f_trim, "chars", 0},
    {"default", f_default, "default_value boolean", 0},
    {"d", f_default, "default_value boolean", 0},
    {"string", f_string, "", 0},
    {"upper", f_upper, "", 0},
    {"lower", f_lower, "", 0},
    {"capitalize", f_capitalize, "", 0},
    {"title", f_title, "", 0},
    {"replace", f_replace, "old new count", 2},
    {"indent", f_indent, "width first blank", 0},
    {"safe", f_safe, "", 0},
    {"escape", f_escape, "", 0},
    {"e", f_escape, "", 0},
    {"forceescape", f_forceescape, "", 0},
    {"int", f_int, "default base", 0},
    {"float", f_float, "default", 0},
    {"abs", f_abs, "/", 0},
    {"round", f_round, "precision method", 0},
    {"format", f_format, NULL, 0},
    {"truncate", f_truncate, "length killwords end leeway", 0},
    {"wordcount", f_wordcount, "", 0},
    {"center", f_center, "width", 0},
    {"filesizeformat", f_filesizeformat, "binary", 0},
    {"pprint", f_pprint, "", 0},
    {"xmlattr", f_xmlattr, "autospace", 0},
    {"striptags", f_striptags, "", 0},
    {"urlencode", f_urlencode, "", 0}};
const size_t jinja_n_string_filters = sizeof jinja_string_filters / sizeof jinja_string_filters[0];
