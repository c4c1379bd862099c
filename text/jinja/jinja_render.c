/* text/jinja/jinja_render.c: converts the caller's variables and renders a template. See
 * text/jinja/jinja.h. */
#include "text/jinja/jinja_run.h"
#include "text/json/json_number.h"
#include <stdlib.h>
#include <string.h>

struct jinja_template_options jinja_template_options_default(void)
{
    return (struct jinja_template_options){
        .max_steps = 50000000, .max_output = 64 << 20, .max_memory = 512 << 20, .max_depth = 1000};
}

static bool from_json(struct jinja_run *r, const json_t *json, struct jinja_value *out);

static bool from_array(struct jinja_run *r, const json_t *json, struct jinja_value *out)
{
    const size_t n = json_array_size(json);
    *out = jinja_of_seq(JINJA_LIST, jinja_seq(r, n));
    if (!out->seq) return false;
    for (size_t i = 0; i < n; i++)
        if (!from_json(r, json_array_get(json, i), &out->seq->item[i])) return false;
    out->seq->n = n;
    return true;
}

/* Returns whether a value is a role that is one word: it contains no mark. */
static bool is_role(const char *key, const json_t *value)
{
    if (strcmp(key, "role") != 0 || !json_is_string(value)) return false;
    const char *word = json_string_value(value);
    const size_t n = json_string_length(value);
    for (size_t i = 0; i < n; i++)
        if (!(word[i] >= '0' && word[i] <= '9') &&
            !((word[i] | 32) >= 'a' && (word[i] | 32) <= 'z') && word[i] != '_' && word[i] != '-')
            return false;
    return n > 0;
}

static bool from_object(struct jinja_run *r, const json_t *json, struct jinja_value *out)
{
    /* The iteration functions need a pointer that is not const, but change nothing. */
    json_t *object = (json_t *)(uintptr_t)json;
    if (!jinja_new(r, JINJA_DICT, out)) return false;
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        struct jinja_value value;
        if (!from_json(r, json_object_iter_value(it), &value) ||
            (is_role(key, json_object_iter_value(it)) && !jinja_mark_own(r, &value)) ||
            !jinja_dict_set(r, out->dict, jinja_string(key, json_object_iter_key_len(it)), value))
            return false;
    }
    return true;
}

/* Converts a JSON value; strings and texts of numbers remain in the caller's object. */
static bool from_json(struct jinja_run *r, const json_t *json, struct jinja_value *out)
{
    const char *number = text_json_number(json);
    bool ok;
    if (number) {
        *out = jinja_float(strtod(number, NULL));
        out->written = number;
        return jinja_step(r, strlen(number) / JINJA_MOVED + JINJA_FLOAT_WORK);
    }
    switch (json_typeof(json)) {
    case JSON_STRING:
        *out = jinja_string(json_string_value(json), json_string_length(json));
        break;
    case JSON_INTEGER:
        *out = jinja_int(json_integer_value(json));
        break;
    case JSON_REAL:
        *out = jinja_float(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = jinja_bool(json_is_true(json));
        break;
    case JSON_NULL:
        *out = jinja_none();
        break;
    default:
        if (!jinja_enter(r)) return false;
        ok = json_is_array(json) ? from_array(r, json, out) : from_object(r, json, out);
        jinja_leave(r);
        return ok;
    }
    return true;
}

static bool set_clock(struct jinja_run *r, const struct tm *clock)
{
    const time_t now = time(NULL);
    if (clock)
        r->clock = *clock;
    else if (!localtime_r(&now, &r->clock))
        return jinja_fail(r, "the local time is not known");
    return true;
}

/* Marks the bytes of the variables that count as the template's own text. */
static bool own_variables(struct jinja_run *r)
{
    for (size_t i = 0; i < r->limit.n_own_variables; i++) {
        const char *name = r->limit.own_variables[i];
        struct jinja_value *v = jinja_dict_word(r->context, (struct jinja_str){name, strlen(name)});
        if (v && v->kind == JINJA_STR && !jinja_mark_own(r, v)) return false;
    }
    return true;
}

static bool render(struct jinja_run *r, const json_t *context)
{
    struct jinja_value variables;
    if (!json_is_object(context))
        return jinja_fail(r, "the variables of a template must be an object");
    if (!set_clock(r, r->limit.clock) || !from_json(r, context, &variables)) return false;
    r->context = variables.dict;
    if (!own_variables(r)) return false;
    r->resolved = jinja_alloc(&r->pool, r->t->n_names * sizeof *r->resolved, r->err);
    struct jinja_scope *root = jinja_scope(r, NULL, &r->t->hidden);
    return r->resolved && root && jinja_exec(r, root, &r->t->body) == JINJA_ON;
}

bool jinja_template_render(const struct jinja_template *t, const json_t *context,
                           const struct jinja_template_options *options, struct base_buffer *out,
                           struct base_error *err)
{
    struct jinja_text text = {0};
    struct jinja_run r = {.t = t,
                          .limit = options ? *options : jinja_template_options_default(),
                          .err = err,
                          .out = &text,
                          .line = 1};
    struct base_buffer *own = r.limit.own;
    r.pool.limit = r.limit.max_memory;
    r.pool.marked = own != NULL;
    bool ok = render(&r, context);
    if (ok && text.n) {
        base_buffer_add(out, text.s, text.n);
        if (own) base_buffer_add(own, jinja_pool_marks(&r.pool, text.s), text.n);
        ok = (!out->failed && !(own && own->failed)) ||
             base_fail(err, BASE_NO_MEMORY, "no memory for a rendered template");
    }
    if (!ok && r.pool.exhausted && r.limit.exhausted) *r.limit.exhausted = true;
    jinja_pool_free(&r.pool);
    return ok;
}
