/* sample/constrain/finish.c: the shortest completion of a text: for each frame the fewest bytes
 * that end it, and for a stack their sum. finish_json.c has the frames of JSON values. Some
 * conditions (marks of several kinds at once) have only an estimate, so the automata check a
 * completion before it is returned. See constraint.h. */
#include "sample/constrain/finish_json.h"
#include <stdlib.h>
#include <string.h>

/* -- tables -- */

/* Does one relaxation pass over an automaton. Returns whether any completion became shorter. */
static bool shorten(const struct constrain_finisher *f, uint32_t which)
{
    const struct constrain_dfa *d = f->constraint->dfa[which];
    uint32_t **rest = f->dfa, *mine = rest[which];
    bool changed = false, usable[256] = {false}; /* classes with at least one usable byte */
    for (int b = 0; b < 256; b++) usable[d->class_of[b]] |= f->usable[b];
    for (uint32_t q = d->n_state; q-- > 1;) {
        uint32_t min = d->accept[q] & CONSTRAIN_DFA_ACCEPTS ? 0 : mine[q];
        for (uint32_t k = 0; k < d->n_class && min > 1; k++) {
            uint32_t to = usable[k] ? d->next[(size_t)q * d->n_class + k] : 0;
            if (to && constrain_add(mine[to], 1) < min) min = mine[to] + 1;
        }
        for (uint32_t k = d->call_at[q]; k < d->call_at[q + 1]; k++) {
            uint32_t callee = d->call[k].rule, back = d->call[k].back;
            /* A rule without an automaton is one named token. */
            uint32_t sum = back ? constrain_add(rest[callee] ? rest[callee][1] : 1, mine[back])
                                : CONSTRAIN_NEVER;
            if (sum < min) min = sum;
        }
        changed |= min != mine[q];
        mine[q] = min;
    }
    return changed;
}

static bool fill_automata(struct constrain_finisher *f, struct base_error *err)
{
    const struct constraint *c = f->constraint;
    f->dfa = calloc((size_t)c->n_dfa + 1, sizeof *f->dfa);
    if (!f->dfa) return base_fail(err, BASE_NO_MEMORY, "no memory for a constraint's completions");
    for (uint32_t i = 0; i < c->n_dfa; i++) {
        if (!c->dfa[i]) continue;
        f->dfa[i] = malloc(((size_t)c->dfa[i]->n_state + 1) * sizeof **f->dfa);
        if (!f->dfa[i])
            return base_fail(err, BASE_NO_MEMORY, "no memory for a constraint's completions");
        memset(f->dfa[i], 0xff, ((size_t)c->dfa[i]->n_state + 1) * sizeof **f->dfa);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = c->n_dfa; i-- > 0;) changed |= c->dfa[i] && shorten(f, i);
    }
    return true;
}

struct constrain_finisher *constrain_finisher_new(const struct constraint *c, const bool *usable,
                                                  struct base_error *err)
{
    struct constrain_finisher *f = calloc(1, sizeof *f);
    if (!f)
        return base_null(
            base_fail(err, BASE_NO_MEMORY, "no memory for a constraint's completions"));
    f->constraint = c;
    for (int b = 0; b < 256; b++) f->usable[b] = !usable || usable[b];
    if (fill_automata(f, err) && (!c->schema || constrain_finish_schema(f, err))) return f;
    constrain_finisher_free(f);
    return NULL;
}

void constrain_finisher_free(struct constrain_finisher *f)
{
    if (!f) return;
    const struct constraint *c = f->constraint;
    for (uint32_t i = 0; f->dfa && i < c->n_dfa; i++) free(f->dfa[i]);
    for (uint32_t i = 0; f->string && i < c->schema->n_string; i++) free(f->string[i]);
    for (uint32_t i = 0; f->name && i < c->schema->n_object; i++) {
        for (uint32_t q = 0; f->name[i] && q < c->schema->object[i].key->n_state; q++)
            free(f->name[i][q]);
        free(f->name[i]);
    }
    free(f->dfa), free(f->string), free(f->name), free(f->place), free(f->work), free(f->path);
    free(f->end), free(f->lead);
    free(f);
}

/* -- stacks -- */

/* Sums the frames of a stack. A frame caches the sum from it downwards, where the next search
 * ends. */
static bool stack_rest(struct constrain_finisher *f, struct constrain_state *s, uint32_t stack,
                       uint32_t *rest)
{
    uint32_t n = 0, below;
    while (stack && s->frame[stack].rest == 0) {
        if (!constrain_grow(&f->path, &f->path_room, n, sizeof *f->path, s->err)) return false;
        f->path[n++] = stack;
        const struct constrain_frame *frame = &s->frame[stack];
        if (frame->kind <= CONSTRAIN_FRAME_TOKEN)
            stack = frame->next;
        else
            constrain_finish_frame(f, s, frame, &below), stack = below;
    }
    uint32_t sum = stack ? s->frame[stack].rest - 1 : 0;
    while (n) {
        struct constrain_frame *frame = &s->frame[f->path[--n]];
        uint32_t own = frame->kind == CONSTRAIN_FRAME_AUTO ? f->dfa[frame->index][frame->state]
                       : frame->kind == CONSTRAIN_FRAME_TOKEN
                           ? 1
                           : constrain_finish_frame(f, s, frame, &below);
        sum = constrain_add(sum, own);
        if (sum == CONSTRAIN_NEVER) sum--; /* leaves room for adding 1 */
        frame->rest = sum + 1;
    }
    *rest = sum;
    return !f->failed || base_fail(s->err, BASE_NO_MEMORY, "no memory for a text's completion");
}

static bool set_rest(struct constrain_finisher *f, struct constrain_state *s, const uint32_t *set,
                     uint32_t n, uint32_t *rest)
{
    uint32_t one;
    *rest = CONSTRAIN_NEVER - 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!stack_rest(f, s, set[i], &one)) return false;
        if (one < *rest) *rest = one;
    }
    return true;
}

/* Reads a token, or nothing. */
static bool read_token(struct constrain_state *s, struct constrain_next token, bool *accepted,
                       struct base_error *err)
{
    *accepted = true;
    s->failed = false;
    return (token.id < 0 && token.size == 0) || constrain_state_take(s, token, accepted, err);
}

bool constrain_finisher_after(struct constrain_finisher *f, struct constrain_state *s,
                              struct constrain_next token, uint64_t *rest, struct base_error *err)
{
    struct constrain_trial trial;
    bool accepted;
    uint32_t min = CONSTRAIN_NEVER;
    s->err = err;
    if (!constrain_trial_begin(s, &trial)) return false;
    bool ok = read_token(s, token, &accepted, err);
    if (ok && accepted) ok = set_rest(f, s, s->top, s->n_top, &min);
    constrain_trial_end(s, &trial);
    *rest = min >= CONSTRAIN_NEVER - 1 ? UINT64_MAX : min;
    return ok;
}

/* Computes the fewest bytes that complete the text after one more unit. The state does not
 * change. */
static bool rest_after(struct constrain_finisher *f, struct constrain_state *s, uint32_t unit,
                       uint32_t *rest)
{
    const uint32_t frames = s->n_frame;
    s->failed = false;
    if (unit < 256)
        constrain_state_step_byte(s, (uint8_t)unit);
    else
        constrain_state_step_token(s, (int32_t)(unit - 256));
    const bool ok = !s->failed && set_rest(f, s, s->out, s->n_out, rest);
    constrain_state_rewind(s, frames);
    return ok;
}

/* Returns a token that the top frame of a stack names; -1 if there is none. */
static int32_t token_of(const struct constrain_state *s, uint32_t stack)
{
    const struct constrain_frame *f = &s->frame[stack];
    if (!s->names || f->kind != CONSTRAIN_FRAME_TOKEN) return -1;
    const int32_t id = s->names->id[f->index];
    return s->constraint->token[f->index].negated ? s->names->two[s->names->two[0] == id] : id;
}

/* Finds the unit with the shortest rest after it; *found false if no rest is less than `now`. It
 * tries bytes that end strings and values first, printable bytes before others, then named
 * tokens. */
static bool next_unit(struct constrain_finisher *f, struct constrain_state *s, uint32_t now,
                      uint32_t *unit, bool *found)
{
    static const char likely[] = "\",:}]{[0";
    enum { LIKELY = sizeof likely - 1 };
    uint32_t best = now, rest;
    *found = false;
    for (int k = 0; k < LIKELY + 256 && best + 1 > now; k++) {
        const uint8_t b = (uint8_t)(k < LIKELY ? likely[k] : k - LIKELY + ' ');
        if (!f->usable[b]) continue;
        if (!rest_after(f, s, b, &rest)) return false;
        if (rest >= best) continue;
        best = rest;
        *unit = b;
        *found = true;
    }
    for (uint32_t i = 0; i < s->n_top && best + 1 > now; i++) {
        const int32_t id = token_of(s, s->top[i]);
        if (id < 0) continue;
        if (!rest_after(f, s, 256 + (uint32_t)id, &rest)) return false;
        if (rest >= best) continue;
        best = rest;
        *unit = 256 + (uint32_t)id;
        *found = true;
    }
    return true;
}

/* Writes bytes to lead[] until the text ends, or until it reaches a state of the latest completion,
 * which then has *tail bytes left. */
static bool find_lead(struct constrain_finisher *f, struct constrain_state *s, size_t max,
                      uint32_t *tail, bool *found, struct base_error *err)
{
    *tail = f->n_lead = 0;
    while (*found && !constrain_state_may_end(s)) {
        struct constrain_end_step step;
        uint32_t rest;
        bool accepted;
        if (!set_rest(f, s, s->top, s->n_top, &rest)) return false;
        *found = rest != 0 && f->n_lead + rest <= max;
        if (!*found) return true;
        constrain_state_key(s, step.key);
        if (rest <= f->n_end && step.key[0] == f->end[rest].key[0] &&
            step.key[1] == f->end[rest].key[1]) {
            *tail = rest;
            return true;
        }
        if (!next_unit(f, s, rest, &step.unit, found)) return false;
        if (!*found) return true;
        if (!constrain_grow(&f->lead, &f->lead_room, f->n_lead, sizeof *f->lead, err)) return false;
        f->lead[f->n_lead++] = step;
        const char byte = (char)step.unit;
        if (!constrain_state_take(
                s, (struct constrain_next){(int32_t)step.unit - 256, &byte, step.unit < 256},
                &accepted, err))
            return false;
    }
    return true;
}

/* Replaces the latest completion by lead[] and its own last `tail` units. */
static bool keep_end(struct constrain_finisher *f, uint32_t tail, struct base_buffer *out,
                     struct base_error *err)
{
    for (f->n_end = tail; f->n_lead; f->n_end++) {
        if (!constrain_grow(&f->end, &f->end_room, f->n_end + 1, sizeof *f->end, err)) return false;
        f->end[f->n_end + 1] = f->lead[--f->n_lead];
    }
    for (uint32_t left = f->n_end; left > 0; left--) {
        const uint32_t unit = f->end[left].unit;
        const int32_t id = (int32_t)unit - 256;
        const char byte = (char)(unit < 256 ? unit : CONSTRAIN_TOKEN_BYTE);
        base_buffer_add(out, &byte, 1);
        if (unit >= 256) base_buffer_add(out, &id, sizeof id);
    }
    return !out->failed || base_fail(err, BASE_NO_MEMORY, "no memory for a text's completion");
}

bool constrain_finisher_text(struct constrain_finisher *f, struct constrain_state *s,
                             struct constrain_next token, size_t max, struct base_buffer *out,
                             bool *found, struct base_error *err)
{
    struct constrain_trial trial;
    uint32_t tail = 0;
    s->err = err;
    base_buffer_add(out, "", 0);
    if (!constrain_trial_begin(s, &trial)) return false;
    bool ok = read_token(s, token, found, err);
    ok = ok && find_lead(f, s, max, &tail, found, err);
    constrain_trial_end(s, &trial);
    return ok && (!*found || keep_end(f, tail, out, err));
}

/* -- determined bytes -- */

/* Finds the byte that must come next; *only false if several may, or a named token. The state does
 * not change. */
static bool only_byte(struct constrain_state *s, char *byte, bool *only)
{
    const uint32_t frames = s->n_frame;
    uint32_t n = 0;
    *only = false;
    for (uint32_t i = 0; i < s->n_top; i++)
        if (token_of(s, s->top[i]) >= 0) return true;
    s->failed = false;
    for (int b = 0; b < 256 && n < 2; b++) {
        constrain_state_step_byte(s, (uint8_t)b);
        if (s->n_out > 0) *byte = (char)b, n++;
        constrain_state_rewind(s, frames);
        if (s->failed) return false;
    }
    *only = n == 1;
    return true;
}

bool constrain_state_only_text(struct constrain_state *s, size_t max, struct base_buffer *out,
                               bool *ends, struct base_error *err)
{
    struct constrain_trial trial;
    size_t used;
    char byte;
    bool ok = true, only = true;
    s->err = err;
    if (!constrain_trial_begin(s, &trial)) return false;
    for (size_t n = 0; ok && only && n < max && !constrain_state_may_end(s); n++) {
        ok = only_byte(s, &byte, &only);
        if (!ok || !only) break;
        base_buffer_add(out, &byte, 1);
        ok = constrain_state_feed(s, &byte, 1, &used, err);
    }
    *ends = constrain_state_may_end(s) && !constrain_state_may_continue(s);
    constrain_trial_end(s, &trial);
    return ok &&
           (!out->failed || base_fail(err, BASE_NO_MEMORY, "no memory for a text's completion"));
}
