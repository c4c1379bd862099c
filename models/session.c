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
    const float *last_logits; /* in a head's graph; NULL before the first */
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
        s->last_logits = NULL;
    }
    return s->length;
}

const float *model_last_logits(const struct model_session *s)
{
    return s->last_logits;
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

/* The output product for `rows` rows at once: one row has a graph that always stays. */
static struct model_head *head_of(struct model_session *s, uint32_t rows, struct base_error *err)
{
    if (rows == 1) return &s->head_one;
    if (s->head.n_rows == rows) return &s->head;
    engine_graph_free(s->head.graph);
    s->head = (struct model_head){0};
    return model_head_build(&s->head, s->m, rows, err) ? &s->head : NULL;
}

/* Logits of g's n_out rows to the sink, a few rows at a time. The last piece reaches back over rows
 * that were done already rather than have a shape of its own: the same rows give the same bits. */
static bool run_head(struct model_session *s, const struct model_graph *g, uint64_t first,
                     model_logits_sink sink, void *user, struct base_error *err)
{
    const float *hidden = (const float *)g->hidden->data;
    const size_t n_embd = s->m->params.n_embd, n_vocab = s->m->params.n_vocab;
    const uint32_t step = g->n_out < s->head_rows ? g->n_out : s->head_rows;
    struct model_head *h = head_of(s, step, err);
    if (!h) return false;
    for (uint32_t done = 0; done < g->n_out;) {
        uint32_t start = done + step <= g->n_out ? done : g->n_out - step;
        const float *logits = (const float *)h->logits->data;
        memcpy(h->hidden->data, hidden + start * n_embd, step * n_embd * sizeof *hidden);
        if (!engine_graph_run(h->graph, err)) return false;
        if (sink &&
            !sink(user, first + done, start + step - done, logits + (done - start) * n_vocab, err))
            return false;
        s->last_logits = logits + (step - 1) * n_vocab;
        done = start + step;
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
    return run_head(s, g, first + n - n_out, sink, user, err);
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
    s->last_logits = NULL;
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
