/* text/jinja/jinja_call.c: calls of values, and the global functions. See
 * text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

/* ---- Calls ---- */

bool jinja_call(struct jinja_run *r, const struct jinja_value *callee, struct jinja_call *c,
                struct jinja_value *out)
{
    switch (callee->kind) {
    case JINJA_MACRO:
        return callee->macro->call(r, callee->macro, c, out);
    case JINJA_FUNC:
        return jinja_invoke(r, callee->func, c, out);
    case JINJA_METHOD:
        c->self = &callee->bound->self;
        return jinja_invoke(r, callee->bound->method, c, out);
    case JINJA_UNDEFINED:
        return jinja_fail_undefined(r, callee);
    default:
        return jinja_fail(r, "'%s' object is not callable", jinja_type(callee));
    }
}

/* ---- Global functions ---- */

enum { MAX_RANGE = 100000 }; /* that of jinja2's sandbox */

static bool fn_range(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t a, b, start = 0, stop, step = 1;
    const bool two = jinja_given(&c->arg[1]);
    if (!jinja_arg_int(r, c, 0, 0, &a) || !jinja_arg_int(r, c, 1, 0, &b) ||
        !jinja_arg_int(r, c, 2, 1, &step))
        return false;
    if (step == 0) return jinja_fail(r, "range: a step of zero");
    stop = two ? b : a;
    if (two) start = a;
    /* Differences and steps are unsigned numbers, which cannot overflow. */
    const uint64_t gap =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const bool empty = step > 0 ? stop <= start : stop >= start;
    const uint64_t n = empty ? 0 : (gap - 1) / stride + 1;
    if (n > MAX_RANGE) return jinja_fail(r, "range: more than %d numbers", MAX_RANGE);
    if (!jinja_step(r, n)) return false;
    *out = jinja_of_seq(JINJA_RANGE, jinja_seq(r, n + 3));
    if (!out->seq) return false;
    out->seq->n = n;
    for (uint64_t i = 0; i < n; i++)
        out->seq->item[i] = jinja_int((int64_t)((uint64_t)start + i * (uint64_t)step));
    out->seq->item[n] = jinja_int(start); /* past the items, for printing */
    out->seq->item[n + 1] = jinja_int(stop);
    out->seq->item[n + 2] = jinja_int(step);
    return true;
}

/* dict(mapping or pairs, key=value, ...) and namespace */
static bool fn_dict(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_seq *items, *pair;
    if (c->n_pos > 1) return jinja_fail(r, "%s: more than one argument", c->name);
    if (!jinja_new(r, (enum jinja_kind)c->form, out)) return false;
    const struct jinja_value *from = c->n_pos ? &c->pos[0] : NULL;
    if (from && from->kind == JINJA_DICT) {
        for (uint32_t i = 0; i < from->dict->n; i++)
            if (!jinja_dict_set(r, out->dict, from->dict->key[i], from->dict->value[i]))
                return false;
    } else if (from) {
        if (!jinja_items(r, from, &items)) return false;
        for (size_t i = 0; i < items->n; i++) {
            if (!jinja_items(r, &items->item[i], &pair)) return false;
            if (pair->n != 2) return jinja_fail(r, "%s: an item is not a pair", c->name);
            if (!jinja_dict_set(r, out->dict, pair->item[0], pair->item[1])) return false;
        }
    }
    for (uint32_t i = 0; c->kw && i < c->kw->n; i++)
        if (!jinja_dict_set(r, out->dict, c->kw->key[i], c->kw->value[i])) return false;
    return true;
}

static bool fn_raise(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value text;
    (void)out;
    if (!jinja_to_str(r, &c->arg[0], &text)) return false;
    return jinja_fail(r, "raise_exception: %.*s", (int)(text.s.n > 300 ? 300 : text.s.n), text.s.s);
}

static bool fn_strftime_now(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text format = {0};
    struct jinja_str given = {0};
    char text[1024];
    if (!jinja_arg_str(r, c, 0, &given)) return false;
    if (given.n > 200) return jinja_fail(r, "strftime_now: a format longer than 200 bytes");
    for (size_t i = 0; i < given.n; i++) {
        const char next = given.s[i] == '%' && i + 1 < given.n ? given.s[i + 1] : 0;
        /* The clock is a local time without microseconds and time zone. */
        if (next == 'f' && !jinja_add_word(r, &format, "000000")) return false;
        if (next == 'f' || next == 'z' || next == 'Z') {
            i++;
            continue;
        }
        const size_t n = next ? 2 : 1;
        if (!jinja_add(r, &format, given.s + i, n)) return false;
        i += n - 1;
    }
    /* A leading byte distinguishes an empty result from one that does not fit. */
    if (!jinja_add_char(r, &format, ' ', 1) || !jinja_add_char(r, &format, '\0', 1)) return false;
    const size_t n = strftime(text, sizeof text, format.s, &r->clock);
    if (!n) return jinja_fail(r, "strftime_now: the result is too long");
    struct jinja_text result = {0};
    if (!jinja_add(r, &result, text, n - 1)) return false;
    *out = jinja_text_value(&result);
    return true;
}

const struct jinja_func *jinja_find_global(struct jinja_str name)
{
    static const struct jinja_func rows[] = {{"range", fn_range, "start stop step /", 1, 0},
                                             {"dict", fn_dict, NULL, 0, JINJA_DICT},
                                             {"namespace", fn_dict, NULL, 0, JINJA_NAMESPACE},
                                             {"raise_exception", fn_raise, "message", 1, 0},
                                             {"strftime_now", fn_strftime_now, "format", 1, 0}};
    return jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
}
