/* generate/run.c: one request, driven to its end. See generate/generate.h. */
#include "generate/generate.h"
#include <stdlib.h>

/* Evaluates the next ids, in as many batches as the session needs. */
static bool evaluate(struct model_session *session, const struct generate_request *r,
                     struct model_token *tokens, struct base_error *err)
{
    size_t n;
    const int32_t *ids = generate_request_next_ids(r, &n);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct model_token){
            .id = ids[i], .seq = generate_request_seq(r), .wants_logits = i + 1 == n};
    return model_eval_batch(session, tokens, n, NULL, NULL, err);
}

static bool drive(struct model_session *session, struct generate_request *r,
                  struct model_token *tokens, generate_sink_fn *sink, void *user,
                  struct base_error *err)
{
    struct generate_piece piece;
    size_t n;
    for (;;) {
        generate_request_next_ids(r, &n);
        if (n == 0) return true;
        if (!evaluate(session, r, tokens, err)) {
            if (err->code != BASE_INTERRUPTED) return false;
            *err = BASE_ERROR_INIT;
            generate_request_interrupt(r);
            return true;
        }
        if (!generate_request_take(r, model_last_logits(session), &piece, err)) return false;
        if (piece.id >= 0 && !sink(user, &piece, err)) return false;
    }
}

bool generate_run(struct generate_request *r, generate_sink_fn *sink, void *user,
                  struct generate_outcome *outcome, struct base_error *err)
{
    struct model_session *session = generate_request_session(r);
    struct generate_piece piece;
    size_t n;
    generate_request_next_ids(r, &n);
    struct model_token *tokens = calloc(n ? n : 1, sizeof *tokens);
    if (!tokens) return base_fail(err, BASE_NO_MEMORY, "not enough memory to read the prompt");
    bool ok = drive(session, r, tokens, sink, user, err) &&
              generate_request_end(r, &piece, outcome, err) &&
              (piece.size == 0 || sink(user, &piece, err));
    free(tokens);
    return ok;
}
