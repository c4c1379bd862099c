/* cli/chat/chat_template.h: renders a conversation and converts it to ids.
 *
 * It chooses the template (the model's own, a file, or a named one; never a fallback), sets its
 * variables, converts messages to the forms that it accepts, and makes the ids: only text of the
 * template becomes control tokens; "<|im_end|>" in a message is text. messages.h has the
 * conversation. */
#ifndef CLI_CHAT_CHAT_TEMPLATE_H
#define CLI_CHAT_CHAT_TEMPLATE_H

#include "cli/load.h"
#include "text/jinja/jinja.h"

struct cli_chat_template {
    struct jinja_template *template;
    struct base_buffer source;
    const char *origin_file, *origin_item; /* the template's origin, for messages */
    json_t *variables;                     /* its variables except the messages */
    bool wants_parts;   /* content must be a list of parts: a text would be left out */
    bool wants_text;    /* content must be a text: a list would be left out */
    bool wants_encoded; /* arguments of tool calls must be JSON in a string */
};

/* A rendered conversation. */
struct cli_chat_prompt {
    struct base_buffer begun; /* by the caller: the answer's beginning, without control tokens */
    struct base_buffer text, own; /* own: see struct jinja_template_options */
    struct text_ids ids;
};

/* Returns in *exists whether there is a template to answer through by default: the model's own one,
 * or that of INFER_TEMPLATE. */
bool cli_chat_template_exists(const struct chat_request *request, const struct cli_model *model,
                              bool *exists, struct base_error *err);
/* Opens the template; the model must have its file and tokenizer. `tools` may be NULL; the template
 * takes a
 * reference. `names_files`: --template may be the name of a file. Fails with BASE_USAGE if there is
 * no template, it has an error, or it does not use the given tools or variables. The caller calls
 * cli_chat_template_close, after a failure too. */
bool cli_chat_template_open(struct cli_chat_template *t, const struct chat_request *request,
                            bool names_files, const struct cli_model *model, json_t *tools,
                            struct base_error *err);
void cli_chat_template_close(struct cli_chat_template *t); /* may be all zeros */

/* Renders the messages up to the beginning of the answer, appends out->begun, and tokenizes;
 * replaces the other content of `out`. Fails with BASE_USAGE and the line of the template, or the
 * text that it passed to raise_exception; also for a prompt without ids. */
bool cli_chat_template_render(const struct cli_chat_template *t, const struct chat_request *request,
                              const struct cli_model *model, const json_t *messages,
                              struct cli_chat_prompt *out, struct base_error *err);
/* Renders a trial conversation to text, with the same errors. */
bool cli_chat_template_try(const struct cli_chat_template *t, const json_t *messages,
                           struct base_buffer *text, struct base_error *err);
/* Sets the beginning of the answer: an assistant's message at the end of `messages`, which is
 * removed from the list, and --continue. Call it before rendering. Fails with BASE_USAGE for a
 * message that cannot be continued. */
bool cli_chat_prompt_begin(struct cli_chat_prompt *p, const struct chat_request *request,
                           json_t *messages, struct base_error *err);
void cli_chat_prompt_free(struct cli_chat_prompt *p);

#endif
