/* generate/score.c: probabilities of given texts. See generate/score.h.
 *
 *     sequence 0        the kept prefix, shared by adjacent groups
 *     1, 2, 3, 4        a group: its own prefix, then a sequence for each row
 *     5, 6, 7, ...      the next group of the same evaluation
 *
 * A group's prefix ends before the first token that differs or counts. Groups are evaluated in
 * waves of two evaluations: of all prefixes, then of all rows after them. */
#include "generate/score.h"
#include "base/interrupt.h"
#include "base/list.h"
#include "engine/cpu/cpu_device.h"
#include "generate/statistics.h"
#include "models/adapter.h"
#include <stdlib.h>

enum {
    LEAST_SHARED = 8, /* minimum length of a prefix that is worth keeping */
    KEEPER = 0
};

/* A token whose probability is computed from a row of logits. */
struct scored_token {
    int32_t id;
    double *logprob;
};

/* A requested row of logits, with consecutive targets. */
struct scored_row {
    size_t first, n;
};

struct generate_scorer {
    struct engine *engine;
    struct model_session *session;
    uint32_t n_vocab, n_seq, n_ctx;
    int32_t *kept;      /* [n_ctx]: the ids of sequence 0 */
    int32_t *beginning; /* [n_ctx + 1]: those of a group's prefix */
    struct model_token *token;
    struct scored_row *wanted;
    struct scored_token *target;
    size_t n_tokens, n_wanted, n_targets; /* in the next evaluation */
    size_t token_room, wanted_room, target_room;
    struct generate_score_counts counts;
};

/* ---- Creation ---- */

struct generate_scorer *generate_scorer_new(struct engine *engine, struct model_session *session,
                                            uint32_t n_vocab, struct base_error *err)
{
    struct generate_scorer *s = calloc(1, sizeof *s);
    if (s) {
        s->engine = engine;
        s->session = session;
        s->n_vocab = n_vocab;
        s->n_seq = model_session_n_seq(session);
        s->n_ctx = model_session_n_ctx(session);
        s->kept = calloc(s->n_ctx, sizeof *s->kept);
        s->beginning = calloc((size_t)s->n_ctx + 1, sizeof *s->beginning);
    }
    if (!s || !s->kept || !s->beginning)
        base_fail(err, BASE_NO_MEMORY, "not enough memory to score");
    else if (s->n_seq < GENERATE_SCORE_LEAST_SEQ)
        base_fail(err, BASE_USAGE, "%u sequences are too few to score", s->n_seq);
    else
        return s;
    generate_scorer_free(s);
    return NULL;
}

void generate_scorer_free(struct generate_scorer *s)
{
    if (!s) return;
    free(s->kept);
    free(s->beginning);
    free(s->token);
    free(s->wanted);
    free(s->target);
    free(s);
}

struct generate_score_counts generate_scorer_counts(const struct generate_scorer *s)
{
    return s->counts;
}

/* ---- One evaluation ---- */

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory to score");
}

static bool add_token(struct generate_scorer *s, int32_t id, uint32_t seq, struct base_error *err)
{
    if (!BASE_LIST_ROOM(s->token, s->n_tokens, s->token_room)) return no_memory(err);
    s->token[s->n_tokens++] = (struct model_token){.id = id, .seq = seq};
    return true;
}

/* Adds `id` as a target of the latest token's logits. */
static bool add_target(struct generate_scorer *s, int32_t id, double *logprob,
                       struct base_error *err)
{
    struct model_token *last = &s->token[s->n_tokens - 1];
    if (!BASE_LIST_ROOM(s->wanted, s->n_wanted, s->wanted_room) ||
        !BASE_LIST_ROOM(s->target, s->n_targets, s->target_room))
        return no_memory(err);
    if (!last->wants_logits) s->wanted[s->n_wanted++] = (struct scored_row){.first = s->n_targets};
    last->wants_logits = true;
    s->wanted[s->n_wanted - 1].n++;
    s->target[s->n_targets++] = (struct scored_token){id, logprob};
    return true;
}

struct score_job {
    const struct generate_scorer *scorer;
    const struct scored_row *wanted; /* [rows] */
    const float *logits;
    int64_t rows;
};

static void score_rows(const struct engine_worker *w, void *user)
{
    const struct score_job *j = user;
    const struct generate_scorer *s = j->scorer;
    for (int64_t r; (r = engine_pool_claim(w, 1)) < j->rows && !base_interrupted();) {
        const float *logits = j->logits + r * s->n_vocab;
        uint32_t best;
        const double total = generate_row_log_sum(logits, s->n_vocab, &best);
        for (size_t i = 0; i < j->wanted[r].n; i++) {
            const struct scored_token *t = &s->target[j->wanted[r].first + i];
            *t->logprob = (double)logits[t->id] - total;
        }
    }
}

static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    const struct generate_scorer *s = user;
    struct score_job job = {s, s->wanted + first, logits, (int64_t)rows};
    engine_pool_run(s->engine->cpu->pool, score_rows, &job);
    return base_goes_on(err);
}

static void clear(struct generate_scorer *s)
{
    s->n_tokens = s->n_wanted = s->n_targets = 0;
}

static bool evaluate(struct generate_scorer *s, struct base_error *err)
{
    s->counts.n_evaluated += s->n_tokens;
    return s->n_tokens == 0 ||
           model_eval_batch(s->session, s->token, s->n_tokens, take_rows, s, err);
}

/* ---- Prefixes ---- */

static int32_t id_of(const struct generate_score_group *g, size_t row, size_t i)
{
    return i < g->n_prefix ? g->prefix[i] : g->row[row].ids[i - g->n_prefix];
}

/* Returns the length of a group's prefix: that of the group, and further ids that all rows have in
 * common. */
static size_t beginning_of(const struct generate_score_group *g)
{
    size_t n = g->row[0].from;
    for (size_t i = 1; i < g->n; i++) {
        const size_t most = g->row[i].from < n ? g->row[i].from : n;
        for (n = g->n_prefix < most ? g->n_prefix : most;
             n < most && id_of(g, 0, n) == id_of(g, i, n);)
            n++;
    }
    return n;
}

/* Gives a sequence the adapters of a group: those that its prefix invokes are active. */
static void adapt(struct generate_scorer *s, const struct generate_score_group *g, uint32_t seq)
{
    const size_t n = beginning_of(g);
    if (model_adapter_count(model_session_model(s->session)) == 0) return;
    for (size_t i = 0; i < n; i++) s->beginning[i] = id_of(g, 0, i);
    model_seq_adapt_to(s->session, seq, NULL, s->beginning, n);
}

/* Returns the length of the prefix that may be kept for other groups: without the last token, whose
 * logits may count. */
static size_t shareable(const struct generate_score_group *g)
{
    const size_t n = beginning_of(g);
    return n ? n - 1 : 0;
}

/* Returns how many of the first n ids of a group sequence 0 has. */
static size_t held_of(const struct generate_scorer *s, const struct generate_score_group *g,
                      size_t n)
{
    const size_t kept = model_seq_length(s->session, KEEPER), most = kept < n ? kept : n;
    size_t i = 0;
    while (i < most && s->kept[i] == id_of(g, 0, i)) i++;
    return i;
}

/* Keeps the common prefix of two adjacent groups in sequence 0 if it is longer than the kept
 * one. */
static bool keep(struct generate_scorer *s, const struct generate_score_group *a,
                 const struct generate_score_group *b, struct base_error *err)
{
    const size_t most = shareable(a) < shareable(b) ? shareable(a) : shareable(b);
    size_t shared = 0;
    while (shared < most && id_of(a, 0, shared) == id_of(b, 0, shared)) shared++;
    if (shared < LEAST_SHARED) return true;
    adapt(s, a, KEEPER);
    size_t held = held_of(s, a, shared);
    if (held == shared) return true;
    held = model_seq_truncate(s->session, KEEPER, (uint32_t)held);
    clear(s);
    for (size_t i = held; i < shared; i++) {
        s->kept[i] = id_of(a, 0, i);
        if (!add_token(s, s->kept[i], KEEPER, err)) return false;
    }
    return evaluate(s, err);
}

/* Adds the tokens of a group's prefix to the evaluation, on sequence `seq`. */
static bool add_beginning(struct generate_scorer *s, const struct generate_score_group *g,
                          uint32_t seq, struct base_error *err)
{
    const size_t n = beginning_of(g);
    const size_t kept = held_of(s, g, shareable(g));
    adapt(s, g, seq);
    for (size_t i = model_seq_fork(s->session, KEEPER, seq, (uint32_t)kept); i < n; i++)
        if (!add_token(s, id_of(g, 0, i), seq, err)) return false;
    for (size_t i = 0; n > 0 && i < g->n; i++) {
        const struct generate_score_row *r = &g->row[i];
        if (r->from == n && n < r->n && !add_target(s, id_of(g, i, n), r->logprob, err))
            return false;
    }
    return true;
}

/* ---- Rows ---- */

/* Adds the tokens of a row after the prefix [n] of sequence `from`, without the last token, which
 * predicts none that counts. */
static bool add_row(struct generate_scorer *s, const struct generate_score_group *g, size_t row,
                    size_t n, uint32_t from, uint32_t seq, struct base_error *err)
{
    const struct generate_score_row *r = &g->row[row];
    adapt(s, g, seq);
    model_seq_fork(s->session, from, seq, (uint32_t)n);
    for (size_t i = n; i + 1 < r->n; i++) {
        if (!add_token(s, id_of(g, row, i), seq, err)) return false;
        if (i + 1 >= r->from &&
            !add_target(s, id_of(g, row, i + 1), r->logprob + (i + 1 - r->from), err))
            return false;
    }
    return true;
}

/* Evaluates the rows of groups whose prefixes are evaluated, on the sequences after those. */
static bool run_rows(struct generate_scorer *s, const struct generate_score_group *group, size_t n,
                     struct base_error *err)
{
    uint32_t seq = KEEPER + 1;
    clear(s);
    for (size_t k = 0; k < n; k++) {
        const uint32_t from = seq++;
        const size_t begins = beginning_of(&group[k]);
        for (size_t i = 0; i < group[k].n; i++) {
            if (seq == s->n_seq) { /* a group of more rows than sequences is alone in its wave */
                if (!evaluate(s, err)) return false;
                clear(s);
                seq = from + 1;
            }
            if (!add_row(s, &group[k], i, begins, from, seq++, err)) return false;
        }
    }
    return evaluate(s, err);
}

/* Returns the number of groups to evaluate together: those with a sequence for each row, at least
 * one. */
static size_t wave_of(const struct generate_scorer *s, const struct generate_score_group *group,
                      size_t n)
{
    size_t used = KEEPER + 1, k = 0;
    while (k < n && (k == 0 || used + 1 + group[k].n <= s->n_seq)) used += 1 + group[k++].n;
    return k;
}

static bool run_wave(struct generate_scorer *s, const struct generate_score_group *group, size_t n,
                     struct base_error *err)
{
    uint32_t seq = KEEPER + 1;
    clear(s);
    for (size_t k = 0; k < n; k++) {
        if (!add_beginning(s, &group[k], seq, err)) return false;
        seq += 1 + (uint32_t)group[k].n;
    }
    return evaluate(s, err) && run_rows(s, group, n, err);
}

static bool check(const struct generate_scorer *s, const struct generate_score_group *group,
                  size_t n, struct base_error *err)
{
    for (size_t k = 0; k < n; k++) {
        if (group[k].n == 0) return base_fail(err, BASE_USAGE, "a group without rows");
        for (size_t i = 0; i < group[k].n; i++) {
            const struct generate_score_row *r = &group[k].row[i];
            if (r->from < 1 || r->from > r->n || r->n < group[k].n_prefix)
                return base_fail(err, BASE_USAGE, "a text without a token before what is scored");
            if (r->n - 1 > s->n_ctx)
                return base_fail(err, BASE_TOO_LONG,
                                 "the text has %zu tokens and the context holds %u", r->n,
                                 s->n_ctx);
        }
    }
    return true;
}

bool generate_scorer_run(struct generate_scorer *s, const struct generate_score_group *group,
                         size_t n, struct base_error *err)
{
    if (!check(s, group, n, err)) return false;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < group[k].n; i++) s->counts.n_alone += group[k].row[i].n - 1;
    for (size_t done = 0, wave; done < n; done += wave) {
        if (done + 1 < n && !keep(s, &group[done], &group[done + 1], err)) return false;
        wave = wave_of(s, group + done, n - done);
        if (!run_wave(s, group + done, wave, err)) return false;
        s->counts.n_groups += wave;
    }
    return true;
}
