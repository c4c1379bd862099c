/* sample/constrain/finish_json.c: the fewest bytes that end a JSON value. See
 * sample/constrain/finish_json.h. */
#include "sample/constrain/finish_json.h"
#include "sample/constrain/schema_run.h"
#include <stdlib.h>
#include <string.h>

/* -- strings -- */

/* Returns the size of one byte of a string's content as JSON text, in its shortest form. */
static uint32_t written(const struct constrain_finisher *f, uint32_t byte)
{
    if (byte == '"' || byte == '\\') return 2;
    if (byte >= 0x20) return f->usable[byte] ? 1 : CONSTRAIN_NEVER;
    return byte && strchr("\b\f\n\r\t", (int)byte) ? 2 : 6;
}

/* Computes the fewest bytes of JSON text for each class of bytes. */
static void class_costs(const struct constrain_finisher *f, const struct constrain_dfa *d,
                        uint32_t cost[256])
{
    for (uint32_t c = 0; c < d->n_class; c++) cost[c] = CONSTRAIN_NEVER;
    for (uint32_t b = 0; b < 256; b++)
        if (written(f, b) < cost[d->class_of[b]]) cost[d->class_of[b]] = written(f, b);
}

static uint32_t *fill_string(const struct constrain_finisher *f, const struct constrain_dfa *d)
{
    uint32_t cost[256], *rest = malloc(((size_t)d->n_state + 1) * sizeof *rest);
    if (!rest) return NULL;
    memset(rest, 0xff, ((size_t)d->n_state + 1) * sizeof *rest);
    class_costs(f, d, cost);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t q = d->n_state; q-- > 1;) {
            uint32_t min = d->accept[q] & CONSTRAIN_DFA_ACCEPTS ? 0 : rest[q];
            for (uint32_t c = 0; c < d->n_class && min > 1; c++) {
                uint32_t to = d->next[(size_t)q * d->n_class + c];
                uint32_t sum = to ? constrain_add(rest[to], cost[c]) : CONSTRAIN_NEVER;
                if (sum < min) min = sum;
            }
            changed |= min != rest[q];
            rest[q] = min;
        }
    }
    return rest;
}

/* Each missing code point takes one byte: strings with counted lengths accept any printable one. */
static uint32_t string_rest(const struct constrain_finisher *f, const struct constrain_frame *frame)
{
    const uint32_t *rest = f->string[frame->index];
    const struct constrain_escape escape = frame->string.escape;
    const uint32_t min = f->constraint->schema->string[frame->index].length.min;
    const uint32_t missing = frame->string.count < min ? min - frame->string.count : 0;
    if (frame->state == 0) return constrain_add(constrain_add(rest[1], missing), 2);
    if (!escape.kind) return constrain_add(constrain_add(rest[frame->state], missing), 1);
    struct constrain_escape_end end[CONSTRAIN_ESCAPE_ENDS];
    const struct constrain_dfa *d = f->constraint->schema->string[frame->index].dfa;
    uint32_t n = constrain_escape_ends(d, frame->state, escape, end), least = CONSTRAIN_NEVER;
    for (uint32_t i = 0; i < n; i++)
        if (constrain_add(rest[end[i].q], end[i].bytes) < least)
            least = rest[end[i].q] + end[i].bytes;
    return constrain_add(constrain_add(least, missing), 1);
}

/* -- arrays -- */

/* Chooses the option of the next item that increases the most counts that are too small; false if
 * there is none. */
static bool next_item(const struct constrain_finisher *f, const struct constrain_array *a,
                      const struct constrain_frame *frame, uint32_t *cost,
                      struct constrain_frame *after)
{
    const struct constrain_schema *s = f->constraint->schema;
    uint32_t position = frame->array.n_items < a->positions ? frame->array.n_items : a->positions,
             max = 0;
    struct constrain_slice options = s->slice[a->position + position];
    bool found = false;
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *o = &s->option[options.at + i];
        struct constrain_frame then;
        uint32_t serves = 0;
        if (f->place[o->place] == CONSTRAIN_NEVER ||
            !constrain_array_after(a, frame, o->marks, &then))
            continue;
        for (uint32_t k = 0; k < a->n_contains; k++)
            serves += (o->marks >> k & 1) && frame->array.contains[k] < a->min_contains[k];
        if (found && (serves < max || (serves == max && f->place[o->place] >= *cost))) continue;
        found = true;
        max = serves;
        *cost = f->place[o->place];
        *after = then;
    }
    return found;
}

static bool is_short(const struct constrain_array *a, const struct constrain_frame *frame)
{
    for (uint32_t k = 0; k < a->n_contains; k++)
        if (frame->array.contains[k] < a->min_contains[k]) return true;
    return frame->array.n_items < a->min;
}

static uint32_t array_rest(const struct constrain_finisher *f, const struct constrain_frame *frame)
{
    const struct constrain_array *a = &f->constraint->schema->array[frame->index];
    struct constrain_frame now = *frame;
    uint32_t phase = frame->array.phase, sum = phase == CONSTRAIN_ARRAY_OPEN ? 2 : 1, cost;
    bool comma = phase == CONSTRAIN_ARRAY_NEXT, must = phase == CONSTRAIN_ARRAY_COMMA;
    for (uint32_t i = 0; must || is_short(a, &now); i++) {
        struct constrain_frame after;
        if (i > CONSTRAIN_MAX_ITEMS || !next_item(f, a, &now, &cost, &after))
            return CONSTRAIN_NEVER;
        now = after;
        sum = constrain_add(sum, constrain_add(cost, comma));
        comma = true;
        must = false;
    }
    return sum;
}

/* -- objects -- */

/* Computes the fewest bytes of JSON text from state q of a name's automaton to each class of names.
 * States are numbered in the order of discovery, so one or two passes are usually enough. */
static void fill_name(const struct constrain_finisher *f, const struct constrain_object *o,
                      uint32_t q, uint32_t *rest)
{
    const struct constrain_dfa *d = o->key;
    const struct constrain_schema *s = f->constraint->schema;
    uint32_t cost[256], *way = f->work;
    class_costs(f, d, cost);
    memset(rest, 0xff, (o->n_class + 1) * sizeof *rest);
    memset(way, 0xff, d->n_state * sizeof *way);
    way[q] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t from = 1; from < d->n_state; from++)
            for (uint32_t c = 0; c < d->n_class && way[from] != CONSTRAIN_NEVER; c++) {
                uint32_t to = d->next[(size_t)from * d->n_class + c];
                if (!to || constrain_add(way[from], cost[c]) >= way[to]) continue;
                way[to] = way[from] + cost[c];
                changed = true;
            }
    }
    for (q = 1; q < d->n_state; q++) {
        uint32_t c = s->label[o->label + q];
        if (c && way[q] < rest[c - 1]) rest[c - 1] = way[q];
    }
}

/* Returns the same from a cache; NULL, and f->failed, without memory. */
static const uint32_t *name_rests(struct constrain_finisher *f, const struct constrain_object *o,
                                  uint32_t q)
{
    uint32_t **known = &f->name[o - f->constraint->schema->object][q];
    if (*known) return *known;
    *known = malloc((o->n_class + 1) * sizeof **known);
    if (*known)
        fill_name(f, o, q, *known);
    else
        f->failed = true;
    return *known;
}

struct property_choice { /* a property: its class, its option, and the bytes of both */
    uint32_t class, marks, cost;
};

/* Finds the allowed property with the fewest bytes; its name takes name[class]. `mark`: it must
 * increase this mark; `known`: it must have this number; 0: any. */
static bool choose(const struct constrain_finisher *f, const struct constrain_object *o,
                   const struct constrain_frame *frame, const uint32_t *name, uint64_t mark,
                   uint32_t known, struct property_choice *best)
{
    const struct constrain_schema *s = f->constraint->schema;
    uint32_t missing = constrain_object_missing(o, frame);
    best->cost = CONSTRAIN_NEVER;
    for (uint32_t c = 0; c < o->n_class; c++) {
        struct constrain_slice options = s->slice[o->cls + c];
        if (known && s->label[o->known + c] != known) continue;
        if (name[c] == CONSTRAIN_NEVER || !constrain_object_allows(s, o, frame, c, missing))
            continue;
        for (uint32_t i = 0; i < options.count; i++) {
            const struct constrain_option *option = &s->option[options.at + i];
            uint32_t cost = constrain_add(name[c], f->place[option->place]);
            struct constrain_frame after;
            if ((mark && !(option->marks & mark)) || cost >= best->cost ||
                !constrain_object_after(s, frame, c, option->marks, &after))
                continue;
            *best = (struct property_choice){c, option->marks, cost};
        }
    }
    best->cost = constrain_add(best->cost, 3); /* two quotes and a colon */
    return best->cost != CONSTRAIN_NEVER;
}

/* Finds the next property that the object still requires; *some false if it requires none. Marks
 * come first, as far as the order of names allows. */
static bool next_need(const struct constrain_finisher *f, const struct constrain_object *o,
                      const struct constrain_frame *frame, const uint32_t *name, bool must,
                      struct property_choice *best, bool *some)
{
    const uint32_t last = CONSTRAIN_FIRST_MARK / 64, shift = CONSTRAIN_FIRST_MARK % 64;
    const uint64_t marks = (o->required[last] & ~frame->object.seen[last]) >> shift;
    *some = true;
    for (uint64_t left = marks; left; left &= left - 1)
        if (choose(f, o, frame, name, left & -left, 0, best)) return true;
    for (uint32_t i = 0; i <= last; i++) {
        const uint64_t names = i == last ? (1ull << CONSTRAIN_FIRST_MARK % 64) - 1 : UINT64_MAX;
        const uint64_t missing = o->required[i] & ~frame->object.seen[i] & names;
        if (missing)
            return choose(f, o, frame, name, 0, 64 * i + 1 + (uint32_t)__builtin_ctzll(missing),
                          best);
    }
    if (marks) return false;
    *some = must || frame->object.n_names < o->min;
    return !*some || choose(f, o, frame, name, 0, 0, best);
}

/* Returns the fewest bytes from the place after a value, or (`must`) after a comma, to the closing
 * brace. */
static uint32_t members_rest(const struct constrain_finisher *f, const struct constrain_object *o,
                             struct constrain_frame now, bool comma, bool must)
{
    const struct constrain_schema *s = f->constraint->schema;
    const uint32_t *name = f->name[o - s->object][1];
    uint32_t sum = 1;
    for (uint32_t i = 0;; i++) {
        struct property_choice best;
        bool some;
        if (i > CONSTRAIN_MAX_ITEMS || !next_need(f, o, &now, name, must, &best, &some))
            return CONSTRAIN_NEVER;
        if (!some) return sum;
        sum = constrain_add(sum, constrain_add(best.cost, comma));
        const struct constrain_frame before = now;
        constrain_object_after(s, &before, best.class, best.marks, &now);
        comma = true;
        must = false;
    }
}

/* Returns the fewest bytes of the value of a name of class c and of everything after it. */
static uint32_t value_rest(const struct constrain_finisher *f, const struct constrain_object *o,
                           const struct constrain_frame *frame, uint32_t c)
{
    const struct constrain_schema *s = f->constraint->schema;
    struct constrain_slice options = s->slice[o->cls + c];
    uint32_t min = CONSTRAIN_NEVER;
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *option = &s->option[options.at + i];
        struct constrain_frame after;
        if (!constrain_object_after(s, frame, c, option->marks, &after)) continue;
        uint32_t sum =
            constrain_add(f->place[option->place], members_rest(f, o, after, true, false));
        if (sum < min) min = sum;
    }
    return min;
}

/* Returns the rest inside a name: that of the class with the shortest completion. */
static uint32_t name_rest_from(struct constrain_finisher *f, const struct constrain_object *o,
                               const struct constrain_frame *frame, uint32_t q)
{
    const struct constrain_schema *s = f->constraint->schema;
    const uint32_t *rest = name_rests(f, o, q);
    uint32_t min = CONSTRAIN_NEVER, missing = constrain_object_missing(o, frame);
    for (uint32_t c = 0; rest && c < o->n_class; c++) {
        if (rest[c] == CONSTRAIN_NEVER || !constrain_object_allows(s, o, frame, c, missing))
            continue;
        uint32_t sum = constrain_add(constrain_add(rest[c], 2), value_rest(f, o, frame, c));
        if (sum < min) min = sum;
    }
    return min;
}

static uint32_t name_rest(struct constrain_finisher *f, const struct constrain_object *o,
                          const struct constrain_frame *frame)
{
    struct constrain_escape_end end[CONSTRAIN_ESCAPE_ENDS];
    const struct constrain_escape escape = frame->object.escape;
    if (!escape.kind) return name_rest_from(f, o, frame, frame->state);
    uint32_t n = constrain_escape_ends(o->key, frame->state, escape, end), min = CONSTRAIN_NEVER;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t sum = constrain_add(name_rest_from(f, o, frame, end[i].q), end[i].bytes);
        if (sum < min) min = sum;
    }
    return min;
}

static uint32_t object_rest(struct constrain_finisher *f, const struct constrain_frame *frame)
{
    const struct constrain_object *o = &f->constraint->schema->object[frame->index];
    switch (frame->object.phase) {
    case CONSTRAIN_OBJECT_OPEN:
        return constrain_add(members_rest(f, o, *frame, false, false), 1);
    case CONSTRAIN_OBJECT_FIRST:
        return members_rest(f, o, *frame, false, false);
    case CONSTRAIN_OBJECT_NAME:
        return name_rest(f, o, frame);
    case CONSTRAIN_OBJECT_COLON:
        return constrain_add(value_rest(f, o, frame, frame->name_class), 1);
    case CONSTRAIN_OBJECT_VALUE:
        return value_rest(f, o, frame, frame->name_class);
    case CONSTRAIN_OBJECT_NEXT:
        return members_rest(f, o, *frame, true, false);
    default:
        return members_rest(f, o, *frame, false, true);
    }
}

/* -- all values -- */

uint32_t constrain_finish_frame(struct constrain_finisher *f, const struct constrain_state *s,
                                const struct constrain_frame *frame, uint32_t *below)
{
    const struct constrain_schema *schema = f->constraint->schema;
    uint32_t size;
    *below = frame->next;
    switch (frame->kind) {
    case CONSTRAIN_FRAME_LITERAL:
        constrain_literal(schema, frame->index, &size);
        return size - frame->literal.read;
    case CONSTRAIN_FRAME_STRING:
        return string_rest(f, frame);
    case CONSTRAIN_FRAME_NUMBER:
        return constrain_number_min_bytes(s, schema, frame, below);
    case CONSTRAIN_FRAME_ARRAY:
        return array_rest(f, frame);
    case CONSTRAIN_FRAME_OBJECT:
        return object_rest(f, frame);
    default: /* CONSTRAIN_FRAME_ROOT */
        return frame->root.done ? 0 : f->place[frame->index];
    }
}

/* Returns the fewest bytes of a value of a place, as far as those of the places inside it are
 * computed. */
static uint32_t place_rest(struct constrain_finisher *f, const struct constrain_place *p)
{
    static const enum constrain_frame_kind kind[] = {CONSTRAIN_FRAME_NUMBER, CONSTRAIN_FRAME_STRING,
                                                     CONSTRAIN_FRAME_ARRAY, CONSTRAIN_FRAME_OBJECT};
    const struct constrain_slice *found[] = {&p->number, &p->string, &p->array, &p->object};
    const struct constrain_schema *s = f->constraint->schema;
    uint32_t min = p->fixed & (CONSTRAIN_IS_NULL | CONSTRAIN_IS_TRUE) ? 4
                   : p->fixed                                         ? 5
                                                                      : CONSTRAIN_NEVER;
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t i = 0; i < found[k]->count && min > 1; i++) {
            const uint32_t index = s->index[found[k]->at + i];
            struct constrain_frame frame = constrain_frame_new(kind[k], index, 0);
            uint32_t below, rest;
            if (kind[k] == CONSTRAIN_FRAME_NUMBER) frame = constrain_number_frame(s, index, 0);
            if (kind[k] == CONSTRAIN_FRAME_ARRAY && !s->array[index].alive) continue;
            if (kind[k] == CONSTRAIN_FRAME_OBJECT && !s->object[index].alive) continue;
            rest = constrain_finish_frame(f, NULL, &frame, &below);
            if (rest < min) min = rest;
        }
    return min;
}

static bool fill_tables(struct constrain_finisher *f)
{
    const struct constrain_schema *s = f->constraint->schema;
    uint32_t work = 1;
    f->string = calloc((size_t)s->n_string + 1, sizeof *f->string);
    f->name = calloc((size_t)s->n_object + 1, sizeof *f->name);
    f->place = malloc(((size_t)s->n_place + 1) * sizeof *f->place);
    for (uint32_t i = 0; i < s->n_object; i++)
        if (s->object[i].key->n_state > work) work = s->object[i].key->n_state;
    f->work = calloc(work, sizeof *f->work);
    if (!f->string || !f->name || !f->place || !f->work) return false;
    memset(f->place, 0xff, ((size_t)s->n_place + 1) * sizeof *f->place);
    for (uint32_t i = 0; i < s->n_string; i++)
        if (!(f->string[i] = fill_string(f, s->string[i].dfa))) return false;
    for (uint32_t i = 0; i < s->n_object; i++) {
        f->name[i] = calloc((size_t)s->object[i].key->n_state + 1, sizeof **f->name);
        if (!f->name[i] || !name_rests(f, &s->object[i], 1)) return false;
    }
    return true;
}

bool constrain_finish_schema(struct constrain_finisher *f, struct base_error *err)
{
    const struct constrain_schema *s = f->constraint->schema;
    if (!fill_tables(f))
        return base_fail(err, BASE_NO_MEMORY, "no memory for a schema's completions");
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = s->n_place; i-- > 0;) {
            uint32_t rest = s->place[i].alive ? place_rest(f, &s->place[i]) : CONSTRAIN_NEVER;
            changed |= rest < f->place[i];
            if (rest < f->place[i]) f->place[i] = rest;
        }
    }
    return true;
}
