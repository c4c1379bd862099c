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

const struct tpl_func *text_tpl_find_filter(struct tpl_str name)
{
    const struct tpl_func *hit =
        text_tpl_find_row(text_tpl_string_filters, text_tpl_n_string_filters, name);
    if (!hit) hit = text_tpl_find_row(text_tpl_sequence_filters, text_tpl_n_sequence_filters, name);
    if (!hit) hit = text_tpl_find_row(text_tpl_choice_filters, text_tpl_n_choice_filters, name);
    return hit;
}

bool text_tpl_filter_refused(struct tpl_str name)
{
    static const char *const refused[] = {"random", "urlize", "wordwrap"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (tpl_is_word(name, refused[i])) return true;
    return false;
}

bool text_tpl_apply_filter(struct tpl_run *r, struct tpl_str name, const struct tpl_value *subject,
                           struct tpl_call *c, struct tpl_value *out)
{
    const struct tpl_func *filter = text_tpl_find_filter(name);
    /* The result may go where the subject is. */
    const struct tpl_value self = *subject;
    if (!filter) return text_tpl_fail(r, "no filter named '%.*s'", (int)name.n, name.s);
    c->self = &self;
    return text_tpl_invoke(r, filter, c, out);
}

/* The subject as a string: markup stays marked. */
static bool subject(struct tpl_run *r, const struct tpl_call *c, struct tpl_value *out)
{
    return text_tpl_to_str(r, c->self, out);
}

static bool mark(const struct tpl_value *like, struct tpl_value *out, bool ok)
{
    if (ok) out->safe = like->safe;
    return ok;
}

/* ---- Case and space ---- */

static bool f_upper(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    return subject(r, c, &s) && mark(&s, out, text_tpl_change_case(r, s.s, TPL_UPPER, out));
}

static bool f_lower(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    return subject(r, c, &s) && mark(&s, out, text_tpl_change_case(r, s.s, TPL_LOWER, out));
}

static bool f_capitalize(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    return subject(r, c, &s) && mark(&s, out, text_tpl_capitalize(r, s.s, out));
}

/* Words begin after space, hyphens and opening brackets; unlike the method title(). */
static bool f_title(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value s;
    bool begins = true;
    if (!subject(r, c, &s)) return false;
    for (size_t at = 0; at < s.s.n;) {
        int32_t code;
        const size_t before = text.n;
        const char *source = s.s.s + at;
        at += base_utf8_decode(source, s.s.n - at, &code);
        if (!text_tpl_add_case(r, &text, code, begins ? TPL_UPPER : TPL_LOWER)) return false;
        text_tpl_mark_like(r, &text, before, source);
        begins = text_tpl_is_space(code) || (code < 0x80 && strchr("-({[<", code));
    }
    *out = text_tpl_text_value(&text);
    return text_tpl_step(r, s.s.n / 16);
}

static bool f_trim(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    struct tpl_str chars;
    const bool given = tpl_given(&c->arg[0]) && c->arg[0].kind != TPL_NONE;
    if (!subject(r, c, &s) || (given && !text_tpl_arg_str(r, c, 0, &chars))) return false;
    const struct tpl_str result = text_tpl_strip(s.s, given ? &chars : NULL, true, true);
    *out = tpl_string(result.s, result.n);
    return mark(&s, out, text_tpl_step(r, s.s.n / 64));
}

static bool f_center(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    int64_t width;
    return subject(r, c, &s) && text_tpl_arg_int(r, c, 0, 80, &width) &&
           mark(&s, out, text_tpl_center(r, s.s, width, (struct tpl_str){" ", 1}, 0, out));
}

static bool f_indent(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0}, spaces = {0};
    struct tpl_seq *lines = text_tpl_seq(r, 0);
    struct tpl_str pad;
    int64_t width = 4;
    bool first, blank;
    if (c->self->kind != TPL_STR)
        return text_tpl_fail(r, "indent: a string is needed, not '%s'", text_tpl_type(c->self));
    if (!lines || !text_tpl_arg_truth(r, c, 1, false, &first) ||
        !text_tpl_arg_truth(r, c, 2, false, &blank))
        return false;
    if (c->arg[0].kind == TPL_STR) {
        pad = c->arg[0].s;
    } else {
        if (!text_tpl_arg_int(r, c, 0, 4, &width)) return false;
        if (width > (int64_t)r->limit.max_memory) return text_tpl_fail(r, "indent: too wide");
        if (!text_tpl_add_char(r, &spaces, ' ', width > 0 ? (size_t)width : 0)) return false;
        pad = text_tpl_text_value(&spaces).s;
    }
    /* A line break is added, because splitting drops the last one. */
    const struct tpl_value newline = tpl_string("\n", 1);
    struct tpl_value whole;
    if (!text_tpl_binary(r, TPL_ADD, c->self, &newline, &whole) ||
        !text_tpl_split_lines(r, whole.s, false, lines))
        return false;
    for (size_t i = 0; i < lines->n; i++) {
        const struct tpl_str line = lines->item[i].s;
        const bool padded = i ? line.n || blank : first;
        if ((i && !text_tpl_add_char(r, &text, '\n', 1)) ||
            (padded && !text_tpl_add(r, &text, pad.s, pad.n)) ||
            !text_tpl_add(r, &text, line.s, line.n) || !text_tpl_step(r, 1))
            return false;
    }
    *out = text_tpl_text_value(&text);
    return mark(c->self, out, true);
}

/* ---- Changing text ---- */

static bool f_replace(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s, old, by;
    int64_t count;
    if (c->arg[2].kind == TPL_NONE) c->arg[2].kind = TPL_MISSING;
    return subject(r, c, &s) && text_tpl_to_str(r, &c->arg[0], &old) &&
           text_tpl_to_str(r, &c->arg[1], &by) && text_tpl_arg_int(r, c, 2, -1, &count) &&
           text_tpl_replace(r, s.s, old.s, by.s, count, out);
}

static bool f_truncate(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_str end = {"...", 3};
    struct tpl_value s;
    int64_t length, leeway;
    bool kill;
    if (c->arg[3].kind == TPL_NONE) c->arg[3].kind = TPL_MISSING;
    if (!subject(r, c, &s) || !text_tpl_arg_int(r, c, 0, 255, &length) ||
        !text_tpl_arg_truth(r, c, 1, false, &kill) ||
        (tpl_given(&c->arg[2]) && !text_tpl_arg_str(r, c, 2, &end)) ||
        !text_tpl_arg_int(r, c, 3, 5, &leeway))
        return false;
    const int64_t n = (int64_t)text_tpl_count(end);
    if (length < n || leeway < 0)
        return text_tpl_fail(r, "truncate: a length below %lld or a negative leeway", (long long)n);
    *out = *c->self;
    size_t size;
    if (!text_tpl_has_length(c->self))
        return text_tpl_fail(r, "truncate: a value of type '%s'", text_tpl_type(c->self));
    if (!text_tpl_length(r, c->self, &size)) return false;
    if ((int64_t)size <= length + leeway) return true;
    if (c->self->kind != TPL_STR)
        return text_tpl_fail(r, "truncate: a value of type '%s'", text_tpl_type(c->self));
    struct tpl_str kept = {s.s.s, text_tpl_bytes(s.s, (size_t)(length - n))};
    const char *space = kill ? NULL : memrchr(kept.s, ' ', kept.n);
    if (space) kept.n = (size_t)(space - kept.s);
    if (!text_tpl_add(r, &text, kept.s, kept.n) || !text_tpl_add(r, &text, end.s, end.n))
        return false;
    *out = text_tpl_text_value(&text);
    return true;
}

static bool f_wordcount(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    int64_t words = 0;
    bool inside = false;
    if (!subject(r, c, &s)) return false;
    for (size_t at = 0; at < s.s.n;) {
        int32_t code;
        at += base_utf8_decode(s.s.s + at, s.s.n - at, &code);
        const bool word = text_tpl_is_word(code);
        words += word && !inside;
        inside = word;
    }
    *out = tpl_int(words);
    return text_tpl_step(r, s.s.n / 16);
}

/* The character that an entity behind a '&' stands for, and its bytes; 0: none begins here, -1: one
 * that is not known. */
static int32_t read_entity(struct tpl_str s, size_t *used)
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

static bool unescape(struct tpl_run *r, struct tpl_str s, struct tpl_value *out)
{
    struct tpl_text text = {0};
    for (size_t at = 0, used; at < s.n;) {
        const char *amp = memchr(s.s + at, '&', s.n - at);
        const size_t plain = amp ? (size_t)(amp - s.s) - at : s.n - at;
        if (!text_tpl_add(r, &text, s.s + at, plain)) return false;
        at += plain;
        if (!amp) break;
        const int32_t code = read_entity((struct tpl_str){amp + 1, s.n - ++at}, &used);
        if (code < 0) return text_tpl_fail(r, "striptags: an entity that is not supported");
        if (!text_tpl_add_code(r, &text, code ? code : '&')) return false;
        if (code) at += used;
    }
    *out = text_tpl_text_value(&text);
    return true;
}

/* Takes tags and comments out, makes runs of space single, and entities characters. */
static bool f_striptags(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value s;
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
        if (*here == '<' && !text_tpl_step(r, left / 16)) return false;
        const size_t used = base_utf8_decode(here, left, &code);
        at += used;
        const bool blank = text_tpl_is_space(code);
        if (!blank && ((space && text.n && !text_tpl_add_char(r, &text, ' ', 1)) ||
                       !text_tpl_add(r, &text, here, used)))
            return false;
        space = blank || (space && blank);
    }
    return text_tpl_step(r, s.s.n / 16) && unescape(r, text_tpl_text_value(&text).s, out);
}

static bool f_xmlattr(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    bool space;
    if (c->self->kind != TPL_DICT || !text_tpl_arg_truth(r, c, 0, true, &space))
        return text_tpl_fail(r, "xmlattr: a mapping is needed");
    const struct tpl_dict *d = c->self->dict;
    for (uint32_t i = 0; i < d->n; i++) {
        struct tpl_value key = d->key[i], value = d->value[i];
        if (value.kind == TPL_NONE || value.kind == TPL_UNDEFINED) continue;
        if (key.kind != TPL_STR) return text_tpl_fail(r, "xmlattr: a name that is no string");
        for (size_t k = 0; k < key.s.n; k++)
            if (memchr(" \t\n\r\f\v/>=", key.s.s[k], 9))
                return text_tpl_fail(r, "xmlattr: '%c' in a name", key.s.s[k]);
        if (((space || text.n) && !text_tpl_add_char(r, &text, ' ', 1)) ||
            !text_tpl_escape(r, &d->key[i], &key) || !text_tpl_escape(r, &d->value[i], &value) ||
            !text_tpl_add(r, &text, key.s.s, key.s.n) || !text_tpl_add_word(r, &text, "=\"") ||
            !text_tpl_add(r, &text, value.s.s, value.s.n) || !text_tpl_add_char(r, &text, '"', 1))
            return false;
    }
    *out = text_tpl_text_value(&text);
    return true;
}

static bool f_filesizeformat(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    static const char *const units[] = {"kB",  "MB",  "GB",  "TB",  "PB",  "EB",  "ZB",  "YB",
                                        "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    struct tpl_text text = {0};
    char digits[400];
    double f;
    bool binary;
    if (!text_tpl_arg_truth(r, c, 0, false, &binary)) return false;
    if (c->self->kind == TPL_STR ? !text_tpl_parse_float(c->self->s, &f)
                                 : !tpl_as_number(c->self, &f))
        return text_tpl_fail(r, "filesizeformat: no number");
    const double base = binary ? 1024 : 1000;
    if (f == 1 || f < base) {
        snprintf(digits, sizeof digits, f == 1 ? "%.0f Byte" : "%.0f Bytes", trunc(f) + 0.0);
    } else {
        double unit = base * base;
        size_t i = 0;
        for (; i < 7 && !(f < unit); i++) unit *= base;
        snprintf(digits, sizeof digits, "%.1f %s", base * f / unit, units[i + 8 * binary]);
    }
    if (!text_tpl_add_word(r, &text, digits)) return false;
    *out = text_tpl_text_value(&text);
    return true;
}

/* The value with the keys of its mappings in order, as pprint shows it; only what can fit a line.
 */
static bool sort_deep(struct tpl_run *r, const struct tpl_value *v, struct tpl_value *out)
{
    enum { MAX_WIDTH = 80 };
    struct tpl_value item;
    bool ok = true;
    *out = *v;
    if (v->kind != TPL_LIST && v->kind != TPL_TUPLE && v->kind != TPL_DICT) return true;
    const size_t n = v->kind == TPL_DICT ? v->dict->n : v->seq->n;
    if (n > MAX_WIDTH) return text_tpl_fail(r, "pprint: a value wider than 80 columns");
    if (!text_tpl_new(r, v->kind, out) || !text_tpl_enter(r)) return false;
    uint32_t order[MAX_WIDTH];
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t at = i;
        int sign = 0;
        for (; ok && v->kind == TPL_DICT && at > 0; at--) {
            ok = text_tpl_order(r, &v->dict->key[i], &v->dict->key[order[at - 1]], &sign);
            if (!ok || sign >= 0) break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (size_t i = 0; ok && i < n; i++) {
        ok = sort_deep(r, v->kind == TPL_DICT ? &v->dict->value[order[i]] : &v->seq->item[i],
                       &item) &&
             (v->kind == TPL_DICT ? text_tpl_dict_set(r, out->dict, v->dict->key[order[i]], item)
                                  : text_tpl_push(r, out->seq, item));
    }
    text_tpl_leave(r);
    return ok;
}

static bool f_pprint(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value sorted;
    if (!sort_deep(r, c->self, &sorted) || !text_tpl_repr(r, &text, &sorted)) return false;
    *out = text_tpl_text_value(&text);
    /* Beyond that Python breaks lines by rules of its own. */
    return text_tpl_count(out->s) <= 80 ||
           text_tpl_fail(r, "pprint: a value wider than 80 columns");
}

static bool quote(struct tpl_run *r, struct tpl_text *out, struct tpl_str s, bool query)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                           (c && strchr(query ? "_.-~" : "_.-~/", c));
        char code[8];
        snprintf(code, sizeof code, query && c == ' ' ? "+" : "%%%02X", c);
        if (!(plain ? text_tpl_add_char(r, out, (char)c, 1) : text_tpl_add_word(r, out, code)))
            return false;
    }
    return text_tpl_step(r, s.n);
}

static bool quote_pair(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *key,
                       const struct tpl_value *value)
{
    struct tpl_value k, v;
    return text_tpl_to_str(r, key, &k) && text_tpl_to_str(r, value, &v) &&
           (!out->n || text_tpl_add_char(r, out, '&', 1)) && quote(r, out, k.s, true) &&
           text_tpl_add_char(r, out, '=', 1) && quote(r, out, v.s, true);
}

static bool f_urlencode(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value s;
    struct tpl_seq *items, *pair;
    if (c->self->kind == TPL_DICT) {
        const struct tpl_dict *d = c->self->dict;
        for (uint32_t i = 0; i < d->n; i++)
            if (!quote_pair(r, &text, &d->key[i], &d->value[i])) return false;
    } else if (c->self->kind == TPL_STR || !text_tpl_has_length(c->self)) {
        if (!subject(r, c, &s) || !quote(r, &text, s.s, false)) return false;
    } else {
        if (!text_tpl_items(r, c->self, &items)) return false;
        for (size_t i = 0; i < items->n; i++) {
            if (!text_tpl_items(r, &items->item[i], &pair)) return false;
            if (pair->n != 2) return text_tpl_fail(r, "urlencode: an item is not a pair");
            if (!quote_pair(r, &text, &pair->item[0], &pair->item[1])) return false;
        }
    }
    *out = text_tpl_text_value(&text);
    return true;
}

static bool f_format(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s, args = {.kind = TPL_DICT, .dict = c->kw};
    if (!subject(r, c, &s)) return false;
    if (c->kw && c->n_pos)
        return text_tpl_fail(r, "format: positional and keyword arguments at once");
    if (!c->kw) {
        args = tpl_of_seq(TPL_TUPLE, text_tpl_seq(r, c->n_pos));
        if (!args.seq) return false;
        if (c->n_pos) memcpy(args.seq->item, c->pos, c->n_pos * sizeof *c->pos);
        args.seq->n = c->n_pos;
    }
    return text_tpl_format_percent(r, s.s, &args, out);
}

/* ---- Kinds of values ---- */

static bool f_string(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return subject(r, c, out);
}

static bool f_safe(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    if (!subject(r, c, out)) return false;
    out->safe = true;
    return true;
}

static bool f_escape(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return text_tpl_escape(r, c->self, out);
}

static bool f_forceescape(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value s;
    if (!subject(r, c, &s)) return false;
    s.safe = false;
    return text_tpl_escape(r, &s, out);
}

static bool f_default(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    bool by_truth, is_true;
    if (!text_tpl_arg_truth(r, c, 1, false, &by_truth) || !text_tpl_truth(r, c->self, &is_true))
        return false;
    const bool replace = c->self->kind == TPL_UNDEFINED || (by_truth && !is_true);
    *out = !replace ? *c->self : tpl_given(&c->arg[0]) ? c->arg[0] : tpl_string("", 0);
    return true;
}

/* Python's int(): false where it raises what the filter catches. */
static bool to_int(const struct tpl_value *v, int64_t base, int64_t *out, bool *too_large)
{
    double f;
    if (v->kind == TPL_STR && text_tpl_parse_int(v->s, (int)base, out, too_large)) return true;
    if (tpl_as_int(v, out)) return true;
    if (v->kind == TPL_STR ? !text_tpl_parse_float(v->s, &f) : !tpl_as_number(v, &f)) return false;
    if (isnan(f) || isinf(f)) return false;
    *too_large = fabs(f) >= 9.2e18;
    if (!*too_large) *out = (int64_t)f;
    return true;
}

static bool f_int(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    int64_t base, i;
    bool too_large = false;
    if (c->self->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, c->self);
    if (!text_tpl_arg_int(r, c, 1, 10, &base)) return false;
    if (base != 0 && (base < 2 || base > 36)) return text_tpl_fail(r, "int: a base of 2 to 36");
    if (!to_int(c->self, base, &i, &too_large)) {
        *out = tpl_given(&c->arg[0]) ? c->arg[0] : tpl_int(0);
        return true;
    }
    *out = tpl_int(i);
    return !too_large || text_tpl_fail(r, "int: a number of more than 64 bits");
}

static bool f_float(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    double f;
    if (c->self->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, c->self);
    if (c->self->kind == TPL_STR ? text_tpl_parse_float(c->self->s, &f)
                                 : tpl_as_number(c->self, &f))
        *out = tpl_float(f);
    else
        *out = tpl_given(&c->arg[0]) ? c->arg[0] : tpl_float(0);
    return true;
}

static bool f_abs(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    int64_t i;
    if (c->self->kind == TPL_FLOAT) {
        *out = tpl_float(fabs(c->self->f));
        return true;
    }
    if (c->self->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, c->self);
    if (!tpl_as_int(c->self, &i) || i == INT64_MIN)
        return text_tpl_fail(r, "abs: a bad operand of type '%s'", text_tpl_type(c->self));
    *out = tpl_int(i < 0 ? -i : i);
    return true;
}

/* Rounds half to even, on the exact decimal value, as Python does. */
static bool round_common(struct tpl_run *r, const struct tpl_value *v, int64_t precision,
                         struct tpl_value *out)
{
    char text[800];
    int64_t i;
    if (tpl_as_int(v, &i)) {
        if (precision < 0) return text_tpl_fail(r, "round: of an integer to tens");
        *out = tpl_int(i);
        return true;
    }
    if (precision < 0) return text_tpl_fail(r, "round: a negative precision is not supported");
    if (precision > 300 || isnan(v->f) || isinf(v->f)) {
        *out = *v;
        return true;
    }
    snprintf(text, sizeof text, "%.*f", (int)precision, v->f);
    *out = tpl_float(strtod(text, NULL));
    return true;
}

static bool f_round(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    int64_t precision;
    double f;
    struct tpl_str method = {"common", 6};
    if (!text_tpl_arg_int(r, c, 0, 0, &precision) ||
        (tpl_given(&c->arg[1]) && !text_tpl_arg_str(r, c, 1, &method)))
        return false;
    if (c->self->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, c->self);
    if (!tpl_as_number(c->self, &f))
        return text_tpl_fail(r, "round: a number is needed, not '%s'", text_tpl_type(c->self));
    if (tpl_is_word(method, "common")) return round_common(r, c->self, precision, out);
    const bool up = tpl_is_word(method, "ceil");
    if (!up && !tpl_is_word(method, "floor"))
        return text_tpl_fail(r, "round: the method must be common, ceil or floor");
    if (precision < 0 || precision > 300 || isnan(f) || isinf(f))
        return text_tpl_fail(r, "round: this precision or number is not supported");
    const double scale = pow(10, (double)precision);
    *out = tpl_float((up ? ceil(f * scale) : floor(f * scale)) / scale);
    return true;
}

/* ---- JSON ---- */

static bool separators(struct tpl_run *r, const struct tpl_value *v, struct tpl_json *how)
{
    struct tpl_seq *pair;
    if (!tpl_given(v) || v->kind == TPL_NONE) {
        how->item = how->lines ? (struct tpl_str){",", 1} : (struct tpl_str){", ", 2};
        how->key = (struct tpl_str){": ", 2};
        return true;
    }
    if (!text_tpl_items(r, v, &pair)) return false;
    if (pair->n != 2 || pair->item[0].kind != TPL_STR || pair->item[1].kind != TPL_STR)
        return text_tpl_fail(r, "tojson: separators must be two strings");
    how->item = pair->item[0].s;
    how->key = pair->item[1].s;
    return true;
}

static bool f_tojson(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_json how = {0};
    struct tpl_text text = {0}, spaces = {0};
    int64_t width;
    const struct tpl_value *indent = &c->arg[1];
    if (!text_tpl_arg_truth(r, c, 0, false, &how.ascii) ||
        !text_tpl_arg_truth(r, c, 3, false, &how.sort))
        return false;
    how.lines = tpl_given(indent) && indent->kind != TPL_NONE;
    if (how.lines && indent->kind == TPL_STR) {
        how.indent = indent->s;
    } else if (how.lines) {
        if (!text_tpl_arg_int(r, c, 1, 0, &width)) return false;
        if (width > 1000) return text_tpl_fail(r, "tojson: an indent of more than 1000");
        if (!text_tpl_add_char(r, &spaces, ' ', width > 0 ? (size_t)width : 0)) return false;
        how.indent = text_tpl_text_value(&spaces).s;
    }
    if (!separators(r, &c->arg[2], &how) || !text_tpl_to_json(r, &text, c->self, &how, 0))
        return false;
    *out = text_tpl_text_value(&text);
    return true;
}

const struct tpl_func text_tpl_string_filters[] = {
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
const size_t text_tpl_n_string_filters =
    sizeof text_tpl_string_filters / sizeof text_tpl_string_filters[0];
