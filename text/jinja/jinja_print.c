/* text/jinja/jinja_print.c: values as text: str(), repr() and json.dumps() of Python.
 * See text/jinja/jinja_value.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest digits that read back as the same number, laid out as Python does. */
void text_tpl_float_repr(double f, char *out)
{
    char digits[40];
    int precision = 0;
    if (isnan(f) || isinf(f)) {
        strcpy(out, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    do {
        snprintf(digits, sizeof digits, "%.*e", precision, f);
    } while (strtod(digits, NULL) != f && precision++ < 17);
    char *e = strchr(digits, 'e');
    const int exponent = atoi(e + 1);
    if (exponent < -4 || exponent >= 16) {
        snprintf(out, 40, "%.*se%c%02d", (int)(e - digits), digits, exponent < 0 ? '-' : '+',
                 abs(exponent));
        return;
    }
    const int decimals = precision - exponent;
    snprintf(out, 40, "%.*f", decimals > 1 ? decimals : 1, f);
}

static bool repr_string(struct tpl_run *r, struct tpl_text *out, struct tpl_str s)
{
    const bool single = memchr(s.s, '\'', s.n) != NULL, dbl = memchr(s.s, '"', s.n) != NULL;
    const char quote = single && !dbl ? '"' : '\'';
    char text[16];
    if (!text_tpl_add_char(r, out, quote, 1)) return false;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        bool ok;
        if (code == quote || code == '\\')
            snprintf(text, sizeof text, "\\%c", (char)code);
        else if (code == '\n' || code == '\r' || code == '\t')
            snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
        else if (text_tpl_is_printable(code))
            text[0] = '\0';
        else
            snprintf(text, sizeof text,
                     code < 0x100     ? "\\x%02x"
                     : code < 0x10000 ? "\\u%04x"
                                      : "\\U%08x",
                     (unsigned)code);
        ok = text[0] ? text_tpl_add_word(r, out, text) : text_tpl_add(r, out, s.s + at, used);
        if (!ok) return false;
        at += used;
    }
    return text_tpl_add_char(r, out, quote, 1);
}

static bool repr_items(struct tpl_run *r, struct tpl_text *out, const struct tpl_seq *seq,
                       const char *open, const char *close)
{
    if (!text_tpl_add_word(r, out, open)) return false;
    for (size_t i = 0; i < seq->n; i++)
        if ((i && !text_tpl_add_word(r, out, ", ")) || !text_tpl_repr(r, out, &seq->item[i]))
            return false;
    return text_tpl_add_word(r, out, close);
}

static bool repr_dict(struct tpl_run *r, struct tpl_text *out, const struct tpl_dict *d)
{
    if (!text_tpl_add_word(r, out, "{")) return false;
    for (uint32_t i = 0; i < d->n; i++)
        if ((i && !text_tpl_add_word(r, out, ", ")) || !text_tpl_repr(r, out, &d->key[i]) ||
            !text_tpl_add_word(r, out, ": ") || !text_tpl_repr(r, out, &d->value[i]))
            return false;
    return text_tpl_add_word(r, out, "}");
}

static bool repr_range(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v)
{
    char text[96];
    const long long start = v->seq->item[v->seq->n].i, stop = v->seq->item[v->seq->n + 1].i,
                    step = v->seq->item[v->seq->n + 2].i;
    if (step == 1)
        snprintf(text, sizeof text, "range(%lld, %lld)", start, stop);
    else
        snprintf(text, sizeof text, "range(%lld, %lld, %lld)", start, stop, step);
    return text_tpl_add_word(r, out, text);
}

static bool repr_container(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v)
{
    switch (v->kind) {
    case TPL_LIST:
        return repr_items(r, out, v->seq, "[", "]");
    case TPL_TUPLE:
        return repr_items(r, out, v->seq, "(", v->seq->n == 1 ? ",)" : ")");
    case TPL_VIEW:
        return text_tpl_add(r, out, v->s.s, v->s.n) && repr_items(r, out, v->seq, "([", "])");
    case TPL_DICT:
        return repr_dict(r, out, v->dict);
    case TPL_NAMESPACE:
        return text_tpl_add_word(r, out, "<Namespace ") && repr_dict(r, out, v->dict) &&
               text_tpl_add_word(r, out, ">");
    case TPL_RANGE:
        return repr_range(r, out, v);
    default:
        return text_tpl_fail(r, "printing a %s is not supported", text_tpl_type(v));
    }
}

bool text_tpl_repr(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v)
{
    char text[64];
    const struct tpl_node *node;
    if (!text_tpl_step(r, 1)) return false;
    switch (v->kind) {
    case TPL_MISSING:
    case TPL_UNDEFINED:
        return text_tpl_add_word(r, out, "Undefined");
    case TPL_NONE:
        return text_tpl_add_word(r, out, "None");
    case TPL_BOOL:
        return text_tpl_add_word(r, out, v->b ? "True" : "False");
    case TPL_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->i);
        return text_tpl_add_word(r, out, text);
    case TPL_FLOAT:
        text_tpl_float_repr(v->f, text);
        return text_tpl_add_word(r, out, text);
    case TPL_STR:
        if (!v->safe) return repr_string(r, out, v->s);
        return text_tpl_add_word(r, out, "Markup(") && repr_string(r, out, v->s) &&
               text_tpl_add_word(r, out, ")");
    case TPL_MACRO:
        node = v->macro->node;
        if (node->kind != TPL_N_MACRO) return text_tpl_add_word(r, out, "<Macro anonymous>");
        return text_tpl_add_word(r, out, "<Macro ") && repr_string(r, out, node->text) &&
               text_tpl_add_word(r, out, ">");
    case TPL_LOOP:
        if (!text_tpl_loop_fill(r, v->loop, SIZE_MAX)) return false;
        snprintf(text, sizeof text, "<LoopContext %zu/%zu>", v->loop->index + 1, v->loop->items->n);
        return text_tpl_add_word(r, out, text);
    default:
        break;
    }
    if (!text_tpl_enter(r)) return false;
    const bool ok = repr_container(r, out, v);
    text_tpl_leave(r);
    return ok;
}

bool text_tpl_str(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v)
{
    if (v->kind == TPL_STR) return text_tpl_add(r, out, v->s.s, v->s.n);
    if (v->kind == TPL_UNDEFINED) return true;
    return text_tpl_repr(r, out, v);
}

bool text_tpl_to_str(struct tpl_run *r, const struct tpl_value *v, struct tpl_value *out)
{
    struct tpl_text text = {0};
    if (v->kind == TPL_STR) {
        *out = *v;
        return true;
    }
    if (!text_tpl_str(r, &text, v)) return false;
    *out = text_tpl_text_value(&text);
    return true;
}

bool text_tpl_escape(struct tpl_run *r, const struct tpl_value *v, struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value plain;
    if (!text_tpl_to_str(r, v, &plain)) return false;
    *out = plain;
    out->safe = true;
    if (plain.safe) return true;
    for (size_t i = 0; i < plain.s.n; i++) {
        const char c = plain.s.s[i];
        const char *word = c == '&'    ? "&amp;"
                           : c == '<'  ? "&lt;"
                           : c == '>'  ? "&gt;"
                           : c == '\'' ? "&#39;"
                           : c == '"'  ? "&#34;"
                                       : NULL;
        if (!(word ? text_tpl_add_word(r, &text, word) : text_tpl_add(r, &text, plain.s.s + i, 1)))
            return false;
    }
    *out = text_tpl_text_value(&text);
    out->safe = true;
    return true;
}

/* ---- JSON ---- */

static bool put_json_string(struct tpl_run *r, struct tpl_text *out, struct tpl_str s, bool ascii)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    char text[16];
    if (!text_tpl_add_char(r, out, '"', 1)) return false;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        const size_t used = base_utf8_decode(s.s + at, s.n - at, &code);
        const char *hit = code > 0 && code < 0x80 ? strchr(from, code) : NULL;
        text[0] = '\0';
        if (hit)
            snprintf(text, sizeof text, "\\%c", to[hit - from]);
        else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000))
            snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
        else if (ascii && code >= 0x10000)
            snprintf(text, sizeof text, "\\u%04x\\u%04x",
                     (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                     (unsigned)(0xdc00 + ((code - 0x10000) & 0x3ff)));
        if (!(text[0] ? text_tpl_add_word(r, out, text) : text_tpl_add(r, out, s.s + at, used)))
            return false;
        at += used;
    }
    return text_tpl_add_char(r, out, '"', 1);
}

static bool put_json_float(struct tpl_run *r, struct tpl_text *out, double f)
{
    char text[40];
    if (isnan(f) || isinf(f))
        return text_tpl_add_word(r, out, isnan(f) ? "NaN" : f < 0 ? "-Infinity" : "Infinity");
    text_tpl_float_repr(f, text);
    return text_tpl_add_word(r, out, text);
}

static bool put_json_break(struct tpl_run *r, struct tpl_text *out, const struct tpl_json *how,
                           int level)
{
    if (!how->lines) return true;
    if (!text_tpl_add_char(r, out, '\n', 1)) return false;
    for (int i = 0; i < level; i++)
        if (!text_tpl_add(r, out, how->indent.s, how->indent.n)) return false;
    return true;
}

static bool put_json_list(struct tpl_run *r, struct tpl_text *out, const struct tpl_seq *seq,
                          const struct tpl_json *how, int level)
{
    if (!seq->n) return text_tpl_add_word(r, out, "[]");
    for (size_t i = 0; i < seq->n; i++) {
        const struct tpl_str before = i ? how->item : (struct tpl_str){"[", 1};
        if (!text_tpl_add(r, out, before.s, before.n) || !put_json_break(r, out, how, level + 1) ||
            !text_tpl_to_json(r, out, &seq->item[i], how, level + 1))
            return false;
    }
    return put_json_break(r, out, how, level) && text_tpl_add_word(r, out, "]");
}

static bool put_json_key(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *key,
                         const struct tpl_json *how)
{
    if (key->kind == TPL_STR) return put_json_string(r, out, key->s, how->ascii);
    if (key->kind != TPL_INT && key->kind != TPL_FLOAT && key->kind != TPL_BOOL &&
        key->kind != TPL_NONE)
        return text_tpl_fail(r, "tojson: a key of type '%s'", text_tpl_type(key));
    return text_tpl_add_char(r, out, '"', 1) && text_tpl_to_json(r, out, key, how, 0) &&
           text_tpl_add_char(r, out, '"', 1);
}

/* The entries' places in the order of their keys. A merge sort, because comparing can fail. */
static bool sort_keys(struct tpl_run *r, const struct tpl_dict *d, uint32_t *order, uint32_t *spare,
                      uint32_t n)
{
    if (n < 2) return true;
    const uint32_t half = n / 2;
    if (!sort_keys(r, d, order, spare, half) || !sort_keys(r, d, order + half, spare, n - half))
        return false;
    memcpy(spare, order, half * sizeof *order);
    for (uint32_t i = 0, j = half, k = 0; i < half; k++) {
        int first = 1;
        if (j < n && !text_tpl_order(r, &d->key[order[j]], &d->key[spare[i]], &first)) return false;
        order[k] = j < n && first < 0 ? order[j++] : spare[i++];
    }
    return true;
}

static bool put_json_dict(struct tpl_run *r, struct tpl_text *out, const struct tpl_dict *d,
                          const struct tpl_json *how, int level)
{
    if (!d->n) return text_tpl_add_word(r, out, "{}");
    uint32_t *order = text_tpl_take(&r->pool, 2 * (size_t)d->n * sizeof *order, r->err);
    if (!order) return false;
    for (uint32_t i = 0; i < d->n; i++) order[i] = i;
    if (how->sort && !sort_keys(r, d, order, order + d->n, d->n)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        const struct tpl_str before = i ? how->item : (struct tpl_str){"{", 1};
        if (!text_tpl_add(r, out, before.s, before.n) || !put_json_break(r, out, how, level + 1) ||
            !put_json_key(r, out, &d->key[order[i]], how) ||
            !text_tpl_add(r, out, how->key.s, how->key.n) ||
            !text_tpl_to_json(r, out, &d->value[order[i]], how, level + 1))
            return false;
    }
    return put_json_break(r, out, how, level) && text_tpl_add_word(r, out, "}");
}

bool text_tpl_to_json(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v,
                      const struct tpl_json *how, int level)
{
    bool ok;
    if (!text_tpl_step(r, 1)) return false;
    switch (v->kind) {
    case TPL_NONE:
        return text_tpl_add_word(r, out, "null");
    case TPL_BOOL:
        return text_tpl_add_word(r, out, v->b ? "true" : "false");
    case TPL_INT:
        return text_tpl_repr(r, out, v);
    case TPL_FLOAT:
        return put_json_float(r, out, v->f);
    case TPL_STR:
        return put_json_string(r, out, v->s, how->ascii);
    case TPL_LIST:
    case TPL_TUPLE:
    case TPL_DICT:
        if (!text_tpl_enter(r)) return false;
        ok = v->kind == TPL_DICT ? put_json_dict(r, out, v->dict, how, level)
                                 : put_json_list(r, out, v->seq, how, level);
        text_tpl_leave(r);
        return ok;
    case TPL_UNDEFINED:
        return text_tpl_fail(r, "tojson: '%.*s' is undefined", (int)(v->s.n > 200 ? 200 : v->s.n),
                             v->s.s);
    default:
        return text_tpl_fail(r, "tojson: a value of type '%s'", text_tpl_type(v));
    }
}
