/* generate/lone.c: one step of a request that is evaluated by itself. See generate/lone.h. */
#include "generate/lone.h"
#include "base/clock.h"

/* Chooses a token; *id -1 if there is none. */
static bool take(struct generate_lone *l, const float *logits, int32_t *id, struct base_error *err)
{
    struct generate_piece piece;
    if (!generate_request_take(l->request, logits, &piece, err)) return false;
    *id = piece.id;
    return piece.id < 0 || l->sink(l->user, &piece, err);
}

/* Receives the logits after the last new id and after each draft token, in order. As long as the
 * draft tokens equal the chosen ones, the next logits are those of plain evaluation. */
static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct generate_lone *l = user;
    const double start = base_seconds();
    const size_t n_vocab = model_session_n_vocab(generate_request_session(l->request));
    for (uint64_t i = 0; i < rows && !l->wrong; i++) {
        int32_t id;
        if (!take(l, logits + i * n_vocab, &id, err)) {
            l->failed = true;
            return false;
        }
        const uint64_t at = first + i;
        l->wrong = generate_request_is_over(l->request) || at >= l->n_guess || id != l->guess[at];
        l->n_right += !l->wrong;
    }
    l->taking += base_seconds() - start;
    return true;
}

/* Evaluates the next ids and the draft tokens, in as many batches as the session needs. */
static bool evaluate(struct generate_lone *l, const int32_t *ids, size_t n, struct base_error *err)
{
    for (size_t i = 0; i < n + l->n_guess; i++)
        l->tokens[i] = (struct model_token){.id = i < n ? ids[i] : l->guess[i - n],
                                            .seq = generate_request_seq(l->request),
                                            .wants_logits = i + 1 >= n};
    l->n_right = 0;
    l->taking = 0;
    l->wrong = false;
    return model_eval_batch(generate_request_session(l->request), l->tokens, n + l->n_guess,
                            l->n_guess ? take_rows : NULL, l, err);
}

static bool guess(struct generate_lone *l, size_t n, struct base_error *err)
{
    size_t n_held;
    const int32_t *held = generate_request_ids(l->request, &n_held);
    return generate_draft_next(l->draft, generate_request_seq(l->request), held, n_held, n,
                               generate_request_room(l->request), l->guess, &l->n_guess, err);
}

bool generate_lone_step(struct generate_lone *l, const int32_t *ids, size_t n,
                        struct base_error *err)
{
    const bool guesses = l->draft && generate_request_has_read(l->request);
    int32_t id;
    l->n_guess = 0;
    l->failed = false;
    if (guesses && !guess(l, n, err)) return false;
    const double start = guesses ? base_seconds() : 0;
    if (!evaluate(l, ids, n, err)) return false;
    if (guesses)
        generate_draft_record(l->draft, n, l->n_guess, l->n_right,
                              base_seconds() - start - l->taking);
    if (l->n_guess)
        generate_request_cut(l->request);
    else
        l->failed = !take(l, model_last_logits(generate_request_session(l->request)), &id, err);
    while (!l->failed && generate_request_is_forced(l->request))
        l->failed = !take(l, NULL, &id, err);
    return !l->failed;
}
