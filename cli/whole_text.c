/* cli/whole_text.c: see cli/diffusion.h. */
#include "cli/whole_text.h"
#include "cli/system.h"
#include "generate/diffusion.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 128 };

bool cli_diffusion_check(const struct cli_generation *g, const struct cli_values *values,
                         const struct cli_model *model, struct base_error *err)
{
    if (!model_facts(model->model)->diffusion) return true;
    const char *name = g->options.constraint                       ? "a constraint"
                       : g->options.all_logits                     ? "--logprobs"
                       : values->heat                              ? "--heat"
                       : values->cache                             ? "--cache"
                       : !cli_is_choice("auto|off", values->draft) ? "--draft"
                                                                   : NULL;
    return !name ||
           base_fail(err, BASE_USAGE, "%s: a diffusion model writes its tokens together", name);
}

static bool is_end(const void *tokenizer, int32_t id)
{
    return text_token_is_end(tokenizer, id);
}

/* Passes the ids to the request. */
static bool give(struct generate_request *r, const int32_t *ids, uint32_t n, generate_sink_fn *sink,
                 void *user, struct base_error *err)
{
    struct generate_piece piece;
    for (uint32_t i = 0; i < n && !generate_request_is_over(r); i++)
        if (!generate_request_take_id(r, ids[i], &piece, err) || !sink(user, &piece, err))
            return false;
    return true;
}

bool cli_diffusion_run(const struct cli_generation *g, const struct cli_values *values,
                       const struct cli_model *model, const struct text_ids *prompt,
                       generate_sink_fn *sink, void *user, struct generate_outcome *outcome,
                       struct base_error *err)
{
    static const char *const names[GENERATE_CONFIDENCES] = {[GENERATE_BY_PROBABILITY] =
                                                                "confidence",
                                                            [GENERATE_BY_ENTROPY] = "entropy",
                                                            [GENERATE_BY_MARGIN] = "margin",
                                                            [GENERATE_BY_CHANCE] = "random"};
    const uint32_t room = model_session_n_ctx(model->session) - (uint32_t)prompt->count;
    const uint64_t limit =
        g->options.max_tokens == UINT64_MAX ? DEFAULT_TOKENS : g->options.max_tokens;
    struct generate_diffusion d = {.n_tokens = limit < room ? (uint32_t)limit : room,
                                   .n_steps = (uint32_t)values->diffusion_steps,
                                   .n_block = (uint32_t)values->diffusion_block,
                                   .sample = g->options.sample,
                                   .is_end = g->options.ignore_eos ? NULL : is_end,
                                   .user = model->tokenizer};
    struct generate_piece rest;
    uint32_t n = 0;
    while (strcmp(names[d.confidence], values->diffusion_algorithm) != 0) d.confidence++;
    if (!cli_option_given(values, CLI_REQUEST_AT(generate.sample.temp))) d.sample.temp = 0;
    int32_t *ids = calloc(prompt->count + d.n_tokens + (size_t)1, sizeof *ids);
    if (!ids) return base_fail(err, BASE_NO_MEMORY, "not enough memory for the answer");
    memcpy(ids, prompt->id, prompt->count * sizeof *ids);
    cli_model_progress_tokens(model, "writing", 0);
    bool ok = d.n_tokens == 0 || generate_diffuse(model->session, &d, ids, prompt->count, &n, err);
    cli_progress_end();
    if (!ok && err->code == BASE_INTERRUPTED) {
        *err = BASE_ERROR_INIT;
        generate_request_interrupt(g->request);
        ok = true;
    }
    model_session_truncate(model->session, (uint32_t)prompt->count);
    ok = ok && give(g->request, ids + prompt->count, n, sink, user, err) &&
         generate_request_end(g->request, &rest, outcome, err) &&
         (rest.size == 0 || sink(user, &rest, err));
    free(ids);
    return ok;
}
