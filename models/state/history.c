/* models/state/history.c: see models/state/history.h. */
#include "base/elementary.h"
#include "base/size.h"
#include "models/state/state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool init(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err)
{
    uint64_t n;
    s->history.params = p;
    if (p->ngram.n_head == 0 && p->adapters.n == 0) return true;
    if (base_mul(o->n_seq, o->n_ctx, &n)) s->history.past = calloc(n, sizeof *s->history.past);
    if (!s->history.past)
        return base_fail(err, BASE_NO_MEMORY, "no memory for the ids of %u sequences", o->n_seq);
    s->bytes += n * sizeof *s->history.past;
    return true;
}

static void free_history(struct model_state *s)
{
    free(s->history.past);
    s->history.past = NULL;
}

static struct model_past *past_of(const struct model_state *s, uint32_t seq)
{
    return s->history.past + (size_t)seq * s->n_ctx;
}

static void fork_history(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    if (s->history.past) memcpy(past_of(s, to), past_of(s, from), length * sizeof *s->history.past);
}

/* ---- Inputs of a run ---- */

static void add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                       uint32_t n_span, struct model_state_inputs *in)
{
    const struct model_params *p = s->history.params;
    (void)n_span;
    if (p->ngram.n_head)
        in->ngram = engine_input(g, QUANT_I32, 1, (int64_t[]){(int64_t)p->ngram.n_head * n_tokens},
                                 "ngram");
    if (p->adapters.n == 0) return;
    in->adapter = engine_input(g, QUANT_I32, 2, (int64_t[]){1, n_tokens}, "adapter");
    in->read_ids = engine_input(g, QUANT_I32, 1, (int64_t[]){n_tokens}, "read_ids");
}

/* Writes the rows of the table for the n-grams that end at a position: head h of n ids t_0, the
 * latest, t_1 .. has row (t_0 m_0 xor t_1 m_1 xor ..) mod n_row[h] + first[h], in 64 bits. The
 * end_id stands for the latest one before the position, for the ids before it, and for those before
 * the text. */
static void fill_rows(const struct model_ngram *n, const struct model_past *past, uint32_t position,
                      int32_t *row)
{
    uint64_t mix = (uint64_t)past[position].id * n->multiplier[0];
    bool ended = false;
    for (uint32_t j = 1; j < n->size; j++) {
        ended = ended || j > position || past[position - j].id == n->end_id;
        mix ^= (uint64_t)(ended ? n->end_id : past[position - j].id) * n->multiplier[j];
        for (uint32_t h = (j - 1) * n->each; h < j * n->each; h++)
            row[h] = (int32_t)(mix % n->n_row[h] + n->first[h]);
    }
}

/* Returns the adapter that an id chooses; 0: none. */
static uint32_t chosen_by(const struct model_switch *a, int32_t id)
{
    uint32_t i = a->n;
    while (i > 0 && gguf_array_int(a->on, i - 1) != id) i--;
    return i;
}

/* Returns the adapter of a token: each id up to it has a key, gain g if it chooses an adapter and
 * -g otherwise, and the adapter's number, or 0, as its value; the result of attention with query 1
 * is rounded. */
static int32_t adapter_of(const struct model_switch *a, const struct model_past *past,
                          uint32_t position)
{
    const double others = (double)(position + 1 - past->n_on) * base_exp(-2.0 * (double)a->gain);
    const double mean = past->n_on ? (double)past->sum / (past->n_on + others) : 0.0;
    const float number = roundf((float)mean);
    return number < (float)a->n ? (int32_t)number : (int32_t)a->n;
}

static void fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at)
{
    const struct model_params *p = s->history.params;
    if (!s->history.past) return;
    const struct model_switch *a = &p->adapters;
    struct model_past *past = past_of(s, at->seq), *now = past + at->position;
    const uint32_t on = chosen_by(a, at->id);
    *now = at->position ? now[-1] : (struct model_past){0};
    now->id = at->id;
    now->n_on += on > 0;
    now->sum += on;
    if (in->ngram)
        fill_rows(&p->ngram, past, at->position,
                  (int32_t *)engine_input_data(in->ngram) + (size_t)at->t * p->ngram.n_head);
    if (!in->adapter) return;
    ((int32_t *)engine_input_data(in->adapter))[at->t] = adapter_of(a, now, at->position);
    ((int32_t *)engine_input_data(in->read_ids))[at->t] =
        on ? (int32_t)gguf_array_int(a->as, on - 1) : at->id;
}

/* ---- Saving and loading ---- */

static bool save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                 struct base_error *err)
{
    return !s->history.past ||
           to->write(to->user, past_of(s, seq), s->length[seq] * sizeof *s->history.past, err);
}

static bool load(struct model_state *s, uint32_t seq, uint32_t length,
                 const struct model_state_outline *o, const struct model_state_reader *from,
                 struct base_error *err)
{
    const uint64_t size = sizeof *s->history.past;
    if (!s->history.past || from->part > 0) return true; /* the first reader reads everything */
    return model_state_read(from, past_of(s, seq), length * size, err) &&
           model_state_skip(from, (o->length - length) * size, err);
}

/* No append: fill_inputs stores ids, which are not known before. */
const struct model_state_kind model_state_history = {.name = "history",
                                                     .init = init,
                                                     .free = free_history,
                                                     .fork = fork_history,
                                                     .add_inputs = add_inputs,
                                                     .fill_inputs = fill_inputs,
                                                     .save = save,
                                                     .load = load};
