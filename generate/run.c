/* generate/run.c: runs one request to its end, with draft tokens or without. See
 * generate/generate.h and generate/draft.h. */
#include "generate/lone.h"
#include <stdlib.h>

static bool drive(struct generate_lone *l, struct base_error *err)
{
    for (;;) {
        size_t n;
        const int32_t *ids = generate_request_next_ids(l->request, &n);
        if (n == 0) return true;
        if (generate_lone_step(l, ids, n, err)) continue;
        if (l->failed || err->code != BASE_INTERRUPTED) return false;
        *err = BASE_ERROR_INIT;
        generate_request_interrupt(l->request);
        return true;
    }
}

bool generate_run(struct generate_request *r, struct generate_draft *draft, generate_sink_fn *sink,
                  void *user, struct generate_outcome *outcome, struct base_error *err)
{
    struct generate_lone l = {.request = r, .draft = draft, .sink = sink, .user = user};
    struct generate_piece piece;
    const size_t n_ctx = model_session_n_ctx(generate_request_session(r));
    l.tokens = calloc(n_ctx + GENERATE_DRAFT_MAX, sizeof *l.tokens);
    if (!l.tokens) return base_fail(err, BASE_NO_MEMORY, "not enough memory to read the prompt");
    if (draft) generate_draft_begin(draft);
    bool ok = drive(&l, err) && generate_request_end(r, &piece, outcome, err) &&
              (piece.size == 0 || sink(user, &piece, err));
    free(l.tokens);
    return ok;
}
