/* cli/cmd/cmd_run.c: `infer run`: the answer to one text, through the model's chat template, or the
 * completion of exactly this text. */
#include "base/clock.h"
#include "cli/cache/prefix_cache.h"
#include "cli/chat/chat_once.h"
#include "cli/generation.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/model_hash.h"
#include "cli/options.h"
#include "cli/out/heat.h"
#include "cli/out/memory_plan.h"
#include "cli/out/result.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/whole_text.h"
#include <stdio.h>
#include <string.h>

enum { CTX_SPARE = 1024 };

struct completion {
    struct cli_values *values; /* .request.chat.chat: through the template, also by default */
    struct cli_model model;
    struct text_ids prompt;
    struct cli_generation generation;
    struct generate_outcome outcome;
    struct cli_chat_once chat;      /* with values.chat */
    struct cli_result result;       /* with --json or --jsonl */
    struct cli_heat heat;           /* with --heat */
    struct base_output svg;         /* --svg */
    struct cli_prefix_cache *cache; /* NULL: none */
    double cache_seconds;           /* of reading the cache */
    bool has_text;                  /* some text was written */
    bool kept;                      /* sequence 1 is a copy of the prompt, for the cache */
    char sha256[BASE_SHA256_HEX];   /* of the model file; "": unknown */
    double start, loaded;           /* base_seconds() at the start, and after loading */
};

/* ---- Prompt ---- */

/* Decides whether the text is answered through the chat template. */
static bool choose_mode(struct completion *c, bool has_text, struct base_error *err)
{
    struct chat_request *r = &c->values->request;
    bool *chat = &r->chat.chat;
    *chat = r->chat.mode == CHAT_MODE_CHAT;
    if (r->chat.mode == CHAT_MODE_BY_MODEL &&
        !chat_template_exists(&r->chat, c->model.file, chat, err))
        return false;
    *chat = *chat && (has_text || !c->values->plan); /* a memory plan needs no text */
    c->values->echo = c->values->echo && !*chat;     /* INFER_ECHO is for plain texts */
    c->generation.options.show_special = r->special || *chat;
    c->generation.options.hides_control = *chat && !r->special;
    return true;
}

static bool encode_chat(struct completion *c, const struct base_buffer *text,
                        struct base_error *err)
{
    if (!cli_chat_once_encode(&c->chat, &c->model, text, err)) return false;
    c->prompt = c->chat.prompt.ids;
    c->chat.prompt.ids = TEXT_IDS_INIT;
    return cli_generation_choose_tool(&c->generation, &c->values->request, &c->chat.template, err);
}

static bool encode_prompt(struct completion *c, const struct base_buffer *text,
                          struct base_error *err)
{
    const bool has_text =
        text->size || (!c->values->prompt && !c->values->file && c->values->messages);
    if (!choose_mode(c, has_text, err)) return false;
    if (c->values->plan && !has_text) return true;
    if (c->values->request.chat.chat) {
        if (encode_chat(c, text, err)) return true;
        const size_t n = strlen(err->text);
        if (err->code == BASE_USAGE && c->values->request.chat.mode == CHAT_MODE_BY_MODEL)
            snprintf(err->text + n, sizeof err->text - n,
                     "; --raw completes the text without the chat template");
        return false;
    }
    if (!cli_input_encode(&c->values->request, c->model.tokenizer, text, &c->prompt, err) ||
        !cli_model_end_source(&c->model, &c->prompt, err))
        return false;
    if (c->prompt.count > 0) return true;
    return base_fail(err, BASE_USAGE,
                     "the text is empty and this model has no beginning-of-text token to start "
                     "from: give -p TEXT");
}

static bool open_session(struct completion *c, struct base_error *err)
{
    const uint64_t n_prompt = c->prompt.count;
    const uint64_t more = c->values->request.generate.max_tokens < 0
                              ? CTX_SPARE
                              : (uint64_t)c->values->request.generate.max_tokens;
    uint32_t n_ctx = (uint32_t)c->values->ctx_size;
    if (n_ctx == 0) n_ctx = cli_model_pick_ctx(&c->model, n_prompt + more);
    if (n_prompt > n_ctx)
        return base_fail(err, BASE_TOO_LONG, "the text has %llu tokens and the context holds %u%s",
                         (unsigned long long)n_prompt, n_ctx,
                         c->values->ctx_size ? ": shorten it or raise --ctx-size"
                                             : ", all that the model was trained with: shorten it");
    return cli_model_open_session(&c->model, c->values, c->cache ? 2 : 1, n_ctx, err);
}

/* Does the steps that need only the vocabulary. */
static bool open_prompt(struct completion *c, const struct base_buffer *text,
                        struct base_error *err)
{
    return cli_generation_prepare(&c->generation, &c->values->request, false, err) &&
           cli_model_open_file(&c->model, c->values, err) &&
           cli_model_open_tokenizer(&c->model, err) && encode_prompt(c, text, err);
}

/* Finds the hash of the model file, which a cache file contains. */
static bool find_hash(struct completion *c, struct base_error *err)
{
    if (c->values->hash) return cli_model_hash(c->model.file, c->sha256, err);
    if (cli_result_wanted(c->values)) cli_model_hash_cached(c->model.file, c->sha256);
    return true;
}

static bool open_rest(struct completion *c, struct base_error *err)
{
    if (!find_hash(c, err)) return false;
    if (!c->values->plan) c->cache = cli_prefix_open(c->values, 1);
    if (!c->values->no_sandbox)
        cli_sandbox_limit(c->values->svg ? c->values->svg : cli_prefix_file(c->cache));
    if (!cli_model_open_weights(&c->model, c->values, err)) return false;
    cli_prefix_choose(c->cache, &c->model);
    return open_session(c, err) &&
           cli_diffusion_prepare(&c->generation.options,
                                 cli_option_given(c->values, CLI_REQUEST_AT(generate.sample.temp)),
                                 c->values, &c->model, err) &&
           cli_generation_open(&c->generation, c->values, &c->model, err) &&
           (!c->values->request.chat.chat || cli_chat_once_begin(&c->chat, err));
}

/* ---- Results ---- */

/* Copies the evaluated prompt to sequence 1, so that it can be stored after the text is
 * generated. */
static void keep_prompt(struct completion *c)
{
    const uint32_t n = (uint32_t)c->prompt.count;
    c->kept = model_seq_fork(c->model.session, 0, 1, n) == n;
}

static bool write_piece(struct completion *c, const struct generate_piece *piece,
                        struct base_error *err)
{
    c->has_text |= piece->size > 0;
    if (cli_result_wanted(c->values)) return cli_result_piece(&c->result, piece, err);
    return piece->size == 0 || cli_write(piece->text, piece->size, err);
}

/* --heat shows the tokens as they are, also those of reasoning and of stop texts. */
static bool take_heat(struct completion *c, const struct generate_piece *piece,
                      struct base_error *err)
{
    c->has_text |= piece->id >= 0;
    return cli_heat_take(&c->heat, &c->model, c->values->request.special, piece, err);
}

static bool end_heat(struct completion *c, struct base_error *err)
{
    return cli_heat_end(&c->heat, err) && (!c->values->svg || cli_heat_svg(&c->heat, &c->svg, err));
}

static bool take_piece(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct completion *c = user;
    struct generate_piece shown = *piece;
    cli_progress_end();
    if (c->cache && piece->id >= 0 && piece->index == 0) keep_prompt(c);
    if (c->values->heat) return take_heat(c, piece, err);
    if (c->values->request.chat.chat && !cli_chat_once_take(&c->chat, &shown, err)) return false;
    if (c->values->request.chat.chat) c->result.part = chat_part_name[c->chat.reply.latest];
    return write_piece(c, &shown, err);
}

static bool start_result(struct completion *c, struct base_error *err)
{
    c->result = (struct cli_result){.values = c->values,
                                    .model = &c->model,
                                    .prompt = &c->prompt,
                                    .sha256 = c->sha256,
                                    .seed = c->generation.options.sample.seed,
                                    .load_seconds = c->loaded - c->start};
    return !cli_result_wanted(c->values) || cli_result_start(&c->result, err);
}

static double rate(uint64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static bool finish(struct completion *c, struct base_error *err)
{
    struct generate_piece rest;
    if (c->values->heat) return end_heat(c, err);
    if (c->values->request.chat.chat &&
        (!cli_chat_once_end(&c->chat, &rest, err) || (rest.size && !write_piece(c, &rest, err))))
        return false;
    if (!cli_result_wanted(c->values)) {
        const bool ends_line = c->values->newline || cli_stdout_is_terminal();
        return !ends_line || cli_write("\n", 1, err);
    }
    if (c->values->request.chat.chat && !cli_chat_once_add_json(&c->chat, &c->result.message, err))
        return false;
    return cli_result_end(&c->result, &c->outcome, err);
}

/* Says why an answer is empty. */
static void note_lack(const struct completion *c)
{
    const char *why = c->values->request.chat.chat ? cli_reply_lack(&c->chat.reply, &c->outcome)
                      : c->has_text                ? NULL
                                                   : cli_outcome_lack(&c->outcome, false);
    if (why) cli_note("the %s is empty: %s", c->values->request.chat.chat ? "answer" : "text", why);
}

static void note_timings(const struct completion *c)
{
    const struct generate_outcome *o = &c->outcome;
    cli_note("loaded in %.1f ms", (c->loaded - c->start) * 1e3);
    char part[32] = "";
    if (o->n_read < o->n_prompt)
        snprintf(part, sizeof part, "%llu of ", (unsigned long long)o->n_read);
    char cached[400] = "";
    if (o->n_cached)
        snprintf(cached, sizeof cached, " (%llu from the cache in %.1f ms)",
                 (unsigned long long)o->n_cached, c->cache_seconds * 1e3);
    cli_note("prompt: %s%llu tokens%s, %.1f ms, %.1f tokens/s", part,
             (unsigned long long)o->n_prompt, cached, o->read_seconds * 1e3,
             rate(o->n_read, o->read_seconds));
    cli_note("generated: %llu tokens, %.1f ms (%.1f ms to choose them), %.1f tokens/s; seed %llu; "
             "ended by %s",
             (unsigned long long)o->n_generated, o->generate_seconds * 1e3, o->choose_seconds * 1e3,
             rate(o->n_generated, o->generate_seconds),
             (unsigned long long)c->generation.options.sample.seed,
             generate_ending_name[o->ending]);
    cli_draft_note(&c->generation.draft);
}

static bool run_request(struct completion *c, const struct generate_prompt *prompt,
                        struct base_error *err)
{
    struct generate_request *r = c->generation.request;
    const struct cli_diffusion d = {c->values, &c->model, &c->generation.options, r, prompt};
    const bool whole = model_facts(c->model.model)->diffusion;
    if (whole)
        cli_model_progress_tokens(&c->model, "writing", 0);
    else if (!c->values->echo) /* with --echo the prompt is on the terminal's line */
        cli_model_progress_length(&c->model, prompt->n);
    const bool ok =
        whole ? cli_diffusion_run(&d, take_piece, c, &c->outcome, err)
              : generate_run(r, c->generation.draft.draft, take_piece, c, &c->outcome, err);
    cli_progress_end();
    return ok;
}

static bool generate(struct completion *c, const struct base_buffer *text, struct base_error *err)
{
    struct generate_thought_marks marks;
    struct generate_prompt prompt = {.ids = c->prompt.id,
                                     .n = c->prompt.count,
                                     .continues = text->size > 0 && !c->values->request.chat.chat &&
                                                  model_start_id(c->model.file) < 0,
                                     .seed = c->generation.options.sample.seed};
    if (!open_rest(c, err)) return false;
    if (c->values->request.chat.chat &&
        !chat_reply_begin(&c->chat.reply, &c->chat.prompt, &marks, &prompt, err))
        return false;
    c->loaded = base_seconds();
    if (c->values->plan) return cli_plan_show(&c->model, c->values, c->prompt.count, err);
    if (c->values->verbose) cli_model_note(&c->model);
    if (c->values->echo && !cli_write(text->data, text->size, err)) return false;
    if (!start_result(c, err)) return false;
    prompt.n_held = cli_prefix_load(c->cache, c->model.session, 0, prompt.ids, prompt.n, 0);
    c->cache_seconds = base_seconds() - c->loaded;
    if (c->values->svg && !cli_output_open(&c->svg, c->values->svg, c->values, c->model.file, err))
        return false;
    cli_heat_begin(&c->heat, c->values->svg && strcmp(c->values->svg, "-") == 0);
    if (!c->values->no_sandbox)
        cli_sandbox_close((c->svg.unfinished ? CLI_SANDBOX_RENAME : cli_prefix_allows(c->cache)) |
                          cli_gpu_allows(c->values));
    if (!generate_request_begin(c->generation.request, &prompt, err)) return false;
    if (!run_request(c, &prompt, err) || !finish(c, err)) return false;
    if (!c->values->heat) note_lack(c);
    if (c->values->verbose) note_timings(c);
    if (c->kept)
        cli_prefix_save(c->cache, c->model.session, 1, prompt.ids, prompt.n, c->outcome.n_cached);
    if (c->outcome.ending == GENERATE_END_INTERRUPTED)
        return base_fail(err, BASE_INTERRUPTED, "interrupted");
    return cli_outcome_check(&c->outcome, err);
}

static bool complete(struct completion *c, const struct base_buffer *text, struct base_error *err)
{
    c->start = base_seconds();
    if (!open_prompt(c, text, err)) return false;
    if (!c->values->show_prompt) return generate(c, text, err);
    return cli_prompt_show(c->values, c->model.tokenizer,
                           c->values->request.chat.chat ? &c->chat.prompt.text : text, &c->prompt,
                           err);
}

static bool cmd_run(struct cli_values *values, struct base_error *err)
{
    struct completion c = {.values = values, .model.whole = true};
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    const bool may_chat = values->request.chat.mode != CHAT_MODE_RAW;
    const bool needs_text = !values->plan || values->prompt || values->file;
    bool ok = cli_prefix_check(values, err);
    ok = ok && (!may_chat || cli_chat_once_read(&c.chat, c.values, err));
    if (ok && needs_text && (!may_chat || cli_chat_once_may_have_question(values)))
        ok = cli_input_read(values, &text, err);
    base_output_init(&c.svg);
    ok = ok && complete(&c, &text, err);
    ok = cli_output_close(&c.svg, ok, err);
    cli_heat_free(&c.heat);
    cli_result_free(&c.result);
    cli_chat_once_close(&c.chat);
    cli_generation_close(&c.generation);
    text_ids_free(&c.prompt);
    cli_prefix_close(c.cache);
    cli_model_close(&c.model);
    return ok;
}

const struct cli_command cli_command_run = {
    .name = "run",
    .usage = "infer [run] [-m MODEL] TEXT [options]",
    .effect = "answer a text, or complete it (the default command)",
    .about = "Answers the text through the model's chat template; with --raw, or if the model\n"
             "has none, completes exactly the text. It is what is piped in, then TEXT, -p or a\n"
             "file (-f), on a line of its own. The same command writes the same bytes.",
    .positional = "prompt",
    .run = cmd_run,
};
