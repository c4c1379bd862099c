/* cli/chat/chat_once.c: answers of `run`. See cli/chat/chat_once.h. */
#include "cli/chat/chat_once.h"
#include "chat/messages.h"
#include "cli/chat/chat_files.h"
#include "cli/system.h"
#include "text/json/json_number.h"

bool cli_chat_once_may_have_question(const struct cli_values *values)
{
    return !values->messages || values->prompt || values->file || cli_stdin_is_piped();
}

bool cli_chat_once_read(struct cli_chat_once *c, const struct cli_values *values,
                        struct base_error *err)
{
    c->values = values;
    return cli_messages_open(values->messages, &values->request.chat, &c->messages, err) &&
           cli_tools_read(&values->request.chat, true, &c->tools, err);
}

bool cli_chat_once_encode(struct cli_chat_once *c, const struct cli_model *model,
                          const struct base_buffer *question, struct base_error *err)
{
    const struct chat_request *r = &c->values->request;
    struct base_buffer *begun = &c->prompt.begun;
    /* With --messages an empty pipe adds no question. */
    const bool needs_question = !c->values->messages || c->values->prompt || c->values->file;
    if (needs_question && question->size == 0)
        return base_fail(err, BASE_USAGE, "the question is empty");
    if (question->size &&
        !chat_messages_add(c->messages, "user", question->data, question->size, r, err))
        return false;
    if (json_array_size(c->messages) == 0)
        return base_fail_at(err, BASE_USAGE, c->values->messages, -1, "contains no message");
    if (!chat_messages_take_begun(c->messages, begun, err)) return false;
    if (r->chat.continues) base_buffer_add_text(begun, r->chat.continues);
    return cli_template_open(&c->template, &r->chat, true, model, c->tools, err) &&
           chat_template_render(&c->template, r, c->messages, &c->prompt, err);
}

static bool show(void *user, const char *bytes, size_t size, bool dim, struct base_error *err)
{
    (void)dim;
    base_buffer_add(user, bytes, size);
    return cli_buffer_check(user, err);
}

bool cli_chat_once_begin(struct cli_chat_once *c, struct base_error *err)
{
    c->reply.mode = chat_reasoning_mode(&c->values->request.chat, CHAT_REASONING_HIDE);
    c->reply.show = show;
    c->reply.user = &c->shown;
    return chat_reply_open(&c->reply, &c->template, &c->prompt, err);
}

bool cli_chat_once_take(struct cli_chat_once *c, struct generate_piece *piece,
                        struct base_error *err)
{
    base_buffer_clear(&c->shown);
    if (!chat_reply_take(&c->reply, piece, err)) return false;
    piece->text = c->shown.size ? c->shown.data : "";
    piece->size = c->shown.size;
    return true;
}

bool cli_chat_once_end(struct cli_chat_once *c, struct generate_piece *piece,
                       struct base_error *err)
{
    base_buffer_clear(&c->shown);
    if (!chat_reply_end(&c->reply, err)) return false;
    *piece = (struct generate_piece){
        .id = -1, .text = c->shown.size ? c->shown.data : "", .size = c->shown.size};
    return true;
}

bool cli_chat_once_add_json(const struct cli_chat_once *c, struct base_buffer *out,
                            struct base_error *err)
{
    json_t *message = chat_reply_message(&c->reply, err);
    if (!message) return false;
    base_buffer_add_text(out, ",\"message\":");
    text_json_write(out, message, false);
    json_decref(message);
    return true;
}

void cli_chat_once_close(struct cli_chat_once *c)
{
    chat_reply_close(&c->reply);
    base_buffer_free(&c->shown);
    chat_prompt_free(&c->prompt);
    chat_template_close(&c->template);
    json_decref(c->messages);
    json_decref(c->tools);
    *c = (struct cli_chat_once){0};
}
