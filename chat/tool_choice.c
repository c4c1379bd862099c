/* chat/tool_choice.c: calls as constraints. See chat/tool_choice.h.
 *
 * The trial conversation is rendered twice, with a call and with a plain answer:
 *
 *     ...<|im_start|>assistant\n<tool_call>\n{"name": "NAME", "arguments": {...}}\n</tool_call>
 *        <|im_end|>\n
 *     ...<|im_start|>assistant\nZq<|im_end|>\n
 *
 * Their common text at both ends does not belong to the call; the rest is a text with a name and an
 * object of arguments. */
#include "chat/tool_choice.h"
#include "base/utf8.h"
#include "text/chat/reply.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char trial_name[] = "trial_tool", trial_key[] = "trial_key", trial_value[] = "trial";

struct call_form {
    const struct chat_caller *caller;
    struct base_buffer call; /* terminated */
    size_t arguments, after; /* offsets in `call`: start and end of the arguments */
};

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for the choice of a tool");
}

static bool refuse(const struct call_form *f, struct base_error *err, const char *why)
{
    return base_fail_at(err, BASE_USAGE, f->caller->tool_choice, -1, "%s", why);
}

/* ---- The form of a call ---- */

static bool render(const struct call_form *f, const struct chat_template *t, json_t *messages,
                   struct base_buffer *text, struct base_error *err)
{
    struct base_error wrong = BASE_ERROR_INIT;
    const bool ok = messages && chat_template_try(t, messages, text, &wrong);
    json_decref(messages);
    if (ok) return true;
    if (!messages || wrong.code == BASE_NO_MEMORY) return no_memory(err);
    return base_fail_at(err, BASE_USAGE, f->caller->tool_choice, -1,
                        "the chat template writes no call: %s", wrong.text);
}

/* Removes texts of control tokens that end a turn, and space, from the end of the call. */
static void cut_end(struct base_buffer *call, const struct text_tokenizer *t)
{
    for (bool more = true; more;) {
        more = false;
        while (call->size && memchr(" \t\r\n", call->data[call->size - 1], 4)) call->size--;
        for (uint32_t id = 0; id < text_vocab_size(t); id++) {
            if (!text_token_is_end(t, (int32_t)id)) continue;
            const struct gguf_str raw = text_token_raw(t, (int32_t)id);
            if (!raw.size || raw.size > call->size ||
                memcmp(call->data + call->size - raw.size, raw.data, raw.size) != 0)
                continue;
            call->size -= raw.size;
            more = true;
        }
    }
}

/* A mark of which both texts share only a part, such as <|START_ACTION|> and <|START_RESPONSE|>,
 * belongs to the call. */
static void cut_common(const struct base_buffer *with, const struct base_buffer *without,
                       struct base_buffer *call)
{
    const char *a = with->data, *b = without->data;
    size_t from = 0, to = 0;
    const size_t most = with->size < without->size ? with->size : without->size;
    while (from < most && a[from] == b[from]) from++;
    const char *open = from ? base_find_last(a, '<', from) : NULL;
    if (open && !memchr(open, '>', (size_t)(a + from - open))) from = (size_t)(open - a);
    while (to < most - from && a[with->size - 1 - to] == b[without->size - 1 - to]) to++;
    const char *tail = a + with->size - to, *close = to ? memchr(tail, '>', to) : NULL;
    if (close && !memchr(tail, '<', (size_t)(close - tail))) to -= (size_t)(close + 1 - tail);
    base_buffer_add(call, a + from, with->size - from - to);
}

/* Finds the object {trial_key: trial_value}. */
static bool find_arguments(struct call_form *f, struct base_error *err)
{
    const char *text = f->call.data, *key = strstr(text, trial_key), *at = key;
    json_error_t stopped;
    while (at && at > text && *at != '{') at--;
    errno = 0;
    json_t *object =
        at && *at == '{' ? json_loadb(at, strlen(at), JSON_DISABLE_EOF_CHECK, &stopped) : NULL;
    if (!object && errno == ENOMEM) return no_memory(err);
    const char *value = json_string_value(json_object_get(object, trial_key));
    const bool found = value && strcmp(value, trial_value) == 0 && json_object_size(object) == 1;
    json_decref(object);
    if (!found || !strstr(text, trial_name))
        return refuse(f, err,
                      "the chat template does not write a call's arguments as a JSON object");
    f->arguments = (size_t)(at - text);
    f->after = f->arguments + (size_t)stopped.position;
    return true;
}

/* Checks that a reply with the trial call is parsed as that call. */
static bool check_read(const struct call_form *f, const struct chat_template *t,
                       struct base_error *err)
{
    const struct text_reply_options options = {.template_text = t->source.data,
                                               .tokenizer = t->tokenizer,
                                               .tools = json_object_get(t->variables, "tools"),
                                               .letters = true};
    struct text_reply *r = text_reply_new(&options, err);
    struct text_reply_part part;
    bool found = false;
    bool ok = r && text_reply_feed(r, f->call.data, strlen(f->call.data), err);
    for (int end = 0; ok && end < 2; end++) {
        while (text_reply_next(r, &part))
            found |= part.kind == TEXT_REPLY_CALL && strcmp(part.name, trial_name) == 0;
        if (!end) ok = text_reply_end(r, err);
    }
    text_reply_free(r);
    return ok && (found || refuse(f, err, "calls of the chat template's form are not read"));
}

static bool find_form(struct call_form *f, const struct chat_template *t, struct base_error *err)
{
    BASE_LOCAL_BUFFER with = BASE_BUFFER_INIT, without = BASE_BUFFER_INIT;
    bool ok = render(f, t,
                     json_pack("[{s:s, s:s}, {s:s, s:s, s:[{s:s, s:s, s:{s:s, s:{s:s}}}]}]", "role",
                               "user", "content", "x", "role", "assistant", "content", "",
                               "tool_calls", "type", "function", "id", "abcdefghi", "function",
                               "name", trial_name, "arguments", trial_key, trial_value),
                     &with, err) &&
              render(f, t,
                     json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "user", "content", "x", "role",
                               "assistant", "content", "Zq"),
                     &without, err);
    if (ok) {
        cut_common(&with, &without, &f->call);
        cut_end(&f->call, t->tokenizer);
        base_buffer_add(&f->call, "", 1);
        ok = !f->call.failed || no_memory(err);
    }
    return ok && find_arguments(f, err) && check_read(f, t, err);
}

/* ---- The constraint ---- */

static const json_t *function_of(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    return function ? function : tool;
}

/* Appends s[0..size) with `name` in place of the trial's name. */
static void add_named(struct base_buffer *out, const char *s, size_t size, const char *name)
{
    const char *end = s + size, *at;
    while ((at = memmem(s, (size_t)(end - s), trial_name, sizeof trial_name - 1)) != NULL) {
        base_buffer_add(out, s, (size_t)(at - s));
        base_buffer_add_text(out, name);
        s = at + sizeof trial_name - 1;
    }
    base_buffer_add(out, s, (size_t)(end - s));
    base_buffer_add(out, "", 1);
}

/* Returns the tool's schema, of an object, with an $id of its own, so that its references are
 * relative to it. A tool without parameters, or with an empty list of them, has none. */
static json_t *schema_of(const json_t *tool, size_t index)
{
    const json_t *given = json_object_get(function_of(tool), "parameters");
    char id[64];
    json_t *schema = json_object_size(given)
                         ? text_json_copy(given)
                         : json_pack("{s:s, s:{}}", "type", "object", "properties");
    const json_t *names = json_object_get(schema, "properties");
    const bool takes_any = !json_is_object(names) || json_object_size(names) > 0 ||
                           json_object_get(schema, "additionalProperties");
    snprintf(id, sizeof id, "urn:infer:tool:%zu", index);
    if (schema &&
        (takes_any || json_object_set_new(schema, "additionalProperties", json_false()) == 0) &&
        (json_object_get(schema, "type") ||
         json_object_set_new(schema, "type", json_string("object")) == 0) &&
        (json_object_get(schema, "$id") ||
         json_object_set_new(schema, "$id", json_string(id)) == 0))
        return schema;
    json_decref(schema);
    return NULL;
}

/* Compiles one tool's schema separately, so that an error names the tool. */
static bool check_schema(const struct call_form *f, const json_t *schema, const char *name,
                         const struct constrain_schema_options *o, struct base_error *err)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    struct base_error wrong = BASE_ERROR_INIT;
    char source[100];
    text_json_write(&text, schema, false);
    struct constrain_schema_options own = *o;
    struct constrain_notes notes = {0};
    own.notes = &notes;
    struct constraint *c =
        text.failed ? NULL : constraint_from_schema(text.data, text.size, &own, &wrong);
    base_buffer_free(&text);
    snprintf(source, sizeof source, "the parameters of '%.60s'", name);
    chat_schema_note(f->caller, &notes, source);
    if (!c && (text.failed || wrong.code == BASE_NO_MEMORY)) return no_memory(err);
    if (!c)
        base_fail_at(err, wrong.code, f->caller->tool_choice, -1, "the parameters of '%s': %s",
                     name, wrong.text);
    constraint_free(c);
    return err->code == BASE_OK;
}

struct tool_constraints {
    struct constrain_around *around;    /* [n] */
    struct base_buffer *before, *after; /* [n] */
    size_t n;
    json_t *list; /* of the tools' schemas */
};

static bool add_part(struct tool_constraints *p, const struct call_form *f, const json_t *tool,
                     size_t index, const struct constrain_schema_options *o, struct base_error *err)
{
    const char *name = json_string_value(json_object_get(function_of(tool), "name"));
    json_t *schema = schema_of(tool, index);
    if (!schema) return no_memory(err);
    bool ok = check_schema(f, schema, name, o, err);
    if (ok && json_array_append(p->list, schema) != 0) ok = no_memory(err);
    json_decref(schema);
    if (!ok) return false;
    struct base_buffer *before = &p->before[p->n], *after = &p->after[p->n];
    add_named(before, f->call.data, f->arguments, name);
    add_named(after, f->call.data + f->after, strlen(f->call.data) - f->after, name);
    p->around[p->n++] = (struct constrain_around){before->data, after->data};
    return !(before->failed || after->failed) || no_memory(err);
}

static bool check_name(const struct call_form *f, const json_t *tool, size_t number,
                       struct base_error *err)
{
    const char *name = json_string_value(json_object_get(function_of(tool), "name"));
    const char *at = name;
    while (at && *at && (unsigned char)*at > ' ' && !strchr("\"'\\<>{}[]()", *at)) at++;
    if (name && *name && !*at) return true;
    return base_fail_at(err, BASE_USAGE, f->caller->tool_choice, -1,
                        "tool %zu has no name that a call could be written with", number);
}

static bool add_parts(struct tool_constraints *p, const struct call_form *f, const json_t *tools,
                      const char *choice, const struct constrain_schema_options *o,
                      struct base_error *err)
{
    const bool any = strcmp(choice, "required") == 0;
    const size_t n = json_array_size(tools);
    p->around = calloc(n + 1, sizeof *p->around);
    p->before = calloc(n + 1, sizeof *p->before);
    p->after = calloc(n + 1, sizeof *p->after);
    p->list = json_array();
    if (!p->around || !p->before || !p->after || !p->list) return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *name = json_string_value(json_object_get(function_of(tool), "name"));
        if (!any && (!name || strcmp(name, choice) != 0)) continue;
        if (!check_name(f, tool, i + 1, err) || !add_part(p, f, tool, i, o, err)) return false;
    }
    if (p->n) return true;
    return base_fail_at(err, BASE_USAGE, f->caller->tool_choice, -1,
                        any ? "there are no tools"
                            : "no tool is called '%s', and it is neither auto nor required",
                        choice);
}

static void free_parts(struct tool_constraints *p)
{
    for (size_t i = 0; i < p->n; i++) {
        base_buffer_free(&p->before[i]);
        base_buffer_free(&p->after[i]);
    }
    free(p->around), free(p->before), free(p->after);
    json_decref(p->list);
}

static bool compile(const struct tool_constraints *p, const struct constrain_schema_options *o,
                    struct constraint **out, struct base_buffer *marks, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    base_buffer_add_text(&text, "{\"anyOf\":");
    text_json_write(&text, p->list, false);
    base_buffer_add_text(&text, "}");
    /* Control tokens among the marks: the texts of one tool have the same ones as those of all
     * tools. */
    base_buffer_add_text(marks, p->around[0].before);
    base_buffer_add_text(marks, p->around[0].after);
    const bool ok = !(text.failed || marks->failed) || no_memory(err);
    if (ok) *out = constraint_from_schemas(text.data, text.size, p->around, p->n, o, err);
    return ok && *out;
}

bool chat_tool_choice_compile(const struct chat_request *request, const struct chat_template *t,
                              struct constraint **out, struct base_buffer *marks,
                              struct base_error *err)
{
    const char *choice = request->chat.tool_choice;
    struct constrain_notes ignored = {0}; /* the note is about each tool's own schema */
    const struct constrain_schema_options o = {
        .generate = true, .any_order = request->generate.constraint.any_order, .notes = &ignored};
    struct call_form form = {.caller = request->chat.caller};
    struct tool_constraints parts = {0};
    if (!choice || strcmp(choice, "auto") == 0) return true;
    const json_t *tools = json_object_get(t->variables, "tools");
    const bool ok = find_form(&form, t, err) && add_parts(&parts, &form, tools, choice, &o, err) &&
                    compile(&parts, &o, out, marks, err);
    free_parts(&parts);
    base_buffer_free(&form.call);
    return ok;
}

void chat_schema_note(const struct chat_caller *caller, const struct constrain_notes *notes,
                      const char *source)
{
    char text[700], more[48] = "";
    if (notes->count == 0) return;
    if (notes->count > 1) snprintf(more, sizeof more, "; %u such notes in all", notes->count);
    snprintf(text, sizeof text, "%s: %.500s%s", source, notes->text, more);
    caller->note(text);
}
