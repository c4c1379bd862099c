/* text/jinja/jinja_print.c: values as text: str(), repr() and json.dumps() of Python.
 * See text/jinja/jinja_value.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the shortest digits that are read back as the same number, in Python's layout. */
void jinja_float_repr(double f, char *out)
{
    char digits[40];
    /* If fewer digits identify a normal number, they are its 15 digits without trailing zeros. */
    int precision = fabs(f) < DBL_MIN ? 0 : DBL_DIG - 1;
    if (isnan(f) || isinf(f)) {
        strcpy(out, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    do {
        snprintf(digits, sizeof digits, "%.*e", precision, f);
    } while (strtod(digits, NULL) != f && precision++ < 17);
    const char *e = strchr(digits, 'e'), *last = e;
    const int exponent = atoi(e + 1);
    while (precision > 0 && last[-1] == '0') {
        last--;
        precision--;
    }
    if (precision == 0 && last[-1] == '.') last--;
    if (exponent < -4 || exponent >= 16) {
        snprintf(out, 40, "%.*se%c%02d", (int)(last - digits), digits, exponent < 0 ? '-' : '+',
                 abs(exponent));
        return;
    }
    const int decimals = precision - exponent;
    snprintf(out, 40, "%.*f", decimals > 1 ? decimals : 1, f);
}

static bool repr_string(struct jinja_run *r, struct jinja_text *out, struct jinja_str s)
{
    const bool single = memchr(s.s, '\'', s.n) != NULL, dbl = memchr(s.s, '"', s.n) != NULL;
    const char quote = single && !dbl ? '"' : '\'';
    char text[16];
    if (!jinja_add_char(r, out, quote, 1)) return false;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        bool ok;
        if (code == quote || code == '\\')
            snprintf(text, sizeof text, "\\%c", (char)code);
        else if (code == '\n' || code == '\r' || code == '\t')
            snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
        else if (jinja_is_printable(code))
            text[0] = '\0';
        else
            snprintf(text, sizeof text,
                     code < 0x100     ? "\\x%02x"
                     : code < 0x10000 ? "\\u%04x"
                                      : "\\U%08x",
                     (unsigned)code);
        ok = text[0] ? jinja_add_word(r, out, text) : jinja_add(r, out, s.s + at, used);
        if (!ok) return false;
        at += used;
    }
    return jinja_add_char(r, out, quote, 1);
}

static bool repr_items(struct jinja_run *r, struct jinja_text *out, const struct jinja_seq *seq,
                       const char *open, const char *close)
{
    if (!jinja_add_word(r, out, open)) return false;
    for (size_t i = 0; i < seq->n; i++)
        if ((i && !jinja_add_word(r, out, ", ")) || !jinja_repr(r, out, &seq->item[i]))
            return false;
    return jinja_add_word(r, out, close);
}

static bool repr_dict(struct jinja_run *r, struct jinja_text *out, const struct jinja_dict *d)
{
    if (!jinja_add_word(r, out, "{")) return false;
    for (uint32_t i = 0; i < d->n; i++)
        if ((i && !jinja_add_word(r, out, ", ")) || !jinja_repr(r, out, &d->key[i]) ||
            !jinja_add_word(r, out, ": ") || !jinja_repr(r, out, &d->value[i]))
            return false;
    return jinja_add_word(r, out, "}");
}

static bool repr_range(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v)
{
    char text[96];
    const long long start = v->seq->item[v->seq->n].i, stop = v->seq->item[v->seq->n + 1].i,
                    step = v->seq->item[v->seq->n + 2].i;
    if (step == 1)
        snprintf(text, sizeof text, "range(%lld, %lld)", start, stop);
    else
        snprintf(text, sizeof text, "range(%lld, %lld, %lld)", start, stop, step);
    return jinja_add_word(r, out, text);
}

static bool repr_container(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_LIST:
        return repr_items(r, out, v->seq, "[", "]");
    case JINJA_TUPLE:
        return repr_items(r, out, v->seq, "(", v->seq->n == 1 ? ",)" : ")");
    case JINJA_VIEW:
        return jinja_add(r, out, v->s.s, v->s.n) && repr_items(r, out, v->seq, "([", "])");
    case JINJA_DICT:
        return repr_dict(r, out, v->dict);
    case JINJA_NAMESPACE:
        return jinja_add_word(r, out, "<Namespace ") && repr_dict(r, out, v->dict) &&
               jinja_add_word(r, out, ">");
    case JINJA_RANGE:
        return repr_range(r, out, v);
    default:
        return jinja_fail(r, "printing a %s is not supported", jinja_type(v));
    }
}

bool jinja_repr(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v)
{
    char text[64];
    const struct jinja_node *node;
    if (!jinja_step(r, 1)) return false;
    switch (v->kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
        return jinja_add_word(r, out, "Undefined");
    case JINJA_NONE:
        return jinja_add_word(r, out, "None");
    case JINJA_BOOL:
        return jinja_add_word(r, out, v->b ? "True" : "False");
    case JINJA_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->i);
        return jinja_add_word(r, out, text);
    case JINJA_FLOAT:
        if (v->written) return jinja_add_word(r, out, v->written);
        if (!jinja_step(r, JINJA_FLOAT_WORK)) return false;
        jinja_float_repr(v->f, text);
        return jinja_add_word(r, out, text);
    case JINJA_STR:
        return repr_string(r, out, v->s);
    case JINJA_MACRO:
        node = v->macro->node;
        if (node->kind != JINJA_N_MACRO) return jinja_add_word(r, out, "<Macro anonymous>");
        return jinja_add_word(r, out, "<Macro ") && repr_string(r, out, node->text) &&
               jinja_add_word(r, out, ">");
    case JINJA_LOOP:
        if (!v->loop->fill(r, v->loop, SIZE_MAX)) return false;
        snprintf(text, sizeof text, "<LoopContext %zu/%zu>", v->loop->index + 1, v->loop->items->n);
        return jinja_add_word(r, out, text);
    default:
        break;
    }
    if (!jinja_enter(r)) return false;
    const bool ok = repr_container(r, out, v);
    jinja_leave(r);
    return ok;
}

bool jinja_str(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v)
{
    if (v->kind == JINJA_STR) return jinja_add(r, out, v->s.s, v->s.n);
    if (v->kind == JINJA_UNDEFINED) return true;
    return jinja_repr(r, out, v);
}

bool jinja_to_str(struct jinja_run *r, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_text text = {0};
    if (v->kind == JINJA_STR) {
        *out = *v;
        return true;
    }
    if (!jinja_str(r, &text, v)) return false;
    *out = jinja_text_value(&text);
    return true;
}

/* ---- JSON ---- */

static bool put_json_string(struct jinja_run *r, struct jinja_text *out, struct jinja_str s,
                            bool ascii)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    char text[16];
    if (!jinja_add_char(r, out, '"', 1)) return false;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        const char *found = code > 0 && code < 0x80 ? strchr(from, code) : NULL;
        text[0] = '\0';
        if (found)
            snprintf(text, sizeof text, "\\%c", to[found - from]);
        else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000))
            snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
        else if (ascii && code >= 0x10000)
            snprintf(text, sizeof text, "\\u%04x\\u%04x",
                     (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                     (unsigned)(0xdc00 + ((code - 0x10000) & 0x3ff)));
        if (!(text[0] ? jinja_add_word(r, out, text) : jinja_add(r, out, s.s + at, used)))
            return false;
        at += used;
    }
    return jinja_add_char(r, out, '"', 1);
}

static bool put_json_float(struct jinja_run *r, struct jinja_text *out, double f)
{
    char text[40];
    if (isnan(f) || isinf(f))
        return jinja_add_word(r, out, isnan(f) ? "NaN" : f < 0 ? "-Infinity" : "Infinity");
    if (!jinja_step(r, JINJA_FLOAT_WORK)) return false;
    jinja_float_repr(f, text);
    return jinja_add_word(r, out, text);
}

static bool put_json_break(struct jinja_run *r, struct jinja_text *out,
                           const struct jinja_json *how, int level)
{
    if (!how->lines) return true;
    if (!jinja_add_char(r, out, '\n', 1)) return false;
    for (int i = 0; i < level; i++)
        if (!jinja_add(r, out, how->indent.s, how->indent.n)) return false;
    return true;
}

static bool put_json_list(struct jinja_run *r, struct jinja_text *out, const struct jinja_seq *seq,
                          const struct jinja_json *how, int level)
{
    if (!seq->n) return jinja_add_word(r, out, "[]");
    for (size_t i = 0; i < seq->n; i++) {
        const struct jinja_str before = i ? how->item : (struct jinja_str){"[", 1};
        if (!jinja_add(r, out, before.s, before.n) || !put_json_break(r, out, how, level + 1) ||
            !jinja_to_json(r, out, &seq->item[i], how, level + 1))
            return false;
    }
    return put_json_break(r, out, how, level) && jinja_add_word(r, out, "]");
}

static bool put_json_key(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *key,
                         const struct jinja_json *how)
{
    if (key->kind == JINJA_STR) return put_json_string(r, out, key->s, how->ascii);
    if (key->kind != JINJA_INT && key->kind != JINJA_FLOAT && key->kind != JINJA_BOOL &&
        key->kind != JINJA_NONE)
        return jinja_fail(r, "tojson: a key of type '%s'", jinja_type(key));
    return jinja_add_char(r, out, '"', 1) && jinja_to_json(r, out, key, how, 0) &&
           jinja_add_char(r, out, '"', 1);
}

static bool put_json_dict(struct jinja_run *r, struct jinja_text *out, const struct jinja_dict *d,
                          const struct jinja_json *how, int level)
{
    if (!d->n) return jinja_add_word(r, out, "{}");
    struct jinja_entry *e = NULL;
    if (how->sort) {
        e = jinja_alloc(&r->pool, 2 * (size_t)d->n * sizeof *e, r->err);
        if (!e) return false;
        for (uint32_t i = 0; i < d->n; i++) e[i] = (struct jinja_entry){d->key[i], d->value[i]};
        if (!jinja_sort(r, e, e + d->n, d->n, false)) return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        const struct jinja_str before = i ? how->item : (struct jinja_str){"{", 1};
        if (!jinja_add(r, out, before.s, before.n) || !put_json_break(r, out, how, level + 1) ||
            !put_json_key(r, out, e ? &e[i].key : &d->key[i], how) ||
            !jinja_add(r, out, how->key.s, how->key.n) ||
            !jinja_to_json(r, out, e ? &e[i].item : &d->value[i], how, level + 1))
            return false;
    }
    return put_json_break(r, out, how, level) && jinja_add_word(r, out, "}");
}

bool jinja_to_json(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v,
                   const struct jinja_json *how, int level)
{
    bool ok;
    if (!jinja_step(r, 1)) return false;
    switch (v->kind) {
    case JINJA_NONE:
        return jinja_add_word(r, out, "null");
    case JINJA_BOOL:
        return jinja_add_word(r, out, v->b ? "true" : "false");
    case JINJA_INT:
        return jinja_repr(r, out, v);
    case JINJA_FLOAT:
        return v->written ? jinja_add_word(r, out, v->written) : put_json_float(r, out, v->f);
    case JINJA_STR:
        return put_json_string(r, out, v->s, how->ascii);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
        if (!jinja_enter(r)) return false;
        ok = v->kind == JINJA_DICT ? put_json_dict(r, out, v->dict, how, level)
                                   : put_json_list(r, out, v->seq, how, level);
        jinja_leave(r);
        return ok;
    case JINJA_UNDEFINED:
        return jinja_fail(r, "tojson: '%.*s' is undefined", (int)(v->s.n > 200 ? 200 : v->s.n),
                          v->s.s);
    default:
        return jinja_fail(r, "tojson: a value of type '%s'", jinja_type(v));
    }
}
