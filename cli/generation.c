/* cli/generation.c: makes a request from the options. See cli/generation.h. */
#include "cli/generation.h"
#include "base/os.h"
#include "chat/tool_choice.h"
#include "cli/constrain.h"
#include "cli/system.h"

bool cli_seed_pick(int64_t given, uint64_t *seed, struct base_error *err)
{
    uint32_t drawn;
    *seed = (uint64_t)given;
    if (given >= 0) return true;
    if (!base_os_random(&drawn, sizeof drawn, true))
        return base_fail_at(err, BASE_FAILED, "--seed", -1, "the system returned no random number");
    *seed = drawn;
    return true;
}

bool cli_generation_prepare(struct cli_generation *g, const struct chat_request *r,
                            bool show_special, struct base_error *err)
{
    const struct generate_settings *s = &r->generate;
    struct generate_options *o = &g->options;
    struct constrain_notes notes = {0};
    o->max_tokens = s->max_tokens < 0 ? UINT64_MAX : (uint64_t)s->max_tokens;
    o->max_thought = s->max_thought;
    o->ignore_eos = s->ignore_eos;
    o->show_special = show_special;
    o->hides_control = show_special && !r->special;
    o->all_logits = s->logprobs >= 0;
    o->in_lines = s->indent >= 0;
    o->indent = o->in_lines ? (uint32_t)s->indent : 0;
    o->stop = (const char *const *)s->stop.item;
    o->n_stop = s->stop.count;
    if (!cli_sampler_prepare(r, &g->parts, &o->sample, err) ||
        !cli_constraint_open(&s->constraint, !g->texts_only, true, &g->constraint, &notes, err))
        return false;
    if (!g->no_notes) chat_schema_note(r->chat.caller, &notes, "--json-schema");
    o->constraint = g->constraint;
    return cli_seed_pick(s->seed, &o->sample.seed, err);
}

static bool open_request(struct cli_generation *g, const struct chat_request *r,
                         const struct cli_model *m, struct base_error *err)
{
    const struct generate_model model = {
        .model = m->model, .tokenizer = m->tokenizer, .session = m->session};
    if (!cli_sampler_finish(r, m, &g->parts, &g->options.sample, err)) return false;
    g->request = generate_request_new(&g->options, &model, 0, err);
    return g->request != NULL;
}

bool cli_generation_open(struct cli_generation *g, const struct cli_values *v,
                         const struct cli_model *m, struct base_error *err)
{
    return open_request(g, &v->request, m, err) && cli_draft_open(&g->draft, v, m, err);
}

bool cli_generation_change(struct cli_generation *g, const struct chat_request *r,
                           const struct cli_model *m, struct base_error *err)
{
    const struct cli_draft draft = g->draft;
    const bool show_special = g->options.show_special;
    g->draft = (struct cli_draft){0};
    cli_generation_close(g);
    g->draft = draft;
    return cli_generation_prepare(g, r, show_special, err) && open_request(g, r, m, err);
}

void cli_generation_close(struct cli_generation *g)
{
    generate_request_free(g->request);
    cli_draft_close(&g->draft);
    constraint_free(g->constraint);
    base_buffer_free(&g->marks);
    cli_sampler_parts_free(&g->parts);
    *g = (struct cli_generation){0};
}

bool cli_generation_choose_tool(struct cli_generation *g, const struct chat_request *r,
                                const struct chat_template *t, struct base_error *err)
{
    struct constraint *chosen = NULL;
    if (!chat_tool_choice_compile(r, t, &chosen, &g->marks, err)) return false;
    if (!chosen) return true;
    g->options.constraint = g->constraint = chosen;
    g->options.marks = g->marks.data;
    return true;
}

bool cli_outcome_check(const struct generate_outcome *outcome, struct base_error *err)
{
    const char *by = outcome->ending == GENERATE_END_STOP      ? "a --stop text"
                     : outcome->ending == GENERATE_END_CONTEXT ? "the full context"
                                                               : "--predict";
    if (outcome->complete || outcome->ending == GENERATE_END_INTERRUPTED) return true;
    return base_fail(err, BASE_CUT,
                     "%s ended the text after %llu tokens, before the constraint was satisfied", by,
                     (unsigned long long)outcome->n_generated);
}

const char *cli_reply_lack(const struct chat_reply *r, const struct generate_outcome *outcome)
{
    if (!chat_reply_is_blank(r)) return NULL;
    if (r->mode == CHAT_REASONING_ONLY) return "the model wrote no reasoning";
    return cli_outcome_lack(outcome, chat_reply_has_reasoning(r));
}

const char *cli_outcome_lack(const struct generate_outcome *outcome, bool reasoned)
{
    if (!outcome->complete) return NULL; /* an error */
    switch (outcome->ending) {
    case GENERATE_END_EOS:
        return reasoned ? "the model ended it after its reasoning" : "the model ended it at once";
    case GENERATE_END_STOP:
        return reasoned ? "a --stop text came within the reasoning" : "a --stop text came first";
    case GENERATE_END_LIMIT:
        if (outcome->n_generated == 0) return NULL;
        return reasoned ? "--predict was reached within the reasoning"
                        : "--predict was reached before its first letter";
    case GENERATE_END_CONTEXT:
        return reasoned ? "the context became full within the reasoning" : "the context is full";
    default:
        return NULL;
    }
}
