/* cli/chat/chat_template.h: renders a conversation and converts it to ids.
 *
 * Owns: the choice of the template (the model's own, a file, or a named one; never a fallback), its
 * variables, the forms of messages that it accepts, and the ids: only text of the template becomes
 * control tokens; "<|im_end|>" in a message is text. Refuses: the conversation
 * (cli/chat/messages.h), evaluating. */
#ifndef CLI_CHAT_CHAT_TEMPLATE_H
#define CLI_CHAT_CHAT_TEMPLATE_H

#include "cli/load.h"
#include "text/jinja/jinja.h"

struct cli_chat_template {
    struct jinja_template *template;
    struct base_buffer source;
    const char *origin_file, *origin_item; /* the template's origin, for errors */
    json_t *variables;                     /* its variables except the messages */
    bool wants_parts;   /* content must be a list of parts: a text would be omitted */
    bool wants_text;    /* content must be a text: a list would be omitted */
    bool wants_encoded; /* arguments of tool calls must be JSON in a string */
};

/* A rendered conversation. */
struct cli_chat_prompt {
    struct base_buffer begun; /* by the caller: the answer's beginning, without control tokens */
    struct base_buffer text, own; /* own: see struct jinja_template_options */
    struct text_ids ids;
};

/* Needs the model's file and tokenizer. `tools` may be NULL; the template takes a reference.
 * BASE_USAGE if there is no template, it has an error, or it does not use the given tools or
 * variables. cli_chat_template_close is to be called on failure too. */
bool cli_chat_template_open(struct cli_chat_template *t, const struct cli_values *values,
                            const struct cli_model *model, json_t *tools, struct base_error *err);
void cli_chat_template_close(struct cli_chat_template *t); /* a zeroed one is fine */

/* Renders the messages up to the beginning of the answer, appends out->begun, and tokenizes;
 * replaces the other content of `out`. BASE_USAGE with the line of the template, or the text that
 * it passed to raise_exception; also for a prompt without ids. */
bool cli_chat_template_render(const struct cli_chat_template *t, const struct cli_values *values,
                              const struct cli_model *model, const json_t *messages,
                              struct cli_chat_prompt *out, struct base_error *err);
/* Renders a trial conversation to text. BASE_USAGE as above. */
bool cli_chat_template_try(const struct cli_chat_template *t, const json_t *messages,
                           struct base_buffer *text, struct base_error *err);
/* Sets the beginning of the answer: an assistant's message at the end of `messages`, which is
 * removed from the list, and --continue. To be called before rendering. BASE_USAGE for a message
 * that cannot be continued. */
bool cli_chat_prompt_begin(struct cli_chat_prompt *p, const struct cli_values *values,
                           json_t *messages, struct base_error *err);
void cli_chat_prompt_free(struct cli_chat_prompt *p);

#endif
