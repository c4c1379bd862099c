/* text/jinja/jinja_filter_list.c: filters of whole sequences. See text/jinja/jinja_run.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool nothing(const char *why, struct jinja_value *out)
{
    *out = jinja_undefined(JINJA_EMPTY, (struct jinja_str){why, strlen(why)});
    return true;
}

/* ---- Single items, length ---- */

static bool f_first(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items;
    if (c->self->kind == JINJA_ITER && c->self->iter->at < c->self->iter->seq->n) {
        *out = c->self->iter->seq->item[c->self->iter->at++]; /* the other items remain */
        return true;
    }
    if (!jinja_items(r, c->self, &items)) return false;
    if (!items->n) return nothing("no first item, the sequence is empty", out);
    *out = items->item[0];
    return true;
}

static bool f_last(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items;
    if (!jinja_has_length(c->self))
        return jinja_fail(r, "last: '%s' object is not reversible", jinja_type(c->self));
    if (!jinja_items(r, c->self, &items)) return false;
    if (!items->n) return nothing("no last item, the sequence is empty", out);
    *out = items->item[items->n - 1];
    return true;
}

static bool f_length(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    size_t n;
    if (!jinja_length(r, c->self, &n)) return false;
    *out = jinja_int((int64_t)n);
    return true;
}

/* ---- Conversions ---- */

static bool copy_items(struct jinja_run *r, const struct jinja_seq *items, struct jinja_seq **out)
{
    *out = jinja_seq(r, items->n);
    if (!*out) return false;
    if (items->n) memcpy((*out)->item, items->item, items->n * sizeof *items->item);
    (*out)->n = items->n;
    return true;
}

static bool f_list(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *copied;
    if (!jinja_items(r, c->self, &items) || !copy_items(r, items, &copied)) return false;
    *out = jinja_of_seq(JINJA_LIST, copied);
    return true;
}

static bool f_items(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *seq = jinja_seq(r, 0);
    if (!seq) return false;
    if (c->self->kind != JINJA_UNDEFINED && c->self->kind != JINJA_DICT)
        return jinja_fail(r, "items: a mapping is needed, not '%s'", jinja_type(c->self));
    const size_t n = c->self->kind == JINJA_DICT ? c->self->dict->n : 0;
    for (size_t i = 0; i < n; i++) {
        struct jinja_value pair = jinja_of_seq(JINJA_TUPLE, jinja_seq(r, 2));
        if (!pair.seq || !jinja_push(r, pair.seq, c->self->dict->key[i]) ||
            !jinja_push(r, pair.seq, c->self->dict->value[i]) || !jinja_push(r, seq, pair))
            return false;
    }
    return jinja_step(r, n) && jinja_generator(r, seq, "generator", out);
}

/* ---- Attributes of items ---- */

/* A path such as "a.b.0" into each item. */
struct getter {
    struct jinja_value path; /* missing, none, an integer or a string */
    bool fold;               /* strings compare without case */
};

static bool get(struct jinja_run *r, const struct getter *g, struct jinja_value *v)
{
    const struct jinja_value object = *v;
    if (g->path.kind == JINJA_INT && !jinja_item(r, &object, &g->path, v)) return false;
    if (g->path.kind == JINJA_STR && !jinja_follow(r, g->path.s, NULL, v)) return false;
    if (!g->fold || v->kind != JINJA_STR) return true;
    const struct jinja_value text = *v;
    return jinja_change_case(r, text.s, JINJA_LOWER, v);
}

static bool make_getter(struct jinja_run *r, const struct jinja_value *path, bool fold,
                        struct getter *g)
{
    *g = (struct getter){.path = *path, .fold = fold};
    if (path->kind == JINJA_MISSING || path->kind == JINJA_NONE || path->kind == JINJA_INT ||
        path->kind == JINJA_STR)
        return true;
    return jinja_fail(r, "an attribute of type '%s'", jinja_type(path));
}

static bool fold_unless(struct jinja_run *r, const struct jinja_call *c, int i, bool *fold)
{
    bool sensitive;
    if (!jinja_arg_truth(r, c, i, false, &sensitive)) return false;
    *fold = !sensitive;
    return true;
}

/* ---- Sorting ---- */

static bool sorted(struct jinja_run *r, const struct jinja_seq *items, const struct getter *g,
                   bool reverse, struct jinja_entry **out)
{
    struct jinja_entry *e = jinja_alloc(&r->pool, 2 * items->n * sizeof *e, r->err);
    if (!e) return false;
    for (size_t i = 0; i < items->n; i++) {
        e[i].item = e[i].key = items->item[i];
        if (!get(r, g, &e[i].key)) return false;
    }
    *out = e;
    return jinja_sort(r, e, e + items->n, items->n, reverse);
}

static bool sort_into(struct jinja_run *r, const struct jinja_seq *items, const struct getter *g,
                      bool reverse, struct jinja_value *out)
{
    struct jinja_entry *e;
    if (!sorted(r, items, g, reverse, &e) || !jinja_new(r, JINJA_LIST, out)) return false;
    for (size_t i = 0; i < items->n; i++)
        if (!jinja_push(r, out->seq, e[i].item)) return false;
    return true;
}

static bool f_sort(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct getter g;
    struct jinja_seq *items;
    bool reverse, fold;
    return jinja_arg_truth(r, c, 0, false, &reverse) && fold_unless(r, c, 1, &fold) &&
           make_getter(r, &c->arg[2], fold, &g) && jinja_items(r, c->self, &items) &&
           sort_into(r, items, &g, reverse, out);
}

static bool f_dictsort(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_str by = {"key", 3};
    struct jinja_value pairs;
    struct jinja_call none = {.self = c->self};
    struct getter g = {.path = jinja_int(0)};
    bool reverse;
    if (!fold_unless(r, c, 0, &g.fold) || !jinja_arg_truth(r, c, 2, false, &reverse) ||
        (jinja_given(&c->arg[1]) && !jinja_arg_str(r, c, 1, &by)))
        return false;
    if (jinja_str_is(by, "value"))
        g.path = jinja_int(1);
    else if (!jinja_str_is(by, "key"))
        return jinja_fail(r, "dictsort: by must be 'key' or 'value'");
    if (c->self->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, c->self);
    return f_items(r, &none, &pairs) && sort_into(r, pairs.iter->seq, &g, reverse, out);
}

/* ---- Reductions ---- */

enum { SMALLEST, LARGEST };

static bool f_extreme(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const bool largest = c->form == LARGEST;
    struct getter g;
    struct jinja_seq *items;
    struct jinja_value best = {.kind = JINJA_MISSING}, key;
    bool fold;
    if (!fold_unless(r, c, 0, &fold) || !make_getter(r, &c->arg[1], fold, &g) ||
        !jinja_items(r, c->self, &items))
        return false;
    if (!items->n) return nothing("no aggregated item, the sequence is empty", out);
    for (size_t i = 0; i < items->n; i++) {
        int order = 1;
        key = items->item[i];
        if (!get(r, &g, &key) ||
            (i && !jinja_order(r, largest ? &key : &best, largest ? &best : &key, &order)))
            return false;
        if (order <= 0) continue;
        best = key;
        *out = items->item[i];
    }
    return true;
}

static bool f_join(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct getter g;
    struct jinja_seq *items;
    struct jinja_text text = {0};
    struct jinja_value between = jinja_string("", 0);
    if (!make_getter(r, &c->arg[1], false, &g) || !jinja_items(r, c->self, &items) ||
        (jinja_given(&c->arg[0]) && !jinja_to_str(r, &c->arg[0], &between)))
        return false;
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value item = items->item[i];
        if (!get(r, &g, &item) || (i && !jinja_add(r, &text, between.s.s, between.s.n)) ||
            !jinja_str(r, &text, &item))
            return false;
    }
    *out = jinja_text_value(&text);
    return true;
}

static bool f_unique(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct getter g;
    struct jinja_seq *items, *kept = jinja_seq(r, 0);
    struct jinja_dict *seen = jinja_dict(r);
    bool fold;
    if (!kept || !seen || !fold_unless(r, c, 0, &fold) || !make_getter(r, &c->arg[1], fold, &g) ||
        !jinja_items(r, c->self, &items))
        return false;
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value key = items->item[i];
        struct jinja_value *found;
        if (!get(r, &g, &key) || !jinja_dict_find(r, seen, &key, &found)) return false;
        if (found) continue;
        if (!jinja_dict_set(r, seen, key, jinja_none()) || !jinja_push(r, kept, items->item[i]))
            return false;
    }
    return jinja_generator(r, kept, "generator", out);
}

const struct jinja_func jinja_sequence_filters[] = {
    {"length", f_length, "/", 0, 0},
    {"count", f_length, "/", 0, 0},
    {"first", f_first, "", 0, 0},
    {"last", f_last, "", 0, 0},
    {"list", f_list, "", 0, 0},
    {"items", f_items, "", 0, 0},
    {"join", f_join, "d attribute", 0, 0},
    {"sort", f_sort, "reverse case_sensitive attribute", 0, 0},
    {"dictsort", f_dictsort, "case_sensitive by reverse", 0, 0},
    {"unique", f_unique, "case_sensitive attribute", 0, 0},
    {"min", f_extreme, "case_sensitive attribute", 0, SMALLEST},
    {"max", f_extreme, "case_sensitive attribute", 0, LARGEST},
};
const size_t jinja_n_sequence_filters =
    sizeof jinja_sequence_filters / sizeof jinja_sequence_filters[0];
