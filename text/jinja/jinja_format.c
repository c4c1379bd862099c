/* text/jinja/jinja_format.c: "..." % values and "...".format(values). See text/jinja/jinja_run.h.
 */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 100000, MAX_PRECISION = 500 };

/* How one value is to be laid out; both languages of formats are read into this. */
struct spec {
    struct jinja_str fill;
    char align; /* '<' '>' '^' '=' or 0: by type */
    char sign;  /* '+' ' ' or 0: only a minus */
    char group; /* ',' '_' or 0 */
    bool alternate;
    int64_t width, precision; /* precision -1: not given */
    char type;                /* 0: not given */
};

/* ---- Laying out ---- */

/* Writes sign and prefix, then the body, filled to the width. */
static bool lay_out(struct jinja_run *r, const struct spec *spec, struct jinja_str head,
                    struct jinja_str body, char by_default, struct jinja_text *out)
{
    const int64_t n = (int64_t)(jinja_count(head) + jinja_count(body));
    const int64_t pad = spec->width > n ? spec->width - n : 0;
    const char align = spec->align ? spec->align : by_default;
    const int64_t left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    const struct jinja_str fill = spec->fill.n ? spec->fill : (struct jinja_str){" ", 1};
    if (align == '=' && !jinja_add(r, out, head.s, head.n)) return false;
    for (int64_t i = 0; i < left; i++)
        if (!jinja_add(r, out, fill.s, fill.n)) return false;
    if (align != '=' && !jinja_add(r, out, head.s, head.n)) return false;
    if (!jinja_add(r, out, body.s, body.n)) return false;
    for (int64_t i = left; i < pad; i++)
        if (!jinja_add(r, out, fill.s, fill.n)) return false;
    return jinja_step(r, (uint64_t)pad);
}

static bool lay_out_text(struct jinja_run *r, const struct spec *spec, struct jinja_str s,
                         char by_default, struct jinja_text *out)
{
    if (spec->precision >= 0) s.n = jinja_bytes(s, (size_t)spec->precision);
    return lay_out(r, spec, (struct jinja_str){"", 0}, s, by_default, out);
}

/* Puts a separator between groups of `size` digits of the part before the point. */
static size_t group_digits(const char *digits, size_t n, char separator, size_t size, char *out)
{
    size_t whole = strcspn(digits, ".e%"), w = 0;
    if (whole > n) whole = n;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && i < whole && (whole - i) % size == 0) out[w++] = separator;
        out[w++] = digits[i];
    }
    return w;
}

static bool lay_out_number(struct jinja_run *r, const struct spec *spec, bool negative,
                           const char *prefix, const char *digits, struct jinja_text *out)
{
    char head[8], grouped[2000];
    size_t n = strlen(digits);
    const char sign = negative ? '-' : spec->sign;
    const bool by_four = spec->type && strchr("xXob", spec->type);
    snprintf(head, sizeof head, "%.*s%s", sign != 0, &sign, prefix);
    if (spec->group) {
        n = group_digits(digits, n, spec->group, by_four ? 4 : 3, grouped);
        digits = grouped;
    }
    return lay_out(r, spec, (struct jinja_str){head, strlen(head)}, (struct jinja_str){digits, n},
                   '>', out);
}

static bool lay_out_int(struct jinja_run *r, const struct spec *spec, int64_t i,
                        struct jinja_text *out)
{
    char reversed[72], digits[72];
    uint64_t rest = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char type = spec->type ? spec->type : 'd';
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    const char *prefix = !spec->alternate || base == 10 ? ""
                         : type == 'x'                  ? "0x"
                         : type == 'X'                  ? "0X"
                         : type == 'o'                  ? "0o"
                                                        : "0b";
    size_t n = 0, w = 0;
    do {
        reversed[n++] = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
        rest /= base;
    } while (rest);
    while (n > 0) digits[w++] = reversed[--n];
    digits[w] = '\0';
    return lay_out_number(r, spec, i < 0, prefix, digits, out);
}

static bool lay_out_float(struct jinja_run *r, const struct spec *spec, double f,
                          struct jinja_text *out)
{
    char format[16], digits[1000];
    const bool percent = spec->type == '%';
    const int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    const double magnitude = fabs(percent ? f * 100 : f);
    if (!spec->type && spec->precision < 0) {
        jinja_float_repr(magnitude, digits);
    } else {
        snprintf(format, sizeof format, "%%%s.*%c", spec->alternate ? "#" : "",
                 percent ? 'f' : spec->type);
        snprintf(digits, sizeof digits - 1, format, precision, magnitude);
        if (percent) strcat(digits, "%");
    }
    return lay_out_number(r, spec, signbit(f) && !isnan(f), "", digits, out);
}

static bool code_of(struct jinja_run *r, const struct jinja_value *v, char text[4], size_t *n)
{
    int64_t code;
    if (v->kind == JINJA_STR && jinja_count(v->s) == 1) {
        memcpy(text, v->s.s, v->s.n);
        *n = v->s.n;
        return true;
    }
    if (!jinja_as_int(v, &code) || code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return jinja_fail(r, "format: '%%c' needs one character or its number");
    *n = base_utf8_encode((int32_t)code, text);
    return true;
}

/* ---- "..." % values ---- */

struct percent {
    struct jinja_run *r;
    const struct jinja_value *args;
    struct jinja_str rest; /* of the format */
    size_t used;           /* positional arguments so far */
};

static bool next_arg(struct percent *p, struct jinja_value *out)
{
    const bool tuple = p->args->kind == JINJA_TUPLE;
    if (p->used >= (tuple ? p->args->seq->n : 1))
        return jinja_fail(p->r, "format: not enough arguments for the format");
    *out = tuple ? p->args->seq->item[p->used] : *p->args;
    p->used++;
    return true;
}

static char peek(const struct percent *p)
{
    return p->rest.n ? p->rest.s[0] : 0;
}

static void skip(struct percent *p, size_t n)
{
    p->rest.s += n;
    p->rest.n -= n;
}

/* Digits, or '*' for an argument; -1 where there is neither. */
static bool read_size(struct percent *p, int64_t limit, int64_t *out)
{
    struct jinja_value v = jinja_none();
    *out = -1;
    if (peek(p) == '*') {
        skip(p, 1);
        if (!next_arg(p, &v)) return false;
        if (!jinja_as_int(&v, out)) return jinja_fail(p->r, "format: '*' needs an integer");
    }
    for (; peek(p) >= '0' && peek(p) <= '9' && *out <= limit; skip(p, 1))
        *out = (*out < 0 ? 0 : *out) * 10 + (peek(p) - '0');
    return (*out <= limit && *out >= -limit) ||
           jinja_fail(p->r, "format: a size of more than %lld", (long long)limit);
}

static bool read_key(struct percent *p, struct jinja_value *out, bool *given)
{
    size_t n = 1, open = 1;
    *given = peek(p) == '(';
    if (!*given) return true;
    while (n < p->rest.n && open) {
        open += p->rest.s[n] == '(';
        open -= p->rest.s[n] == ')';
        n++;
    }
    if (open) return jinja_fail(p->r, "format: '%%(' without ')'");
    if (p->args->kind != JINJA_DICT) return jinja_fail(p->r, "format: requires a mapping");
    const struct jinja_str key = {p->rest.s + 1, n - 2};
    const struct jinja_value *hit = jinja_dict_word(p->args->dict, key);
    if (!hit) return jinja_fail(p->r, "format: no key '%.*s'", (int)key.n, key.s);
    *out = *hit;
    skip(p, n);
    return true;
}

static bool read_percent_spec(struct percent *p, struct spec *spec, bool *minus)
{
    bool zero = false;
    *minus = false;
    for (;; skip(p, 1)) {
        const char c = peek(p);
        if (c == '-')
            *minus = true;
        else if (c == '0')
            zero = true;
        else if (c == '+' || (c == ' ' && !spec->sign))
            spec->sign = c;
        else if (c == '#')
            spec->alternate = true;
        else if (c != ' ')
            break;
    }
    if (!read_size(p, MAX_WIDTH, &spec->width)) return false;
    if (spec->width < -1) {
        spec->width = -spec->width;
        *minus = true;
    }
    spec->precision = -1;
    if (peek(p) == '.') {
        skip(p, 1);
        if (!read_size(p, MAX_WIDTH, &spec->precision)) return false;
        if (spec->precision < 0) spec->precision = 0;
    }
    while (peek(p) && strchr("hlL", peek(p))) skip(p, 1);
    if (zero && !*minus) {
        spec->fill = (struct jinja_str){"0", 1};
        spec->align = '=';
    }
    if (*minus) spec->align = '<';
    return true;
}

static bool put_percent_int(struct percent *p, struct spec *spec, const struct jinja_value *v,
                            struct jinja_text *out)
{
    int64_t i;
    struct jinja_text digits = {0};
    const bool decimal = spec->type == 'd';
    if (decimal && v->kind == JINJA_FLOAT && fabs(v->f) < 9e18)
        i = (int64_t)v->f;
    else if (!jinja_as_int(v, &i))
        return jinja_fail(p->r, "format: '%%%c' needs an integer, not '%s'", spec->type,
                          jinja_type(v));
    if (spec->precision < 0) return lay_out_int(p->r, spec, i, out);
    if (spec->alternate) return jinja_fail(p->r, "format: '#' with a precision");
    /* A precision of an integer is its least count of digits. */
    const struct spec inner = {.type = spec->type,
                               .align = '=',
                               .fill = {"0", 1},
                               .width = spec->precision + (i < 0),
                               .precision = -1};
    if (!lay_out_int(p->r, &inner, i, &digits)) return false;
    const bool negative = i < 0;
    const char sign = negative ? '-' : spec->sign;
    return lay_out(p->r, spec, (struct jinja_str){&sign, sign != 0},
                   (struct jinja_str){digits.s + negative, digits.n - negative}, '>', out);
}

static bool put_ascii(struct jinja_run *r, const struct spec *spec, struct jinja_str s,
                      struct jinja_text *out)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.s[i] >= 0x80)
            return jinja_fail(r, "format: '%%a' of other than ASCII is not supported");
    return lay_out_text(r, spec, s, '>', out);
}

static bool put_percent(struct percent *p, struct spec *spec, const struct jinja_value *v,
                        struct jinja_text *out)
{
    struct jinja_text text = {0};
    double f;
    char code[4];
    size_t n;
    if (spec->type == 'i' || spec->type == 'u') spec->type = 'd';
    if (spec->fill.n && strchr("srac", spec->type)) spec->fill.n = 0; /* zeros are for numbers */
    switch (spec->type) {
    case 's':
    case 'r':
    case 'a':
        if (!(spec->type == 's' ? jinja_str(p->r, &text, v) : jinja_repr(p->r, &text, v)))
            return false;
        if (spec->align == '=') spec->align = '>';
        if (spec->type == 'a') return put_ascii(p->r, spec, jinja_text_value(&text).s, out);
        return lay_out_text(p->r, spec, jinja_text_value(&text).s, '>', out);
    case 'c':
        if (spec->align == '=') spec->align = '>';
        return code_of(p->r, v, code, &n) && lay_out(p->r, spec, (struct jinja_str){"", 0},
                                                     (struct jinja_str){code, n}, '>', out);
    case 'd':
    case 'x':
    case 'X':
    case 'o':
        return put_percent_int(p, spec, v, out);
    default:
        break;
    }
    if (!jinja_as_number(v, &f))
        return jinja_fail(p->r, "format: '%%%c' needs a number, not '%s'", spec->type,
                          jinja_type(v));
    if (spec->precision > MAX_PRECISION)
        return jinja_fail(p->r, "format: a precision of more than %d", MAX_PRECISION);
    return lay_out_float(p->r, spec, f, out);
}

bool jinja_format_percent(struct jinja_run *r, struct jinja_str format,
                          const struct jinja_value *args, struct jinja_value *out)
{
    struct percent p = {.r = r, .args = args, .rest = format};
    struct jinja_text text = {0};
    while (p.rest.n) {
        const char *hit = memchr(p.rest.s, '%', p.rest.n);
        const size_t plain = hit ? (size_t)(hit - p.rest.s) : p.rest.n;
        if (!jinja_add(r, &text, p.rest.s, plain) || !jinja_step(r, 1)) return false;
        skip(&p, plain);
        if (!hit) break;
        skip(&p, 1);
        struct spec spec = {0};
        struct jinja_value v;
        bool keyed, minus;
        if (!read_key(&p, &v, &keyed) || !read_percent_spec(&p, &spec, &minus)) return false;
        spec.type = peek(&p);
        if (!spec.type || !strchr("diuxXoeEfFgGcrsa%", spec.type))
            return jinja_fail(r, "format: the format ends or has an unknown type '%c'",
                              spec.type ? spec.type : ' ');
        skip(&p, 1);
        if (spec.type == '%') {
            if (!jinja_add(r, &text, p.rest.s - 1, 1)) return false;
            continue;
        }
        if ((!keyed && !next_arg(&p, &v)) || !put_percent(&p, &spec, &v, &text)) return false;
    }
    /* Mappings may have more than the format names; so may lists, by an accident of Python. */
    const size_t given = args->kind == JINJA_TUPLE ? args->seq->n : 1;
    const bool exempt = args->kind == JINJA_DICT || args->kind == JINJA_LIST ||
                        args->kind == JINJA_UNDEFINED || args->kind == JINJA_RANGE;
    if (p.used < given && !exempt)
        return jinja_fail(r, "format: not all arguments are used by the format");
    *out = jinja_text_value(&text);
    return true;
}

/* ---- "...".format(values) ---- */

struct braces {
    struct jinja_run *r;
    const struct jinja_call *call;
    int64_t next;           /* automatic numbering */
    bool automatic, manual; /* which numbering is in use */
};

static bool read_number(struct jinja_str *s, int64_t limit, int64_t *out)
{
    *out = -1;
    for (; s->n && s->s[0] >= '0' && s->s[0] <= '9'; s->s++, s->n--) {
        *out = (*out < 0 ? 0 : *out) * 10 + (s->s[0] - '0');
        if (*out > limit) return false;
    }
    return true;
}

static bool read_spec(struct jinja_run *r, struct jinja_str s, struct spec *spec)
{
    *spec = (struct spec){.precision = -1};
    const size_t first = jinja_bytes(s, 1);
    size_t at = 0;
    if (first < s.n && strchr("<>=^", s.s[first])) {
        spec->fill = (struct jinja_str){s.s, first};
        at = first;
    }
    if (at < s.n && strchr("<>=^", s.s[at])) spec->align = s.s[at++];
    if (at < s.n && strchr("+- ", s.s[at])) spec->sign = s.s[at++];
    if (spec->sign == '-') spec->sign = 0;
    if (at < s.n && s.s[at] == '#') spec->alternate = ++at;
    if (at < s.n && s.s[at] == '0') {
        at++;
        if (!spec->fill.n) spec->fill = (struct jinja_str){"0", 1};
        if (!spec->align) spec->align = '=';
    }
    struct jinja_str rest = {s.s + at, s.n - at};
    bool ok = read_number(&rest, MAX_WIDTH, &spec->width);
    if (rest.n && (rest.s[0] == ',' || rest.s[0] == '_')) {
        spec->group = rest.s[0];
        rest = (struct jinja_str){rest.s + 1, rest.n - 1};
    }
    if (ok && rest.n && rest.s[0] == '.') {
        rest = (struct jinja_str){rest.s + 1, rest.n - 1};
        ok = read_number(&rest, MAX_WIDTH, &spec->precision) && spec->precision >= 0;
    }
    if (rest.n) {
        spec->type = rest.s[0];
        ok = ok && rest.n == 1;
    }
    return ok || jinja_fail(r, "format: the specification '%.*s'", (int)(s.n > 99 ? 99 : s.n), s.s);
}

static bool put_braces(struct jinja_run *r, const struct jinja_value *v, struct jinja_str text,
                       struct jinja_text *out)
{
    struct spec spec;
    int64_t i;
    double f;
    char code[4];
    size_t n;
    if (!text.n) return jinja_str(r, out, v);
    if (!read_spec(r, text, &spec)) return false;
    if (v->kind == JINJA_STR && (!spec.type || spec.type == 's') && !spec.sign && !spec.group &&
        !spec.alternate && (spec.align != '=' || spec.fill.n)) {
        if (spec.align == '=') return jinja_fail(r, "format: '=' or '0' for a string");
        return lay_out_text(r, &spec, v->s, '<', out);
    }
    if (jinja_as_int(v, &i) && spec.type == 'c' && !spec.sign)
        return code_of(r, v, code, &n) &&
               lay_out(r, &spec, (struct jinja_str){"", 0}, (struct jinja_str){code, n}, '<', out);
    if (jinja_as_int(v, &i) && (!spec.type || strchr("dbxXon", spec.type)) && spec.precision < 0)
        return lay_out_int(r, &spec, i, out);
    if (jinja_as_number(v, &f) && spec.precision <= MAX_PRECISION &&
        ((spec.type && strchr("eEfFgG%", spec.type)) || (!spec.type && spec.precision < 0)))
        return lay_out_float(r, &spec, f, out);
    return jinja_fail(r, "format: the specification '%.*s' for '%s'",
                      (int)(text.n > 99 ? 99 : text.n), text.s, jinja_type(v));
}

/* The value of "name.attribute[item]". */
static bool find_field(struct braces *b, struct jinja_str name, struct jinja_value *out)
{
    struct jinja_run *r = b->r;
    size_t n = 0;
    int64_t i;
    while (n < name.n && name.s[n] != '.' && name.s[n] != '[') n++;
    struct jinja_str first = {name.s, n}, digits = first;
    const bool numbered = n && read_number(&digits, 1000000, &i) && !digits.n;
    if (!n || numbered) {
        b->automatic |= !n;
        b->manual |= n > 0;
        if (b->automatic && b->manual)
            return jinja_fail(r, "format: automatic and given numbers of fields are mixed");
        if (!n) i = b->next++;
        if (i >= (int64_t)b->call->n_pos)
            return jinja_fail(r, "format: no argument %lld", (long long)i);
        *out = b->call->pos[i];
    } else {
        const struct jinja_value *hit = b->call->kw ? jinja_dict_word(b->call->kw, first) : NULL;
        if (!hit) return jinja_fail(r, "format: no argument '%.*s'", (int)n, name.s);
        *out = *hit;
    }
    for (size_t at = n; at < name.n;) {
        const struct jinja_value object = *out;
        const char open = name.s[at++];
        size_t end = at;
        while (end < name.n && (open == '[' ? name.s[end] != ']' : !strchr(".[", name.s[end])))
            end++;
        struct jinja_str part = {name.s + at, end - at};
        digits = part;
        if ((open != '[' && open != '.') || !part.n || (open == '[' && end == name.n))
            return jinja_fail(r, "format: the field '%.*s'", (int)name.n, name.s);
        const bool index = read_number(&digits, 1000000000, &i) && !digits.n;
        const struct jinja_value key = index ? jinja_int(i) : jinja_string(part.s, part.n);
        if (!(open == '[' ? jinja_item(r, &object, &key, out) : jinja_attr(r, &object, part, out)))
            return false;
        at = end + (open == '[');
    }
    return true;
}

static bool format_braces(struct braces *b, struct jinja_str s, int level, struct jinja_text *out);

/* One field, without its braces: name, "!r", ":specification". */
static bool put_field(struct braces *b, struct jinja_str field, int level, struct jinja_text *out)
{
    struct jinja_text spec = {0}, converted = {0};
    struct jinja_value v;
    size_t n = 0;
    char conversion = 0;
    while (n < field.n && field.s[n] != ':' && field.s[n] != '!') {
        if (field.s[n] == '[')
            while (n < field.n && field.s[n] != ']') n++;
        n += n < field.n;
    }
    if (!find_field(b, (struct jinja_str){field.s, n}, &v)) return false;
    if (n < field.n && field.s[n] == '!') {
        conversion = n + 1 < field.n ? field.s[n + 1] : 0;
        n += 2;
        if (!strchr("rs", conversion) || !conversion || (n < field.n && field.s[n] != ':'))
            return jinja_fail(b->r, "format: the conversion '!%c'", conversion);
        if (!(conversion == 'r' ? jinja_repr(b->r, &converted, &v)
                                : jinja_str(b->r, &converted, &v)))
            return false;
        v = jinja_text_value(&converted);
    }
    if (n < field.n &&
        !format_braces(b, (struct jinja_str){field.s + n + 1, field.n - n - 1}, level + 1, &spec))
        return false;
    return put_braces(b->r, &v, jinja_text_value(&spec).s, out);
}

static bool format_braces(struct braces *b, struct jinja_str s, int level, struct jinja_text *out)
{
    if (level > 2) return jinja_fail(b->r, "format: fields nested too deep");
    for (size_t at = 0; at < s.n;) {
        const char c = s.s[at];
        const bool twice = at + 1 < s.n && s.s[at + 1] == c && level == 0;
        if (!jinja_step(b->r, 1)) return false;
        if ((c != '{' && c != '}') || twice) {
            if (!jinja_add(b->r, out, s.s + at, 1)) return false;
            at += (c == '{' || c == '}') ? 2 : 1;
            continue;
        }
        size_t end = ++at;
        for (int open = 1; open && end < s.n; end++) {
            open += s.s[end] == '{';
            open -= s.s[end] == '}';
            if (!open) break;
        }
        if (c == '}' || end >= s.n) return jinja_fail(b->r, "format: a single '%c'", c);
        if (!put_field(b, (struct jinja_str){s.s + at, end - at}, level, out)) return false;
        at = end + 1;
    }
    return true;
}

bool jinja_format_braces(struct jinja_run *r, struct jinja_str format, struct jinja_call *c,
                         struct jinja_value *out)
{
    struct braces b = {.r = r, .call = c};
    struct jinja_text text = {0};
    if (!format_braces(&b, format, 0, &text)) return false;
    *out = jinja_text_value(&text);
    return true;
}
