/* text/jinja/jinja_filter_list.c: filters that look at a sequence as a whole. See
 * text/jinja/jinja_run.h. */
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
        *out = c->self->iter->seq->item[c->self->iter->at++]; /* the others can still be read */
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

static bool reverse_string(struct jinja_run *r, const struct jinja_value *v,
                           struct jinja_value *out)
{
    struct jinja_text text = {0};
    for (size_t end = v->s.n; end > 0;) {
        size_t start = end - 1;
        while (start > 0 && ((unsigned char)v->s.s[start] & 0xc0) == 0x80) start--;
        if (!jinja_add(r, &text, v->s.s + start, end - start)) return false;
        end = start;
    }
    *out = jinja_text_value(&text);
    out->safe = v->safe;
    return jinja_step(r, v->s.n / 16);
}

static bool f_reverse(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *seq;
    if (c->self->kind == JINJA_STR) return reverse_string(r, c->self, out);
    const bool generator = c->self->kind == JINJA_ITER;
    if (!jinja_items(r, c->self, &items) || !copy_items(r, items, &seq)) return false;
    for (size_t i = 0; i < items->n; i++) seq->item[i] = items->item[items->n - 1 - i];
    if (!generator) return jinja_generator(r, seq, "list_reverseiterator", out);
    *out = jinja_of_seq(JINJA_LIST, seq);
    return true;
}

/* ---- Attributes of items ---- */

/* A path such as "a.b.0" of items; several for sort, separated by commas. */
struct getter {
    struct jinja_value path; /* missing, none, an integer or a string */
    struct jinja_value by_default;
    bool fold; /* strings compare without case */
};

static bool get(struct jinja_run *r, const struct getter *g, struct jinja_str path,
                struct jinja_value *v)
{
    const struct jinja_value object = *v;
    if (g->path.kind == JINJA_INT && !jinja_item(r, &object, &g->path, v)) return false;
    if (g->path.kind == JINJA_STR && !jinja_follow(r, path, &g->by_default, v)) return false;
    if (!g->fold || v->kind != JINJA_STR) return true;
    const struct jinja_value text = *v;
    return jinja_change_case(r, text.s, JINJA_LOWER, v);
}

/* The key that an item sorts by: a list if the path has several parts. */
static bool get_key(struct jinja_run *r, const struct getter *g, const struct jinja_value *item,
                    struct jinja_value *key)
{
    const struct jinja_str path = g->path.s;
    *key = *item;
    if (g->path.kind != JINJA_STR || !memchr(path.s, ',', path.n)) return get(r, g, path, key);
    if (!jinja_new(r, JINJA_LIST, key)) return false;
    for (size_t at = 0; at <= path.n;) {
        size_t end = at;
        struct jinja_value part = *item;
        while (end < path.n && path.s[end] != ',') end++;
        if (!get(r, g, (struct jinja_str){path.s + at, end - at}, &part) ||
            !jinja_push(r, key->seq, part))
            return false;
        at = end + 1;
    }
    return true;
}

static bool make_getter(struct jinja_run *r, const struct jinja_value *path, bool fold,
                        struct getter *g)
{
    *g = (struct getter){.path = *path, .fold = fold, .by_default = {.kind = JINJA_MISSING}};
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

struct entry {
    struct jinja_value key, item;
};

/* A stable merge sort: comparing can fail, so a library sort will not do. */
static bool sort_entries(struct jinja_run *r, struct entry *e, struct entry *spare, size_t n,
                         bool reverse)
{
    if (n < 2) return true;
    const size_t half = n / 2;
    if (!sort_entries(r, e, spare, half, reverse) ||
        !sort_entries(r, e + half, spare, n - half, reverse))
        return false;
    memcpy(spare, e, half * sizeof *e);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        int order = 0;
        if (j < n && !jinja_order(r, &e[j].key, &spare[i].key, &order)) return false;
        e[k] = j < n && (reverse ? order > 0 : order < 0) ? e[j++] : spare[i++];
    }
    return jinja_step(r, n);
}

static bool sorted(struct jinja_run *r, const struct jinja_seq *items, const struct getter *g,
                   bool reverse, struct entry **out)
{
    struct entry *e = jinja_take(&r->pool, 2 * items->n * sizeof *e, r->err);
    if (!e) return false;
    for (size_t i = 0; i < items->n; i++) {
        e[i].item = items->item[i];
        if (!get_key(r, g, &items->item[i], &e[i].key)) return false;
    }
    *out = e;
    return sort_entries(r, e, e + items->n, items->n, reverse);
}

static bool sort_into(struct jinja_run *r, const struct jinja_seq *items, const struct getter *g,
                      bool reverse, struct jinja_value *out)
{
    struct entry *e;
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
    struct getter g = {.path = jinja_int(0), .by_default = {.kind = JINJA_MISSING}};
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

static bool f_groupby(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct getter g, plain;
    struct jinja_seq *items;
    struct entry *e;
    bool fold;
    if (!fold_unless(r, c, 2, &fold) || !make_getter(r, &c->arg[0], fold, &g)) return false;
    g.by_default = c->arg[1];
    plain = g;
    plain.fold = false;
    if (!jinja_items(r, c->self, &items) || !sorted(r, items, &g, false, &e) ||
        !jinja_new(r, JINJA_LIST, out))
        return false;
    for (size_t i = 0; i < items->n;) {
        struct jinja_value group, members, name;
        bool same = true;
        if (!jinja_new(r, JINJA_TUPLE, &group) || !jinja_new(r, JINJA_LIST, &members) ||
            !get_key(r, &plain, &e[i].item, &name))
            return false;
        const size_t first = i;
        for (; i < items->n; i++) {
            if (!jinja_equal(r, &e[first].key, &e[i].key, &same)) return false;
            if (!same) break;
            if (!jinja_push(r, members.seq, e[i].item)) return false;
        }
        group.group = true;
        if (!jinja_push(r, group.seq, name) || !jinja_push(r, group.seq, members) ||
            !jinja_push(r, out->seq, group))
            return false;
    }
    return true;
}

/* ---- One value out of many ---- */

static bool extreme(struct jinja_run *r, struct jinja_call *c, bool largest,
                    struct jinja_value *out)
{
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
        if (!get(r, &g, g.path.s, &key) ||
            (i && !jinja_order(r, largest ? &key : &best, largest ? &best : &key, &order)))
            return false;
        if (order <= 0) continue;
        best = key;
        *out = items->item[i];
    }
    return true;
}

static bool f_min(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return extreme(r, c, false, out);
}

static bool f_max(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return extreme(r, c, true, out);
}

static bool f_sum(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct getter g;
    struct jinja_seq *items;
    if (!make_getter(r, &c->arg[0], false, &g) || !jinja_items(r, c->self, &items)) return false;
    *out = jinja_given(&c->arg[1]) ? c->arg[1] : jinja_int(0);
    if (out->kind == JINJA_STR) return jinja_fail(r, "sum: cannot sum strings");
    for (size_t i = 0; i < items->n; i++) {
        struct jinja_value item = items->item[i];
        const struct jinja_value before = *out;
        if (!get(r, &g, g.path.s, &item) || !jinja_binary(r, JINJA_ADD, &before, &item, out))
            return false;
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
        if (!get(r, &g, g.path.s, &item) || (i && !jinja_add(r, &text, between.s.s, between.s.n)) ||
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
        bool ok;
        if (!get(r, &g, g.path.s, &key)) return false;
        if (jinja_dict_find(seen, &key, &ok)) continue;
        if (!jinja_dict_set(r, seen, key, jinja_none()) || !jinja_push(r, kept, items->item[i]))
            return false;
    }
    return jinja_generator(r, kept, "generator", out);
}

/* ---- Pieces ---- */

static bool push_slice(struct jinja_run *r, struct jinja_seq *out, const struct jinja_seq *items,
                       size_t start, size_t n, size_t fill, const struct jinja_value *with)
{
    struct jinja_value piece;
    if (!jinja_new(r, JINJA_LIST, &piece)) return false;
    for (size_t i = 0; i < n; i++)
        if (!jinja_push(r, piece.seq, items->item[start + i])) return false;
    for (size_t i = 0; i < fill; i++)
        if (!jinja_push(r, piece.seq, *with) || !jinja_step(r, 1)) return false;
    return jinja_push(r, out, piece);
}

static bool f_batch(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *pieces = jinja_seq(r, 0);
    int64_t size;
    if (!pieces || !jinja_arg_int(r, c, 0, 0, &size) || !jinja_items(r, c->self, &items))
        return false;
    /* Python's loop compares the size of a piece that is never below 0. */
    if (size == 0 && items->n && !push_slice(r, pieces, items, 0, 0, 0, NULL)) return false;
    if (size < 1) size = items->n ? (int64_t)items->n : 1;
    const bool fill = jinja_given(&c->arg[1]) && c->arg[1].kind != JINJA_NONE;
    for (size_t at = 0; at < items->n; at += (size_t)size) {
        const size_t left = items->n - at, n = left < (size_t)size ? left : (size_t)size;
        if (!push_slice(r, pieces, items, at, n, fill ? (size_t)size - n : 0, &c->arg[1]))
            return false;
    }
    return jinja_generator(r, pieces, "generator", out);
}

static bool f_slice(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *pieces = jinja_seq(r, 0);
    int64_t count;
    if (!pieces || !jinja_arg_int(r, c, 0, 0, &count) || !jinja_items(r, c->self, &items))
        return false;
    if (count < 1) return jinja_fail(r, "slice: a count below 1");
    const bool fill = jinja_given(&c->arg[1]) && c->arg[1].kind != JINJA_NONE;
    const size_t each = items->n / (size_t)count, longer = items->n % (size_t)count;
    for (size_t i = 0, at = 0; i < (size_t)count; i++) {
        const size_t n = each + (i < longer);
        if (!push_slice(r, pieces, items, at, n, fill && i >= longer, &c->arg[1]) ||
            !jinja_step(r, 1))
            return false;
        at += n;
    }
    return jinja_generator(r, pieces, "generator", out);
}

const struct jinja_func jinja_sequence_filters[] = {
    {"length", f_length, "/", 0},
    {"count", f_length, "/", 0},
    {"first", f_first, "", 0},
    {"last", f_last, "", 0},
    {"list", f_list, "", 0},
    {"items", f_items, "", 0},
    {"reverse", f_reverse, "", 0},
    {"join", f_join, "d attribute", 0},
    {"sort", f_sort, "reverse case_sensitive attribute", 0},
    {"dictsort", f_dictsort, "case_sensitive by reverse", 0},
    {"groupby", f_groupby, "attribute default case_sensitive", 1},
    {"unique", f_unique, "case_sensitive attribute", 0},
    {"min", f_min, "case_sensitive attribute", 0},
    {"max", f_max, "case_sensitive attribute", 0},
    {"sum", f_sum, "attribute start", 0},
    {"batch", f_batch, "linecount fill_with", 1},
    {"slice", f_slice, "slices fill_with", 1}};
const size_t jinja_n_sequence_filters =
    sizeof jinja_sequence_filters / sizeof jinja_sequence_filters[0];
