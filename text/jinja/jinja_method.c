/* text/jinja/jinja_method.c: methods of mappings, lists and loops, and the method tables.
 * See text/jinja/jinja_run.h; strings are in jinja_string.c. */
#include "text/jinja/jinja_run.h"
#include <string.h>

/* ---- Mappings ---- */

static bool dict_get(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    bool ok;
    const struct jinja_value *hit = jinja_dict_find(c->self->dict, &c->arg[0], &ok);
    if (!ok) return jinja_fail(r, "unhashable type: '%s'", jinja_type(&c->arg[0]));
    *out = hit ? *hit : jinja_given(&c->arg[1]) ? c->arg[1] : jinja_none();
    return jinja_step(r, c->arg[0].kind == JINJA_STR ? c->arg[0].s.n / 64 : 0);
}

/* A view is a sequence made at once: mappings never change after it. */
static bool dict_view(struct jinja_run *r, const struct jinja_dict *d, const char *type,
                      struct jinja_value *out)
{
    const bool keys = strcmp(type, "dict_keys") == 0, values = strcmp(type, "dict_values") == 0;
    *out = jinja_of_seq(JINJA_VIEW, jinja_seq(r, d->n));
    out->s = (struct jinja_str){type, strlen(type)};
    if (!out->seq || !jinja_step(r, d->n)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        struct jinja_value item = keys ? d->key[i] : d->value[i];
        if (!keys && !values) {
            item = jinja_of_seq(JINJA_TUPLE, jinja_seq(r, 2));
            if (!item.seq) return false;
            item.seq->item[0] = d->key[i];
            item.seq->item[1] = d->value[i];
            item.seq->n = 2;
        }
        out->seq->item[out->seq->n++] = item;
    }
    return true;
}

static bool dict_items(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return dict_view(r, c->self->dict, "dict_items", out);
}

static bool dict_keys(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return dict_view(r, c->self->dict, "dict_keys", out);
}

static bool dict_values(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return dict_view(r, c->self->dict, "dict_values", out);
}

/* A copy of what never changes is the thing itself. */
static bool copy(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    *out = *c->self;
    return true;
}

static const struct jinja_func dict_methods[] = {{"get", dict_get, "key default /", 1},
                                                 {"items", dict_items, "", 0},
                                                 {"keys", dict_keys, "", 0},
                                                 {"values", dict_values, "", 0},
                                                 {"copy", copy, "", 0}};

/* ---- Lists ---- */

static bool list_index(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const int64_t n = (int64_t)c->self->seq->n;
    int64_t start, end;
    if (!jinja_arg_int(r, c, 1, 0, &start) || !jinja_arg_int(r, c, 2, n, &end)) return false;
    if (start < 0) start = start + n > 0 ? start + n : 0;
    if (end < 0) end += n;
    for (int64_t i = start; i < end && i < n; i++) {
        bool same;
        if (!jinja_equal(r, &c->self->seq->item[i], &c->arg[0], &same)) return false;
        if (!same) continue;
        *out = jinja_int(i);
        return true;
    }
    return jinja_fail(r, "index: the value is not in the %s", jinja_type(c->self));
}

static bool list_count(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < c->self->seq->n; i++) {
        bool same;
        if (!jinja_equal(r, &c->self->seq->item[i], &c->arg[0], &same)) return false;
        count += same;
    }
    *out = jinja_int(count);
    return true;
}

static const struct jinja_func list_methods[] = {{"index", list_index, "value start stop /", 1},
                                                 {"count", list_count, "value /", 1},
                                                 {"copy", copy, "", 0}};

/* ---- Loops and cyclers ---- */

static bool loop_cycle(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    if (!c->n_pos || c->kw) return jinja_fail(r, "cycle: needs items to cycle through");
    *out = c->pos[c->self->loop->index % c->n_pos];
    return true;
}

static bool loop_changed(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_loop *loop = c->self->loop;
    struct jinja_value now = jinja_of_seq(JINJA_TUPLE, jinja_seq(r, c->n_pos));
    bool same;
    if (!now.seq) return false;
    if (c->kw) return jinja_fail(r, "changed: takes no keyword arguments");
    if (c->n_pos) memcpy(now.seq->item, c->pos, c->n_pos * sizeof *c->pos);
    now.seq->n = c->n_pos;
    if (!jinja_equal(r, &loop->changed, &now, &same)) return false;
    loop->changed = now;
    *out = jinja_bool(!same);
    return true;
}

static bool cycler_next(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_cycler *cycler = c->self->cycler;
    (void)r;
    *out = cycler->seq->item[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->seq->n;
    return true;
}

static bool cycler_reset(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    c->self->cycler->at = 0;
    *out = jinja_none();
    return true;
}

static const struct jinja_func loop_methods[] = {{"cycle", loop_cycle, NULL, 0},
                                                 {"changed", loop_changed, NULL, 0}};
static const struct jinja_func cycler_methods[] = {{"next", cycler_next, "", 0},
                                                   {"reset", cycler_reset, "", 0}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct jinja_func *jinja_find_method(enum jinja_kind kind, struct jinja_str name)
{
    switch (kind) {
    case JINJA_STR:
        return jinja_find_str_method(name);
    case JINJA_DICT:
        return jinja_find_row(dict_methods, COUNT(dict_methods), name);
    case JINJA_LIST:
        return jinja_find_row(list_methods, COUNT(list_methods), name);
    case JINJA_TUPLE:
    case JINJA_RANGE:
        return jinja_find_row(list_methods, COUNT(list_methods) - 1, name);
    case JINJA_LOOP:
        return jinja_find_row(loop_methods, COUNT(loop_methods), name);
    case JINJA_CYCLER:
        return jinja_find_row(cycler_methods, COUNT(cycler_methods), name);
    default:
        return NULL;
    }
}
