/* text/jinja/jinja_method.c: methods of mappings, and method look-up. See text/jinja/jinja_run.h;
 * strings are in jinja_string.c. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool dict_get(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value *found;
    if (!jinja_dict_find(r, c->self->dict, &c->arg[0], &found)) return false;
    *out = found ? *found : jinja_given(&c->arg[1]) ? c->arg[1] : jinja_none();
    return true;
}

enum { ITEMS, KEYS, VALUES };

/* Makes a view: a sequence that is computed once, because mappings are immutable. */
static bool dict_view(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    static const char *const types[] = {"dict_items", "dict_keys", "dict_values"};
    const struct jinja_dict *d = c->self->dict;
    *out = jinja_of_seq(JINJA_VIEW, jinja_seq(r, d->n));
    out->s = (struct jinja_str){types[c->form], strlen(types[c->form])};
    if (!out->seq || !jinja_step(r, d->n)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        struct jinja_value item = c->form == KEYS ? d->key[i] : d->value[i];
        if (c->form == ITEMS) {
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

static const struct jinja_func dict_methods[] = {{"get", dict_get, "key default /", 1, 0},
                                                 {"items", dict_view, "", 0, ITEMS},
                                                 {"keys", dict_view, "", 0, KEYS},
                                                 {"values", dict_view, "", 0, VALUES}};

const struct jinja_func *jinja_find_method(enum jinja_kind kind, struct jinja_str name)
{
    switch (kind) {
    case JINJA_STR:
        return jinja_find_str_method(name);
    case JINJA_DICT:
        return jinja_find_row(dict_methods, sizeof dict_methods / sizeof dict_methods[0], name);
    default:
        return NULL;
    }
}
