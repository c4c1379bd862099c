/* text/jinja/jinja_filter_choice.c: filters that apply another filter or a test to each item: map,
 * select, reject and their kin; and attr. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

bool jinja_follow(struct jinja_run *r, struct jinja_str path, const struct jinja_value *fallback,
                  struct jinja_value *v)
{
    for (size_t at = 0; at <= path.n;) {
        size_t end = at;
        int64_t i;
        bool too_large, number = true;
        while (end < path.n && path.s[end] != '.') {
            number &= path.s[end] >= '0' && path.s[end] <= '9';
            end++;
        }
        const struct jinja_str part = {path.s + at, end - at};
        const struct jinja_value object = *v;
        struct jinja_value key = jinja_string(part.s, part.n);
        if (number && jinja_parse_int(part, 10, &i, &too_large) && !too_large) key = jinja_int(i);
        if (!jinja_item(r, &object, &key, v)) return false;
        if (v->kind == JINJA_UNDEFINED && jinja_given(fallback) && fallback->kind != JINJA_NONE)
            *v = *fallback;
        at = end + 1;
    }
    return true;
}

/* The attribute of *v that `path` names, an index or a text, in place. */
static bool follow(struct jinja_run *r, const struct jinja_value *path,
                   const struct jinja_value *fallback, struct jinja_value *v)
{
    const struct jinja_value object = *v, none = jinja_none();
    if (path->kind == JINJA_INT) return jinja_item(r, &object, path, v);
    if (path->kind == JINJA_STR) return jinja_follow(r, path->s, fallback ? fallback : &none, v);
    return jinja_fail(r, "an attribute of type '%s'", jinja_type(path));
}

/* The call's arguments from position `from` on, for an inner filter or test. */
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

/* Whether an item passes the test that the arguments from `from` on name; none: its truth. */
static bool passes(struct jinja_run *r, struct jinja_call *c, size_t from,
                   const struct jinja_value *v, bool *out)
{
    if (c->n_pos <= from) return jinja_truth(r, v, out);
    struct jinja_call inner = inner_call(c, from + 1);
    if (c->pos[from].kind != JINJA_STR)
        return jinja_fail(r, "%s: the name of a test is needed", c->name);
    return jinja_apply_test(r, c->pos[from].s, v, &inner, out);
}

static bool choose(struct jinja_run *r, struct jinja_call *c, bool by_attribute, bool want,
                   struct jinja_value *out)
{
    struct jinja_seq *items, *kept = jinja_seq(r, 0);
    bool any;
    if (!kept || !jinja_truth(r, c->self, &any)) return false;
    /* What is false is empty: none and 0 too. */
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

static bool f_select(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return choose(r, c, false, true, out);
}

static bool f_reject(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return choose(r, c, false, false, out);
}

static bool f_selectattr(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return choose(r, c, true, true, out);
}

static bool f_rejectattr(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return choose(r, c, true, false, out);
}

/* An attribute proper: a mapping's keys are none. */
static bool f_attr(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value name;
    if (!jinja_to_str(r, &c->arg[0], &name)) return false;
    if (c->self->kind == JINJA_DICT && !jinja_find_method(JINJA_DICT, name.s)) {
        *out = jinja_undefined(JINJA_ATTRIBUTE, name.s);
        out->of = JINJA_DICT;
        return true;
    }
    return jinja_attr(r, c->self, name.s, out);
}

const struct jinja_func jinja_choice_filters[] = {{"map", f_map, NULL, 0},
                                                  {"select", f_select, NULL, 0},
                                                  {"reject", f_reject, NULL, 0},
                                                  {"selectattr", f_selectattr, NULL, 0},
                                                  {"rejectattr", f_rejectattr, NULL, 0},
                                                  {"attr", f_attr, "name", 1}};
const size_t jinja_n_choice_filters = sizeof jinja_choice_filters / sizeof jinja_choice_filters[0];
