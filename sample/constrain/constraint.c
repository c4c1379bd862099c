/* sample/constrain/constraint.c: makes a constraint of each form but a grammar (grammar.c), and has
 * the state of a text. See constraint.h. */
#include "sample/constrain/constraint.h"
#include "base/size.h"
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"
#include <stdlib.h>
#include <string.h>

void constraint_free(struct constraint *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->n_dfa; i++) constrain_dfa_free(c->dfa[i]);
    for (uint32_t i = 0; c->token && i < c->n_dfa; i++) free((char *)c->token[i].text);
    free(c->dfa), free(c->token);
    constrain_schema_free(c->schema);
    free(c->part);
    free(c);
}

uint32_t constraint_token_count(const struct constraint *c)
{
    return c->token ? c->n_dfa : 0;
}

const struct constrain_token *constraint_token(const struct constraint *c, uint32_t which)
{
    return c->token[which].text ? &c->token[which] : NULL;
}

/* -- compiling -- */

static bool choice_tree(struct constrain_tree *t, const char *const *choices, size_t count,
                        struct base_error *err)
{
    const uint32_t alt = constrain_tree_add(t, CONSTRAIN_TREE_ALT, 1, 1, err);
    if (!alt) return false;
    if (count == 0) return base_fail(err, BASE_USAGE, "there are no choices");
    for (size_t i = 0; i < count; i++)
        if (!constrain_tree_add_text(t, alt, choices[i], strlen(choices[i]), err)) return false;
    return true;
}

/* Returns the automaton of a choice of texts. */
static struct constrain_dfa *choice_dfa(const char *const *choices, size_t count,
                                        struct base_error *err)
{
    struct constrain_tree t = {0};
    struct constrain_dfa *d = NULL;
    if (choice_tree(&t, choices, count, err)) d = constrain_dfa_build(&t, 1, false, NULL, err);
    constrain_tree_free(&t);
    if (!d || constrain_dfa_trim(d, NULL, err)) return d;
    constrain_dfa_free(d);
    return NULL;
}

/* Returns a constraint of one automaton, which it takes over; NULL if `d` is NULL. */
static struct constraint *of_dfa(struct constrain_dfa *d, struct base_error *err)
{
    struct constraint *c = d ? calloc(1, sizeof *c) : NULL;
    if (c && (c->dfa = calloc(1, sizeof *c->dfa))) {
        c->dfa[c->n_dfa++] = d;
        return c;
    }
    if (d) base_fail(err, BASE_NO_MEMORY, "no memory for a constraint");
    constrain_dfa_free(d);
    constraint_free(c);
    return NULL;
}

struct constraint *constraint_from_choices(const char *const *choices, size_t count,
                                           struct base_error *err)
{
    return of_dfa(choice_dfa(choices, count, err), err);
}

struct constraint *constraint_from_regex(const char *text, size_t size, struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct constrain_dfa *d = constrain_regex_dfa(text, size, false, 1, 1, err);
    if (!d || constrain_dfa_trim(d, NULL, &why)) return of_dfa(d, err);
    if (why.code != BASE_OK)
        base_fail(err, why.code, "%s", why.text);
    else
        base_fail(err, BASE_USAGE, "line 1, column 1: the expression matches nothing");
    constrain_dfa_free(d);
    return NULL;
}

struct constraint *constraint_from_schema(const char *text, size_t size,
                                          const struct constrain_schema_options *options,
                                          struct base_error *err)
{
    struct constraint *c = calloc(1, sizeof *c);
    if (c) c->schema = calloc(1, sizeof *c->schema);
    if (c && c->schema && constrain_schema_compile(c->schema, text, size, options, err)) return c;
    if (!c || !c->schema) base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    constraint_free(c);
    return NULL;
}

struct constraint *constraint_json_object(bool generate, struct base_error *err)
{
    static const char text[] = "{\"type\":\"object\"}";
    struct constrain_schema_options options = {.generate = generate};
    return constraint_from_schema(text, sizeof text - 1, &options, err);
}

static bool add_parts(struct constraint *c, const struct constrain_around *around, size_t count,
                      struct base_error *err)
{
    c->part = calloc(count, sizeof *c->part);
    c->dfa = calloc(2 * count, sizeof *c->dfa);
    if (!c->part || !c->dfa)
        return base_fail(err, BASE_NO_MEMORY, "no memory for a schema's texts");
    for (; c->n_part < count; c->n_part++) {
        struct constrain_part *p = &c->part[c->n_part];
        *p = (struct constrain_part){
            .before = c->n_dfa, .after = c->n_dfa + 1, .place = c->schema->member[c->n_part]};
        c->dfa[c->n_dfa++] = choice_dfa(&around[c->n_part].before, 1, err);
        c->dfa[c->n_dfa++] = choice_dfa(&around[c->n_part].after, 1, err);
        if (!c->dfa[p->before] || !c->dfa[p->after]) return false;
    }
    return true;
}

struct constraint *constraint_from_schemas(const char *text, size_t size,
                                           const struct constrain_around *around, size_t count,
                                           const struct constrain_schema_options *options,
                                           struct base_error *err)
{
    struct constrain_schema_options o = *options;
    o.n_members = count;
    struct constraint *c = constraint_from_schema(text, size, &o, err);
    if (!c || add_parts(c, around, count, err)) return c;
    constraint_free(c);
    return NULL;
}

/* -- states -- */

/* Returns the stack of a new frame on top of `below`. */
static uint32_t push(struct constrain_state *s, uint32_t kind, uint32_t index, uint32_t below)
{
    struct constrain_frame f = constrain_frame_new(kind, index, below);
    f.state = kind == CONSTRAIN_FRAME_AUTO;
    return constrain_frame_intern(s, &f);
}

static bool start(struct constrain_state *s, struct base_error *err)
{
    const struct constraint *c = s->constraint;
    s->err = err;
    if (!constrain_grow(&s->frame, &s->frame_room, 0, sizeof *s->frame, err)) return false;
    s->frame[0] = (struct constrain_frame){0};
    s->n_frame = 1;
    constrain_state_begin(s);
    for (uint32_t i = 0; i < c->n_part && !s->failed; i++) {
        const uint32_t after = push(s, CONSTRAIN_FRAME_AUTO, c->part[i].after, 0);
        const uint32_t value = push(s, CONSTRAIN_FRAME_ROOT, c->part[i].place, after);
        constrain_state_emit(s, push(s, CONSTRAIN_FRAME_AUTO, c->part[i].before, value));
    }
    if (c->n_part == 0)
        constrain_state_emit(s, c->schema ? push(s, CONSTRAIN_FRAME_ROOT, c->schema->root, 0)
                                          : push(s, CONSTRAIN_FRAME_AUTO, c->root, 0));
    constrain_state_close(s);
    return !s->failed;
}

/* Replaces the state's stacks by out[]. */
static void set_stacks(struct constrain_state *s)
{
    uint32_t *top = s->top, room = s->top_room;
    s->top = s->out;
    s->n_top = s->n_out;
    s->top_room = s->out_room;
    s->out = top;
    s->out_room = room;
    s->n_out = 0;
}

struct constrain_state *constrain_state_new(const struct constraint *c, struct base_error *err)
{
    struct constrain_state *s = calloc(1, sizeof *s);
    if (!s) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a constraint's state"));
    s->constraint = c;
    s->sweep_at = 1 << 14;
    if (!start(s, err)) {
        constrain_state_free(s);
        return NULL;
    }
    set_stacks(s);
    return s;
}

void constrain_state_free(struct constrain_state *s)
{
    if (!s) return;
    free(s->frame), free(s->slot), free(s->mark), free(s->top), free(s->out), free(s->todo);
    free(s->before), free(s->named);
    free(s);
}

void constrain_state_name(struct constrain_state *s, const struct constrain_names *names)
{
    s->names = names;
}

/* Removes frames that no stack contains. The others keep their order, so each frame comes after the
 * frames below it. */
static void sweep(struct constrain_state *s)
{
    uint32_t *moved = s->mark, kept = 0; /* mark[] has no other use between two bytes */
    memset(moved, 0, s->n_frame * sizeof *moved);
    moved[0] = 1;
    for (uint32_t i = 0; i < s->n_top; i++) moved[s->top[i]] = 1;
    for (uint32_t i = s->n_frame; i-- > 1;)
        if (moved[i]) moved[s->frame[i].next] = 1;
    for (uint32_t i = 0; i < s->n_frame; i++) {
        if (!moved[i]) continue;
        struct constrain_frame f = s->frame[i];
        f.next = moved[f.next];
        s->frame[kept] = f;
        moved[i] = kept++;
    }
    for (uint32_t i = 0; i < s->n_top; i++) s->top[i] = moved[s->top[i]];
    constrain_state_rewind(s, kept);
    memset(s->mark, 0, s->mark_room * sizeof *s->mark);
    s->stamp = 0;
    memset(s->slot, 0, s->n_slot * sizeof *s->slot);
    for (uint32_t i = 1; i < s->n_frame; i++) {
        uint64_t h = s->frame[i].hash;
        while (s->slot[h & (s->n_slot - 1)]) h++;
        s->slot[h & (s->n_slot - 1)] = i;
    }
    s->sweep_at = kept * 2 > 1 << 14 ? kept * 2 : 1 << 14;
}

bool constrain_state_feed(struct constrain_state *s, const char *bytes, size_t size, size_t *used,
                          struct base_error *err)
{
    s->err = err;
    s->failed = false;
    for (*used = 0; *used < size; ++*used) {
        uint32_t before = s->n_frame;
        constrain_state_step_byte(s, (uint8_t)bytes[*used]);
        if (s->failed) return false;
        if (s->n_out == 0) {
            constrain_state_rewind(s, before);
            return true;
        }
        set_stacks(s);
        if (s->n_frame > s->sweep_at) sweep(s);
    }
    return true;
}

/* Adds the stacks named[0..n) to the set. */
static bool join_named(struct constrain_state *s, uint32_t n)
{
    constrain_state_begin(s);
    for (uint32_t i = 0; i < s->n_top; i++) s->mark[s->top[i]] = s->stamp;
    for (uint32_t i = 0; i < n; i++) {
        if (s->mark[s->named[i]] == s->stamp) continue;
        if (!constrain_grow(&s->top, &s->top_room, s->n_top, sizeof *s->top, s->err)) return false;
        s->top[s->n_top++] = s->named[i];
    }
    return true;
}

bool constrain_state_take(struct constrain_state *s, struct constrain_next token, bool *accepted,
                          struct base_error *err)
{
    const uint32_t sweep_at = s->sweep_at;
    size_t used = 0;
    uint32_t n = 0;
    s->err = err;
    s->failed = false;
    constrain_state_step_token(s, token.id);
    for (; n < s->n_out && !s->failed; n++) {
        if (!constrain_grow(&s->named, &s->named_room, n, sizeof *s->named, err)) return false;
        s->named[n] = s->out[n];
    }
    if (s->failed) return false;
    s->sweep_at = UINT32_MAX; /* no sweep: it would remove the frames of named[] */
    const bool ok = constrain_state_feed(s, token.bytes, token.size, &used, err);
    s->sweep_at = sweep_at;
    if (!ok) return false;
    *accepted = n > 0 || (used == token.size && used > 0);
    if (n == 0) return true;
    if (used < token.size || used == 0) s->n_top = 0;
    if (!join_named(s, n)) return false;
    if (s->n_frame > s->sweep_at) sweep(s);
    return true;
}

static uint64_t hash_top(const struct constrain_state *s, uint32_t stack)
{
    struct constrain_frame f = s->frame[stack];
    if (f.kind != CONSTRAIN_FRAME_STRING || !stack) return f.hash;
    f.string.count =
        constrain_length_key(s->constraint->schema->string[f.index].length, f.string.count);
    return constrain_frame_hash(s, &f);
}

void constrain_state_key(const struct constrain_state *s, uint64_t key[2])
{
    key[0] = 0;
    key[1] = s->n_top;
    for (uint32_t i = 0; i < s->n_top; i++) {
        uint64_t h = hash_top(s, s->top[i]) * 0xd6e8feb86659fd93u;
        key[0] += h ^ h >> 32;
        h *= 0x9e3779b97f4a7c15u;
        key[1] += h ^ h >> 29;
    }
}

bool constrain_trial_begin(struct constrain_state *s, struct constrain_trial *t)
{
    if (s->before_room < s->n_top) {
        uint32_t *more = base_resize(s->before, s->top_room, sizeof *more);
        if (!more) return base_fail(s->err, BASE_NO_MEMORY, "no memory for a constraint's state");
        s->before = more;
        s->before_room = s->top_room;
    }
    *t = (struct constrain_trial){s->n_top, s->n_frame, s->sweep_at};
    if (s->n_top) memcpy(s->before, s->top, s->n_top * sizeof *s->top);
    s->sweep_at = UINT32_MAX;
    return true;
}

void constrain_trial_end(struct constrain_state *s, struct constrain_trial *t)
{
    if (s->top_room < t->n_top)
        set_stacks(s); /* the two lists were swapped, and this one has the room */
    if (t->n_top) memcpy(s->top, s->before, t->n_top * sizeof *s->top);
    s->n_top = t->n_top;
    constrain_state_rewind(s, t->n_frame);
    s->sweep_at = t->sweep_at;
}

bool constrain_state_may_end(const struct constrain_state *s)
{
    for (uint32_t i = 0; i < s->n_top; i++)
        if (s->top[i] == 0) return true;
    return false;
}

bool constrain_state_may_continue(const struct constrain_state *s)
{
    for (uint32_t i = 0; i < s->n_top; i++)
        if (s->top[i] != 0) return true;
    return false;
}
