/* cli/whole_text.c: see cli/whole_text.h. */
#include "cli/whole_text.h"
#include "cli/draft_file.h"
#include "generate/diffusion.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 128 };

bool cli_diffusion_prepare(struct generate_options *o, bool has_temp,
                           const struct cli_values *values, const struct cli_model *model,
                           struct base_error *err)
{
    if (!model_facts(model->model)->diffusion) return true;
    const char *name = o->constraint                               ? "a constraint"
                       : o->all_logits                             ? "--logprobs"
                       : values->heat                              ? "--heat"
                       : values->cache                             ? "--cache"
                       : cli_draft_source(values) > CLI_DRAFT_AUTO ? "--draft"
                                                                   : NULL;
    if (!has_temp) o->sample.temp = 0;
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

static struct generate_diffusion options_of(const struct cli_diffusion *d)
{
    static const char *const names[GENERATE_CONFIDENCES] = {[GENERATE_BY_PROBABILITY] =
                                                                "confidence",
                                                            [GENERATE_BY_ENTROPY] = "entropy",
                                                            [GENERATE_BY_MARGIN] = "margin",
                                                            [GENERATE_BY_CHANCE] = "random"};
    const uint32_t room = model_session_n_ctx(d->model->session) - (uint32_t)d->prompt->n;
    const uint64_t limit =
        d->options->max_tokens == UINT64_MAX ? DEFAULT_TOKENS : d->options->max_tokens;
    struct generate_diffusion o = {.n_tokens = limit < room ? (uint32_t)limit : room,
                                   .n_steps = (uint32_t)d->values->diffusion_steps,
                                   .n_block = (uint32_t)d->values->diffusion_block,
                                   .sample = d->options->sample,
                                   .is_end = d->options->ignore_eos ? NULL : is_end,
                                   .user = d->model->tokenizer};
    o.sample.seed = d->prompt->seed;
    while (strcmp(names[o.confidence], d->values->diffusion_algorithm) != 0) o.confidence++;
    return o;
}

bool cli_diffusion_run(const struct cli_diffusion *d, generate_sink_fn *sink, void *user,
                       struct generate_outcome *outcome, struct base_error *err)
{
    const struct generate_diffusion o = options_of(d);
    struct model_session *session = d->model->session;
    const size_t n_prompt = d->prompt->n;
    struct generate_piece rest;
    uint32_t n = 0;
    int32_t *ids = calloc(n_prompt + o.n_tokens + (size_t)1, sizeof *ids);
    if (!ids) return base_fail(err, BASE_NO_MEMORY, "not enough memory for the answer");
    memcpy(ids, d->prompt->ids, n_prompt * sizeof *ids);
    bool ok = o.n_tokens == 0 || generate_diffuse(session, &o, ids, n_prompt, &n, err);
    if (!ok && err->code == BASE_INTERRUPTED) {
        *err = BASE_ERROR_INIT;
        generate_request_interrupt(d->request);
        ok = true;
    }
    model_session_truncate(session, (uint32_t)n_prompt);
    ok = ok && give(d->request, ids + n_prompt, n, sink, user, err) &&
         generate_request_end(d->request, &rest, outcome, err) &&
         (rest.size == 0 || sink(user, &rest, err));
    free(ids);
    return ok;
}
