/* generate/draft.c: draft tokens for speculative decoding. See generate/draft.h.
 *
 * A step evaluates one token and k draft tokens. The k with the most tokens per second is chosen:
 *
 *     tokens   1 + p1 + p1 p2 + ... + p1 p2 .. pk
 *     seconds  cost(k + 1) + the time of drafting
 *     p_i      the probability that draft token i is right if those before it are
 *
 * - cost is measured for the batch sizes in `sizes`. A measurement changes it by a limited step,
 *   so that a pause of the machine has little effect.
 * - Tokens that are looked up in the text take no time, and p depends on the length of the match.
 *   It is measured without a draft, too, by the token that a look-up would have drafted.
 * - Drafts of a smaller model or a drafter (an MTP layer, or one in a file of its own) take time.
 *   The first one is a single token, if right tokens could repay it at all. If drafts do not repay
 *   it, drafting pauses, longer each time, also from text to text. A drafter drafts where a look-up
 *   is not expected to gain. */
#include "generate/draft.h"
#include "base/clock.h"
#include "generate/ngram.h"
#include "sample/sample.h"
#include <stdlib.h>
#include <string.h>

/* The numbers of tokens of a batch. There are only a few, because each needs a graph of its own. */
static const uint32_t sizes[] = {1, 2, 3, 5, 9, 17};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_LENGTHS = 6, MIN_REST = 32, MAX_REST = 1024 };
enum { MAX_NEW = 8 }; /* a batch with more new ids is a prompt, which has no drafts */
/* The times of `sizes`, relative to one token, until they are measured. */
static const double usual_cost[N_SIZES] = {1, 1.3, 1.45, 1.7, 2.1, 3};
/* The share of right tokens after matches of 3, 4, 5 to 8, 9 to 16, 17 to 31, 32 ids. */
static const double usual_right[N_LENGTHS] = {0.3, 0.4, 0.5, 0.7, 0.8, 0.9};
/* The initial share of right tokens among evaluated drafts (a smaller model's or a drafter's). */
static const double USUAL_MODEL_RIGHT = 0.7;
static const double MIN_GAIN = 1.04; /* the smallest expected gain of a draft that is evaluated */

struct generate_draft {
    struct generate_draft_options options;
    struct generate_ngram ngram;
    double cost[N_SIZES];     /* seconds of a batch; 0: not measured */
    uint32_t n_cost[N_SIZES]; /* number of measurements */
    double right[N_LENGTHS];  /* the share of looked-up tokens that are right */
    uint32_t length;          /* length of the match of the latest draft; 0: none */
    int32_t expected;         /* the id that a look-up would have drafted; -1: none */

    bool evaluates; /* the latest draft is of a smaller model or a drafter */
    int32_t *held;  /* [n_held]: the ids of the smaller model's sequence */
    uint32_t n_held;
    struct sampler *sampler;  /* greedy */
    bool at_once;             /* all tokens of an evaluated draft take one run */
    double guess_cost;        /* seconds of a run for evaluated draft tokens; 0: not measured */
    double model_right;       /* the share of evaluated draft tokens that are right */
    uint32_t n_known;         /* number of evaluated draft tokens since the latest pause */
    bool drafter_ran;         /* the drafter has already made a draft */
    uint32_t rest, next_rest; /* steps without a draft: left; of the next pause */

    bool was_wrong; /* a draft token of the latest batch was wrong */
    bool rereads; /* after a wrong draft token the state goes back to the beginning of the batch */
    struct generate_draft_counts counts;
};

/* Returns whether draft tokens are looked up in the text. */
static bool has_lookup(const struct generate_draft *d)
{
    return !d->options.session && !(d->options.drafter && d->options.always);
}

struct generate_draft *generate_draft_new(const struct generate_draft_options *options,
                                          struct base_error *err)
{
    struct generate_draft *d = calloc(1, sizeof *d);
    if (!d) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for draft tokens"));
    d->options = *options;
    memcpy(d->right, usual_right, sizeof d->right);
    d->model_right = USUAL_MODEL_RIGHT;
    d->next_rest = MIN_REST;
    bool ok = !has_lookup(d) || generate_ngram_init(&d->ngram, options->n_ctx + 1, err);
    if (ok && options->session) {
        d->held = calloc(options->n_ctx, sizeof *d->held);
        ok = d->held || base_fail(err, BASE_NO_MEMORY, "not enough memory for draft tokens");
    }
    if (ok && (options->session || options->drafter)) {
        struct sample_options greedy = sample_options_default();
        const uint32_t n = options->n_vocab,
                       own = options->session ? model_session_n_vocab(options->session)
                                              : model_session_n_draft_vocab(options->drafter);
        greedy.temp = 0;
        d->sampler = sample_new(&greedy, n && n < own ? n : own, 1, err);
        ok = d->sampler;
    }
    d->at_once = options->drafter && model_session_drafts_at_once(options->drafter);
    if (ok) return d;
    generate_draft_free(d);
    return NULL;
}

void generate_draft_free(struct generate_draft *d)
{
    if (!d) return;
    generate_ngram_free(&d->ngram);
    sample_free(d->sampler);
    free(d->held);
    free(d);
}

void generate_draft_begin(struct generate_draft *d)
{
    if (has_lookup(d)) generate_ngram_clear(&d->ngram);
    d->expected = -1;
    d->length = 0;
}

/* ---- The number of draft tokens ---- */

static uint32_t size_index(size_t n)
{
    uint32_t i = 0;
    while (i + 1 < N_SIZES && sizes[i] < n) i++;
    return i;
}

static double cost_of(const struct generate_draft *d, uint32_t i)
{
    /* At least the time of one token: a measured time may be old, or of a busy machine. */
    if (d->cost[i] > 0) return d->cost[i] > d->cost[0] ? d->cost[i] : d->cost[0];
    for (uint32_t k = i; k-- > 0;) /* from the nearest smaller size with a measurement */
        if (d->cost[k] > 0) return d->cost[k] * usual_cost[i] / usual_cost[k];
    return usual_cost[i];
}

static uint32_t length_index(uint32_t length)
{
    if (length <= 4) return length == 4;
    return length <= 8 ? 2 : length <= 16 ? 3 : length < GENERATE_NGRAM_MATCH ? 4 : 5;
}

static double right_of(const struct generate_draft *d, uint32_t i)
{
    if (d->evaluates) return d->model_right;
    return d->right[length_index(d->length + i)];
}

/* Returns the seconds that wrong draft tokens cost later: `tokens` of the batch are evaluated
 * again. */
static double reread_cost(const struct generate_draft *d, double tokens, double all_right)
{
    const uint32_t again = size_index((size_t)(tokens + 0.5));
    return d->rereads ? (1 - all_right) * (cost_of(d, again) - cost_of(d, 0)) : 0;
}

/* Returns the number of draft tokens after n_new tokens, at most `most`, with the most tokens per
 * second. */
static size_t pick(const struct generate_draft *d, size_t n_new, size_t most)
{
    if (d->cost[0] == 0) return 0; /* there is no cost to compare with */
    double best = MIN_GAIN / cost_of(d, size_index(n_new)), tokens = 1, all = 1;
    size_t n = 0, picked = 0;
    for (uint32_t i = 1; i < N_SIZES && n < most; i++) {
        if (sizes[i] <= n_new || sizes[i] - n_new > most) continue;
        for (; n < sizes[i] - n_new; n++) {
            all *= right_of(d, (uint32_t)n);
            tokens += all;
        }
        const size_t n_runs = !d->evaluates ? 0 : d->at_once ? 1 : n;
        const double seconds =
            cost_of(d, i) + d->guess_cost * (double)n_runs + reread_cost(d, tokens, all);
        if (tokens / seconds <= best) continue;
        best = tokens / seconds;
        picked = n;
    }
    return picked;
}

/* Reduces n so that n_new + n is a batch size that has a graph. */
static size_t round_down(size_t n_new, size_t n)
{
    uint32_t i = size_index(n_new + n);
    if (sizes[i] > n_new + n) i--;
    return sizes[i] > n_new ? sizes[i] - n_new : 0;
}

/* ---- Looking up ---- */

/* Adds a result to a moving average over about `span` results. */
static void record_outcome(double *share, bool right, double span)
{
    *share += ((right ? 1 : 0) - *share) / span;
}

/* Appends the text's new ids, and records whether the look-up before the last of them was right. */
static void follow(struct generate_draft *d, const int32_t *ids, size_t n)
{
    if (d->expected >= 0 && d->ngram.n + 1 == n)
        record_outcome(&d->right[length_index(d->length)], ids[n - 1] == d->expected, 16);
    while (d->ngram.n < n) generate_ngram_add(&d->ngram, ids[d->ngram.n]);
}

static size_t draft_by_lookup(struct generate_draft *d, const int32_t *ids, size_t n, size_t n_new,
                              size_t most, int32_t *guess)
{
    follow(d, ids, n);
    const uint32_t place = generate_ngram_find(&d->ngram, &d->length);
    d->expected = place ? d->ngram.id[place] : -1;
    if (!place) return 0;
    size_t k = most;
    if (!d->options.always) k = pick(d, n_new, most);
    k = round_down(n_new, k);
    /* A continuation that reaches the end of the text continues with itself. */
    for (size_t i = 0; i < k; i++)
        guess[i] = place + i < n ? d->ngram.id[place + i] : guess[place + i - n];
    if (k) d->expected = -1; /* the result of the batch is recorded instead */
    return k;
}

/* ---- A smaller model ---- */

/* Evaluates the ids of the text that the draft model's sequence does not have yet, and drops its
 * others. */
static bool catch_up(struct generate_draft *d, const int32_t *ids, size_t n, struct base_error *err)
{
    struct model_session *s = d->options.session;
    uint32_t same = 0, length = model_session_length(s);
    if (length > d->n_held) length = d->n_held;
    while (same < length && same + 1 < n && d->held[same] == ids[same]) same++;
    same = model_session_truncate(s, same);
    memcpy(d->held + same, ids + same, (n - same) * sizeof *ids);
    d->n_held = (uint32_t)n;
    return model_eval(s, ids + same, n - same, MODEL_LOGITS_LAST, NULL, NULL, err);
}

/* Adds a measured time to a moving average, in steps of limited size. */
static void average_seconds(double *average, double seconds)
{
    const double before = *average;
    if (before == 0)
        *average = seconds;
    else
        *average += (seconds < 1.5 * before ? seconds - before : 0.5 * before) / 8;
}

/* Returns the likeliest token; any token if no logit is a number, because a wrong draft is
 * dropped. */
static int32_t likeliest(struct generate_draft *d, const float *logits)
{
    struct base_error none = BASE_ERROR_INIT;
    const int32_t id = sample_next(d->sampler, logits, &none);
    return id < 0 ? 0 : id;
}

/* Returns whether the smaller model has all tokens of the text. */
static bool has_tokens(const struct generate_draft *d, const int32_t *ids, size_t n)
{
    const uint32_t n_vocab = model_session_n_vocab(d->options.session);
    if (n_vocab >= d->options.n_vocab) return true;
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)ids[i] >= n_vocab) return false;
    return true;
}

static bool draft_by_model(struct generate_draft *d, const int32_t *ids, size_t n, size_t k,
                           int32_t *guess, struct base_error *err)
{
    struct model_session *s = d->options.session;
    double start = 0;
    if (k && !catch_up(d, ids, n, err)) return false;
    for (size_t i = 0; i < k; i++) {
        if (i == 1) start = base_seconds();
        if (i > 0) {
            d->held[d->n_held++] = guess[i - 1];
            if (!model_eval(s, &guess[i - 1], 1, MODEL_LOGITS_LAST, NULL, NULL, err)) return false;
        }
        guess[i] = likeliest(d, model_last_logits(s));
    }
    if (k > 1) average_seconds(&d->guess_cost, (base_seconds() - start) / (double)(k - 1));
    return true;
}

/* ---- A drafter ---- */

static int32_t choose(void *user, const float *logits, struct base_error *err)
{
    (void)err;
    return likeliest(user, logits);
}

/* Drafts by the drafter: new[0..n_new) follow the ids of the sequence. */
static bool draft_by_drafter(struct generate_draft *d, uint32_t seq, const int32_t *new,
                             size_t n_new, size_t k, int32_t *guess, struct base_error *err)
{
    int32_t ids[MAX_NEW + GENERATE_DRAFT_MAX];
    memcpy(ids, new, n_new * sizeof *ids);
    if (!model_seq_draft_begin(d->options.drafter, seq, err)) return false;
    const double start = base_seconds();
    if (!model_seq_draft(d->options.drafter, seq, ids, (uint32_t)n_new, (uint32_t)k, choose, d,
                         err))
        return false;
    memcpy(guess, ids + n_new, k * sizeof *ids);
    if (d->drafter_ran)
        average_seconds(&d->guess_cost,
                        (base_seconds() - start) / (double)(d->at_once ? 1 : n_new + k - 1));
    d->drafter_ran = true; /* the time of the first run, which maps the weights, does not count */
    return true;
}

/* Returns whether some number of draft tokens repays its cost if all are right. */
static bool may_pay(struct generate_draft *d, size_t n_new, size_t most)
{
    const double right = d->model_right;
    d->model_right = 1;
    const size_t n = pick(d, n_new, most);
    d->model_right = right;
    return n > 0;
}

static size_t pick_for_model(struct generate_draft *d, size_t n_new, size_t most)
{
    if (d->options.always) return round_down(n_new, most < 4 ? most : 4);
    if (d->rest > 0) {
        d->rest--;
        return 0;
    }
    const size_t k = d->n_known == 0 ? may_pay(d, n_new, most) : pick(d, n_new, most);
    if (k == 0 && d->cost[0] > 0) {
        d->n_known = 0;
        d->rest = d->next_rest;
        d->next_rest = d->next_rest < MAX_REST / 4 ? d->next_rest * 4 : MAX_REST;
    }
    return round_down(n_new, k);
}

/* Returns how many tokens the drafter drafts after n_new at most. */
static size_t most_of_drafter(const struct generate_draft *d, size_t n_new)
{
    const size_t most = d->options.drafter && !d->options.session
                            ? model_session_draft_most(d->options.drafter)
                            : MAX_NEW + GENERATE_DRAFT_MAX;
    return most > n_new ? most - n_new : 0;
}

/* ---- A step ---- */

bool generate_draft_next(struct generate_draft *d, uint32_t seq, const int32_t *ids, size_t n,
                         size_t n_new, uint64_t room, int32_t *guess, size_t *n_guess,
                         struct base_error *err)
{
    const size_t most = room < GENERATE_DRAFT_MAX ? (size_t)room : GENERATE_DRAFT_MAX;
    *n_guess = 0;
    d->rereads |= d->was_wrong && n_new > 1;
    d->evaluates = false;
    if (n_new > MAX_NEW || most == 0) return true;
    if (has_lookup(d)) {
        *n_guess = draft_by_lookup(d, ids, n, n_new, most, guess);
        if (*n_guess || !d->options.drafter) return true;
    }
    d->evaluates = true;
    if (d->options.session && !has_tokens(d, ids, n)) return true;
    const size_t fits = most_of_drafter(d, n_new);
    *n_guess = pick_for_model(d, n_new, most < fits ? most : fits);
    if (d->options.session) return draft_by_model(d, ids, n, *n_guess, guess, err);
    return *n_guess == 0 || draft_by_drafter(d, seq, ids + n - n_new, n_new, *n_guess, guess, err);
}

static void learn_cost(struct generate_draft *d, size_t n, double seconds)
{
    const uint32_t i = size_index(n);
    if (sizes[i] != n) return;
    /* The first batch of a size plans its graph, so its time is not counted. */
    if (d->n_cost[i]++ == 0) return;
    average_seconds(&d->cost[i], seconds);
}

void generate_draft_record(struct generate_draft *d, size_t n_new, size_t n_guess, size_t n_right,
                           double seconds)
{
    learn_cost(d, n_new + n_guess, seconds);
    d->was_wrong = n_right < n_guess;
    if (n_guess == 0) return;
    d->counts.n_batches++;
    d->counts.n_guesses += n_guess;
    d->counts.n_right += n_right;
    for (size_t i = 0; i < n_guess && i <= n_right; i++) {
        const bool right = i < n_right;
        if (d->evaluates) { /* the first results change the average most */
            record_outcome(&d->model_right, right, d->n_known < 6 ? d->n_known + 2 : 8);
            d->n_known++;
        } else {
            record_outcome(&d->right[length_index(d->length + (uint32_t)i)], right, 16);
        }
    }
    if (d->evaluates && n_right == n_guess) d->next_rest = MIN_REST;
}

bool generate_draft_plan(struct model_session *session, uint64_t *bytes, struct base_error *err)
{
    for (uint32_t i = 1; i < N_SIZES; i++)
        if (!model_session_plan_batch(session, sizes[i], bytes, err)) return false;
    return true;
}

struct generate_draft_counts generate_draft_counts(const struct generate_draft *d)
{
    return d->counts;
}
