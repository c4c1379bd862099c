/* models/session.c: a session: sequences of tokens, their state and graphs, evaluation in batches.
 *
 * A session builds and plans one graph per batch shape and keeps it; a decode step only fills its
 * inputs and runs it. The graph ends with logits; with those of many tokens (perplexity) it ends
 * with hidden states, and a graph of the output product reads a few rows of them at a time, because
 * all logits of a batch can be larger than the model. */
#include "base/elementary.h"
#include "engine/cpu/cpu_device.h"
#include "models/internal.h"
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_CTX = 4096,
    DEFAULT_BATCH = 512,
    KEPT_GRAPHS = 10, /* decode; full batch without output, for a drafter, with output; a rest;
                       * a token with 1, 2, 4, 8 or 16 draft tokens */
};

struct model_session {
    struct model *m;
    struct model_state state;
    uint32_t n_batch;
    bool hidden;               /* sinks receive hidden states */
    struct model_token *batch; /* [n_batch]: model_eval's ids as tokens */
    uint32_t *left;            /* [n_seq]: number of the call's tokens that are not evaluated yet */
    uint32_t *before;          /* [n_seq]: lengths before a batch */
    uint32_t *row;             /* [n_batch]: tokens of a run that continue in the last layer */
    uint32_t *mark;            /* [n_seq][MODEL_MARKS]: see model_seq_mark */
    struct model_drafter drafter;     /* empty if there is none */
    struct model_source_graph source; /* of the latest text for an encoder */
    struct model_graph body[KEPT_GRAPHS];
    struct model_head head; /* built when first used */
    uint64_t clock;
    struct model_adaptation *adaptation; /* [n_seq] */
    float *out_scale;                    /* [n_batch][adapters]: of the rows with logits */
    uint64_t n_evaluated;                /* tokens, since the session was opened */
    const float *last_logits;            /* points into a graph of the output projection */
};

struct model_session_options model_session_options_default(void)
{
    return (struct model_session_options){.type_k = QUANT_F16, .type_v = QUANT_F16};
}

/* Returns whether a call has all tokens that an encoder reads. */
static bool is_whole(const struct model *m)
{
    return m->params.bidirectional || m->params.n_source;
}

/* Gives each sequence the default scales. */
static bool init_adaptations(struct model_session *s, uint32_t n_seq, struct base_error *err)
{
    const uint32_t n = model_adapter_count(s->m);
    if (n == 0) return true;
    s->adaptation = calloc(n_seq, sizeof *s->adaptation);
    s->out_scale = calloc((size_t)s->n_batch * n, sizeof *s->out_scale);
    if (!s->adaptation || !s->out_scale)
        return base_fail(err, BASE_NO_MEMORY, "no memory for adapters");
    for (uint32_t i = 0; i < n_seq; i++)
        model_adaptation_make(s->m, NULL, NULL, 0, &s->adaptation[i]);
    return true;
}

struct model_session *model_session_new(struct model *m, const struct model_session_options *o,
                                        struct base_error *err)
{
    const struct quant_type *type_k = quant_type_by_id(o->type_k);
    const struct quant_type *type_v = quant_type_by_id(o->type_v);
    uint32_t n_ctx = o->n_ctx, n_seq = o->n_seq ? o->n_seq : 1;
    if (!type_k || !type_v) return base_null(base_fail(err, BASE_USAGE, "unknown cache type"));
    if (n_ctx == 0)
        n_ctx = m->params.n_ctx_train < DEFAULT_CTX ? m->params.n_ctx_train : DEFAULT_CTX;
    if (m->params.n_source && !o->whole)
        return base_null(
            base_fail(err, BASE_MODEL,
                      "a model whose encoder reads a text before it writes: infer run and "
                      "infer batch do both"));
    if (!o->hidden && !m->facts.writes && !(m->facts.diffusion && o->whole))
        return base_null(base_fail(
            err, BASE_MODEL,
            m->facts.diffusion
                ? "a diffusion model writes a text as a whole, not token by token: infer run and "
                  "infer batch do"
                : "no language model: it makes embeddings of texts (infer embed) and writes none"));
    if (o->hidden && m->params.ends.positions && n_ctx > m->params.n_ctx_train)
        return base_null(base_fail(err, BASE_USAGE,
                                   "a context of %u, but the model has positions for %u tokens",
                                   n_ctx, m->params.n_ctx_train));
    struct model_session *s = calloc(1, sizeof *s);
    if (!s) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a session"));
    s->m = m;
    s->n_batch = o->n_batch ? o->n_batch : DEFAULT_BATCH;
    if (is_whole(m) && s->n_batch < n_ctx) s->n_batch = n_ctx;
    if (s->n_batch / n_seq >= n_ctx) s->n_batch = n_ctx * n_seq;
    s->batch = calloc(s->n_batch, sizeof *s->batch);
    s->row = calloc(s->n_batch, sizeof *s->row);
    s->left = calloc(n_seq, sizeof *s->left);
    s->before = calloc(n_seq, sizeof *s->before);
    s->mark = calloc(n_seq, MODEL_MARKS * sizeof *s->mark);
    const struct model *own = o->drafter ? o->drafter : o->mtp && m->params.n_mtp ? m : NULL;
    if (own) model_drafter_choose(&s->drafter, m, own);
    const struct model_state_options state = {.n_seq = n_seq,
                                              .n_ctx = n_ctx,
                                              .n_batch = s->n_batch,
                                              .type_k = type_k,
                                              .type_v = type_v,
                                              .host = &m->engine->place[0],
                                              .hidden = o->hidden,
                                              .reads = own ? &s->drafter.reads : NULL,
                                              .drafter = s->drafter.layer,
                                              .n_draft = s->drafter.n_layer};
    if (!s->batch || !s->row || !s->left || !s->before || !s->mark) {
        base_fail(err, BASE_NO_MEMORY, "no memory for batches of %u", s->n_batch);
        model_session_free(s);
        return NULL;
    }
    if (!init_adaptations(s, n_seq, err) || !model_state_init(&s->state, &m->params, &state, err) ||
        !model_graph_build(&s->body[0], m, &s->state, 1, 1, 1, 1, err) ||
        (own && !model_drafter_init(&s->drafter, &s->state, err)) ||
        !model_adapters_check(&m->adapters, err)) {
        model_session_free(s);
        return NULL;
    }
    return s;
}

void model_session_free(struct model_session *s)
{
    if (!s) return;
    for (int i = 0; i < KEPT_GRAPHS; i++) model_graph_free(&s->body[i]);
    model_drafter_free(&s->drafter);
    engine_graph_free(s->source.graph);
    engine_graph_free(s->head.graph);
    model_state_free(&s->state);
    free(s->batch);
    free(s->row);
    free(s->left);
    free(s->before);
    free(s->mark);
    free(s->adaptation);
    free(s->out_scale);
    free(s);
}

const struct model *model_session_model(const struct model_session *s)
{
    return s->m;
}

uint32_t model_session_n_seq(const struct model_session *s)
{
    return s->state.n_seq;
}

uint32_t model_session_n_ctx(const struct model_session *s)
{
    return s->state.n_ctx;
}

uint32_t model_session_n_batch(const struct model_session *s)
{
    return s->n_batch;
}

uint32_t model_session_n_vocab(const struct model_session *s)
{
    return s->m->params.n_vocab;
}

uint64_t model_session_cache_bytes(const struct model_session *s)
{
    return s->state.bytes;
}

uint32_t model_seq_length(const struct model_session *s, uint32_t seq)
{
    return s->state.length[seq];
}

uint32_t model_seq_truncate(struct model_session *s, uint32_t seq, uint32_t length)
{
    if (length < s->state.length[seq]) s->last_logits = NULL;
    return model_state_truncate(&s->state, seq, length);
}

void model_seq_mark(struct model_session *s, uint32_t seq, const uint32_t length[MODEL_MARKS])
{
    memcpy(s->mark + (size_t)seq * MODEL_MARKS, length, MODEL_MARKS * sizeof *length);
}

uint32_t model_seq_fork(struct model_session *s, uint32_t from, uint32_t to, uint32_t length)
{
    if (from == to) return model_seq_truncate(s, to, length);
    const uint32_t same = s->adaptation ? model_seq_adapted(s, from, &s->adaptation[to]) : length;
    if (length > same) length = same;
    s->last_logits = NULL;
    model_drafter_copy(&s->drafter, from, to);
    return model_state_fork(&s->state, from, to, length);
}

uint32_t model_seq_adapted(const struct model_session *s, uint32_t seq,
                           const struct model_adaptation *a)
{
    const uint32_t length = model_seq_length(s, seq);
    if (!s->adaptation) return length;
    const uint32_t same = model_adaptation_common(s->m, &s->adaptation[seq], a);
    return same < length ? same : length;
}

uint32_t model_seq_adapt(struct model_session *s, uint32_t seq, const struct model_adaptation *a)
{
    const uint32_t same = model_seq_adapted(s, seq, a);
    if (s->adaptation) s->adaptation[seq] = *a;
    return same < model_seq_length(s, seq) ? model_seq_truncate(s, seq, same) : same;
}

uint32_t model_seq_adapt_to(struct model_session *s, uint32_t seq, const float *scales,
                            const int32_t *ids, size_t n)
{
    struct model_adaptation a;
    model_adaptation_make(s->m, scales, ids, n, &a);
    return model_seq_adapt(s, seq, &a);
}

uint32_t model_seq_usual(const struct model_session *s, uint32_t seq)
{
    struct model_adaptation usual;
    if (!s->adaptation) return UINT32_MAX;
    model_adaptation_make(s->m, NULL, NULL, 0, &usual);
    return model_adaptation_common(s->m, &usual, &s->adaptation[seq]);
}

bool model_seq_save(struct model_session *s, uint32_t seq, const struct model_sink *to,
                    struct base_error *err)
{
    if (s->state.reads && !model_drafter_store(&s->drafter, seq, s->state.length[seq], err))
        return false;
    return model_state_save(&s->state, seq, to, err);
}

uint32_t model_seq_load(struct model_session *s, uint32_t seq, uint32_t least, uint32_t most,
                        const struct model_source *from, struct base_error *err)
{
    s->last_logits = NULL;
    const uint32_t n =
        model_state_load(&s->state, seq, least, most, from, s->m->engine->cpu->pool, err);
    if (n > 0) model_drafter_clear(&s->drafter, seq);
    return n;
}

uint64_t model_session_n_evaluated(const struct model_session *s)
{
    return s->n_evaluated;
}

uint32_t model_session_length(const struct model_session *s)
{
    return model_seq_length(s, 0);
}

uint32_t model_session_truncate(struct model_session *s, uint32_t length)
{
    return model_seq_truncate(s, 0, length);
}

const float *model_last_logits(const struct model_session *s)
{
    return s->last_logits;
}

struct shape {
    uint32_t n_tokens, n_span, n_rows, n_out;
};

/* Builds a graph, if memory is short in place of all others but that of a decode step. */
static bool build_body(struct model_session *s, struct model_graph *g, struct shape of,
                       struct base_error *err)
{
    struct base_error why;
    for (int tries = 0; tries < 2; tries++) {
        why = BASE_ERROR_INIT;
        if (model_graph_build(g, s->m, &s->state, of.n_tokens, of.n_span, of.n_rows, of.n_out,
                              &why))
            return true;
        if (why.code != BASE_NO_MEMORY) break;
        for (int i = 1; i < KEPT_GRAPHS; i++) model_graph_free(&s->body[i]);
    }
    return base_fail_at(err, why.code, why.item, why.offset, "%s", why.text);
}

/* Returns the planned graph of a shape. A new graph replaces the least recently used one, but never
 * the decode graph (slot 0). */
static struct model_graph *body_of(struct model_session *s, uint32_t n_tokens, uint32_t n_span,
                                   uint32_t n_rows, uint32_t n_out, struct base_error *err)
{
    struct model_graph *oldest = &s->body[1];
    s->clock++;
    for (int i = 0; i < KEPT_GRAPHS; i++) {
        struct model_graph *g = &s->body[i];
        if (g->graph && g->n_tokens == n_tokens && g->n_span == n_span && g->n_rows == n_rows &&
            g->n_out == n_out) {
            g->last_used = s->clock;
            return g;
        }
        if (i > 0 && g->last_used < oldest->last_used) oldest = g;
    }
    model_graph_free(oldest);
    if (!build_body(s, oldest, (struct shape){n_tokens, n_span, n_rows, n_out}, err)) return NULL;
    oldest->last_used = s->clock;
    return oldest;
}

bool model_session_plan(struct model_session *s, uint64_t n_prompt, uint64_t *bytes,
                        struct base_error *err)
{
    const bool spans = model_state_needs_spans(&s->state);
    *bytes = 0;
    if (s->m->params.n_source && n_prompt > 1) { /* all but the last are for the encoder */
        if (n_prompt > s->n_batch) n_prompt = s->n_batch;
        if (!model_source_graph_of(&s->source, s->m, &s->state, (uint32_t)n_prompt - 1, err))
            return false;
        *bytes = (uint64_t)engine_graph_bytes(s->source.graph);
        n_prompt = 1;
    }
    const uint32_t rest = n_prompt ? (uint32_t)((n_prompt - 1) % s->n_batch) + 1 : 0;
    const uint32_t read = s->state.reads ? model_drafter_share(&s->drafter, n_prompt) : 0;
    const uint32_t share = read ? read : 1, rows = share < rest ? share : rest, n = s->n_batch;
    const bool whole =
        n_prompt > n && share - rows >= n; /* the drafter reads one before the rest */
    if (n_prompt > (whole ? share : n) && !body_of(s, n, spans ? 1 : n, 0, 0, err)) return false;
    if (whole && !body_of(s, n, spans ? 1 : n, n, 0, err)) return false;
    if (rest > 0 && !body_of(s, rest, spans ? 1 : rest, rows, 1, err)) return false;
    for (int i = 0; i < KEPT_GRAPHS; i++)
        if (s->body[i].graph) *bytes += model_graph_bytes(&s->body[i]);
    return !s->state.reads || model_drafter_plan(&s->drafter, bytes, err);
}

static int32_t *ints(struct engine_tensor *t)
{
    return engine_input_data(t);
}

static float q_scale_at(const struct model_params *p, uint32_t position)
{
    return 1.0f + p->temperature *
                      (float)base_log(
                          (double)((position + p->temperature_first) / p->temperature_length + 1));
}

/* Returns how many tokens at the start of tokens[n] belong to one sequence. */
static uint32_t same_sequence(const struct model_token *tokens, uint32_t n)
{
    uint32_t i = 1;
    while (i < n && tokens[i].seq == tokens[0].seq) i++;
    return i;
}

/* Returns the length of the first span of tokens[n], which ends at the next mark of its sequence; 1
 * if the model has no state that needs spans and no token attends to later ones. */
static uint32_t next_span(const struct model_session *s, const struct model_token *tokens,
                          uint32_t n)
{
    if (!model_state_needs_spans(&s->state) && !s->m->params.bidirectional) return 1;
    const uint32_t seq = tokens[0].seq, length = s->state.length[seq];
    uint32_t i = same_sequence(tokens, n);
    for (int k = 0; k < MODEL_MARKS; k++) {
        const uint32_t mark = s->mark[(size_t)seq * MODEL_MARKS + (size_t)k];
        if (mark > length && mark - length < i) i = mark - length;
    }
    return i;
}

/* Returns the scale of adapter i for the token at a position. */
static float scale_at(const struct model_session *s, uint32_t seq, uint32_t position, uint32_t i)
{
    const struct model_adaptation *a = &s->adaptation[seq];
    return position >= a->from[i] ? a->scale[i] : 0.0f;
}

/* Writes the adapters' scales for the token at `at`, number `out` of those with logits. */
static void fill_scales(const struct model_session *s, struct model_graph *g,
                        const struct model_place *at, uint32_t out)
{
    const uint32_t n = model_adapter_count(s->m);
    for (uint32_t i = 0; i < n; i++) {
        const float scale = scale_at(s, at->seq, at->position, i);
        ((float *)engine_input_data(g->adapters))[(size_t)i * g->n_tokens + at->t] = scale;
        if (out < s->n_batch) s->out_scale[(size_t)out * n + i] = scale;
    }
}

/* Appends the batch's tokens to their sequences and fills the graph's inputs: ids, positions, the
 * places of their states and the scales of adapters. */
static void fill_inputs(struct model_session *s, struct model_graph *g,
                        const struct model_token *tokens)
{
    struct model_place at = {0};
    uint32_t n_out = 0, n_wanted = 0, end = 0;
    if (g->rows) memcpy(engine_input_data(g->rows), s->row, g->n_rows * sizeof *s->row);
    for (uint32_t i = 0; g->out_rows && i < g->n_rows; i++)
        if (tokens[s->row[i]].wants_logits) ints(g->out_rows)[n_out++] = (int32_t)i;
    for (int32_t i = 0; g->buckets && i <= 2 * MODEL_RELATIVE_RADIUS; i++)
        ints(g->buckets)[i] = model_relative_bucket(
            i - MODEL_RELATIVE_RADIUS, s->m->params.n_buckets, s->m->params.bidirectional);
    for (; at.t < g->n_tokens; at.t++, at.position++) {
        const struct model_token *token = &tokens[at.t];
        if (at.t == end) {
            const uint32_t n = next_span(s, token, g->n_tokens - end);
            at.position = model_state_append(&s->state, token->seq, n);
            at.span += at.t > 0;
            end += n;
        }
        at.seq = token->seq;
        at.id = token->id;
        ints(g->ids)[at.t] = token->id;
        ints(g->positions)[at.t] = (int32_t)at.position;
        if (g->q_scale)
            ((float *)engine_input_data(g->q_scale))[at.t] = q_scale_at(&s->m->params, at.position);
        if (g->adapters) fill_scales(s, g, &at, token->wants_logits ? n_wanted++ : UINT32_MAX);
        model_state_fill_inputs(&s->state, &g->inputs, &at);
    }
}

/* Returns the graph of the output product for rows of g's hidden states. */
static struct model_head *head_of(struct model_session *s, const struct model_graph *g,
                                  struct base_error *err)
{
    return s->head.graph || model_head_build(&s->head, s->m, g->hidden, err) ? &s->head : NULL;
}

/* Writes the adapters' scales for the head's rows, rows `start` on of those with logits. */
static void fill_head_scales(const struct model_session *s, struct model_head *h, uint32_t start)
{
    const uint32_t n = model_adapter_count(s->m), rows = model_head_rows(&s->m->params);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < n; i++)
            ((float *)engine_input_data(h->adapters))[(size_t)i * rows + r] =
                s->out_scale[(size_t)(start + r) * n + i];
}

/* Passes the logits of g's n_out hidden states to the sink, a few rows at a time. The last piece
 * overlaps rows that are already done, so that it needs no graph of its own: the same rows have the
 * same bits. */
static bool run_head(struct model_session *s, const struct model_graph *g, uint64_t first,
                     model_logits_sink sink, void *user, struct base_error *err)
{
    const size_t n_vocab = s->m->params.n_vocab;
    const uint32_t step = model_head_rows(&s->m->params);
    struct model_head *h = head_of(s, g, err);
    if (!h) return false;
    for (uint32_t done = 0; done < g->n_out;) {
        uint32_t start = done + step <= g->n_out ? done : g->n_out - step;
        h->hidden.data = g->hidden->data + start * g->hidden->nb[1];
        fill_head_scales(s, h, start);
        if (!engine_graph_run(h->graph, err)) return false;
        const float *logits = engine_output_data(h->logits);
        if (sink &&
            !sink(user, first + done, start + step - done, logits + (done - start) * n_vocab, err))
            return false;
        s->last_logits = logits + (step - 1) * n_vocab;
        done = start + step;
    }
    return true;
}

/* Passes the logits, or hidden states, of a run of g to the sink. */
static bool give_logits(struct model_session *s, const struct model_graph *g, uint64_t first,
                        model_logits_sink sink, void *user, struct base_error *err)
{
    if (g->n_out == 0) return true;
    if (s->state.hidden)
        return !sink || sink(user, first, g->n_out, engine_output_data(g->hidden), err);
    if (!g->logits) return run_head(s, g, first, sink, user, err);
    const float *logits = engine_output_data(g->logits);
    if (sink && !sink(user, first, g->n_out, logits, err)) return false;
    s->last_logits = logits + (size_t)(g->n_out - 1) * s->m->params.n_vocab;
    return true;
}

bool model_session_plan_batch(struct model_session *s, uint32_t n, uint64_t *bytes,
                              struct base_error *err)
{
    if (n > s->n_batch || n > model_session_n_ctx(s)) return true; /* no run has this shape */
    const uint32_t n_span = model_state_needs_spans(&s->state) ? 1 : n;
    const struct model_graph *g = body_of(s, n, n_span, n, n, err);
    if (!g || (!g->logits && !s->state.hidden && !head_of(s, g, err))) return false;
    *bytes += model_graph_bytes(g);
    if (!g->logits && !s->state.hidden) *bytes += (uint64_t)engine_graph_bytes(s->head.graph);
    return true;
}

static uint32_t count_wanted(const struct model_token *tokens, uint32_t n)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < n; i++) wanted += tokens[i].wants_logits;
    return wanted;
}

/* Writes to s->row those of a run's n tokens, the next ones of the call, that continue in the last
 * layer; n_out of them have logits. Returns their number. Without logits it is 0 or n, because the
 * mixer of the last layer computes all n. */
static uint32_t set_rows(struct model_session *s, const struct model_token *tokens, uint32_t n,
                         uint32_t n_out)
{
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t seq = tokens[i].seq, after = --s->left[seq];
        if (tokens[i].wants_logits || (s->state.reads && after < s->drafter.share[seq]))
            s->row[n_rows++] = i;
    }
    return n_out > 0 || n_rows == n ? n_rows : 0;
}

/* Runs the graph for n tokens in n_span spans; the sink receives the requested rows with the
 * indices first, first + 1, ... */
static bool eval_run(struct model_session *s, const struct model_token *tokens, uint32_t n,
                     uint32_t n_span, uint64_t first, model_logits_sink sink, void *user,
                     struct base_error *err)
{
    const uint32_t n_out = count_wanted(tokens, n);
    const uint32_t n_rows = set_rows(s, tokens, n, n_out);
    struct model_graph *g = body_of(s, n, n_span, n_rows, n_out, err);
    if (!g) return false;
    fill_inputs(s, g, tokens);
    if (engine_graph_run(g->graph, err) &&
        (!s->state.reads || model_drafter_keep(&s->drafter, g, tokens, s->row, err)) &&
        give_logits(s, g, first, sink, user, err))
        return true;
    for (uint32_t i = 0, span; i < n; i += span) {
        const uint32_t seq = tokens[i].seq;
        span = same_sequence(tokens + i, n - i);
        model_state_truncate(&s->state, seq, s->state.length[seq] - span);
    }
    s->last_logits = NULL;
    return false;
}

static bool has_sequence(const struct model_token *tokens, uint32_t n, uint32_t seq)
{
    for (uint32_t i = 0; i < n; i++)
        if (tokens[i].seq == seq) return true;
    return false;
}

/* Returns how many of tokens[n] the next run evaluates, and in how many spans: a run may have only
 * one span of a sequence if the model has recurrent states. */
static uint32_t next_run(const struct model_session *s, const struct model_token *tokens,
                         uint32_t n, uint32_t *n_span)
{
    uint32_t used = 0;
    for (*n_span = 1; s->m->params.n_source && *n_span < n; ++*n_span)
        if (model_source_length(s->m, &s->state, tokens + *n_span, n - *n_span)) return *n_span;
    *n_span = n;
    if (!model_state_needs_spans(&s->state)) return n;
    for (*n_span = 0; used < n && !has_sequence(tokens, used, tokens[used].seq); ++*n_span)
        used += next_span(s, tokens + used, n - used);
    return used;
}

/* Removes the tokens of the runs that were completed before a batch failed. */
static void take_back(struct model_session *s, const uint32_t *before)
{
    for (uint32_t seq = 0; seq < s->state.n_seq; seq++)
        model_state_truncate(&s->state, seq, before[seq]);
}

/* Evaluates at most n_batch tokens. The sink receives the requested rows as rows first, first + 1,
 * ... */
static bool eval_tokens(struct model_session *s, const struct model_token *tokens, uint32_t n,
                        uint64_t first, model_logits_sink sink, void *user, struct base_error *err)
{
    memcpy(s->before, s->state.length, s->state.n_seq * sizeof *s->before);
    model_state_begin(&s->state);
    for (uint32_t done = 0, n_span = 1; done < n;) {
        const uint32_t source = model_source_length(s->m, &s->state, tokens + done, n - done);
        const uint32_t run = source ? source : next_run(s, tokens + done, n - done, &n_span);
        if (source ? !model_source_eval(&s->source, s->m, &s->state, s->adaptation, tokens + done,
                                        run, err)
                   : !eval_run(s, tokens + done, run, n_span, first, sink, user, err)) {
            take_back(s, s->before);
            return false;
        }
        first += count_wanted(tokens + done, run);
        done += run;
        s->n_evaluated += run;
    }
    return true;
}

static bool check_id(const struct model_session *s, int32_t id, struct base_error *err)
{
    if (id >= 0 && (uint32_t)id < s->m->params.n_vocab) return true;
    return base_fail(err, BASE_USAGE, "token id %d is outside the vocabulary of %u", id,
                     s->m->params.n_vocab);
}

static bool check_room(const struct model_session *s, uint32_t seq, uint64_t n,
                       struct base_error *err)
{
    const uint32_t used = s->state.length[seq];
    if (n <= s->state.n_ctx - used) return true;
    return base_fail(err, BASE_TOO_LONG,
                     "%llu tokens do not fit: the context holds %u and %u are in use",
                     (unsigned long long)n, s->state.n_ctx, used);
}

/* Where tokens attend to later ones, the text of a sequence is one call's consecutive tokens. */
static bool check_whole(const struct model_session *s, const struct model_token *tokens, uint64_t n,
                        struct base_error *err)
{
    if (!s->m->params.bidirectional) return true;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t seq = tokens[i].seq;
        const bool begins = i == 0 || tokens[i - 1].seq != seq;
        if (begins && (s->left[seq] || s->state.length[seq]))
            return base_fail(err, BASE_FAILED, "sequence %u is not one text", seq);
        s->left[seq]++;
    }
    memset(s->left, 0, s->state.n_seq * sizeof *s->left);
    return true;
}

/* The text for an encoder and the token after it are consecutive tokens of one call. */
static bool check_sources(const struct model_session *s, const struct model_token *tokens,
                          uint64_t n, struct base_error *err)
{
    if (s->m->params.n_source == 0) return true;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t seq = tokens[i].seq,
                       most = n - i < UINT32_MAX ? (uint32_t)(n - i) : UINT32_MAX;
        if (s->left[seq]) continue;
        const uint32_t length = model_source_length(s->m, &s->state, tokens + i, most);
        const uint64_t end = i + length;
        const bool has_next = end < n && tokens[end].seq == seq;
        if (!model_source_check(s->m, &s->state, seq, length, has_next ? tokens[end].id : -1, err))
            return false;
        for (uint64_t k = i; k < end; k++)
            if (tokens[k].wants_logits)
                return base_fail(err, BASE_FAILED, "a text for the encoder has no logits");
        s->left[seq] = 1;
    }
    memset(s->left, 0, s->state.n_seq * sizeof *s->left);
    return true;
}

/* Returns how many of tokens[n] the next batch evaluates. */
static uint32_t next_batch(const struct model_session *s, const struct model_token *tokens,
                           uint64_t n)
{
    if (n <= s->n_batch) return (uint32_t)n;
    uint32_t i = s->n_batch;
    while (is_whole(s->m) && tokens[i].seq == tokens[i - 1].seq) i--;
    return i;
}

static bool check_tokens(struct model_session *s, const struct model_token *tokens, uint64_t n,
                         struct base_error *err)
{
    memset(s->left, 0, s->state.n_seq * sizeof *s->left);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t seq = tokens[i].seq;
        if (seq >= s->state.n_seq)
            return base_fail(err, BASE_FAILED, "sequence %u of %u", seq, s->state.n_seq);
    }
    if (!check_whole(s, tokens, n, err) || !check_sources(s, tokens, n, err)) return false;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t seq = tokens[i].seq;
        if (!check_id(s, tokens[i].id, err) || !check_room(s, seq, ++s->left[seq], err))
            return false;
    }
    return true;
}

/* Announces the left[seq] tokens of each sequence that the call will evaluate. */
static void begin_call(struct model_session *s)
{
    for (uint32_t seq = 0; s->state.reads && seq < s->state.n_seq; seq++)
        model_drafter_expect(&s->drafter, seq, s->left[seq]);
    s->last_logits = NULL;
}

bool model_eval_batch(struct model_session *s, const struct model_token *tokens, uint64_t n,
                      model_logits_sink sink, void *user, struct base_error *err)
{
    if (!check_tokens(s, tokens, n, err)) return false;
    begin_call(s);
    uint64_t first = 0;
    for (uint64_t done = 0; done < n;) {
        const uint32_t batch = next_batch(s, tokens + done, n - done);
        if (!eval_tokens(s, tokens + done, batch, first, sink, user, err)) return false;
        for (uint32_t i = 0; i < batch; i++) first += tokens[done + i].wants_logits;
        done += batch;
    }
    return true;
}

bool model_eval(struct model_session *s, const int32_t *ids, uint64_t n, enum model_logits which,
                model_logits_sink sink, void *user, struct base_error *err)
{
    if (!check_room(s, 0, n, err)) return false;
    if (s->m->params.bidirectional && s->state.length[0])
        return base_fail(err, BASE_FAILED, "sequence 0 is not one text");
    for (uint64_t i = 0; i < n; i++)
        if (!check_id(s, ids[i], err)) return false;
    const bool begins = s->m->params.n_source && s->state.length[0] == 0;
    uint64_t source = 0;
    while (begins && source < n && ids[source] != s->m->params.start_id) source++;
    if (s->m->params.n_source && n > 0 &&
        !model_source_check(s->m, &s->state, 0, source, source < n ? ids[source] : -1, err))
        return false;
    s->left[0] = (uint32_t)n;
    begin_call(s);
    for (uint64_t done = 0; done < n;) {
        uint32_t batch = n - done < s->n_batch ? (uint32_t)(n - done) : s->n_batch;
        for (uint32_t i = 0; i < batch; i++) {
            bool wants = (which == MODEL_LOGITS_ALL && done + i >= source) ||
                         (which == MODEL_LOGITS_LAST && done + i == n - 1);
            s->batch[i] = (struct model_token){.id = ids[done + i], .wants_logits = wants};
        }
        uint64_t first = which == MODEL_LOGITS_ALL ? (done > source ? done : source) : n - 1;
        if (!eval_tokens(s, s->batch, batch, first, sink, user, err)) return false;
        done += batch;
    }
    return true;
}

/* ---- Pooled rows ---- */

bool model_session_pool(struct model_session *s, bool rank, const float *rows, const uint32_t *seq,
                        uint32_t n, float *out, struct base_error *err)
{
    struct model_pool_graph g;
    if (!model_pool_build(&g, s->m, rank, n, err)) return false;
    memcpy(engine_input_data(g.rows), rows, (size_t)n * s->m->params.n_embd * sizeof *rows);
    for (uint32_t row = 0; g.adapters && row < n; row++)
        for (uint32_t i = 0; i < model_adapter_count(s->m); i++)
            ((float *)engine_input_data(g.adapters))[(size_t)i * n + row] =
                scale_at(s, seq[row], s->state.length[seq[row]] - 1, i);
    const bool ok = engine_graph_run(g.graph, err);
    if (ok) memcpy(out, engine_output_data(g.result), (size_t)engine_tensor_bytes(g.result));
    engine_graph_free(g.graph);
    return ok;
}

/* ---- Drafts ---- */

bool model_session_can_draft(const struct model_session *s)
{
    return s->state.reads;
}

uint32_t model_session_n_draft_vocab(const struct model_session *s)
{
    return model_drafter_n_vocab(&s->drafter);
}

uint32_t model_session_draft_most(const struct model_session *s)
{
    return model_drafter_most(&s->drafter);
}

bool model_session_drafts_at_once(const struct model_session *s)
{
    return s->drafter.block;
}

bool model_seq_draft_begin(struct model_session *s, uint32_t seq, struct base_error *err)
{
    return !s->state.reads || model_drafter_begin(&s->drafter, seq, err);
}

bool model_seq_draft(struct model_session *s, uint32_t seq, int32_t *ids, uint32_t n, uint32_t k,
                     model_chooser choose, void *user, struct base_error *err)
{
    const uint32_t slots = s->drafter.block ? n + k : n + k - 1;
    if (!s->state.reads || n == 0 || n + k > model_drafter_most(&s->drafter))
        return base_fail(err, BASE_FAILED, "%u draft tokens after %u tokens", k, n);
    if (!check_room(s, seq, slots, err)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!check_id(s, ids[i], err)) return false;
    return model_drafter_draft(&s->drafter, seq, ids, n, k, choose, user, err);
}
