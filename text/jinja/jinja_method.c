/* text/jinja/jinja_method.c: methods of mappings, lists and loops, and the method tables.
 * See text/jinja/jinja_run.h; strings are in jinja_string.c. */
#include "text/jinja/jinja_run.h"
#include <string.h>

/* ---- Mappings ---- */

static bool dict_get(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    bool ok;
    const struct tpl_value *hit = text_tpl_dict_find(c->self->dict, &c->arg[0], &ok);
    if (!ok) return text_tpl_fail(r, "unhashable type: '%s'", text_tpl_type(&c->arg[0]));
    *out = hit ? *hit : tpl_given(&c->arg[1]) ? c->arg[1] : tpl_none();
    return text_tpl_step(r, c->arg[0].kind == TPL_STR ? c->arg[0].s.n / 64 : 0);
}

/* A view is a sequence made at once: mappings never change after it. */
static bool dict_view(struct tpl_run *r, const struct tpl_dict *d, const char *type,
                      struct tpl_value *out)
{
    const bool keys = strcmp(type, "dict_keys") == 0, values = strcmp(type, "dict_values") == 0;
    *out = tpl_of_seq(TPL_VIEW, text_tpl_seq(r, d->n));
    out->s = (struct tpl_str){type, strlen(type)};
    if (!out->seq || !text_tpl_step(r, d->n)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        struct tpl_value item = keys ? d->key[i] : d->value[i];
        if (!keys && !values) {
            item = tpl_of_seq(TPL_TUPLE, text_tpl_seq(r, 2));
            if (!item.seq) return false;
            item.seq->item[0] = d->key[i];
            item.seq->item[1] = d->value[i];
            item.seq->n = 2;
        }
        out->seq->item[out->seq->n++] = item;
    }
    return true;
}

static bool dict_items(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return dict_view(r, c->self->dict, "dict_items", out);
}

static bool dict_keys(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return dict_view(r, c->self->dict, "dict_keys", out);
}

static bool dict_values(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return dict_view(r, c->self->dict, "dict_values", out);
}

/* A copy of what never changes is the thing itself. */
static bool copy(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    *out = *c->self;
    return true;
}

static const struct tpl_func dict_methods[] = {{"get", dict_get, "key default /", 1},
                                               {"items", dict_items, "", 0},
                                               {"keys", dict_keys, "", 0},
                                               {"values", dict_values, "", 0},
                                               {"copy", copy, "", 0}};

/* ---- Lists ---- */

static bool list_index(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    const int64_t n = (int64_t)c->self->seq->n;
    int64_t start, end;
    if (!text_tpl_arg_int(r, c, 1, 0, &start) || !text_tpl_arg_int(r, c, 2, n, &end)) return false;
    if (start < 0) start = start + n > 0 ? start + n : 0;
    if (end < 0) end += n;
    for (int64_t i = start; i < end && i < n; i++) {
        bool same;
        if (!text_tpl_equal(r, &c->self->seq->item[i], &c->arg[0], &same)) return false;
        if (!same) continue;
        *out = tpl_int(i);
        return true;
    }
    return text_tpl_fail(r, "index: the value is not in the %s", text_tpl_type(c->self));
}

static bool list_count(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < c->self->seq->n; i++) {
        bool same;
        if (!text_tpl_equal(r, &c->self->seq->item[i], &c->arg[0], &same)) return false;
        count += same;
    }
    *out = tpl_int(count);
    return true;
}

static const struct tpl_func list_methods[] = {{"index", list_index, "value start stop /", 1},
                                               {"count", list_count, "value /", 1},
                                               {"copy", copy, "", 0}};

/* ---- Loops and cyclers ---- */

static bool loop_cycle(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    if (!c->n_pos || c->kw) return text_tpl_fail(r, "cycle: needs items to cycle through");
    *out = c->pos[c->self->loop->index % c->n_pos];
    return true;
}

static bool loop_changed(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_loop *loop = c->self->loop;
    struct tpl_value now = tpl_of_seq(TPL_TUPLE, text_tpl_seq(r, c->n_pos));
    bool same;
    if (!now.seq) return false;
    if (c->kw) return text_tpl_fail(r, "changed: takes no keyword arguments");
    if (c->n_pos) memcpy(now.seq->item, c->pos, c->n_pos * sizeof *c->pos);
    now.seq->n = c->n_pos;
    if (!text_tpl_equal(r, &loop->changed, &now, &same)) return false;
    loop->changed = now;
    *out = tpl_bool(!same);
    return true;
}

static bool cycler_next(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    struct tpl_cycler *cycler = c->self->cycler;
    (void)r;
    *out = cycler->seq->item[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->seq->n;
    return true;
}

static bool cycler_reset(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    c->self->cycler->at = 0;
    *out = tpl_none();
    return true;
}

static const struct tpl_func loop_methods[] = {{"cycle", loop_cycle, NULL, 0},
                                               {"changed", loop_changed, NULL, 0}};
static const struct tpl_func cycler_methods[] = {{"next", cycler_next, "", 0},
                                                 {"reset", cycler_reset, "", 0}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct tpl_func *text_tpl_find_method(enum tpl_kind kind, struct tpl_str name)
{
    switch (kind) {
    case TPL_STR:
        return text_tpl_find_str_method(name);
    case TPL_DICT:
        return text_tpl_find_row(dict_methods, COUNT(dict_methods), name);
    case TPL_LIST:
        return text_tpl_find_row(list_methods, COUNT(list_methods), name);
    case TPL_TUPLE:
    case TPL_RANGE:
        return text_tpl_find_row(list_methods, COUNT(list_methods) - 1, name);
    case TPL_LOOP:
        return text_tpl_find_row(loop_methods, COUNT(loop_methods), name);
    case TPL_CYCLER:
        return text_tpl_find_row(cycler_methods, COUNT(cycler_methods), name);
    default:
        return NULL;
    }
}
