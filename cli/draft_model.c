/* cli/draft_model.c: --draft. See cli/draft_model.h. */
#include "cli/draft_model.h"
#include "cli/gpu_layers.h"
#include "cli/system.h"

/* Returns the text of a token; empty if it is unused, or only a row of the model's matrices. */
static struct gguf_str text_of(const struct cli_model *m, uint32_t id)
{
    const struct text_tokenizer *t = m->tokenizer;
    const bool exists =
        id < text_vocab_size(t) && text_token_kind(t, (int32_t)id) != TEXT_TOKEN_UNUSED;
    return exists ? text_token_raw(t, (int32_t)id) : (struct gguf_str){0};
}

/* Checks that each id has the same text in both models. Vocabularies of one family may have
 * different numbers of unused tokens at their ends. */
static bool check_vocabulary(const struct cli_model *draft, uint32_t n_draft,
                             const struct cli_model *model, struct base_error *err)
{
    const uint32_t n = model_facts(model->model)->n_vocab;
    for (uint32_t id = 0; id < n || id < n_draft; id++) {
        const struct gguf_str a = id < n ? text_of(model, id) : (struct gguf_str){0};
        const struct gguf_str b = id < n_draft ? text_of(draft, id) : (struct gguf_str){0};
        if (gguf_str_compare(a, b) == 0) continue;
        if (n_draft != n && (id >= n || id >= n_draft))
            return base_fail_at(err, BASE_USAGE, "--draft", -1,
                                "%s has a different vocabulary from the model: %u tokens, not %u",
                                gguf_path(draft->file), n_draft, n);
        return base_fail_at(err, BASE_USAGE, "--draft", -1,
                            "%s has a different vocabulary from the model: token %u differs",
                            gguf_path(draft->file), id);
    }
    return true;
}

static bool open_model(struct cli_draft *d, const struct cli_values *values,
                       const struct cli_model *model, struct base_error *err)
{
    d->model.drafts = true;
    d->model.engine = model->engine;
    cli_gpu_join_draft(&d->model, model);
    if (!cli_model_open_file(&d->model, values, err) || !cli_model_open_tokenizer(&d->model, err))
        return false;
    d->model.model = model_open(d->model.file, d->model.engine, NULL, err);
    if (!d->model.model) base_error_set_file(err, gguf_path(d->model.file));
    return d->model.model &&
           check_vocabulary(&d->model, model_facts(d->model.model)->n_vocab, model, err) &&
           cli_model_open_session(&d->model, values, 1, model_session_n_ctx(model->session), err);
}

/* Checks the vocabulary of a drafter's file, which may lack one. */
static bool check_drafter(const struct cli_model *model, struct base_error *err)
{
    struct cli_model d = {.file = model->drafter.file};
    if (!cli_model_has_vocabulary(&d)) return true;
    d.tokenizer = text_tokenizer_open(d.file, err);
    if (!d.tokenizer) base_error_set_file(err, gguf_path(d.file));
    const bool ok =
        d.tokenizer && check_vocabulary(&d, model_facts(model->model)->n_vocab, model, err);
    text_tokenizer_close(d.tokenizer);
    return ok;
}

bool cli_draft_open(struct cli_draft *d, const struct cli_values *values,
                    const struct cli_model *model, struct base_error *err)
{
    const enum cli_draft_source source = cli_draft_source(values);
    const bool can_draft = model_session_can_draft(model->session);
    if (values->plan || source == CLI_DRAFT_OFF) return true;
    if (source == CLI_DRAFT_MTP && !can_draft)
        return base_fail_at(err, BASE_USAGE, "--draft", -1,
                            "%s has no MTP layer, or none that is supported",
                            gguf_path(model->file));
    if (source == CLI_DRAFT_FILE &&
        !(model->drafter.model ? check_drafter(model, err) : open_model(d, values, model, err)))
        return false;
    const struct generate_draft_options o = {.n_ctx = model_session_n_ctx(model->session),
                                             .n_vocab = model_session_n_vocab(model->session),
                                             .session = d->model.session,
                                             .drafter = can_draft ? model->session : NULL,
                                             .always = source == CLI_DRAFT_NGRAM ||
                                                       source == CLI_DRAFT_MTP};
    if (values->verbose) cli_gpu_note(&d->model);
    d->draft = generate_draft_new(&o, err);
    return d->draft != NULL;
}

void cli_draft_close(struct cli_draft *d)
{
    generate_draft_free(d->draft);
    d->model.engine = NULL; /* it is the model's */
    cli_model_close(&d->model);
    d->draft = NULL;
}

void cli_draft_note(const struct cli_draft *d)
{
    if (!d->draft) return;
    const struct generate_draft_counts c = generate_draft_counts(d->draft);
    if (c.n_batches == 0) return;
    cli_note("guesses: %llu of %llu were right, in %llu batches", (unsigned long long)c.n_right,
             (unsigned long long)c.n_guesses, (unsigned long long)c.n_batches);
}
