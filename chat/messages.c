/* chat/messages.c: conversations as JSON. See chat/messages.h. */
#include "chat/messages.h"
#include "base/utf8.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <stdio.h>
#include <string.h>

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for the conversation");
}

/* ---- Texts ---- */

static json_t *text_of(const char *text, size_t size, const struct chat_caller *caller,
                       struct base_error *err)
{
    for (size_t i = 0; i < size;) {
        int32_t code;
        i += base_utf8_decode(text + i, size - i, &code);
        if (code >= 0) continue;
        base_fail(err, BASE_USAGE, "a message must be UTF-8, and byte %zu is not: 0x%02X; %s",
                  i - 1, (unsigned char)text[i - 1], caller->lossy);
        return NULL;
    }
    json_t *json = json_stringn(size ? text : "", size);
    if (!json) no_memory(err);
    return json;
}

json_t *chat_text_mended(const char *text, size_t size, const char *by, struct base_error *err)
{
    BASE_LOCAL_BUFFER mended = BASE_BUFFER_INIT;
    for (size_t i = 0; i < size;) {
        int32_t code;
        const size_t used = base_utf8_decode(text + i, size - i, &code);
        if (code >= 0)
            base_buffer_add(&mended, text + i, used);
        else
            base_buffer_add_text(&mended, by);
        i += used;
    }
    json_t *json = mended.failed ? NULL : json_stringn(mended.size ? mended.data : "", mended.size);
    if (!json) no_memory(err);
    return json;
}

/* ---- Checking ---- */

/* Checks the content of a message; `what` describes the error. */
static bool check_content(const json_t *content, const char **what)
{
    if (!content || json_is_string(content) || json_is_null(content)) return true;
    *what = "its content is neither a text, a list of parts nor null";
    if (!json_is_array(content)) return false;
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        *what =
            "a part of its content is not {\"type\": \"text\", \"text\": ...}: only text is read";
        if (!type || strcmp(type, "text") != 0 || !json_is_string(json_object_get(part, "text")))
            return false;
    }
    return true;
}

static bool check_calls(const json_t *calls, const char **what)
{
    if (!calls || json_is_null(calls)) return true;
    *what = "its tool_calls are not a list";
    if (!json_is_array(calls)) return false;
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const json_t *function = json_object_get(call, "function");
        const json_t *named = function ? function : call;
        *what = "a tool call has no function with a name";
        if (!json_is_string(json_object_get(named, "name"))) return false;
    }
    return true;
}

static bool check_message(const json_t *message, const char **what)
{
    static const char *const texts[][2] = {
        {"reasoning_content", "its reasoning_content is not a text"},
        {"name", "its name is not a text"},
        {"tool_call_id", "its tool_call_id is not a text"}};
    *what = "it is not an object";
    if (!text_json_is_object(message)) return false;
    *what = json_object_get(message, "role") ? "its role is not a text" : "it has no role";
    if (!json_is_string(json_object_get(message, "role"))) return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const json_t *value = text_json_member(message, texts[i][0]);
        *what = texts[i][1];
        if (value && !json_is_string(value)) return false;
    }
    return check_content(json_object_get(message, "content"), what) &&
           check_calls(json_object_get(message, "tool_calls"), what);
}

bool chat_messages_check(const json_t *list, struct base_error *err)
{
    const char *what;
    if (!json_is_array(list)) return base_fail(err, BASE_USAGE, "it is not a list of messages");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!check_message(json_array_get(list, i), &what))
            return base_fail(err, BASE_USAGE, "message %zu: %s", i + 1, what);
    return true;
}

bool chat_tools_check(const json_t *list, struct base_error *err)
{
    bool ok = json_is_array(list);
    for (size_t i = 0; ok && i < json_array_size(list); i++)
        ok = text_json_is_object(json_array_get(list, i));
    return ok || base_fail(err, BASE_USAGE, "it is not a list of tools, each an object");
}

/* ---- Changing ---- */

static json_t *new_message(const char *role, const char *text, size_t size, bool lossy,
                           const struct chat_caller *caller, struct base_error *err)
{
    json_t *content =
        lossy ? chat_text_mended(text, size, "", err) : text_of(text, size, caller, err);
    json_t *message = content ? json_pack("{s:s, s:o}", "role", role, "content", content) : NULL;
    if (!message && content) no_memory(err);
    return message;
}

bool chat_messages_add(json_t *list, const char *role, const char *text, size_t size,
                       const struct chat_request *r, struct base_error *err)
{
    json_t *message = new_message(role, text, size, r->lossy, r->chat.caller, err);
    if (!message) return false;
    return json_array_append_new(list, message) == 0 || no_memory(err);
}

bool chat_messages_set_system(json_t *list, const char *text, const struct chat_caller *caller,
                              struct base_error *err)
{
    const bool has = chat_messages_n_system(list);
    json_t *message = text ? new_message("system", text, strlen(text), false, caller, err) : NULL;
    if (text && !message) return false;
    if (has) json_array_remove(list, 0);
    return !message || json_array_insert_new(list, 0, message) == 0 || no_memory(err);
}

json_t *chat_messages_of_line(const json_t *given, const struct chat_request *r,
                              const struct base_buffer *question, struct base_error *err)
{
    const char *system = r->chat.system;
    if (given && !chat_messages_check(given, err)) {
        snprintf(err->item, sizeof err->item, "messages");
        return NULL;
    }
    json_t *list = given ? text_json_copy_deep(given) : json_array();
    bool ok = list || no_memory(err);
    if (ok && system && !chat_messages_n_system(list))
        ok = chat_messages_set_system(list, system, r->chat.caller, err);
    if (ok && question && question->size == 0)
        ok = base_fail(err, BASE_USAGE, "the question is empty");
    if (ok && question)
        ok = chat_messages_add(list, "user", question->data, question->size, r, err);
    if (ok && json_array_size(list) == 0)
        ok = base_fail_at(err, BASE_USAGE, "messages", -1, "contains no message");
    if (ok) return list;
    json_decref(list);
    return NULL;
}

size_t chat_messages_n_system(const json_t *list)
{
    return strcmp(chat_messages_role(list, 0), "system") == 0;
}

const char *chat_messages_role(const json_t *list, size_t i)
{
    const char *role = json_string_value(json_object_get(json_array_get(list, i), "role"));
    return role ? role : "";
}

size_t chat_messages_last_turn(const json_t *list)
{
    const size_t size = json_array_size(list);
    for (size_t i = size; i-- > 0;)
        if (strcmp(chat_messages_role(list, i), "user") == 0) return i;
    return size;
}

bool chat_messages_take_begun(json_t *list, struct base_buffer *begun, struct base_error *err)
{
    static const char *const others[] = {"tool_calls", "reasoning_content"};
    const size_t n = json_array_size(list);
    if (strcmp(chat_messages_role(list, n - 1), "assistant") != 0) return true;
    const json_t *last = json_array_get(list, n - 1), *content = json_object_get(last, "content");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *other = json_object_get(last, others[i]);
        if (json_array_size(other) > 0 || json_string_length(other) > 0)
            return base_fail(err, BASE_USAGE,
                             "message %zu, the last one, is the assistant's: only a text can be "
                             "continued, and it has %s",
                             n, others[i]);
    }
    if (json_is_string(content))
        base_buffer_add(begun, json_string_value(content), json_string_length(content));
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *text = json_object_get(json_array_get(content, i), "text");
        base_buffer_add(begun, json_string_value(text), json_string_length(text));
    }
    chat_messages_cut(list, n - 1);
    return !begun->failed || no_memory(err);
}

void chat_messages_cut(json_t *list, size_t size)
{
    while (json_array_size(list) > size) json_array_remove(list, json_array_size(list) - 1);
}

/* ---- Writing ---- */

bool chat_messages_write(const json_t *list, struct base_output *file, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    base_buffer_add_text(&out, "[");
    for (size_t i = 0; i < json_array_size(list); i++) {
        base_buffer_add_text(&out, i ? ",\n " : "\n ");
        text_json_write(&out, json_array_get(list, i), false);
    }
    base_buffer_add_text(&out, "\n]\n");
    bool ok = !out.failed || no_memory(err);
    return ok && base_output_write(file, out.data, out.size, err);
}
