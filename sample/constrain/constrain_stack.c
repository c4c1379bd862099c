/* sample/constrain/constrain_stack.c: interned frames, and sets of stacks; constrain_step.c has
 * their moves. See sample/constrain/constrain_stack.h. */
#include "sample/constrain/constrain_stack.h"
#include "base/size.h"
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
           x->state == y->state &&
           memcmp(x->word, y->word, (size_t)constrain_frame_words(x) * sizeof *x->word) == 0;
}

static bool make_room(struct constrain_state *s)
{
    if (s->n_frame >= CONSTRAIN_MAX_FRAMES)
        return constrain_state_fail(s, BASE_FAILED,
                                    "the text is nested too deeply for its constraint");
    if (!constrain_grow(&s->frame, &s->frame_room, s->n_frame, sizeof *s->frame, s->err)) goto fail;
    if (s->mark_room < s->frame_room) {
        uint32_t *mark = base_resize(s->mark, s->frame_room, sizeof *mark);
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

uint64_t constrain_frame_hash(const struct constrain_state *s, const struct constrain_frame *f)
{
    uint64_t hash = mix(s->frame[f->next].hash, (uint64_t)f->kind << 32 | f->index);
    hash = mix(hash, f->state);
    for (int i = 0; i < constrain_frame_words(f); i++) hash = mix(hash, f->word[i]);
    return hash;
}

uint32_t constrain_frame_intern(struct constrain_state *s, const struct constrain_frame *f)
{
    const uint64_t hash = constrain_frame_hash(s, f);
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

/* Entries are removed from the hash table in reverse order of insertion, which keeps chains
 * intact. */
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
