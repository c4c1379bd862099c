/* sample/constrain/constrain_step.c: moves of stacks: frames of automata here, frames of JSON
 * values in schema_run.c. See sample/constrain/constrain_stack.h. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema_run.h"

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

/* A work list instead of recursion, because chains of calls may be of any length. */
void constrain_state_close(struct constrain_state *s)
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
        if (!s->constraint->dfa[callee.index])
            callee.kind = CONSTRAIN_FRAME_TOKEN, callee.state = 0;
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
    if (f.kind == CONSTRAIN_FRAME_TOKEN) return;
    if (f.kind != CONSTRAIN_FRAME_AUTO) {
        constrain_schema_step(s, stack, byte);
        return;
    }
    f.state = constrain_dfa_step(s->constraint->dfa[f.index], f.state, byte);
    if (!f.state) return;
    uint32_t moved = constrain_frame_intern(s, &f);
    if (moved) constrain_state_emit(s, moved);
}

void constrain_state_step_byte(struct constrain_state *s, uint8_t byte)
{
    constrain_state_begin(s);
    for (uint32_t i = 0; i < s->n_top && !s->failed; i++)
        if (s->top[i]) constrain_state_step(s, s->top[i], byte);
    constrain_state_close(s);
}

/* Returns whether the top frame of a stack is before a name that denotes token `id`. */
static bool is_named(const struct constrain_state *s, uint32_t stack, int32_t id)
{
    const struct constrain_frame *f = &s->frame[stack];
    if (!s->names || f->kind != CONSTRAIN_FRAME_TOKEN || id < 0) return false;
    if (!s->constraint->token[f->index].negated) return id == s->names->id[f->index];
    return id != s->names->id[f->index] && (s->names->any[id >> 6] >> (id & 63) & 1);
}

void constrain_state_step_token(struct constrain_state *s, int32_t id)
{
    constrain_state_begin(s);
    for (uint32_t i = 0; i < s->n_top && !s->failed; i++)
        if (is_named(s, s->top[i], id)) constrain_state_emit(s, s->frame[s->top[i]].next);
    constrain_state_close(s);
}
