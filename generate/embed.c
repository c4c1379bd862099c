/* generate/embed.c: embeddings and scores of texts. See generate/embed.h. */
#include "generate/embed.h"
#include "base/elementary.h"
#include "models/adapter.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct generate_embedder {
    struct model_session *session;
    enum model_pooling rows; /* which rows are pooled: not MODEL_POOL_RANK */
    bool rank;
    uint32_t n_embd, size, n_seq, n_ctx, n_batch;
    uint64_t n_done;
    struct model_token *token;                /* [max(n_batch, n_ctx)] */
    const struct generate_embed_text **batch; /* [n_seq]: texts of the evaluation, by sequence */
    uint32_t n_texts, n_tokens;               /* in it */
    double *sum;                              /* [n_embd]: of rows of the text `current` */
    uint32_t current, n_rows; /* the text whose rows arrive; rows of it that have arrived */
    uint32_t n_pooled;        /* complete rows of the batch */
    uint32_t *seq;            /* the sequence of each of them: of each text, or of each token */
    float *pooled, *out;      /* [..][n_embd], [..][size] */
};

struct generate_embedder *generate_embedder_new(struct model_session *session,
                                                const struct model_facts *facts,
                                                enum model_pooling pooling, struct base_error *err)
{
    const bool rank = pooling == MODEL_POOL_RANK;
    if (rank && facts->n_rank == 0)
        return base_null(
            base_fail(err, BASE_USAGE, "the model has no classifier: it cannot score texts"));
    struct generate_embedder *e = calloc(1, sizeof *e);
    if (e) {
        e->session = session;
        e->rank = rank;
        e->rows = rank ? facts->rank_of : pooling;
        e->n_embd = facts->n_embd;
        e->size = rank ? facts->n_rank : facts->n_pooled;
        e->n_seq = model_session_n_seq(session);
        e->n_ctx = model_session_n_ctx(session);
        e->n_batch = model_session_n_batch(session);
        const size_t tokens = e->n_ctx > e->n_batch ? e->n_ctx : e->n_batch;
        const size_t rows = e->rows == MODEL_POOL_NONE ? tokens : e->n_seq;
        e->token = calloc(tokens, sizeof *e->token);
        e->batch = calloc(e->n_seq, sizeof *e->batch);
        e->sum = calloc(e->n_embd, sizeof *e->sum);
        e->seq = calloc(rows, sizeof *e->seq);
        e->pooled = calloc(rows * e->n_embd, sizeof *e->pooled);
        e->out = calloc(rows * e->size, sizeof *e->out);
        if (e->token && e->batch && e->sum && e->seq && e->pooled && e->out) return e;
    }
    generate_embedder_free(e);
    return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for embeddings"));
}

void generate_embedder_free(struct generate_embedder *e)
{
    if (!e) return;
    free(e->token);
    free(e->batch);
    free(e->sum);
    free(e->seq);
    free(e->pooled);
    free(e->out);
    free(e);
}

uint32_t generate_embedder_size(const struct generate_embedder *e)
{
    return e->size;
}

uint64_t generate_embedder_done(const struct generate_embedder *e)
{
    return e->n_done;
}

/* Returns whether token i of n has its hidden state pooled. */
static bool is_pooled(const struct generate_embedder *e, size_t i, size_t n)
{
    if (e->rows == MODEL_POOL_CLS) return i == 0;
    return e->rows != MODEL_POOL_LAST || i == n - 1;
}

/* Takes a hidden state of the current text. */
static void take_row(struct generate_embedder *e, const float *row)
{
    const struct generate_embed_text *text = e->batch[e->current];
    const bool mean = e->rows == MODEL_POOL_MEAN;
    float *pooled = e->pooled + (size_t)e->n_pooled * e->n_embd;
    for (uint32_t i = 0; mean && i < e->n_embd; i++)
        e->sum[i] = (e->n_rows ? e->sum[i] : 0) + (double)row[i];
    e->n_rows++;
    const bool last = e->n_rows == (mean || e->rows == MODEL_POOL_NONE ? text->n : 1);
    if (mean && !last) return;
    for (uint32_t i = 0; i < e->n_embd; i++)
        pooled[i] = mean ? (float)(e->sum[i] / (double)text->n) : row[i];
    e->seq[e->n_pooled++] = e->current;
    if (!last) return;
    e->current++;
    e->n_rows = 0;
}

static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *hidden,
                      struct base_error *err)
{
    struct generate_embedder *e = user;
    (void)first;
    (void)err;
    for (uint64_t i = 0; i < rows; i++) take_row(e, hidden + i * e->n_embd);
    return true;
}

static void add_text(struct generate_embedder *e, const struct generate_embed_text *text)
{
    const uint32_t seq = e->n_texts++;
    e->batch[seq] = text;
    for (size_t i = 0; i < text->n; i++)
        e->token[e->n_tokens++] = (struct model_token){text->ids[i], seq, is_pooled(e, i, text->n)};
}

/* Evaluates the texts of the batch. */
static bool evaluate(struct generate_embedder *e, struct base_error *err)
{
    e->current = e->n_rows = e->n_pooled = 0;
    for (uint32_t seq = 0; seq < e->n_texts; seq++) {
        const struct generate_embed_text *text = e->batch[seq];
        model_seq_truncate(e->session, seq, 0);
        model_seq_adapt_to(e->session, seq, text->lora, text->ids, text->n);
    }
    if (!model_eval_batch(e->session, e->token, e->n_tokens, take_rows, e, err)) return false;
    if (!model_session_pool(e->session, e->rank, e->pooled, e->seq, e->n_pooled, e->out, err))
        return false;
    const float *from = e->out;
    for (uint32_t i = 0; i < e->n_texts; i++) {
        const size_t rows = e->rows == MODEL_POOL_NONE ? e->batch[i]->n : 1;
        memcpy(e->batch[i]->out, from, rows * e->size * sizeof *from);
        from += rows * e->size;
    }
    e->n_done += e->n_texts;
    e->n_texts = e->n_tokens = 0;
    return true;
}

/* Longest first; texts of the same length in their order. */
static int by_length(const void *a, const void *b)
{
    const struct generate_embed_text *p = *(const struct generate_embed_text *const *)a;
    const struct generate_embed_text *q = *(const struct generate_embed_text *const *)b;
    return p->n != q->n ? (p->n < q->n) - (p->n > q->n) : (p > q) - (p < q);
}

static bool check(const struct generate_embedder *e, const struct generate_embed_text *text,
                  size_t n, struct base_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i].n == 0) return base_fail(err, BASE_USAGE, "a text without tokens");
        if (text[i].n > e->n_ctx)
            return base_fail(err, BASE_TOO_LONG, "the text has %zu tokens and the context holds %u",
                             text[i].n, e->n_ctx);
    }
    return true;
}

/* Adds texts of order[n] to the batch and removes them from `order`; returns how many are left. A
 * batch with `exact` leaves no room that is too small for the shortest text: most batches then have
 * exactly n_batch tokens, and a session keeps the graph of a number of tokens. */
static size_t take_texts(struct generate_embedder *e, const struct generate_embed_text **order,
                         size_t n, bool exact)
{
    const size_t shortest = n > 0 && exact ? order[n - 1]->n : 0;
    size_t kept = 0; /* texts of a later batch move to the front */
    for (size_t i = 0; i < n; i++) {
        const size_t end = e->n_tokens + order[i]->n;
        const bool fits = e->n_texts < e->n_seq &&
                          (e->n_texts == 0 || end == e->n_batch || end + shortest <= e->n_batch);
        if (fits)
            add_text(e, order[i]);
        else
            order[kept++] = order[i];
    }
    return kept;
}

bool generate_embedder_run(struct generate_embedder *e, const struct generate_embed_text *text,
                           size_t n, struct base_error *err)
{
    if (!check(e, text, n, err)) return false;
    const struct generate_embed_text **order = calloc(n ? n : 1, sizeof *order);
    if (!order) return base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu texts", n);
    for (size_t i = 0; i < n; i++) order[i] = &text[i];
    qsort(order, n, sizeof *order, by_length);
    bool ok = true;
    e->n_texts = e->n_tokens = 0;
    for (size_t left = n; ok && left > 0;) {
        left = take_texts(e, order, left, true);
        left = take_texts(e, order, left, false);
        ok = evaluate(e, err);
    }
    free(order);
    return ok;
}

/* ---- Arithmetic of embeddings ---- */

static double norm_of(const float *v, size_t n, int p)
{
    double sum = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = fabs((double)v[i]);
        sum += p == 1 ? x : p == 2 ? x * x : base_pow(x, p);
        if (x > largest) largest = x;
    }
    if (p == 0) return largest / 32760;
    return p == 1 ? sum : p == 2 ? sqrt(sum) : base_pow(sum, 1.0 / p);
}

void generate_embed_normalize(float *v, size_t n, int p)
{
    const double norm = p < 0 ? 1 : norm_of(v, n, p);
    for (size_t i = 0; p >= 0 && i < n; i++) v[i] = norm > 0 ? (float)((double)v[i] / norm) : 0.0f;
}

double generate_embed_cosine(const float *a, const float *b, size_t n)
{
    double dot = 0;
    for (size_t i = 0; i < n; i++) dot += (double)a[i] * (double)b[i];
    const double norms = norm_of(a, n, 2) * norm_of(b, n, 2);
    return norms > 0 ? dot / norms : 0;
}
