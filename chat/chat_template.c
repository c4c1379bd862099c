/* chat/chat_template.c: renders a conversation and tokenizes it. See chat/chat_template.h. */
#include "chat/chat_template.h"
#include "chat/messages.h"
#include "text/chat/chat_formats.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for the chat template");
}

/* ---- Choice of the template ---- */

/* Finds a template of the model, "" for the one without a name; *text has no data if the model does
 * not have it. */
static bool find_own(const struct gguf_file *file, const char *name, struct gguf_str *text,
                     struct base_error *err)
{
    char key[128];
    *text = (struct gguf_str){0};
    snprintf(key, sizeof key, "tokenizer.chat_template%s%.80s", *name ? "." : "", name);
    return gguf_get_str(file, key, text, err);
}

/* Takes a template of the model; false if it does not have it. */
static bool take_own(struct chat_template *t, const struct gguf_file *file, const char *name,
                     struct base_error *err)
{
    struct gguf_str text;
    if (!find_own(file, name, &text, err) || !text.data) return false;
    base_buffer_add(&t->source, text.data, text.size);
    t->origin_file = gguf_path(file);
    t->origin_item = *name ? "chat template" : "tokenizer.chat_template";
    return true;
}

bool chat_template_is_name(const char *name, const struct gguf_file *file, bool *is_name,
                           struct base_error *err)
{
    struct gguf_str text;
    *is_name = text_chat_format(name) != NULL;
    if (*is_name) return true;
    if (!find_own(file, name, &text, err)) return false;
    *is_name = text.data != NULL;
    return true;
}

bool chat_template_unknown(const struct chat_settings *settings, const char *what,
                           struct base_error *err)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    for (size_t i = 0; text_chat_format_name(i); i++)
        base_buffer_add_format(&names, "%s%s", i ? ", " : "", text_chat_format_name(i));
    base_fail_at(err, BASE_USAGE, settings->caller->template, -1,
                 "'%s' is neither a %s nor one of %s", settings->template, what,
                 names.data ? names.data : "");
    return false;
}

static bool find_named(struct chat_template *t, const struct chat_settings *settings,
                       const struct gguf_file *file, struct base_error *err)
{
    const char *name = settings->template;
    const char *text = settings->template_file ? name : text_chat_format(name);
    t->origin_item = settings->template_file ? "" : settings->caller->template;
    t->origin_file = settings->template_file;
    if (!text && take_own(t, file, name, err)) return true;
    if (err->code) return false;
    if (!text && !strchr(name, '{')) return chat_template_unknown(settings, "template", err);
    base_buffer_add_text(&t->source, text ? text : name);
    return true;
}

bool chat_template_exists(const struct chat_settings *settings, const struct gguf_file *file,
                          bool *exists, struct base_error *err)
{
    struct gguf_str text;
    if (!find_own(file, "", &text, err)) return false;
    *exists = settings->template || text.size > 0;
    return true;
}

static bool find_source(struct chat_template *t, const struct chat_settings *settings,
                        const struct gguf_file *file, bool with_tools, struct base_error *err)
{
    if (settings->template) return find_named(t, settings, file, err);
    if (with_tools && take_own(t, file, "tool_use", err)) return true;
    if (err->code || take_own(t, file, "", err)) return !err->code;
    if (err->code) return false;
    return base_fail_file(err, BASE_USAGE, gguf_path(file), "the model has no chat template: %s",
                          settings->caller->no_template);
}

/* Adds the template's origin to an error. */
static bool name_origin(const struct chat_template *t, struct base_error *err)
{
    if (!err->item[0] && t->origin_item)
        snprintf(err->item, sizeof err->item, "%s", t->origin_item);
    if (t->origin_file) base_error_set_file(err, t->origin_file);
    return false;
}

/* ---- Variables ---- */

static const char *const own_variables[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                            "sep_token", "cls_token", "mask_token"};
enum { N_OWN = sizeof own_variables / sizeof *own_variables };

/* Sets the special tokens of the model, as in the transformers library. */
static bool set_special_tokens(const struct chat_template *t, const struct gguf_file *file,
                               struct base_error *err)
{
    static const char *const keys[N_OWN] = {NULL,
                                            NULL,
                                            "tokenizer.ggml.unknown_token_id",
                                            "tokenizer.ggml.padding_token_id",
                                            "tokenizer.ggml.seperator_token_id",
                                            "tokenizer.ggml.cls_token_id",
                                            "tokenizer.ggml.mask_token_id"};
    for (size_t i = 0; i < N_OWN; i++) {
        int64_t id = i == 0 ? text_token_bos(t->tokenizer) : text_token_eos(t->tokenizer);
        if (keys[i]) {
            id = -1;
            if (!gguf_get_i64(file, keys[i], &id, err)) return false;
        }
        if (id < 0 || id >= text_vocab_size(t->tokenizer)) continue;
        const struct gguf_str text = text_token_raw(t->tokenizer, (int32_t)id);
        errno = 0;
        json_t *value = json_stringn(text.size ? text.data : "", text.size);
        if (value && json_object_set_new(t->variables, own_variables[i], value) == 0) continue;
        if (value || errno == ENOMEM) return no_memory(err); /* not valid UTF-8 */
    }
    return true;
}

/* Sets a variable of the user; takes the reference, NULL is lack of memory. */
static bool set_variable(const struct chat_template *t, const struct chat_settings *settings,
                         const char *name, json_t *value, struct base_error *err)
{
    static const char *const reserved[] = {"messages", "tools", "add_generation_prompt"};
    const char *why =
        jinja_template_uses(t->template, name) ? NULL : "the chat template has no variable %s";
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved + N_OWN; i++)
        if (strcmp(i < N_OWN ? own_variables[i] : reserved[i - N_OWN], name) == 0)
            why = "%s has its value already";
    if (!why) return json_object_set_new(t->variables, name, value) == 0 || no_memory(err);
    json_decref(value);
    return base_fail_at(err, BASE_USAGE, settings->caller->variable, -1, why, name);
}

/* Sets a variable from NAME=JSON. */
static bool parse_variable(const struct chat_template *t, const struct chat_settings *settings,
                           const char *given, struct base_error *err)
{
    const char *equals = strchr(given, '=');
    char name[128];
    if (!equals || equals == given || equals - given >= (ptrdiff_t)sizeof name)
        return base_fail_at(err, BASE_USAGE, settings->caller->variable, -1,
                            "'%s' is not NAME=JSON", given);
    snprintf(name, sizeof name, "%.*s", (int)(equals - given), given);
    struct base_error wrong = BASE_ERROR_INIT;
    json_t *value = text_json_parse(equals + 1, strlen(equals + 1), NULL, &wrong);
    if (!value)
        return base_fail_at(err, wrong.code, settings->caller->variable, -1,
                            "the value of %s is not JSON (a text needs quotes): %s", name,
                            wrong.text);
    return set_variable(t, settings, name, value, err);
}

static bool set_variables(struct chat_template *t, const struct chat_settings *settings,
                          const struct gguf_file *file, json_t *tools, struct base_error *err)
{
    const char *name;
    json_t *value;
    t->variables = json_object();
    if (!t->variables || json_object_set_new(t->variables, "documents", json_null()) ||
        json_object_set(t->variables, "tools", tools ? tools : json_null()))
        return no_memory(err);
    if (tools && !jinja_template_uses(t->template, "tools"))
        return base_fail_at(err, BASE_USAGE, settings->caller->tools, -1,
                            "the chat template does not support tools");
    if (!set_special_tokens(t, file, err)) return false;
    for (size_t i = 0; i < settings->variable.count; i++)
        if (!parse_variable(t, settings, settings->variable.item[i], err)) return false;
    json_object_foreach((json_t *)(uintptr_t)settings->variables, name, value)
    {
        if (!set_variable(t, settings, name, json_incref(value), err)) return false;
    }
    return true;
}

/* ---- Rendering ---- */

/* *exhausted (may be NULL) is set if a limit of time or memory was reached. */
static bool render(const struct chat_template *t, const json_t *messages, struct base_buffer *text,
                   struct base_buffer *own, bool *exhausted, struct base_error *err)
{
    struct jinja_template_options options = jinja_template_options_default();
    options.exhausted = exhausted;
    json_auto_t *context = text_json_copy(t->variables);
    options.own = own;
    options.own_variables = own_variables;
    options.n_own_variables = N_OWN;
    bool ok = context &&
              json_object_set_nocheck(context, "messages", (json_t *)(uintptr_t)messages) == 0 &&
              json_object_set_new(context, "add_generation_prompt", json_true()) == 0;
    ok =
        ok ? jinja_template_render(t->template, context, &options, text, err) || name_origin(t, err)
           : no_memory(err);
    return ok;
}

/* ---- Forms of messages ---- */

/* Returns whether the text of a trial conversation contains `needle` and not `spoilt`. Releases
 * `messages`. An error of the template counts as false. A lack of memory is an error, and so is a
 * limit of time or memory, which every further rendering would reach too. */
static bool shows(const struct chat_template *t, json_t *messages, const char *needle,
                  const char *spoilt, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct base_error refused = BASE_ERROR_INIT;
    bool exhausted = false;
    if (!messages) no_memory(err);
    const bool ok = messages && !err->code &&
                    render(t, messages, &text, NULL, &exhausted, &refused) && text.size &&
                    strstr(text.data, needle) && !strstr(text.data, spoilt);
    if (refused.code == BASE_NO_MEMORY) no_memory(err);
    if (exhausted && !err->code) *err = refused;
    json_decref(messages);
    return ok;
}

static json_t *trial_call(json_t *arguments)
{
    return json_pack("[{s:s, s:s}, {s:s, s:s, s:[{s:s, s:s, s:{s:s, s:o}}]},"
                     " {s:s, s:s, s:s, s:s}]",
                     "role", "user", "content", "x", "role", "assistant", "content", "",
                     "tool_calls", "type", "function", "id", "abcdefghi", "function", "name", "f",
                     "arguments", arguments, "role", "tool", "tool_call_id", "abcdefghi", "name",
                     "f", "content", "x");
}

/* Determines the forms of messages that the template accepts, by trial renderings: published
 * templates accept different forms, leave out others or print them as Python would, and do not
 * state which. */
static bool learn_forms(struct chat_template *t, struct base_error *err)
{
    const bool text = shows(t, json_pack("[{s:s, s:s}]", "role", "user", "content", "needle"),
                            "needle", "\1", err);
    const bool parts = shows(t,
                             json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "content", "type",
                                       "text", "text", "needle"),
                             "needle", "'needle'", err);
    t->wants_parts = parts && !text;
    t->wants_text = !parts;
    t->wants_encoded =
        !shows(t, trial_call(json_pack("{s:s}", "needle", "v")), "needle", "'needle'", err) &&
        shows(t, trial_call(json_string("{\"needle\": \"v\"}")), "needle", "\\\"needle", err);
    return !err->code;
}

/* Joins the texts of all parts, one per line. */
static json_t *join_parts(const json_t *parts)
{
    BASE_LOCAL_BUFFER all = BASE_BUFFER_INIT;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *text = json_object_get(json_array_get(parts, i), "text");
        if (i) base_buffer_add_text(&all, "\n");
        base_buffer_add(&all, json_string_value(text), json_string_length(text));
    }
    return all.failed ? NULL : json_stringn(all.data ? all.data : "", all.size);
}

/* Converts a call's arguments to the other form if the template needs it. False without memory. */
static bool convert_call(const struct chat_template *t, json_t *call)
{
    json_t *function = json_object_get(call, "function");
    json_t *holder = function ? function : call;
    const json_t *arguments = json_object_get(holder, "arguments");
    json_t *other = NULL;
    if (json_is_string(arguments) && !t->wants_encoded) {
        other = text_json_load(json_string_value(arguments), json_string_length(arguments),
                               JSON_ALLOW_NUL, NULL);
        if (!other) return errno != ENOMEM; /* not JSON: unchanged */
    } else if (text_json_is_object(arguments) && t->wants_encoded) {
        struct base_buffer text = BASE_BUFFER_INIT;
        text_json_write(&text, arguments, false);
        other = text.failed ? NULL : json_stringn(text.data, text.size);
        base_buffer_free(&text);
        if (!other) return false;
    }
    return !other || json_object_set_new(holder, "arguments", other) == 0;
}

/* Returns a copy of the message in the form that the template accepts; NULL without memory. */
static json_t *convert_message(const struct chat_template *t, const json_t *message)
{
    json_t *copy = text_json_copy_deep(message);
    const json_t *content = json_object_get(copy, "content");
    json_t *calls = json_object_get(copy, "tool_calls"), *other = NULL;
    bool ok = copy != NULL;
    if (ok && json_is_array(content) && t->wants_text)
        ok = (other = join_parts(content)) != NULL;
    else if (ok && json_is_string(content) && t->wants_parts)
        ok = (other = json_pack("[{s:s, s:O}]", "type", "text", "text", content)) != NULL;
    if (other) ok = json_object_set_new(copy, "content", other) == 0;
    for (size_t i = 0; ok && i < json_array_size(calls); i++)
        ok = convert_call(t, json_array_get(calls, i));
    if (ok) return copy;
    json_decref(copy);
    return NULL;
}

static json_t *convert(const struct chat_template *t, const json_t *messages,
                       struct base_error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(messages); i++) {
        json_t *message = convert_message(t, json_array_get(messages, i));
        if (message && json_array_append_new(list, message) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    if (!list) no_memory(err);
    return list;
}

/* ---- Marks ---- */

/* Returns the size of the mark at s, such as "<|user|>"; 0 if there is none. */
static size_t mark_size(const char *s, size_t before)
{
    if (*s != '<') return 0;
    const size_t n = strcspn(s + 1, "<> \t\r\n");
    if (s[n + 1] != '>' || n == 0) return 0;
    return (before && s[-1] == '<') || s[n + 2] == '>' ? 0 : n + 2; /* <<SYS>> is not a mark */
}

static bool is_token(const struct text_tokenizer *t, const char *text, size_t size)
{
    struct text_ids ids = {0};
    struct base_error ignored = BASE_ERROR_INIT;
    bool one = !text_encode(t, text, size, TEXT_PARSE_SPECIAL | TEXT_LOSSY, &ids, &ignored) ||
               ids.count == 1;
    text_ids_free(&ids);
    return one;
}

/* Returns whether the vocabulary has a token with that text, of any type. */
static bool is_spelling(const struct text_tokenizer *t, const char *text, size_t size)
{
    for (uint32_t id = 0; id < text_vocab_size(t); id++) {
        const struct gguf_str raw = text_token_raw(t, (int32_t)id);
        if (raw.size == size && memcmp(raw.data, text, size) == 0) return true;
    }
    return false;
}

/* Warns about marks that are not control tokens. A format that was chosen by name may belong to
 * another model, and a file may declare its marks as ordinary tokens: the model then reads letters,
 * and its answers are useless. This is not an error, because nothing else is wrong. In other
 * templates a mark that is not in the vocabulary may be plain text. */
static void note_marks(const struct chat_template *t, const struct chat_settings *settings)
{
    const bool by_name = settings->template && text_chat_format(settings->template);
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct base_error ignored = BASE_ERROR_INIT;
    json_auto_t *trial = json_pack("[{s:s, s:s}]", "role", "user", "content", "x");
    if (trial && render(t, trial, &text, NULL, NULL, &ignored))
        for (size_t i = 0; i < text.size; i++) {
            const char *mark = text.data + i;
            const size_t size = mark_size(mark, i);
            if (!size || is_token(t->tokenizer, mark, size)) continue;
            char note[400] = "";
            if (by_name)
                snprintf(note, sizeof note,
                         "%s %s: '%.*s' is not a token of this model, which reads it as letters",
                         settings->caller->template, settings->template, (int)size, mark);
            else if (is_spelling(t->tokenizer, mark, size))
                snprintf(note, sizeof note,
                         "the chat template's '%.*s' is not a special token in this file, so the "
                         "model reads it as letters",
                         (int)size, mark);
            else
                continue;
            settings->caller->note(note);
            break;
        }
}

/* ---- Opening and rendering ---- */

bool chat_template_open(struct chat_template *t, const struct chat_settings *settings,
                        const struct gguf_file *file, const struct text_tokenizer *tokenizer,
                        json_t *tools, struct base_error *err)
{
    t->tokenizer = tokenizer;
    if (!find_source(t, settings, file, tools != NULL, err)) return false;
    if (t->source.failed) return no_memory(err);
    t->template = jinja_template_parse(t->source.data ? t->source.data : "", t->source.size, err);
    if (!t->template) return name_origin(t, err);
    if (!set_variables(t, settings, file, tools, err) || !learn_forms(t, err)) return false;
    note_marks(t, settings);
    return true;
}

void chat_template_close(struct chat_template *t)
{
    jinja_template_free(t->template);
    base_buffer_free(&t->source);
    json_decref(t->variables);
    *t = (struct chat_template){0};
}

/* Adds BOS if the file requires it and the template did not write it; never EOS, because an answer
 * follows. */
static bool add_bos(const struct text_tokenizer *t, struct text_ids *ids, struct base_error *err)
{
    const int32_t bos = text_token_bos(t);
    if (!text_adds_bos(t) || (ids->count && ids->id[0] == bos)) return true;
    if (!text_ids_add(ids, bos, err)) return false;
    memmove(ids->id + 1, ids->id, (ids->count - 1) * sizeof *ids->id);
    ids->id[0] = bos;
    return true;
}

/* Appends the ids of a rendered conversation. */
static bool encode(const struct chat_template *t, const struct chat_request *request,
                   struct chat_prompt *out, struct base_error *err)
{
    const unsigned flags = TEXT_PARSE_SPECIAL | (request->lossy ? TEXT_LOSSY : 0);
    if (text_encode_framed(t->tokenizer, out->text.data, out->own.data, out->text.size, flags,
                           &out->ids, err))
        return request->no_bos || add_bos(t->tokenizer, &out->ids, err);
    const size_t n = strlen(err->text);
    if (err->code == BASE_USAGE && err->offset >= 0)
        snprintf(err->text + n, sizeof err->text - n, "; %s", request->chat.caller->lossy);
    return false;
}

bool chat_template_render(const struct chat_template *t, const struct chat_request *request,
                          const json_t *messages, struct chat_prompt *out, struct base_error *err)
{
    base_buffer_clear(&out->text);
    base_buffer_clear(&out->own);
    out->ids.count = 0;
    json_auto_t *list = convert(t, messages, err);
    bool ok = list && render(t, list, &out->text, &out->own, NULL, err);
    if (ok && out->text.size == 0) {
        base_fail(err, BASE_USAGE, "the chat template makes an empty text of these messages");
        ok = name_origin(t, err);
    }
    for (size_t i = 0; ok && i < out->begun.size; i++) base_buffer_add(&out->own, "", 1);
    if (ok && out->begun.size) base_buffer_add(&out->text, out->begun.data, out->begun.size);
    ok = ok && (!(out->text.failed || out->own.failed || out->begun.failed) || no_memory(err)) &&
         encode(t, request, out, err);
    if (ok && out->ids.count == 0)
        return base_fail(err, BASE_USAGE,
                         "no letter of the prompt has a token in this model's vocabulary");
    return ok;
}

bool chat_template_try(const struct chat_template *t, const json_t *messages,
                       struct base_buffer *text, struct base_error *err)
{
    json_auto_t *list = convert(t, messages, err);
    base_buffer_clear(text);
    base_buffer_add_text(text, "");
    const bool ok = list && render(t, list, text, NULL, NULL, err);
    return ok && (!text->failed || no_memory(err));
}

void chat_prompt_free(struct chat_prompt *p)
{
    base_buffer_free(&p->begun);
    base_buffer_free(&p->text);
    base_buffer_free(&p->own);
    text_ids_free(&p->ids);
}
