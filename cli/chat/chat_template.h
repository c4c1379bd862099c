/* cli/chat/chat_template.h: from a conversation to the ids that the model reads.
 *
 * Owns: the choice of the template (the model's own, a file, or a named one; never a fallback), its
 * variables, the forms of messages that it can read, and the ids: only the template itself makes
 * control tokens, "<|im_end|>" in a message is text. Refuses: the conversation
 * (cli/chat/messages.h), evaluating. */
#ifndef CLI_CHAT_CHAT_TEMPLATE_H
#define CLI_CHAT_CHAT_TEMPLATE_H

#include "cli/load.h"
#include "text/jinja/jinja.h"

struct cli_chat_template {
    struct jinja_template *template;
    struct base_buffer source;
    const char *origin_file, *origin_item; /* for errors: the template's origin */
    json_t *variables;                     /* its variables but the messages */
    bool wants_parts;   /* content must be a list of parts: text would be left out */
    bool wants_text;    /* content must be text: a list would be left out */
    bool wants_encoded; /* the arguments of tool calls must be JSON in a text */
};

/* A rendered conversation. */
struct cli_chat_prompt {
    struct base_buffer begun; /* by the caller: the answer's beginning, without control tokens */
    struct base_buffer text, own; /* own: see struct jinja_template_options */
    struct text_ids ids;
};

/* Needs the model's file and tokenizer. `tools` may be NULL; it gets a reference. BASE_USAGE when
 * there is no template, when it has an error, and when it does not use tools or variables that were
 * given. Call cli_chat_template_close on failure too. */
bool cli_chat_template_open(struct cli_chat_template *t, const struct cli_values *values,
                            const struct cli_model *model, json_t *tools, struct base_error *err);
void cli_chat_template_close(struct cli_chat_template *t); /* a zeroed one is fine */

/* Renders the messages up to where the answer begins, and out->begun after that; tokenizes;
 * replaces the other content of `out`.
 * BASE_USAGE with the line of the template, or the text that it gave to raise_exception, and for a
 * prompt without a single id. */
bool cli_chat_template_render(const struct cli_chat_template *t, const struct cli_values *values,
                              const struct cli_model *model, const json_t *messages,
                              struct cli_chat_prompt *out, struct base_error *err);
/* The text alone, of a trial conversation. BASE_USAGE as above. */
bool cli_chat_template_try(const struct cli_chat_template *t, const json_t *messages,
                           struct base_buffer *text, struct base_error *err);
/* The beginning of the answer: that of an assistant's message at the end of `messages`, which is
 * taken off, and --continue. To be called before rendering. BASE_USAGE for a message that cannot be
 * continued. */
bool cli_chat_prompt_begin(struct cli_chat_prompt *p, const struct cli_values *values,
                           json_t *messages, struct base_error *err);
void cli_chat_prompt_free(struct cli_chat_prompt *p);

#endif
