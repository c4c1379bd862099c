/* chat/chat_reply.c: splits an answer while it is generated. See chat/chat_reply.h. */
#include "chat/chat_reply.h"
#include "chat/messages.h"
#include <stdio.h>
#include <string.h>

const char *const chat_part_name[] = {[TEXT_REPLY_TEXT] = "answer",
                                      [TEXT_REPLY_REASONING] = "reasoning",
                                      [TEXT_REPLY_CALL] = "call",
                                      [TEXT_REPLY_MARK] = "mark"};

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for the answer");
}

enum chat_reasoning chat_reasoning_mode(const struct chat_settings *chat,
                                        enum chat_reasoning by_default)
{
    if (!chat->reasoning) return by_default;
    if (strcmp(chat->reasoning, "only") == 0) return CHAT_REASONING_ONLY;
    return strcmp(chat->reasoning, "show") == 0 ? CHAT_REASONING_SHOW : CHAT_REASONING_HIDE;
}

bool chat_reply_open(struct chat_reply *r, const struct chat_template *t,
                     const struct chat_prompt *prompt, struct base_error *err)
{
    const json_t *tools = json_object_get(t->variables, "tools");
    const struct text_reply_options options = {.template_text = t->source.data,
                                               .tokenizer = t->tokenizer,
                                               .prompt = prompt->text.data,
                                               .prompt_size =
                                                   prompt->text.size - prompt->begun.size,
                                               .tools = json_is_array(tools) ? tools : NULL};
    chat_reply_close(r);
    r->tokenizer = t->tokenizer;
    r->calls = json_array();
    r->parts = text_reply_new(&options, err);
    return r->parts && (r->calls || no_memory(err));
}

void chat_reply_close(struct chat_reply *r)
{
    text_reply_free(r->parts);
    r->parts = NULL;
    json_decref(r->calls);
    r->calls = NULL;
    base_buffer_free(&r->content);
    base_buffer_free(&r->reasoning);
}

static bool add_call(struct chat_reply *r, const struct text_reply_part *part,
                     struct base_error *err)
{
    char id[32];
    snprintf(id, sizeof id, "call_%zu", json_array_size(r->calls) + 1);
    json_t *call =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", part->id ? part->id : id, "type", "function",
                  "function", "name", part->name, "arguments", part->arguments);
    return (call && json_array_append_new(r->calls, call) == 0) || no_memory(err);
}

static bool take_part(struct chat_reply *r, const struct text_reply_part *part,
                      struct base_error *err)
{
    const bool is_text = part->kind == TEXT_REPLY_TEXT;
    const bool is_reasoning = part->kind == TEXT_REPLY_REASONING;
    if (is_text) base_buffer_add(&r->content, part->bytes, part->size);
    if (is_reasoning) base_buffer_add(&r->reasoning, part->bytes, part->size);
    if (r->content.failed || r->reasoning.failed) return no_memory(err);
    if (part->kind == TEXT_REPLY_CALL && !add_call(r, part, err)) return false;
    const bool shown =
        r->mode == CHAT_REASONING_SHOW ||
        (r->mode == CHAT_REASONING_ONLY ? is_reasoning : is_text || part->kind == TEXT_REPLY_CALL);
    return !shown || !r->show || part->size == 0 ||
           r->show(r->user, part->bytes, part->size, !is_text, err);
}

/* Removes the text of a control token that is not a mark between parts. */
static void hide_control(const struct chat_reply *r, const struct generate_piece *piece,
                         struct text_reply_part *part)
{
    if (part->kind != TEXT_REPLY_TEXT || piece->id < 0 ||
        text_token_kind(r->tokenizer, piece->id) != TEXT_TOKEN_CONTROL)
        return;
    const struct gguf_str token = text_token_raw(r->tokenizer, piece->id);
    if (token.size <= part->size &&
        memcmp(part->bytes + part->size - token.size, token.data, token.size) == 0)
        part->size -= token.size;
}

bool chat_reply_take(struct chat_reply *r, const struct generate_piece *piece,
                     struct base_error *err)
{
    struct text_reply_part part;
    if (piece->id >= 0) text_reply_token(r->parts, piece->id, r->n_begun + piece->end);
    if (!text_reply_feed(r->parts, piece->text, piece->size, err)) return false;
    r->latest = text_reply_open_part(r->parts);
    while (text_reply_next(r->parts, &part)) {
        r->latest = part.kind;
        hide_control(r, piece, &part);
        if (!take_part(r, &part, err)) return false;
    }
    return true;
}

/* Declares the tokens of the answer's beginning, which are the last ones of the prompt. */
static void declare_begun(struct chat_reply *r, const struct generate_prompt *prompt)
{
    BASE_LOCAL_BUFFER bytes = BASE_BUFFER_INIT;
    size_t end = r->n_begun, first = prompt->n;
    while (first > 0) {
        base_buffer_clear(&bytes);
        text_token_bytes(r->tokenizer, prompt->ids[first - 1], true, &bytes);
        if (bytes.size > end) break;
        end -= bytes.size;
        first--;
    }
    for (; first < prompt->n; first++) {
        base_buffer_clear(&bytes);
        text_token_bytes(r->tokenizer, prompt->ids[first], true, &bytes);
        end += bytes.size;
        text_reply_token(r->parts, prompt->ids[first], end);
    }
}

/* Reduces `begun` to the answer part of the answer's beginning: the text after its last reasoning
 * or call. */
static bool read_begun(struct chat_reply *r, const struct base_buffer *begun, size_t *answer_at,
                       struct base_error *err)
{
    struct text_reply_part part;
    size_t at = 0;
    if (!text_reply_feed(r->parts, begun->data, begun->size, err)) return false;
    while (text_reply_next(r->parts, &part)) {
        at += part.size;
        if (part.kind != TEXT_REPLY_TEXT) *answer_at = at;
        if (!take_part(r, &part, err)) return false;
    }
    return true;
}

bool chat_reply_begin(struct chat_reply *r, const struct chat_prompt *rendered,
                      struct generate_thought_marks *marks, struct generate_prompt *prompt,
                      struct base_error *err)
{
    const struct base_buffer *begun = &rendered->begun;
    chat_show_fn *show = r->show;
    struct text_reply_marks found;
    size_t answer_at = 0;
    r->show = NULL;
    r->n_begun = begun->size;
    if (begun->size) declare_begun(r, prompt);
    const bool ok = begun->size == 0 || read_begun(r, begun, &answer_at, err);
    r->show = show;
    const bool thinks = text_reply_thought_marks(r->parts, &found);
    if (thinks && (found.opened || begun->size == 0)) {
        *marks = (struct generate_thought_marks){found.open, found.close, found.turn, found.answer,
                                                 found.opened};
        prompt->thought = marks;
    } else if (begun->size) {
        prompt->begun = begun->data + answer_at;
        prompt->n_begun = begun->size - answer_at;
    }
    return ok;
}

bool chat_reply_end(struct chat_reply *r, struct base_error *err)
{
    struct text_reply_part part;
    if (!text_reply_end(r->parts, err)) return false;
    while (text_reply_next(r->parts, &part))
        if (!take_part(r, &part, err)) return false;
    return true;
}

static bool is_blank(const struct base_buffer *text)
{
    return text->size == 0 || strspn(text->data, " \t\r\n") == text->size;
}

bool chat_reply_is_blank(const struct chat_reply *r)
{
    if (r->mode == CHAT_REASONING_ONLY) return is_blank(&r->reasoning);
    return is_blank(&r->content) && json_array_size(r->calls) == 0;
}

bool chat_reply_has_reasoning(const struct chat_reply *r)
{
    return !is_blank(&r->reasoning);
}

json_t *chat_reply_message(const struct chat_reply *r, struct base_error *err)
{
    json_t *content = chat_text_mended(r->content.data, r->content.size, "\xef\xbf\xbd", err);
    json_t *message =
        content ? json_pack("{s:s, s:o}", "role", "assistant", "content", content) : NULL;
    bool ok = message != NULL;
    if (ok && r->reasoning.size) {
        json_t *reasoning =
            chat_text_mended(r->reasoning.data, r->reasoning.size, "\xef\xbf\xbd", err);
        ok = reasoning && json_object_set_new(message, "reasoning_content", reasoning) == 0;
    }
    if (ok && json_array_size(r->calls)) ok = json_object_set(message, "tool_calls", r->calls) == 0;
    if (ok) return message;
    json_decref(message);
    if (!err->code) no_memory(err);
    return NULL;
}
