/* models/session.c: one timeline of tokens: its cache, its graphs, evaluation.
 *
 * Graphs are built and planned once per batch shape and kept; a decode step fills inputs and runs.
 * The body graph ends in hidden rows; the output product is a graph of its own that takes them a
 * few rows at a time, because all logits of a batch can be larger than the model. */
#include "models/internal.h"
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_CTX = 4096,
    DEFAULT_BATCH = 512,
    KEPT_GRAPHS = 4,               /* decode, full batch without and with output, a rest */
    HEAD_BYTES = 64 * 1024 * 1024, /* logits held at once at most (but one row) */
    HEAD_ROWS = 64
};

struct model_session {
    struct model *m;
    struct model_cache cache;
    uint32_t n_batch, length;
    struct model_graph body[KEPT_GRAPHS];
    struct model_head head, head_one; /* many rows; one row */
    uint32_t head_rows;
    uint64_t clock;
    bool has_logits;
};

struct model_session_options model_session_options_default(void)
{
    return (struct model_session_options){.type_k = QUANT_F16, .type_v = QUANT_F16};
}

struct model_session *model_session_new(struct model *m, const struct model_session_options *o,
                                        struct base_error *err)
{
    const struct quant_type *type_k = quant_type_by_id(o->type_k);
    const struct quant_type *type_v = quant_type_by_id(o->type_v);
    uint32_t n_ctx = o->n_ctx;
    if (!type_k || !type_v) {
        base_fail(err, BASE_USAGE, "unknown cache type");
        return NULL;
    }
    if (n_ctx == 0)
        n_ctx = m->params.n_ctx_train < DEFAULT_CTX ? m->params.n_ctx_train : DEFAULT_CTX;
    struct model_session *s = calloc(1, sizeof *s);
    if (!s) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a session");
        return NULL;
    }
    s->m = m;
    s->n_batch = o->n_batch ? o->n_batch : DEFAULT_BATCH;
    if (s->n_batch > n_ctx) s->n_batch = n_ctx;
    uint64_t rows = HEAD_BYTES / sizeof(float) / m->params.n_vocab;
    s->head_rows = rows < 1 ? 1 : rows < HEAD_ROWS ? (uint32_t)rows : HEAD_ROWS;
    if (!model_cache_init(&s->cache, &m->params, n_ctx, s->n_batch, type_k, type_v, err) ||
        !model_graph_build(&s->body[0], m, &s->cache, 1, 1, err) ||
        !model_head_build(&s->head_one, m, 1, err)) {
        model_session_free(s);
        return NULL;
    }
    return s;
}

void model_session_free(struct model_session *s)
{
    if (!s) return;
    for (int i = 0; i < KEPT_GRAPHS; i++) engine_graph_free(s->body[i].graph);
    engine_graph_free(s->head.graph);
    engine_graph_free(s->head_one.graph);
    model_cache_free(&s->cache);
    free(s);
}

uint32_t model_session_n_ctx(const struct model_session *s)
{
    return s->cache.n_ctx;
}

uint32_t model_session_length(const struct model_session *s)
{
    return s->length;
}

uint64_t model_session_cache_bytes(const struct model_session *s)
{
    return s->cache.bytes;
}

uint32_t model_session_truncate(struct model_session *s, uint32_t length)
{
    if (length < s->length) {
        bool held = model_cache_can_truncate(&s->cache, s->length, length);
        s->length = held ? length : 0;
        s->has_logits = false;
    }
    return s->length;
}

const float *model_last_logits(const struct model_session *s)
{
    return s->has_logits ? (const float *)s->head_one.logits->data : NULL;
}

/* The planned graph of a shape; the one that was not used for longest makes room. The decode graph
 * (slot 0) always stays. */
static struct model_graph *body_of(struct model_session *s, uint32_t n_tokens, uint32_t n_out,
                                   struct base_error *err)
{
    struct model_graph *oldest = &s->body[1];
    s->clock++;
    for (int i = 0; i < KEPT_GRAPHS; i++) {
        struct model_graph *g = &s->body[i];
        if (g->graph && g->n_tokens == n_tokens && g->n_out == n_out) {
            g->last_used = s->clock;
            return g;
        }
        if (i > 0 && g->last_used < oldest->last_used) oldest = g;
    }
    engine_graph_free(oldest->graph);
    *oldest = (struct model_graph){0};
    if (!model_graph_build(oldest, s->m, &s->cache, n_tokens, n_out, err)) return NULL;
    oldest->last_used = s->clock;
    return oldest;
}

static void fill_inputs(struct model_session *s, struct model_graph *g, const int32_t *ids)
{
    int32_t *positions = (int32_t *)g->positions->data;
    memcpy(g->ids->data, ids, g->n_tokens * sizeof *ids);
    for (uint32_t t = 0; t < g->n_tokens; t++) positions[t] = (int32_t)(s->length + t);
    for (int span = 0; span < MODEL_SPAN_COUNT; span++)
        if (g->cell[span])
            model_cache_fill(&s->cache, (enum model_span)span, s->length, g->n_tokens,
                             (int32_t *)g->cell[span]->data, (int32_t *)g->span[span]->data);
    if (g->out_rows) /* n_out < T: the last ones */
        for (uint32_t i = 0; i < g->n_out; i++)
            ((int32_t *)g->out_rows->data)[i] = (int32_t)(g->n_tokens - g->n_out + i);
}

/* Runs the output product over hidden[rows][E]. */
static bool run_head(struct model_session *s, struct model_head *h, const float *hidden,
                     struct base_error *err)
{
    memcpy(h->hidden->data, hidden, (size_t)h->n_rows * s->m->params.n_embd * sizeof *hidden);
    return engine_graph_run(h->graph, err);
}

/* Logits of all rows to the sink, a few rows at a time; the last row's stay in head_one. */
static bool sink_all(struct model_session *s, const struct model_graph *g, uint64_t first,
                     model_logits_sink sink, void *user, struct base_error *err)
{
    const float *hidden = (const float *)g->hidden->data;
    const size_t n_embd = s->m->params.n_embd;
    uint32_t row = 0;
    if (s->head_rows > 1 && g->n_out > s->head_rows && !s->head.graph &&
        !model_head_build(&s->head, s->m, s->head_rows, err))
        return false;
    while (row < g->n_out) {
        uint32_t left = g->n_out - row;
        struct model_head *h = s->head.graph && left > s->head_rows ? &s->head : &s->head_one;
        if (!run_head(s, h, hidden + row * n_embd, err)) return false;
        if (sink && !sink(user, first + row, h->n_rows, (const float *)h->logits->data, err))
            return false;
        row += h->n_rows;
    }
    return true;
}

static bool eval_batch(struct model_session *s, const int32_t *ids, uint32_t n, uint32_t n_out,
                       uint64_t first, model_logits_sink sink, void *user, struct base_error *err)
{
    struct model_graph *g = body_of(s, n, n_out, err);
    if (!g) return false;
    fill_inputs(s, g, ids);
    if (!engine_graph_run(g->graph, err)) return false;
    s->length += n;
    if (n_out == 0) return true;
    if (!sink_all(s, g, first + n - n_out, sink, user, err)) return false;
    s->has_logits = true;
    return true;
}

static bool check_ids(const struct model_session *s, const int32_t *ids, uint64_t n,
                      struct base_error *err)
{
    if (n > s->cache.n_ctx - s->length)
        return base_fail(err, BASE_TOO_LONG,
                         "%llu tokens do not fit: the context holds %u and %u are in use; a "
                         "larger --ctx would help",
                         (unsigned long long)n, s->cache.n_ctx, s->length);
    for (uint64_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->m->params.n_vocab)
            return base_fail(err, BASE_FAILED, "token id %d is outside the vocabulary of %u",
                             ids[i], s->m->params.n_vocab);
    return true;
}

bool model_eval(struct model_session *s, const int32_t *ids, uint64_t n, enum model_logits which,
                model_logits_sink sink, void *user, struct base_error *err)
{
    if (!check_ids(s, ids, n, err)) return false;
    s->has_logits = false;
    for (uint64_t done = 0; done < n;) {
        uint64_t left = n - done;
        uint32_t batch = left < s->n_batch ? (uint32_t)left : s->n_batch;
        uint32_t n_out = which == MODEL_LOGITS_ALL                     ? batch
                         : which == MODEL_LOGITS_LAST && left == batch ? 1
                                                                       : 0;
        if (!eval_batch(s, ids + done, batch, n_out, done, sink, user, err)) return false;
        done += batch;
    }
    return true;
}
