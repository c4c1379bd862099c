/* models/drafter.c: what drafts tokens in a session: the MTP layer of the model's file (multi-token
 * prediction), or a drafter in a file of its own. See models/internal.h and model_seq_draft.
 *
 *     position   i - 1       i
 *     model      h(i - 1)    h(i)                         hidden states
 *     drafter                f(embedding(i), h(i - 1))    keys and values; drafts token i + 1
 *
 * What differs between kinds of drafters is data: the hidden states that they read (struct
 * model_reads: an MTP layer those after the last layer, EAGLE-3 those between three layers), and
 * the graph f (models/build.c).
 *
 * DFlash has no token in f: keys and values of position i are made of h(i), in several layers. It
 * drafts by one run over the tokens without hidden states and masks after them, which attend to
 * these keys and to each other; each mask's row is the draft token in its place.
 *
 * - Keys and values are more layers of the cache: they are forked, truncated and saved with the
 *   others. They are computed for many positions at once: before a draft, before a sequence is
 *   saved, and when MODEL_DRAFTER_PENDING of them are missing. So a text without drafts costs
 *   almost nothing more.
 * - Hidden states are kept for the positions without keys and values, and for some earlier ones,
 *   because rejected drafts truncate the sequence. Zeros replace one that is not kept: this can
 *   make a draft worse, but never changes the text.
 * - After its first draft token an MTP layer or EAGLE-3 reads its own hidden state instead.
 * - Hidden states between layers are there for all tokens. Those after the last layer are not: a
 *   long prompt computes only its last ones for an MTP layer (model_drafter_share), whose drafts
 *   attend to these and later positions. Without them only the last hidden state is computed, which
 *   saves most of the work of the model's last layer. */
#include "models/internal.h"
#include <stdlib.h>
#include <string.h>

/* The hidden states that a long prompt computes for the MTP layer are 1 / ALL_LAYERS of its
 * work. */
enum { ALL_LAYERS = 64 };

bool model_is_drafter(const struct gguf_file *file)
{
    struct gguf_str name = {NULL, 0};
    struct base_error ignored = BASE_ERROR_INIT; /* a wrong kind counts as absent */
    const char *stored;
    return gguf_get_str(file, "general.architecture", &name, &ignored) && name.data &&
           model_arch_find_drafter(name, &stored);
}

bool model_drafter_fits(const struct model *drafter, const struct model *m, struct base_error *err)
{
    const struct model_params *p = &m->params, *own = &drafter->params;
    const struct model_drafter_ends *d = &own->drafter;
    const uint32_t n_layer = p->n_run;
    const int64_t *ids = d->ids ? (const int64_t *)(const void *)d->ids->data : NULL;
    const bool borrows = !own->ends.output.weight || !own->ends.token_embd;
    if (p->n_hyper || p->ends.n_streams || p->n_source || p->bidirectional || p->arch->encoder)
        return base_fail(err, BASE_USAGE, "it drafts for no model of architecture %s", p->name);
    if (d->n_embd_read != p->n_embd)
        return base_fail(err, BASE_USAGE, "it is for hidden states of %u numbers, not %u",
                         d->n_embd_read, p->n_embd);
    if (borrows && own->n_embd != p->n_embd)
        return base_fail(err, BASE_USAGE,
                         "it lacks embeddings or an output of its %u numbers, not %u", own->n_embd,
                         p->n_embd);
    for (uint32_t i = 0; i < d->n_read; i++)
        if (d->layer[i] > n_layer)
            return base_fail(err, BASE_USAGE, "it reads layer %u of %u", d->layer[i], n_layer);
    if (own->ends.token_embd && own->n_vocab != p->n_vocab)
        return base_fail(err, BASE_USAGE, "it has embeddings of %u tokens, not %u", own->n_vocab,
                         p->n_vocab);
    if (!ids && own->ends.output.weight && own->ends.output.weight->ne[1] != p->n_vocab)
        return base_fail(err, BASE_USAGE, "it has logits of %lld tokens, not %u",
                         (long long)own->ends.output.weight->ne[1], p->n_vocab);
    if (d->block && d->mask_id >= p->n_vocab)
        return base_fail(err, BASE_USAGE, "its mask is token %u of %u", d->mask_id, p->n_vocab);
    for (uint32_t i = 0; ids && i < d->n_ids; i++)
        if (ids[i] < 0 || ids[i] >= p->n_vocab)
            return base_fail(err, BASE_USAGE, "it drafts token %lld of %u", (long long)ids[i],
                             p->n_vocab);
    return true;
}

void model_drafter_choose(struct model_drafter *r, struct model *m, const struct model *own)
{
    const struct model_params *p = &m->params;
    const struct model_drafter_ends *d = &own->params.drafter;
    const uint32_t n_layer = p->n_run;
    *r = (struct model_drafter){.m = m,
                                .own = own,
                                .layer = &own->params.layer[own == m ? p->n_layer : 0],
                                .n_layer = own == m ? 1 : own->params.n_layer};
    r->reads.n = own == m ? 1 : d->n_read;
    r->reads.normalized = own == m && p->arch->mtp == MODEL_MTP_NORMALIZED;
    for (uint32_t i = 0; i < r->reads.n; i++) {
        r->reads.layer[i] = own == m ? n_layer : d->layer[i];
        r->reads.last = r->reads.last || r->reads.layer[i] == n_layer;
    }
    for (uint32_t i = 0; i < r->n_layer; i++)
        if (r->layer[i].near) r->near = r->layer[i].near;
    r->n_hidden = r->reads.n * p->n_embd;
    r->lag = own->params.arch->drafter != MODEL_DRAFTER_DFLASH;
    r->block = d->block < MODEL_DRAFTER_STEPS ? d->block : MODEL_DRAFTER_STEPS;
}

uint32_t model_drafter_most(const struct model_drafter *r)
{
    return r->block ? r->block : MODEL_DRAFTER_STEPS + 1;
}

uint32_t model_drafter_n_vocab(const struct model_drafter *r)
{
    const struct model_drafter_ends *d = &r->own->params.drafter;
    return d->ids ? d->n_ids : r->m->params.n_vocab;
}

bool model_drafter_init(struct model_drafter *r, struct model_state *state, struct base_error *err)
{
    const size_t n = (size_t)state->n_seq * MODEL_DRAFTER_ROWS;
    r->state = state;
    r->row = calloc(n, sizeof *r->row);
    r->hidden = calloc(n, r->n_hidden * sizeof *r->hidden);
    r->stored = calloc(state->n_seq, sizeof *r->stored);
    r->end = calloc(state->n_seq, sizeof *r->end);
    r->share = calloc(state->n_seq, sizeof *r->share);
    if (!r->row || !r->hidden || !r->stored || !r->end || !r->share)
        return base_fail(err, BASE_NO_MEMORY, "no memory for hidden states of %u sequences",
                         state->n_seq);
    for (uint32_t seq = 0; seq < state->n_seq; seq++) model_drafter_clear(r, seq);
    return true;
}

void model_drafter_free(struct model_drafter *r)
{
    engine_graph_free(r->guess.graph);
    engine_graph_free(r->chain.graph);
    for (int i = 0; i < MODEL_DRAFTER_GRAPHS; i++) engine_graph_free(r->store[i].graph);
    for (int i = 0; i <= MODEL_DRAFTER_STEPS; i++) engine_graph_free(r->block_of[i].graph);
    free(r->hidden);
    free(r->row);
    free(r->stored);
    free(r->end);
    free(r->share);
    *r = (struct model_drafter){0};
}

/* ---- Graphs ---- */

/* An MTP layer reads hidden states of the same kind after its first draft token. */
static struct model_drafter_graph *chain_of(struct model_drafter *r)
{
    return r->own == r->m ? &r->guess : &r->chain;
}

static bool has_draft_graphs(struct model_drafter *r, struct base_error *err)
{
    return (r->guess.graph || model_drafter_build(&r->guess, r, 1, MODEL_DRAFTER_GUESSES, err)) &&
           (chain_of(r)->graph || model_drafter_build(&r->chain, r, 1, MODEL_DRAFTER_CHAINS, err));
}

static bool has_block_graph(struct model_drafter *r, uint32_t n, struct base_error *err)
{
    return r->block_of[n].graph ||
           model_drafter_build(&r->block_of[n], r, n, MODEL_DRAFTER_BLOCKS, err);
}

static bool has_store_graph(struct model_drafter *r, uint32_t i, struct base_error *err)
{
    return r->store[i].graph ||
           model_drafter_build(&r->store[i], r, 1u << i, MODEL_DRAFTER_STORES, err);
}

bool model_drafter_plan(struct model_drafter *r, uint64_t *bytes, struct base_error *err)
{
    if (!r->block && !has_draft_graphs(r, err)) return false;
    if (r->guess.graph) *bytes += (uint64_t)engine_graph_bytes(r->guess.graph);
    if (r->chain.graph) *bytes += (uint64_t)engine_graph_bytes(r->chain.graph);
    for (uint32_t n = 2; n <= r->block; n = 2 * n - 1) { /* with 1, 2, 4, .. draft tokens */
        if (!has_block_graph(r, n, err)) return false;
        *bytes += (uint64_t)engine_graph_bytes(r->block_of[n].graph);
    }
    for (uint32_t i = 0; i < MODEL_DRAFTER_GRAPHS; i++) {
        if (!has_store_graph(r, i, err)) return false;
        *bytes += (uint64_t)engine_graph_bytes(r->store[i].graph);
    }
    return true;
}

/* ---- Hidden states ---- */

static struct model_drafter_row *rows_of(const struct model_drafter *r, uint32_t seq)
{
    return r->row + (size_t)seq * MODEL_DRAFTER_ROWS;
}

static float *hidden_of(const struct model_drafter *r, uint32_t seq, uint32_t position)
{
    const size_t row = (size_t)seq * MODEL_DRAFTER_ROWS + position % MODEL_DRAFTER_ROWS;
    return r->hidden + row * r->n_hidden;
}

void model_drafter_clear(struct model_drafter *r, uint32_t seq)
{
    if (!r->row) return;
    for (uint32_t i = 0; i < MODEL_DRAFTER_ROWS; i++) rows_of(r, seq)[i].id = -1;
    r->stored[seq] = r->end[seq] = r->state->length[seq];
}

void model_drafter_copy(struct model_drafter *r, uint32_t from, uint32_t to)
{
    if (!r->row) return;
    memcpy(rows_of(r, to), rows_of(r, from), MODEL_DRAFTER_ROWS * sizeof *r->row);
    memcpy(hidden_of(r, to, 0), hidden_of(r, from, 0),
           (size_t)MODEL_DRAFTER_ROWS * r->n_hidden * sizeof(float));
    r->stored[to] = r->stored[from];
    r->end[to] = r->end[from];
}

/* Returns the hidden states [H] of `position`, whose token must be `id` (-1: any); NULL if they are
 * not kept. */
static const float *find(const struct model_drafter *r, uint32_t seq, uint32_t position, int32_t id)
{
    const struct model_drafter_row *row = &rows_of(r, seq)[position % MODEL_DRAFTER_ROWS];
    const bool there = row->id >= 0 && row->position == position && (id < 0 || row->id == id);
    return there ? hidden_of(r, seq, position) : NULL;
}

/* Copies row i of what a run of g returned. */
static void keep(struct model_drafter *r, const struct model_graph *g, uint32_t i, uint32_t seq,
                 uint32_t position, int32_t id)
{
    const size_t n_embd = r->m->params.n_embd;
    rows_of(r, seq)[position % MODEL_DRAFTER_ROWS] = (struct model_drafter_row){position, id};
    for (uint32_t k = 0; k < r->reads.n; k++)
        memcpy(hidden_of(r, seq, position) + k * n_embd,
               (const float *)engine_output_data(g->read[k]) + i * n_embd, n_embd * sizeof(float));
}

/* ---- Runs ---- */

/* Fills the inputs of a graph for token `id` at `at`, which attends to the positions before
 * `end`. */
static void fill_place(const struct model_drafter *r, const struct model_drafter_graph *g,
                       int32_t id, const struct model_place *at, uint32_t end)
{
    ((int32_t *)engine_input_data(g->ids))[at->t] = id;
    ((int32_t *)engine_input_data(g->positions))[at->t] = (int32_t)at->position;
    model_state_kv.fill_inputs(r->state, &g->inputs, at);
    const uint32_t first = r->state->kv.draft_first[at->seq];
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        if (!g->inputs.kv.range[kind]) continue;
        int32_t *range = (int32_t *)engine_input_data(g->inputs.kv.range[kind]) + 4 * (size_t)at->t;
        if (end > at->position + 1) {
            range[2] = (int32_t)end;
            range[3] = (int32_t)(end - 1 - at->position);
        }
        if (range[1] < (int32_t)first) range[1] = (int32_t)first;
        if (range[1] >= range[2]) range[1] = range[2] - 1; /* at least to itself */
        if (kind != MODEL_KV_FULL || !g->near) continue;
        int32_t *near = (int32_t *)engine_input_data(g->near) + 4 * (size_t)at->t;
        memcpy(near, range, 4 * sizeof *near);
        if (at->position + 1 > r->near && near[1] < (int32_t)(at->position + 1 - r->near))
            near[1] = (int32_t)(at->position + 1 - r->near);
    }
}

/* Fills the inputs of a graph for token `id` at `at` with hidden states; NULL: zeros. */
static void fill(const struct model_drafter *r, const struct model_drafter_graph *g, int32_t id,
                 const struct model_place *at, const float *hidden)
{
    const size_t size = (size_t)g->hidden->ne[0];
    float *to = (float *)engine_input_data(g->hidden) + at->t * size;
    if (hidden)
        memcpy(to, hidden, size * sizeof *to);
    else
        memset(to, 0, size * sizeof *to);
    fill_place(r, g, id, at, at->position + 1);
}

bool model_drafter_store(struct model_drafter *r, uint32_t seq, uint32_t end,
                         struct base_error *err)
{
    uint32_t *stored = &r->stored[seq];
    if (r->end[seq] < end) r->state->kv.draft_first[seq] = *stored = end; /* the rest is not kept */
    while (*stored < end) {
        uint32_t i = 0;
        while (i + 1 < MODEL_DRAFTER_GRAPHS && 2u << i <= end - *stored) i++;
        if (!has_store_graph(r, i, err)) return false;
        struct model_place at = {.seq = seq, .position = *stored};
        for (; at.t < 1u << i; at.t++, at.position++) {
            const uint32_t p = at.position;
            fill(r, &r->store[i], rows_of(r, seq)[p % MODEL_DRAFTER_ROWS].id, &at,
                 p >= r->lag ? find(r, seq, p - r->lag, -1) : NULL);
        }
        if (!engine_graph_run(r->store[i].graph, err)) return false;
        *stored = at.position;
    }
    return true;
}

uint32_t model_drafter_share(const struct model_drafter *r, uint64_t n)
{
    const uint64_t most = r->own == r->m ? n * r->m->params.n_layer / ALL_LAYERS : n;
    if (!r->reads.last) return 0;
    return most < MODEL_DRAFTER_PENDING ? MODEL_DRAFTER_PENDING : (uint32_t)(most < n ? most : n);
}

void model_drafter_expect(struct model_drafter *r, uint32_t seq, uint32_t n)
{
    const uint32_t length = r->state->length[seq]; /* the sequence may have been cut back */
    if (r->end[seq] > length) r->end[seq] = length;
    if (r->stored[seq] > length) r->stored[seq] = length;
    r->share[seq] = model_drafter_share(r, n);
}

/* Prepares for keeping the hidden states of position p, of which the keys of position p + lag are
 * made. If those before are not kept, and at position 0, keys and values begin there. */
static void follow(struct model_drafter *r, uint32_t seq, uint32_t p)
{
    uint32_t *first = &r->state->kv.draft_first[seq];
    if (p > r->end[seq] || p < *first || p == 0) *first = r->stored[seq] = p + r->lag;
    r->end[seq] = p + 1;
}

bool model_drafter_keep(struct model_drafter *r, const struct model_graph *g,
                        const struct model_token *tokens, const uint32_t *row,
                        struct base_error *err)
{
    const uint32_t n = r->reads.last ? g->n_rows : g->n_tokens;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = r->reads.last ? row[i] : i;
        const struct model_token *token = &tokens[t];
        const uint32_t p = (uint32_t)((const int32_t *)engine_input_data(g->positions))[t];
        follow(r, token->seq, p);
        if (p >= r->stored[token->seq] + MODEL_DRAFTER_PENDING &&
            !model_drafter_store(r, token->seq, p, err))
            return false;
        keep(r, g, i, token->seq, p, token->id);
    }
    return true;
}

bool model_drafter_begin(struct model_drafter *r, uint32_t seq, struct base_error *err)
{
    return (r->block || has_draft_graphs(r, err)) &&
           model_drafter_store(r, seq, r->state->length[seq], err);
}

/* Chooses a token by row i of the logits of a run of g. Returns -1 after setting *err. */
static int32_t choose_by(const struct model_drafter *r, const struct model_drafter_graph *g,
                         uint32_t i, model_chooser choose, void *user, struct base_error *err)
{
    const struct engine_tensor *ids = r->own->params.drafter.ids;
    const float *logits = engine_output_data(g->logits);
    const int32_t id = choose(user, logits + (size_t)i * (size_t)g->logits->ne[0], err);
    return ids && id >= 0 ? (int32_t)((const int64_t *)(const void *)ids->data)[id] : id;
}

/* Removes the draft's positions from the cache. */
static void cut_back(struct model_state *state, uint32_t seq, uint32_t length, uint32_t n)
{
    state->length[seq] = length + n;
    model_state_kv.truncate(state, seq, length);
    state->length[seq] = length;
}

/* Drafts all k tokens by one run. */
static bool draft_block(struct model_drafter *r, uint32_t seq, int32_t *ids, uint32_t n, uint32_t k,
                        model_chooser choose, void *user, struct base_error *err)
{
    const struct model_drafter_ends *d = &r->own->params.drafter;
    const struct model_drafter_graph *g = &r->block_of[n + k];
    const uint32_t length = r->state->length[seq], end = length + n + k;
    struct model_place at = {.seq = seq, .position = length};
    if (!model_drafter_begin(r, seq, err) || !has_block_graph(r, n + k, err)) return false;
    model_state_kv.append(r->state, seq, n + k);
    for (; at.position < end; at.t++, at.position++)
        fill_place(r, g, at.t < n ? ids[at.t] : (int32_t)d->mask_id, &at,
                   d->causal ? at.position + 1 : end);
    bool ok = engine_graph_run(g->graph, err);
    for (uint32_t i = n; ok && i < n + k; i++) {
        ids[i] = choose_by(r, g, i - 1, choose, user, err);
        ok = ids[i] >= 0;
    }
    cut_back(r->state, seq, length, n + k);
    return ok;
}

bool model_drafter_draft(struct model_drafter *r, uint32_t seq, int32_t *ids, uint32_t n,
                         uint32_t k, model_chooser choose, void *user, struct base_error *err)
{
    const struct model_drafter_graph *g = NULL;
    const uint32_t length = r->state->length[seq], steps = n + k - 1;
    bool ok = true;
    if (r->block) return draft_block(r, seq, ids, n, k, choose, user, err);
    if (!model_drafter_begin(r, seq, err)) return false;
    model_state_kv.append(r->state, seq, steps);
    for (uint32_t i = 0; ok && i < steps; i++) {
        const struct model_place at = {.seq = seq, .position = length + i};
        const float *hidden =
            at.position > 0 ? find(r, seq, at.position - 1, i > 0 ? ids[i - 1] : -1) : NULL;
        const bool chains = !hidden && i > 0;
        if (chains) hidden = engine_output_data(g->next);
        g = chains ? chain_of(r) : &r->guess;
        fill(r, g, ids[i], &at, hidden);
        ok = engine_graph_run(g->graph, err);
        if (!ok || i + 1 < n) continue;
        ids[i + 1] = choose_by(r, g, 0, choose, user, err);
        ok = ids[i + 1] >= 0;
    }
    cut_back(r->state, seq, length, steps);
    return ok;
}
