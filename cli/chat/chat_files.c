/* cli/chat/chat_files.c: files of a conversation. See cli/chat/chat_files.h. */
#include "cli/chat/chat_files.h"
#include "chat/messages.h"
#include "cli/system.h"
#include "text/json/json_parse.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_checked(const char *given, bool is_text, const char *option,
                         bool (*check)(const json_t *, struct base_error *), json_t **out,
                         struct base_error *err)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    *out = NULL;
    if (is_text) base_buffer_add_text(&text, given);
    const bool was_read =
        is_text ? cli_buffer_check(&text, err) : cli_source_read(given, &text, err);
    if (was_read) *out = text_json_parse(text.data ? text.data : "", text.size, NULL, err);
    base_buffer_free(&text);
    if (*out && check(*out, err)) return true;
    if (was_read && is_text)
        snprintf(err->item, sizeof err->item, "%s", option);
    else if (was_read)
        base_error_set_file(err, strcmp(given, "-") == 0 ? "standard input" : given);
    json_decref(*out);
    *out = NULL;
    return false;
}

/* Returns whether the value of an option is the list itself, not the name of a file. */
static bool is_list(const char *given)
{
    return *given == '[' && access(given, F_OK) != 0;
}

bool cli_messages_read(const char *given, json_t **out, struct base_error *err)
{
    return read_checked(given, is_list(given), "--messages", chat_messages_check, out, err);
}

bool cli_tools_read(const struct chat_settings *chat, bool names_files, json_t **out,
                    struct base_error *err)
{
    const char *given = chat->tools;
    *out = json_incref((json_t *)(uintptr_t)chat->tool_list);
    if (!*out)
        return !given || read_checked(given, !names_files || is_list(given), "--tools",
                                      chat_tools_check, out, err);
    if (chat_tools_check(*out, err)) return true;
    snprintf(err->item, sizeof err->item, "--tools");
    json_decref(*out);
    *out = NULL;
    return false;
}

bool cli_messages_open(const char *path, const struct chat_settings *chat, json_t **out,
                       struct base_error *err)
{
    *out = NULL;
    if (path && !cli_messages_read(path, out, err)) return false;
    if (!*out && !(*out = json_array()))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for the conversation");
    if (!chat->system) return true;
    if (chat_messages_n_system(*out))
        return base_fail_at(err, BASE_USAGE, "--system", -1,
                            "the messages begin with a system message already");
    return chat_messages_set_system(*out, chat->system, chat->caller, err);
}

bool cli_template_open(struct chat_template *t, const struct chat_settings *chat, bool names_files,
                       const struct cli_model *model, json_t *tools, struct base_error *err)
{
    struct chat_settings own = *chat;
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    bool is_name = !chat->template || !names_files, ok = true;
    if (!is_name && !chat_template_is_name(chat->template, model->file, &is_name, err))
        return false;
    if (!is_name && access(chat->template, F_OK) != 0)
        return chat_template_unknown(chat, "file", err);
    if (!is_name) {
        ok = cli_source_read(chat->template, &text, err);
        own.template = text.data ? text.data : "";
        own.template_file = chat->template;
    }
    return ok && chat_template_open(t, &own, model->file, model->tokenizer, tools, err);
}
