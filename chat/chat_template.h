/* chat/chat_template.h: renders a conversation and converts it to ids.
 *
 * It chooses the template (the model's own, a text, or a named one; never a fallback), sets its
 * variables, converts messages to the forms that it accepts, and makes the ids: only text of the
 * template becomes control tokens; "<|im_end|>" in a message is text. messages.h has the
 * conversation. */
#pragma once

#include "chat/chat_request.h"
#include "gguf/gguf.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer/tokenizer.h"

struct chat_template {
    struct jinja_template *template;
    const struct text_tokenizer *tokenizer;
    struct base_buffer source;
    const char *origin_file, *origin_item; /* the template's origin, for messages */
    json_t *variables;                     /* its variables except the messages */
    bool wants_parts;   /* content must be a list of parts: a text would be left out */
    bool wants_text;    /* content must be a text: a list would be left out */
    bool wants_encoded; /* arguments of tool calls must be JSON in a string */
};

/* A rendered conversation. */
struct chat_prompt {
    struct base_buffer begun;     /* by the caller: the answer's beginning, without control tokens
                                   * (chat_messages_take_begun) */
    struct base_buffer text, own; /* own: see struct jinja_template_options */
    struct text_ids ids;
};

/* Returns in *exists whether there is a template to answer through by default: that of the
 * settings, or the model's own one. */
bool chat_template_exists(const struct chat_settings *settings, const struct gguf_file *file,
                          bool *exists, struct base_error *err);
/* Returns in *is_name whether a text names a template: a format of text/chat/chat_formats.h, or one
 * of the model. */
bool chat_template_is_name(const char *name, const struct gguf_file *file, bool *is_name,
                           struct base_error *err);
/* Fails with BASE_USAGE for settings->template, which is no `what` ("template"), and the names of
 * the formats. */
bool chat_template_unknown(const struct chat_settings *settings, const char *what,
                           struct base_error *err);
/* Opens the template of the settings. The tokenizer must outlive it. `tools` may be NULL; the
 * template takes a reference. Fails with BASE_USAGE if there is no template, it has an error, or it
 * does not use the given tools or variables. The caller calls chat_template_close, after a failure
 * too. */
bool chat_template_open(struct chat_template *t, const struct chat_settings *settings,
                        const struct gguf_file *file, const struct text_tokenizer *tokenizer,
                        json_t *tools, struct base_error *err);
void chat_template_close(struct chat_template *t); /* may be all zeros */

/* Renders the messages up to the beginning of the answer, appends out->begun, and tokenizes;
 * replaces the other content of `out`. Fails with BASE_USAGE and the line of the template, or the
 * text that it passed to raise_exception; also for a prompt without ids. */
bool chat_template_render(const struct chat_template *t, const struct chat_request *request,
                          const json_t *messages, struct chat_prompt *out, struct base_error *err);
/* Renders a trial conversation to text, with the same errors. */
bool chat_template_try(const struct chat_template *t, const json_t *messages,
                       struct base_buffer *text, struct base_error *err);
void chat_prompt_free(struct chat_prompt *p);
