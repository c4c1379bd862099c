/* cli/chat/chat_turn.c: one answer of a conversation. See cli/chat/chat.h.
 *
 * Each turn renders the whole conversation and compares its ids with those of the session: the
 * common prefix remains in the cache, the rest is evaluated. This is correct for any treatment of
 * older messages by a template, and the answer has the same bits as with an empty cache. */
#include "chat/messages.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_files.h"
#include "cli/system.h"
#include "text/json/json_number.h"
#include <string.h>

enum { CTX_DEFAULT = 8192 };

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for the conversation");
}

/* ---- Opening ---- */

static bool open_session(struct cli_chat *c, json_t *tools, struct base_error *err)
{
    if (!cli_generation_prepare(&c->generation, &c->request, true, err) ||
        !cli_model_open_file(&c->model, c->values, err) ||
        !cli_model_open_tokenizer(&c->model, err) ||
        !cli_template_open(&c->template, &c->request.chat, true, &c->model, tools, err) ||
        !cli_model_open_weights(&c->model, c->values, err))
        return false;
    uint32_t n_ctx = (uint32_t)c->values->ctx_size;
    if (n_ctx == 0) n_ctx = cli_model_pick_ctx(&c->model, CTX_DEFAULT);
    cli_prefix_choose(c->cache, &c->model);
    return cli_model_open_session(&c->model, c->values, c->cache ? 2 : 1, n_ctx, err) &&
           cli_generation_open(&c->generation, c->values, &c->model, err);
}

bool cli_chat_open(struct cli_chat *c, struct base_error *err)
{
    json_t *tools = NULL;
    if (!cli_tools_read(&c->request.chat, true, &tools, err)) return false;
    const bool ok = open_session(c, tools, err);
    json_decref(tools);
    return ok;
}

void cli_chat_close(struct cli_chat *c)
{
    chat_reply_close(&c->reply);
    cli_generation_close(&c->generation);
    chat_prompt_free(&c->prompt);
    chat_template_close(&c->template);
    cli_wrap_free(&c->wrap);
    base_buffer_free(&c->piece);
    cli_prefix_close(c->cache);
    cli_model_close(&c->model);
    cli_chat_settings_free(&c->settings);
    json_decref(c->messages);
}

/* ---- Room ---- */

/* Returns a new list of the messages that are rendered. */
static json_t *read_messages(const struct cli_chat *c)
{
    json_t *list = json_array();
    const size_t first = chat_messages_n_system(c->messages);
    for (size_t i = 0; list && i < json_array_size(c->messages); i++)
        if (i < first || i >= first + c->n_dropped)
            if (json_array_append(list, json_array_get(c->messages, i)) != 0) {
                json_decref(list);
                return NULL;
            }
    return list;
}

static bool render(struct cli_chat *c, struct base_error *err)
{
    json_auto_t *list = read_messages(c);
    return list ? chat_template_render(&c->template, &c->request, list, &c->prompt, err)
                : no_memory(err);
}

/* Drops the oldest rendered turn; false if only the last one is left. */
static bool drop_turn(struct cli_chat *c)
{
    const size_t first = chat_messages_n_system(c->messages),
                 last = chat_messages_last_turn(c->messages);
    size_t next = first + c->n_dropped + 1;
    while (next < last && strcmp(chat_messages_role(c->messages, next), "user") != 0) next++;
    if (next > last) return false;
    c->n_dropped = next - first;
    return true;
}

/* With --on-full shift: drops turns until the answer has a quarter of the context, or --predict
 * tokens if that is less. */
static bool make_room(struct cli_chat *c, struct base_error *err)
{
    const uint64_t n_ctx = model_session_n_ctx(c->model.session);
    const uint64_t predict =
        c->request.generate.max_tokens < 0 ? n_ctx : (uint64_t)c->request.generate.max_tokens;
    const uint64_t room = predict < n_ctx / 4 ? predict : n_ctx / 4;
    const size_t before = c->n_dropped;
    const bool shift = strcmp(c->values->on_full, "shift") == 0;
    if (!render(c, err)) return false;
    if (shift)
        while (c->prompt.ids.count + room > n_ctx && drop_turn(c))
            if (!render(c, err)) return false;
    if (c->n_dropped > before)
        cli_note("the context of %u tokens is full: the %zu oldest messages are not read any more",
                 (unsigned)n_ctx, c->n_dropped);
    if (c->prompt.ids.count <= n_ctx) return true;
    return base_fail(err, BASE_TOO_LONG, "the %s has %zu tokens and the context holds %u: %s",
                     shift ? "last message alone" : "conversation", c->prompt.ids.count,
                     (unsigned)n_ctx,
                     shift ? "shorten it or raise --ctx-size"
                           : "/clear or /undo make room, and so does --ctx-size or --on-full "
                             "shift");
}

/* ---- Output ---- */

/* Writes the text in `piece`. */
static bool write_piece(struct cli_chat *c, struct base_error *err)
{
    const bool styled = c->colour && c->dim && c->piece.size;
    if (c->piece.size) c->last_byte = c->piece.data[c->piece.size - 1];
    return (!styled || cli_write_control("\033[2m", err)) && cli_write_buffer(&c->piece, err) &&
           (!styled || cli_write_control("\033[0m", err));
}

static bool show(void *user, const char *bytes, size_t size, bool dim, struct base_error *err)
{
    struct cli_chat *c = user;
    if (dim != c->dim) {
        cli_wrap_flush(&c->wrap, &c->piece);
        if (!write_piece(c, err)) return false;
        c->dim = dim;
    }
    cli_wrap_add(&c->wrap, bytes, size, &c->piece);
    return write_piece(c, err);
}

static bool take_piece(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct cli_chat *c = user;
    cli_progress_end();
    if (c->cache && !c->has_stored && piece->id >= 0 && piece->index == 0)
        model_seq_fork(c->model.session, 0, 1, (uint32_t)c->prompt.ids.count);
    return chat_reply_take(&c->reply, piece, err);
}

/* Returns the seed: that of the options for the first answer, one more for each further answer. */
static uint64_t seed_of(const struct cli_chat *c)
{
    return c->generation.options.sample.seed + c->n_answers;
}

static bool show_json(const struct cli_chat *c, const json_t *message, struct base_error *err)
{
    const struct generate_outcome *o = &c->outcome;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    base_buffer_add_text(&out, "{\"message\":");
    text_json_write(&out, message, false);
    base_buffer_add_format(&out,
                           ",\"prompt_tokens\":%zu,\"read_tokens\":%llu,\"tokens\":%llu,"
                           "\"stop\":\"%s\",\"seed\":%llu",
                           c->prompt.ids.count, (unsigned long long)o->n_read,
                           (unsigned long long)o->n_generated, generate_ending_name[o->ending],
                           (unsigned long long)seed_of(c));
    cli_model_add_approximate(&c->model, &out);
    base_buffer_add_text(&out, "}\n");
    return cli_write_buffer(&out, err);
}

static void note_turn(const struct cli_chat *c)
{
    const struct generate_outcome *o = &c->outcome;
    cli_note("prompt: %zu tokens, %zu from the cache, %llu read in %.1f ms; generated: %llu tokens "
             "in %.1f ms; seed %llu; ended by %s",
             c->prompt.ids.count, (size_t)o->n_cached, (unsigned long long)o->n_read,
             o->read_seconds * 1e3, (unsigned long long)o->n_generated, o->generate_seconds * 1e3,
             (unsigned long long)seed_of(c), generate_ending_name[o->ending]);
}

/* ---- A turn ---- */

/* Loads a longer prefix of the prompt from the prefix cache into the session. Returns its length,
 * or 0. */
static size_t load_prompt(struct cli_chat *c, const struct generate_prompt *p)
{
    size_t n, common = 0;
    const int32_t *ids = generate_request_held(c->generation.request, &n);
    while (common < n && common < p->n && ids[common] == p->ids[common]) common++;
    const size_t loaded = cli_prefix_load(c->cache, c->model.session, 0, p->ids, p->n, common);
    if (loaded > 0)
        c->n_stored = loaded;
    else if (c->n_stored > common)
        c->n_stored = common;
    return loaded;
}

/* Stores the first prompt that is long enough at once, because the session may end early. */
static void store_prompt(struct cli_chat *c, const struct generate_prompt *p)
{
    if (!c->cache || c->has_stored || model_seq_length(c->model.session, 1) != p->n) return;
    c->has_stored = cli_prefix_save(c->cache, c->model.session, 1, p->ids, p->n, c->n_stored);
    if (c->has_stored) c->n_stored = p->n;
}

void cli_chat_store(struct cli_chat *c)
{
    size_t n;
    if (!c->generation.request) return;
    const int32_t *ids = generate_request_held(c->generation.request, &n);
    cli_prefix_save(c->cache, c->model.session, 0, ids, n, c->n_stored < n ? c->n_stored : n);
}

/* Evaluates the new part of the prompt and generates the answer. */
static bool generate(struct cli_chat *c, struct base_error *err)
{
    struct generate_request *request = c->generation.request;
    struct generate_thought_marks marks;
    struct generate_prompt prompt = {.ids = c->prompt.ids.id,
                                     .n = c->prompt.ids.count,
                                     .seed = seed_of(c),
                                     .adapters = c->settings.n ? c->settings.adapters : NULL};
    if (!chat_reply_open(&c->reply, &c->template, &c->prompt, err)) return false;
    if (!chat_reply_begin(&c->reply, &c->prompt, &marks, &prompt, err)) return false;
    prompt.n_held = load_prompt(c, &prompt);
    if (!generate_request_begin(request, &prompt, err)) return false;
    cli_model_progress_length(&c->model, prompt.n);
    const bool ok =
        generate_run(request, c->generation.draft.draft, take_piece, c, &c->outcome, err);
    cli_progress_end();
    if (!ok || !chat_reply_end(&c->reply, err)) return false;
    cli_wrap_flush(&c->wrap, &c->piece);
    if (!write_piece(c, err)) return false;
    store_prompt(c, &prompt);
    return true;
}

/* Appends the answer, or removes the question if Ctrl-C was typed before any text. */
static bool finish(struct cli_chat *c, struct base_error *err)
{
    json_auto_t *message = chat_reply_message(&c->reply, err);
    const bool nothing =
        c->outcome.ending == GENERATE_END_INTERRUPTED && c->outcome.n_generated == 0;
    bool ok = message != NULL;
    if (ok && c->values->json)
        ok = show_json(c, message, err);
    else if (ok && c->last_byte != '\n')
        ok = cli_write("\n", 1, err);
    if (ok && nothing)
        json_array_remove(c->messages, json_array_size(c->messages) - 1);
    else if (ok)
        ok = json_array_append(c->messages, message) == 0 || no_memory(err);
    return ok;
}

bool cli_chat_answer(struct cli_chat *c, struct base_error *err)
{
    const bool strict = strcmp(c->values->on_full, "error") == 0;
    if (!make_room(c, err)) return false;
    c->last_byte = 0;
    cli_wrap_begin(&c->wrap, !c->no_wrap);
    c->reply.mode = chat_reasoning_mode(
        &c->request.chat, cli_stdout_is_terminal() ? CHAT_REASONING_SHOW : CHAT_REASONING_HIDE);
    c->reply.show = c->values->json ? NULL : show;
    c->reply.user = c;
    if (!generate(c, err) || !finish(c, err)) return false;
    if (c->verbose) note_turn(c);
    c->n_answers++;
    const char *lack = cli_reply_lack(&c->reply, &c->outcome);
    if (lack && c->outcome.ending != GENERATE_END_CONTEXT)
        cli_note("the answer is empty: %s", lack);
    if (!cli_outcome_check(&c->outcome, err)) return false;
    if (c->outcome.ending != GENERATE_END_CONTEXT) return true;
    if (strict)
        return base_fail(err, BASE_TOO_LONG, "the answer was cut: the context of %u tokens is full",
                         model_session_n_ctx(c->model.session));
    cli_note("the answer was cut: the context of %u tokens is full",
             model_session_n_ctx(c->model.session));
    return true;
}
