/* generate/run.c: one request, driven to its end, with guesses at its tokens or without. See
 * generate/generate.h and generate/draft.h. */
#include "base/clock.h"
#include "generate/draft.h"
#include "generate/generate.h"
#include <stdlib.h>

struct run {
    struct generate_request *request;
    struct generate_draft *draft; /* NULL: no guesses */
    struct model_session *session;
    generate_sink_fn *sink;
    void *user;
    struct model_token *tokens; /* of a batch */
    int32_t guess[GENERATE_DRAFT_MAX];
    size_t n_guess;
    size_t n_right; /* of a batch: guesses that were right so far */
    bool wrong;     /* of a batch: its further logits are after a wrong guess, or the end */
    bool failed;    /* taking a token failed, not the evaluation */
    bool has_read;  /* the prompt */
    double taking;  /* of a batch: seconds spent on taking tokens */
};

/* *id: the token; -1: none. */
static bool take(struct run *run, const float *logits, int32_t *id, struct base_error *err)
{
    struct generate_piece piece;
    if (!generate_request_take(run->request, logits, &piece, err)) return false;
    *id = piece.id;
    return piece.id < 0 || run->sink(run->user, &piece, err);
}

/* The logits after the last new id and after each guess, in order: as long as the guesses are the
 * tokens that are chosen, the next logits are those of plain evaluation. */
static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct run *run = user;
    const double start = base_seconds();
    const size_t n_vocab = model_session_n_vocab(run->session);
    for (uint64_t i = 0; i < rows && !run->wrong; i++) {
        int32_t id;
        if (!take(run, logits + i * n_vocab, &id, err)) {
            run->failed = true;
            return false;
        }
        const uint64_t at = first + i;
        run->wrong =
            generate_request_is_over(run->request) || at >= run->n_guess || id != run->guess[at];
        run->n_right += !run->wrong;
    }
    run->taking += base_seconds() - start;
    return true;
}

/* Evaluates the next ids and the guesses, in as many batches as the session needs. */
static bool evaluate(struct run *run, const int32_t *ids, size_t n, struct base_error *err)
{
    for (size_t i = 0; i < n + run->n_guess; i++)
        run->tokens[i] = (struct model_token){.id = i < n ? ids[i] : run->guess[i - n],
                                              .seq = generate_request_seq(run->request),
                                              .wants_logits = i + 1 >= n};
    run->n_right = 0;
    run->taking = 0;
    run->wrong = run->failed = false;
    return model_eval_batch(run->session, run->tokens, n + run->n_guess,
                            run->n_guess ? take_rows : NULL, run, err);
}

static bool guess(struct run *run, size_t n, struct base_error *err)
{
    size_t n_held;
    const int32_t *held = generate_request_ids(run->request, &n_held);
    run->n_guess = 0;
    return !run->draft || !run->has_read ||
           generate_draft_guess(run->draft, held, n_held, n, generate_request_room(run->request),
                                run->guess, &run->n_guess, err);
}

/* False: an error, or an interruption. */
static bool step(struct run *run, const int32_t *ids, size_t n, struct base_error *err)
{
    int32_t id;
    if (!guess(run, n, err)) return false;
    const double start = run->draft ? base_seconds() : 0;
    if (!evaluate(run, ids, n, err)) return false;
    if (run->draft && run->has_read)
        generate_draft_learn(run->draft, n, run->n_guess, run->n_right,
                             base_seconds() - start - run->taking);
    run->has_read = true;
    if (run->n_guess) {
        generate_request_cut(run->request);
        return true;
    }
    run->failed = !take(run, model_last_logits(run->session), &id, err);
    return !run->failed;
}

static bool drive(struct run *run, struct base_error *err)
{
    int32_t id;
    for (;;) {
        while (generate_request_is_forced(run->request))
            if (!take(run, NULL, &id, err)) return false;
        size_t n;
        const int32_t *ids = generate_request_next_ids(run->request, &n);
        if (n == 0) return true;
        if (step(run, ids, n, err)) continue;
        if (run->failed || err->code != BASE_INTERRUPTED) return false;
        *err = BASE_ERROR_INIT;
        generate_request_interrupt(run->request);
        return true;
    }
}

bool generate_run_with(struct generate_request *r, struct generate_draft *draft,
                       generate_sink_fn *sink, void *user, struct generate_outcome *outcome,
                       struct base_error *err)
{
    struct run run = {.request = r,
                      .draft = draft,
                      .session = generate_request_session(r),
                      .sink = sink,
                      .user = user};
    struct generate_piece piece;
    const size_t n_ctx = model_session_n_ctx(run.session);
    run.tokens = calloc(n_ctx + GENERATE_DRAFT_MAX, sizeof *run.tokens);
    if (!run.tokens) return base_fail(err, BASE_NO_MEMORY, "not enough memory to read the prompt");
    if (draft) generate_draft_begin(draft);
    bool ok = drive(&run, err) && generate_request_end(r, &piece, outcome, err) &&
              (piece.size == 0 || sink(user, &piece, err));
    free(run.tokens);
    return ok;
}

bool generate_run(struct generate_request *r, generate_sink_fn *sink, void *user,
                  struct generate_outcome *outcome, struct base_error *err)
{
    return generate_run_with(r, NULL, sink, user, outcome, err);
}
