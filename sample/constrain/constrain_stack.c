/* sample/constrain/constrain_stack.c: interned frames, and how stacks of automata move. JSON frames
 * move in schema_run.c. See sample/constrain/constrain_stack.h. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"
#include "sample/constrain/schema_run.h"
#include <stdlib.h>
#include <string.h>

bool constrain_state_fail(struct constrain_state *s, enum base_code code, const char *text)
{
    s->failed = true;
    return base_fail(s->err, code, "%s", text);
}

/* -- frames -- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static bool same(const struct constrain_frame *x, const struct constrain_frame *y)
{
    return x->next == y->next && x->kind == y->kind && x->index == y->index &&
           x->state == y->state && memcmp(x->word, y->word, sizeof x->word) == 0;
}

static bool make_room(struct constrain_state *s)
{
    if (s->n_frame >= CONSTRAIN_MAX_FRAMES)
        return constrain_state_fail(s, BASE_FAILED,
                                    "the text is nested too deeply for its constraint");
    if (!constrain_grow(&s->frame, &s->frame_room, s->n_frame, sizeof *s->frame, s->err)) goto fail;
    if (s->mark_room < s->frame_room) {
        uint32_t *mark = reallocarray(s->mark, s->frame_room, sizeof *mark);
        if (!mark) goto fail;
        memset(mark + s->mark_room, 0, (s->frame_room - s->mark_room) * sizeof *mark);
        s->mark = mark;
        s->mark_room = s->frame_room;
    }
    if (s->n_frame * 2 < s->n_slot) return true;
    uint32_t n = s->n_slot ? s->n_slot * 2 : 256;
    uint32_t *slot = calloc(n, sizeof *slot);
    if (!slot) goto fail;
    for (uint32_t i = 1; i < s->n_frame; i++) {
        uint64_t h = s->frame[i].hash;
        while (slot[h & (n - 1)]) h++;
        slot[h & (n - 1)] = i;
    }
    free(s->slot);
    s->slot = slot;
    s->n_slot = n;
    return true;
fail:
    return constrain_state_fail(s, BASE_NO_MEMORY, "no memory for a constraint's state");
}

uint32_t constrain_frame_intern(struct constrain_state *s, const struct constrain_frame *f)
{
    uint64_t hash = mix(s->frame[f->next].hash, (uint64_t)f->kind << 32 | f->index);
    hash = mix(hash, f->state);
    for (int i = 0; i < 3; i++) hash = mix(hash, f->word[i]);
    if (s->failed || !make_room(s)) return 0;
    uint64_t h = hash;
    for (uint32_t i; (i = s->slot[h & (s->n_slot - 1)]); h++)
        if (s->frame[i].hash == hash && same(&s->frame[i], f)) return i;
    s->slot[h & (s->n_slot - 1)] = s->n_frame;
    s->frame[s->n_frame] = *f;
    s->frame[s->n_frame].hash = hash;
    s->frame[s->n_frame].rest = 0;
    s->mark[s->n_frame] = 0;
    return s->n_frame++;
}

/* Entries leave the hash table in the reverse order of entering, which leaves chains whole. */
void constrain_state_rewind(struct constrain_state *s, uint32_t count)
{
    while (s->n_frame > count) {
        uint32_t i = --s->n_frame;
        uint64_t h = s->frame[i].hash;
        for (uint32_t tries = 0; tries < s->n_slot; tries++, h++)
            if (s->slot[h & (s->n_slot - 1)] == i) {
                s->slot[h & (s->n_slot - 1)] = 0;
                break;
            }
    }
}

/* -- sets of stacks -- */

void constrain_state_begin(struct constrain_state *s)
{
    s->n_out = 0;
    s->steps = 0;
    if (++s->stamp == 0) {
        memset(s->mark, 0, s->mark_room * sizeof *s->mark);
        s->stamp = 1;
    }
}

static void add_out(struct constrain_state *s, uint32_t stack)
{
    if (s->n_out >= CONSTRAIN_MAX_STACKS) {
        constrain_state_fail(s, BASE_FAILED, "the text can be read in too many ways at once");
    } else if (!constrain_grow(&s->out, &s->out_room, s->n_out, sizeof *s->out, s->err)) {
        s->failed = true;
    } else {
        s->out[s->n_out++] = stack;
    }
}

void constrain_state_emit(struct constrain_state *s, uint32_t stack)
{
    if (s->failed || (stack && s->mark[stack] == s->stamp)) return;
    if (++s->steps > CONSTRAIN_MAX_STEPS) {
        constrain_state_fail(s, BASE_FAILED, "the constraint needs too many steps for one byte");
        return;
    }
    s->mark[stack] = s->stamp;
    if (!constrain_grow(&s->todo, &s->todo_room, s->n_todo, sizeof *s->todo, s->err))
        s->failed = true;
    else
        s->todo[s->n_todo++] = stack;
}

/* A list instead of recursion: chains of calls are as long as a grammar likes. */
void constrain_state_settle(struct constrain_state *s)
{
    while (s->n_todo && !s->failed) {
        uint32_t stack = s->todo[--s->n_todo];
        if (stack == 0) {
            add_out(s, 0);
        } else if (s->frame[stack].kind != CONSTRAIN_FRAME_AUTO) {
            if (constrain_schema_enter(s, stack)) add_out(s, stack);
        } else {
            const struct constrain_frame *f = &s->frame[stack];
            if (s->constraint->dfa[f->index]->accept[f->state] & CONSTRAIN_DFA_READS)
                add_out(s, stack);
            constrain_state_leave(s, stack);
        }
    }
    s->n_todo = 0;
}

void constrain_state_leave(struct constrain_state *s, uint32_t stack)
{
    struct constrain_frame f = s->frame[stack];
    const struct constrain_dfa *d = s->constraint->dfa[f.index];
    for (uint32_t c = d->call_at[f.state]; c < d->call_at[f.state + 1] && !s->failed; c++) {
        struct constrain_frame back = f, callee;
        back.state = d->call[c].back;
        if (!back.state) continue;
        callee = constrain_frame_new(CONSTRAIN_FRAME_AUTO, d->call[c].rule, f.next);
        callee.state = 1;
        if (d->accept[back.state] != CONSTRAIN_DFA_ACCEPTS)
            callee.next = constrain_frame_intern(s, &back);
        uint32_t called = constrain_frame_intern(s, &callee);
        if (called) constrain_state_emit(s, called);
    }
    if ((d->accept[f.state] & CONSTRAIN_DFA_ACCEPTS) && !s->failed) constrain_state_emit(s, f.next);
}

void constrain_state_step(struct constrain_state *s, uint32_t stack, uint8_t byte)
{
    struct constrain_frame f = s->frame[stack];
    if (f.kind != CONSTRAIN_FRAME_AUTO) {
        constrain_schema_step(s, stack, byte);
        return;
    }
    f.state = constrain_dfa_step(s->constraint->dfa[f.index], f.state, byte);
    if (!f.state) return;
    uint32_t moved = constrain_frame_intern(s, &f);
    if (moved) constrain_state_emit(s, moved);
}
