/* text/jinja/jinja_filter_choice.c: filters that apply another filter or a test to each item: map,
 * select, reject and their kin; and attr. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

bool text_tpl_follow(struct tpl_run *r, struct tpl_str path, const struct tpl_value *fallback,
                     struct tpl_value *v)
{
    for (size_t at = 0; at <= path.n;) {
        size_t end = at;
        int64_t i;
        bool too_large, number = true;
        while (end < path.n && path.s[end] != '.') {
            number &= path.s[end] >= '0' && path.s[end] <= '9';
            end++;
        }
        const struct tpl_str part = {path.s + at, end - at};
        const struct tpl_value object = *v;
        struct tpl_value key = tpl_string(part.s, part.n);
        if (number && text_tpl_parse_int(part, 10, &i, &too_large) && !too_large) key = tpl_int(i);
        if (!text_tpl_item(r, &object, &key, v)) return false;
        if (v->kind == TPL_UNDEFINED && tpl_given(fallback) && fallback->kind != TPL_NONE)
            *v = *fallback;
        at = end + 1;
    }
    return true;
}

/* The attribute of *v that `path` names, an index or a text, in place. */
static bool follow(struct tpl_run *r, const struct tpl_value *path,
                   const struct tpl_value *fallback, struct tpl_value *v)
{
    const struct tpl_value object = *v, none = tpl_none();
    if (path->kind == TPL_INT) return text_tpl_item(r, &object, path, v);
    if (path->kind == TPL_STR) return text_tpl_follow(r, path->s, fallback ? fallback : &none, v);
    return text_tpl_fail(r, "an attribute of type '%s'", text_tpl_type(path));
}

/* The call's arguments from position `from` on, for an inner filter or test. */
static struct tpl_call inner_call(const struct tpl_call *c, size_t from)
{
    return (struct tpl_call){.pos = c->pos + from, .n_pos = c->n_pos - from, .kw = c->kw};
}

static const struct tpl_value *keyword(const struct tpl_call *c, const char *name)
{
    return c->kw ? text_tpl_dict_word(c->kw, (struct tpl_str){name, strlen(name)}) : NULL;
}

static bool map_items(struct tpl_run *r, struct tpl_call *c, const struct tpl_seq *items,
                      struct tpl_seq *mapped)
{
    const struct tpl_value *attribute = c->n_pos ? NULL : keyword(c, "attribute");
    const struct tpl_value *fallback = keyword(c, "default");
    if (attribute && c->kw->n != 1u + (fallback != NULL))
        return text_tpl_fail(r, "map: an argument besides attribute and default");
    if (!attribute && !c->n_pos) return text_tpl_fail(r, "map: needs a filter or attribute=");
    if (!attribute && c->pos[0].kind != TPL_STR)
        return text_tpl_fail(r, "map: the name of a filter is needed");
    for (size_t i = 0; i < items->n; i++) {
        struct tpl_value v = items->item[i];
        struct tpl_call inner = inner_call(c, c->n_pos > 0);
        if (!(attribute ? follow(r, attribute, fallback, &v)
                        : text_tpl_apply_filter(r, c->pos[0].s, &items->item[i], &inner, &v)) ||
            !text_tpl_push(r, mapped, v) || !text_tpl_step(r, 1))
            return false;
    }
    return true;
}

static bool f_map(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_seq *items, *mapped = text_tpl_seq(r, 0);
    bool any;
    return mapped && text_tpl_truth(r, c->self, &any) &&
           (!any || (text_tpl_items(r, c->self, &items) && map_items(r, c, items, mapped))) &&
           text_tpl_generator(r, mapped, "generator", out);
}

/* Whether an item passes the test that the arguments from `from` on name; none: its truth. */
static bool passes(struct tpl_run *r, struct tpl_call *c, size_t from, const struct tpl_value *v,
                   bool *out)
{
    if (c->n_pos <= from) return text_tpl_truth(r, v, out);
    struct tpl_call inner = inner_call(c, from + 1);
    if (c->pos[from].kind != TPL_STR)
        return text_tpl_fail(r, "%s: the name of a test is needed", c->name);
    return text_tpl_apply_test(r, c->pos[from].s, v, &inner, out);
}

static bool choose(struct tpl_run *r, struct tpl_call *c, bool by_attribute, bool want,
                   struct tpl_value *out)
{
    struct tpl_seq *items, *kept = text_tpl_seq(r, 0);
    bool any;
    if (!kept || !text_tpl_truth(r, c->self, &any)) return false;
    /* What is false is empty: none and 0 too. */
    if (!any) return text_tpl_generator(r, kept, "generator", out);
    if (by_attribute && !c->n_pos) return text_tpl_fail(r, "%s: needs an attribute", c->name);
    if (!text_tpl_items(r, c->self, &items)) return false;
    for (size_t i = 0; i < items->n; i++) {
        struct tpl_value v = items->item[i];
        bool yes;
        if ((by_attribute && !follow(r, &c->pos[0], NULL, &v)) ||
            !passes(r, c, by_attribute, &v, &yes) ||
            (yes == want && !text_tpl_push(r, kept, items->item[i])) || !text_tpl_step(r, 1))
            return false;
    }
    return text_tpl_generator(r, kept, "generator", out);
}

static bool f_select(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return choose(r, c, false, true, out);
}

static bool f_reject(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return choose(r, c, false, false, out);
}

static bool f_selectattr(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return choose(r, c, true, true, out);
}

static bool f_rejectattr(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return choose(r, c, true, false, out);
}

/* An attribute proper: a mapping's keys are none. */
static bool f_attr(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_value name;
    if (!text_tpl_to_str(r, &c->arg[0], &name)) return false;
    if (c->self->kind == TPL_DICT && !text_tpl_find_method(TPL_DICT, name.s)) {
        *out = tpl_undefined(TPL_ATTRIBUTE, name.s);
        out->of = TPL_DICT;
        return true;
    }
    return text_tpl_attr(r, c->self, name.s, out);
}

const struct tpl_func text_tpl_choice_filters[] = {{"map", f_map, NULL, 0},
                                                   {"select", f_select, NULL, 0},
                                                   {"reject", f_reject, NULL, 0},
                                                   {"selectattr", f_selectattr, NULL, 0},
                                                   {"rejectattr", f_rejectattr, NULL, 0},
                                                   {"attr", f_attr, "name", 1}};
const size_t text_tpl_n_choice_filters =
    sizeof text_tpl_choice_filters / sizeof text_tpl_choice_filters[0];
