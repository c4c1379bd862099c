/* models/mtp.c: the MTP layer (multi-token prediction) of a session, which drafts the token after
 * the next. See models/internal.h and model_seq_draft.
 *
 *     position    i - 1       i
 *     model       h(i - 1)    h(i)                         hidden states
 *     MTP layer               f(embedding(i), h(i - 1))    keys and values; drafts token i + 1
 *
 * - Keys and values are one more layer of the cache: they are forked, truncated and saved with the
 *   others. They are computed for many positions at once: before a draft, before a sequence is
 *   saved, and when MODEL_MTP_PENDING of them are missing. So a text without drafts costs almost
 *   nothing more.
 * - Hidden states are kept for the positions without keys and values, and for some earlier ones,
 *   because rejected drafts truncate the sequence. Zeros replace one that is not kept: this can
 *   make a draft worse, but never changes the text.
 * - A long prompt computes only its last hidden states for this layer (model_mtp_share), whose
 *   drafts attend to these and later positions. Without the layer only the last hidden state is
 *   computed, which saves most of the work of the model's last layer. */
#include "models/internal.h"
#include <stdlib.h>
#include <string.h>

/* The hidden states that a long prompt computes for the MTP layer are 1 / ALL_LAYERS of its
 * work. */
enum { ALL_LAYERS = 64 };

bool model_mtp_init(struct model_mtp_rows *r, struct model *m, struct model_state *state,
                    struct base_error *err)
{
    const size_t n = (size_t)state->n_seq * MODEL_MTP_ROWS;
    *r = (struct model_mtp_rows){.m = m, .state = state, .n_embd = m->params.n_embd};
    r->row = calloc(n, sizeof *r->row);
    r->hidden = calloc(n, r->n_embd * sizeof *r->hidden);
    r->stored = calloc(state->n_seq, sizeof *r->stored);
    r->end = calloc(state->n_seq, sizeof *r->end);
    r->share = calloc(state->n_seq, sizeof *r->share);
    if (!r->row || !r->hidden || !r->stored || !r->end || !r->share)
        return base_fail(err, BASE_NO_MEMORY, "no memory for hidden states of %u sequences",
                         state->n_seq);
    for (uint32_t seq = 0; seq < state->n_seq; seq++) model_mtp_clear(r, seq);
    return true;
}

void model_mtp_free(struct model_mtp_rows *r)
{
    engine_graph_free(r->guess.graph);
    for (int i = 0; i < MODEL_MTP_GRAPHS; i++) engine_graph_free(r->store[i].graph);
    free(r->hidden);
    free(r->row);
    free(r->stored);
    free(r->end);
    free(r->share);
    *r = (struct model_mtp_rows){0};
}

/* ---- Graphs ---- */

static bool has_draft_graph(struct model_mtp_rows *r, struct base_error *err)
{
    return r->guess.graph || model_mtp_build(&r->guess, r->m, r->state, 1, true, err);
}

static bool has_store_graph(struct model_mtp_rows *r, uint32_t i, struct base_error *err)
{
    return r->store[i].graph || model_mtp_build(&r->store[i], r->m, r->state, 1u << i, false, err);
}

bool model_mtp_plan(struct model_mtp_rows *r, uint64_t *bytes, struct base_error *err)
{
    if (!has_draft_graph(r, err)) return false;
    *bytes += (uint64_t)engine_graph_bytes(r->guess.graph);
    for (uint32_t i = 0; i < MODEL_MTP_GRAPHS; i++) {
        if (!has_store_graph(r, i, err)) return false;
        *bytes += (uint64_t)engine_graph_bytes(r->store[i].graph);
    }
    return true;
}

/* ---- Hidden states ---- */

static struct model_mtp_row *rows_of(const struct model_mtp_rows *r, uint32_t seq)
{
    return r->row + (size_t)seq * MODEL_MTP_ROWS;
}

static float *hidden_of(const struct model_mtp_rows *r, uint32_t seq, uint32_t position)
{
    const size_t row = (size_t)seq * MODEL_MTP_ROWS + position % MODEL_MTP_ROWS;
    return r->hidden + row * r->n_embd;
}

void model_mtp_clear(struct model_mtp_rows *r, uint32_t seq)
{
    if (!r->row) return;
    for (uint32_t i = 0; i < MODEL_MTP_ROWS; i++) rows_of(r, seq)[i].id = -1;
    r->stored[seq] = r->end[seq] = r->state->length[seq];
}

void model_mtp_copy(struct model_mtp_rows *r, uint32_t from, uint32_t to)
{
    if (!r->row) return;
    memcpy(rows_of(r, to), rows_of(r, from), MODEL_MTP_ROWS * sizeof *r->row);
    memcpy(hidden_of(r, to, 0), hidden_of(r, from, 0),
           (size_t)MODEL_MTP_ROWS * r->n_embd * sizeof(float));
    r->stored[to] = r->stored[from];
    r->end[to] = r->end[from];
}

/* Returns the hidden state [E] of `position`, whose token must be `id` (-1: any); NULL if it is not
 * kept. */
static const float *find(const struct model_mtp_rows *r, uint32_t seq, uint32_t position,
                         int32_t id)
{
    const struct model_mtp_row *row = &rows_of(r, seq)[position % MODEL_MTP_ROWS];
    const bool there = row->id >= 0 && row->position == position && (id < 0 || row->id == id);
    return there ? hidden_of(r, seq, position) : NULL;
}

static void keep(struct model_mtp_rows *r, uint32_t seq, uint32_t position, int32_t id,
                 const float *hidden)
{
    rows_of(r, seq)[position % MODEL_MTP_ROWS] = (struct model_mtp_row){position, id};
    memcpy(hidden_of(r, seq, position), hidden, r->n_embd * sizeof *hidden);
}

/* ---- Runs ---- */

/* Fills the inputs of a graph for token `id` at `at` with the hidden state [E] of the position
 * before it; NULL: zeros. */
static void fill(const struct model_mtp_rows *r, const struct model_mtp_graph *g, int32_t id,
                 const struct model_place *at, const float *hidden)
{
    float *to = (float *)engine_input_data(g->hidden) + (size_t)at->t * r->n_embd;
    if (hidden)
        memcpy(to, hidden, r->n_embd * sizeof *to);
    else
        memset(to, 0, r->n_embd * sizeof *to);
    ((int32_t *)engine_input_data(g->ids))[at->t] = id;
    ((int32_t *)engine_input_data(g->positions))[at->t] = (int32_t)at->position;
    model_state_kv.fill_inputs(r->state, &g->inputs, at);
    const uint32_t first = r->state->kv.mtp_first[at->seq];
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        if (!g->inputs.kv.range[kind]) continue;
        int32_t *range = (int32_t *)engine_input_data(g->inputs.kv.range[kind]) + 4 * (size_t)at->t;
        if (range[1] < (int32_t)first) range[1] = (int32_t)first;
        if (range[1] >= range[2]) range[1] = range[2] - 1; /* at least to itself */
    }
}

bool model_mtp_store(struct model_mtp_rows *r, uint32_t seq, uint32_t end, struct base_error *err)
{
    uint32_t *stored = &r->stored[seq];
    if (r->end[seq] < end) r->state->kv.mtp_first[seq] = *stored = end; /* the rest is not kept */
    while (*stored < end) {
        uint32_t i = 0;
        while (i + 1 < MODEL_MTP_GRAPHS && 2u << i <= end - *stored) i++;
        if (!has_store_graph(r, i, err)) return false;
        struct model_place at = {.seq = seq, .position = *stored};
        for (; at.t < 1u << i; at.t++, at.position++) {
            const uint32_t p = at.position;
            fill(r, &r->store[i], rows_of(r, seq)[p % MODEL_MTP_ROWS].id, &at,
                 p > 0 ? find(r, seq, p - 1, -1) : NULL);
        }
        if (!engine_graph_run(r->store[i].graph, err)) return false;
        *stored = at.position;
    }
    return true;
}

uint32_t model_mtp_share(const struct model_params *p, uint64_t n)
{
    const uint64_t most = n * p->n_layer / ALL_LAYERS;
    return most < MODEL_MTP_PENDING ? MODEL_MTP_PENDING : (uint32_t)(most < n ? most : n);
}

void model_mtp_expect(struct model_mtp_rows *r, uint32_t seq, uint32_t n)
{
    const uint32_t length = r->state->length[seq]; /* the sequence may have been cut back */
    if (r->end[seq] > length) r->end[seq] = length;
    if (r->stored[seq] > length) r->stored[seq] = length;
    r->share[seq] = model_mtp_share(&r->m->params, n);
}

/* Prepares for keeping the hidden state of position p. Keys and values need the hidden state of the
 * position before; if that is not kept, and at position 0, they begin with the next position. */
static void follow(struct model_mtp_rows *r, uint32_t seq, uint32_t p)
{
    uint32_t *first = &r->state->kv.mtp_first[seq];
    if (p > r->end[seq] || p < *first || p == 0) *first = r->stored[seq] = p + 1;
    r->end[seq] = p + 1;
}

bool model_mtp_keep(struct model_mtp_rows *r, const struct model_graph *g,
                    const struct model_token *tokens, const uint32_t *row, struct base_error *err)
{
    for (uint32_t i = 0; i < g->n_rows; i++) {
        const struct model_token *token = &tokens[row[i]];
        const uint32_t p = (uint32_t)((const int32_t *)engine_input_data(g->positions))[row[i]];
        follow(r, token->seq, p);
        if (p >= r->stored[token->seq] + MODEL_MTP_PENDING &&
            !model_mtp_store(r, token->seq, p, err))
            return false;
        keep(r, token->seq, p, token->id,
             (const float *)engine_output_data(g->all) + (size_t)i * r->n_embd);
    }
    return true;
}

bool model_mtp_begin(struct model_mtp_rows *r, uint32_t seq, struct base_error *err)
{
    return has_draft_graph(r, err) && model_mtp_store(r, seq, r->state->length[seq], err);
}

bool model_mtp_draft(struct model_mtp_rows *r, uint32_t seq, int32_t *ids, uint32_t n, uint32_t k,
                     model_chooser choose, void *user, struct base_error *err)
{
    struct model_state *state = r->state;
    const struct model_mtp_graph *g = &r->guess;
    const uint32_t length = state->length[seq], steps = n + k - 1;
    bool ok = true;
    if (!model_mtp_begin(r, seq, err)) return false;
    model_state_kv.append(state, seq, steps);
    for (uint32_t i = 0; ok && i < steps; i++) {
        const struct model_place at = {.seq = seq, .position = length + i};
        const float *hidden =
            at.position > 0 ? find(r, seq, at.position - 1, i > 0 ? ids[i - 1] : -1) : NULL;
        fill(r, g, ids[i], &at, hidden || i == 0 ? hidden : engine_output_data(g->next));
        ok = engine_graph_run(g->graph, err);
        if (!ok || i + 1 < n) continue;
        ids[i + 1] = choose(user, engine_output_data(g->logits), err);
        ok = ids[i + 1] >= 0;
    }
    state->length[seq] = length + steps;
    model_state_kv.truncate(state, seq, length);
    state->length[seq] = length;
    return ok;
}
