/* text/jinja/jinja_filter.c: filters of one value (strings, numbers, JSON), those that apply
 * another filter or a test to each item (map, select and similar), and the look-up of filters by
 * name. See text/jinja/jinja_run.h; jinja_filter_list.c has the filters of sequences. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <string.h>

/* Returns the subject as a string. */
static bool subject(struct jinja_run *r, const struct jinja_call *c, struct jinja_value *out)
{
    return jinja_to_str(r, c->self, out);
}

/* ---- Case and space ---- */

static bool f_case(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && jinja_change_case(r, s.s, (enum jinja_case)c->form, out);
}

static bool f_capitalize(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && jinja_capitalize(r, s.s, out);
}

/* Words begin after space, hyphens and opening brackets, other than in the method title(). */
static bool f_title(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value s;
    bool begins = true;
    if (!subject(r, c, &s) || !jinja_step(r, 2 * (uint64_t)s.s.n)) return false;
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
    return true;
}

static bool f_trim(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value s;
    return subject(r, c, &s) && jinja_strip_value(r, c, s.s, JINJA_BOTH, out);
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
    /* Adds a line break, because splitting drops the last one. */
    const struct jinja_value newline = jinja_string("\n", 1);
    struct jinja_value whole;
    if (!jinja_binary(r, JINJA_ADD, c->self, &newline, &whole) ||
        !jinja_split_lines(r, whole.s, lines))
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
    return true;
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

/* ---- Kinds of values ---- */

static bool f_string(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return subject(r, c, out);
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

/* Python's int(): false where that raises an exception which the filter catches. */
static bool to_int(const struct jinja_value *v, int64_t *out, bool *too_large)
{
    double f;
    if (v->kind == JINJA_STR && jinja_parse_int(v->s, out, too_large)) return true;
    if (jinja_as_int(v, out)) return true;
    if (v->kind == JINJA_STR ? !jinja_parse_float(v->s, &f) : !jinja_as_number(v, &f)) return false;
    if (isnan(f) || isinf(f)) return false;
    *too_large = fabs(f) >= 9.2e18;
    if (!*too_large) *out = (int64_t)f;
    return true;
}

static bool f_int(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t i;
    bool too_large = false;
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    if (c->self->kind == JINJA_STR && !jinja_step(r, JINJA_FLOAT_WORK)) return false;
    if (!to_int(c->self, &i, &too_large)) {
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
    if (c->self->kind == JINJA_STR && !jinja_step(r, JINJA_FLOAT_WORK)) return false;
    if (c->self->kind == JINJA_STR ? jinja_parse_float(c->self->s, &f)
                                   : jinja_as_number(c->self, &f))
        *out = jinja_float(f);
    else
        *out = jinja_given(&c->arg[0]) ? c->arg[0] : jinja_float(0);
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

/* ---- Another filter or a test for each item ---- */

/* Replaces *v by its attribute `path`, which is an index or a text. */
static bool follow(struct jinja_run *r, const struct jinja_value *path,
                   const struct jinja_value *fallback, struct jinja_value *v)
{
    const struct jinja_value object = *v;
    if (path->kind == JINJA_INT) return jinja_item(r, &object, path, v);
    if (path->kind == JINJA_STR) return jinja_follow(r, path->s, fallback, v);
    return jinja_fail(r, "an attribute of type '%s'", jinja_type(path));
}

/* Returns the call's arguments from position `from` on, for an inner filter or test. */
static struct jinja_call inner_call(const struct jinja_call *c, size_t from)
{
    return (struct jinja_call){.pos = c->pos + from, .n_pos = c->n_pos - from, .kw = c->kw};
}

static const struct jinja_value *keyword(const struct jinja_call *c, const char *name)
{
    return c->kw ? jinja_dict_word(c->kw, (struct jinja_str){name, strlen(name)}) : NULL;
}

static bool map_items(struct jinja_run *r, struct jinja_call *c, const struct jinja_seq *items,
                      struct jinja_seq *mapped)
{
    const struct jinja_value *attribute = c->n_pos ? NULL : keyword(c, "attribute");
    const struct jinja_value *fallback = keyword(c, "default");
    if (attribute && c->kw->n != 1u + (fallback != NULL))
        return jinja_fail(r, "map: an argument besides attribute and default");
    if (!attribute && !c->n_pos) return jinja_fail(r, "map: needs a filter or attribute=");
    if (!attribute && c->pos[0].kind != JINJA_STR)
        return jinja_fail(r, "map: the name of a filter is needed");
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value v = items->item[i];
        struct jinja_call inner = inner_call(c, c->n_pos > 0);
        if (!(attribute ? follow(r, attribute, fallback, &v)
                        : jinja_apply_filter(r, c->pos[0].s, &items->item[i], &inner, &v)) ||
            !jinja_push(r, mapped, v) || !jinja_step(r, 1))
            return false;
    }
    return true;
}

static bool f_map(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *mapped = jinja_seq(r, 0);
    bool any;
    return mapped && jinja_truth(r, c->self, &any) &&
           (!any || (jinja_items(r, c->self, &items) && map_items(r, c, items, mapped))) &&
           jinja_generator(r, mapped, "generator", out);
}

/* Returns in *out whether an item passes the test that the arguments from `from` on specify;
 * without a test, whether it is true. */
static bool passes(struct jinja_run *r, struct jinja_call *c, size_t from,
                   const struct jinja_value *v, bool *out)
{
    if (c->n_pos <= from) return jinja_truth(r, v, out);
    struct jinja_call inner = inner_call(c, from + 1);
    if (c->pos[from].kind != JINJA_STR)
        return jinja_fail(r, "%s: the name of a test is needed", c->name);
    return jinja_apply_test(r, c->pos[from].s, v, &inner, out);
}

enum { KEEP = 1, BY_ATTRIBUTE = 2 };

/* select, reject, selectattr and rejectattr. */
static bool f_choose(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const bool by_attribute = c->form & BY_ATTRIBUTE, want = c->form & KEEP;
    struct jinja_seq *items, *kept = jinja_seq(r, 0);
    bool any;
    if (!kept || !jinja_truth(r, c->self, &any)) return false;
    /* A false value of any type counts as empty. */
    if (!any) return jinja_generator(r, kept, "generator", out);
    if (by_attribute && !c->n_pos) return jinja_fail(r, "%s: needs an attribute", c->name);
    if (!jinja_items(r, c->self, &items)) return false;
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value v = items->item[i];
        bool yes;
        if ((by_attribute && !follow(r, &c->pos[0], NULL, &v)) ||
            !passes(r, c, by_attribute, &v, &yes) ||
            (yes == want && !jinja_push(r, kept, items->item[i])) || !jinja_step(r, 1))
            return false;
    }
    return jinja_generator(r, kept, "generator", out);
}

/* ---- Look-up ---- */

static const struct jinja_func rows[] = {
    {"tojson", f_tojson, "ensure_ascii indent separators sort_keys", 0, 0},
    {"trim", f_trim, "chars", 0, 0},
    {"default", f_default, "default_value boolean", 0, 0},
    {"d", f_default, "default_value boolean", 0, 0},
    {"string", f_string, "", 0, 0},
    {"upper", f_case, "", 0, JINJA_UPPER},
    {"lower", f_case, "", 0, JINJA_LOWER},
    {"capitalize", f_capitalize, "", 0, 0},
    {"title", f_title, "", 0, 0},
    {"replace", f_replace, "old new count", 2, 0},
    {"indent", f_indent, "width first blank", 0, 0},
    {"safe", f_string, "", 0, 0},
    {"int", f_int, "default", 0, 0},
    {"float", f_float, "default", 0, 0},
    {"map", f_map, NULL, 0, 0},
    {"select", f_choose, NULL, 0, KEEP},
    {"reject", f_choose, NULL, 0, 0},
    {"selectattr", f_choose, NULL, 0, KEEP | BY_ATTRIBUTE},
    {"rejectattr", f_choose, NULL, 0, BY_ATTRIBUTE},
};

const struct jinja_func *jinja_find_filter(struct jinja_str name)
{
    const struct jinja_func *found = jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
    return found ? found : jinja_find_row(jinja_sequence_filters, jinja_n_sequence_filters, name);
}

bool jinja_apply_filter(struct jinja_run *r, struct jinja_str name,
                        const struct jinja_value *subject, struct jinja_call *c,
                        struct jinja_value *out)
{
    const struct jinja_func *filter = jinja_find_filter(name);
    /* A copy, because the result may be stored over the subject. */
    const struct jinja_value self = *subject;
    if (!filter) return jinja_fail(r, "no filter named '%.*s'", (int)name.n, name.s);
    c->self = &self;
    return jinja_invoke(r, filter, c, out);
}
