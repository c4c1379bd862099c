/* sample/constrain/constrain_stack.c: interned frames, and how stacks of automata move. JSON frames
 * move in schema_run.c. See sample/constrain/constrain_stack.h. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"
#include "sample/constrain/schema_run.h"
#include <stdlib.h>
#include <string.h>

bool sample_state_fail(struct sample_state *s, enum base_code code, const char *text)
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

static bool same(const struct sample_frame *x, const struct sample_frame *y)
{
    return x->next == y->next && x->kind == y->kind && x->a == y->a && x->b == y->b &&
           x->c == y->c && x->d == y->d && x->s[0] == y->s[0] && x->s[1] == y->s[1];
}

static bool make_room(struct sample_state *s)
{
    if (s->n_frame >= SAMPLE_MAX_FRAMES)
        return sample_state_fail(s, BASE_FAILED,
                                 "the text is nested too deeply for its constraint");
    if (!sample_grow(&s->frame, &s->frame_room, s->n_frame, sizeof *s->frame, s->err)) goto fail;
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
    return sample_state_fail(s, BASE_NO_MEMORY, "no memory for a constraint's state");
}

uint32_t sample_frame_intern(struct sample_state *s, const struct sample_frame *f)
{
    uint64_t hash = mix(s->frame[f->next].hash, (uint64_t)f->kind << 32 | f->a);
    hash = mix(hash, (uint64_t)f->b << 32 | f->c);
    hash = mix(mix(mix(hash, f->d), f->s[0]), f->s[1]);
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
void sample_state_rewind(struct sample_state *s, uint32_t count)
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

void sample_state_begin(struct sample_state *s)
{
    s->n_out = 0;
    s->steps = 0;
    if (++s->stamp == 0) {
        memset(s->mark, 0, s->mark_room * sizeof *s->mark);
        s->stamp = 1;
    }
}

static void add_out(struct sample_state *s, uint32_t stack)
{
    if (s->n_out >= SAMPLE_MAX_STACKS) {
        sample_state_fail(s, BASE_FAILED, "the text can be read in too many ways at once");
    } else if (!sample_grow(&s->out, &s->out_room, s->n_out, sizeof *s->out, s->err)) {
        s->failed = true;
    } else {
        s->out[s->n_out++] = stack;
    }
}

void sample_state_emit(struct sample_state *s, uint32_t stack)
{
    if (s->failed || (stack && s->mark[stack] == s->stamp)) return;
    if (++s->steps > SAMPLE_MAX_STEPS) {
        sample_state_fail(s, BASE_FAILED, "the constraint needs too many steps for one byte");
        return;
    }
    s->mark[stack] = s->stamp;
    if (!sample_grow(&s->todo, &s->todo_room, s->n_todo, sizeof *s->todo, s->err))
        s->failed = true;
    else
        s->todo[s->n_todo++] = stack;
}

/* A list instead of recursion: chains of calls are as long as a grammar likes. */
void sample_state_settle(struct sample_state *s)
{
    while (s->n_todo && !s->failed) {
        uint32_t stack = s->todo[--s->n_todo];
        if (stack == 0) {
            add_out(s, 0);
        } else if (s->frame[stack].kind != SAMPLE_FRAME_AUTO) {
            if (sample_schema_enter(s, stack)) add_out(s, stack);
        } else {
            const struct sample_frame *f = &s->frame[stack];
            if (s->constraint->dfa[f->a]->accept[f->b] & SAMPLE_DFA_READS) add_out(s, stack);
            sample_state_leave(s, stack);
        }
    }
    s->n_todo = 0;
}

void sample_state_leave(struct sample_state *s, uint32_t stack)
{
    struct sample_frame f = s->frame[stack];
    const struct sample_dfa *d = s->constraint->dfa[f.a];
    for (uint32_t c = d->call_at[f.b]; c < d->call_at[f.b + 1] && !s->failed; c++) {
        struct sample_frame back = f, callee = {.kind = SAMPLE_FRAME_AUTO, .b = 1};
        back.b = d->call[c].back;
        if (!back.b) continue;
        callee.a = d->call[c].rule;
        callee.next = f.next;
        if (d->accept[back.b] != SAMPLE_DFA_ACCEPTS) callee.next = sample_frame_intern(s, &back);
        uint32_t called = sample_frame_intern(s, &callee);
        if (called) sample_state_emit(s, called);
    }
    if ((d->accept[f.b] & SAMPLE_DFA_ACCEPTS) && !s->failed) sample_state_emit(s, f.next);
}

void sample_state_step(struct sample_state *s, uint32_t stack, uint8_t byte)
{
    struct sample_frame f = s->frame[stack];
    if (f.kind != SAMPLE_FRAME_AUTO) {
        sample_schema_step(s, stack, byte);
        return;
    }
    f.b = sample_dfa_step(s->constraint->dfa[f.a], f.b, byte);
    if (!f.b) return;
    uint32_t moved = sample_frame_intern(s, &f);
    if (moved) sample_state_emit(s, moved);
}
