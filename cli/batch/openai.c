/* cli/batch/openai.c: OpenAI's form of lines. See cli/batch/openai.h. */
#include "cli/batch/openai.h"
#include "cli/system.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <stdio.h>
#include <string.h>

/* ---- Requests ---- */

bool cli_openai_is_line(const json_t *line)
{
    return json_object_get(line, "body") ||
           (json_object_get(line, "custom_id") && !json_object_get(line, "prompt"));
}

static bool fail_member(const char *name, const char *what, struct base_error *err)
{
    return base_fail_at(err, BASE_USAGE, name, -1, "%s", what);
}

static bool set(json_t *out, const char *name, json_t *value, struct base_error *err)
{
    return json_object_set_new(out, name, value) == 0 ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory for a line");
}

static bool keep(json_t *out, const char *name, const json_t *value, struct base_error *err)
{
    return set(out, name, text_json_copy(value), err);
}

static bool read_format(json_t *out, const json_t *format, struct base_error *err)
{
    const char *type = json_string_value(json_object_get(format, "type"));
    const json_t *schema = json_object_get(json_object_get(format, "json_schema"), "schema");
    if (type && strcmp(type, "text") == 0) return true;
    if (type && strcmp(type, "json_object") == 0) return set(out, "json_object", json_true(), err);
    if (type && strcmp(type, "json_schema") == 0 && schema)
        return keep(out, "json_schema", schema, err);
    return fail_member("response_format", "is not text, json_object or json_schema with a schema",
                       err);
}

static bool read_tool_choice(json_t *out, const json_t *choice, struct base_error *err)
{
    const json_t *name = json_object_get(json_object_get(choice, "function"), "name");
    if (json_is_string(choice) && strcmp(json_string_value(choice), "none") == 0)
        return set(out, "tools", json_null(), err);
    if (json_is_string(choice)) name = choice;
    return json_is_string(name)
               ? keep(out, "tool_choice", name, err)
               : fail_member("tool_choice", "is no word and names no function", err);
}

/* {"50256":-100} becomes ["50256-100"], the form of --logit-bias. */
static bool read_bias(json_t *out, const json_t *bias, struct base_error *err)
{
    json_t *list = json_array(), *value;
    const char *id;
    bool ok = list != NULL;
    json_object_foreach((json_t *)(uintptr_t)bias, id, value)
    {
        char text[64];
        const char *kept = text_json_number(value);
        if (kept)
            snprintf(text, sizeof text, "%.20s%s%.40s", id, *kept == '-' ? "" : "+", kept);
        else
            snprintf(text, sizeof text, "%.20s%+g", id, json_number_value(value));
        ok = ok && json_array_append_new(list, json_string(text)) == 0;
    }
    if (ok) return set(out, "logit_bias", list, err);
    json_decref(list);
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for a line");
}

/* Chats have logprobs true and top_logprobs, completions a number of logprobs. */
static bool read_logprobs(json_t *out, const json_t *body, struct base_error *err)
{
    const json_t *wanted = json_object_get(body, "logprobs");
    const json_t *top = json_object_get(body, "top_logprobs");
    if (json_is_integer(wanted)) return keep(out, "logprobs", wanted, err);
    if (!json_is_true(wanted)) return true;
    return top ? keep(out, "logprobs", top, err) : set(out, "logprobs", json_integer(0), err);
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0) return true;
    return false;
}

static bool read_prompt(json_t *out, const json_t *prompt, struct base_error *err)
{
    const size_t n = json_array_size(prompt);
    if (n > 1 && json_is_string(json_array_get(prompt, 0)))
        return fail_member("prompt", "is a list of several texts: write a line for each", err);
    if (n == 1) prompt = json_array_get(prompt, 0);
    return json_is_string(prompt) ? keep(out, "prompt", prompt, err)
                                  : fail_member("prompt", "is no text", err);
}

/* Every seed of 64 bits is reproducible there; here -1 draws one, and others have 62 bits. */
static bool read_seed(json_t *out, const json_t *seed, struct base_error *err)
{
    const json_int_t most = ((json_int_t)1 << 62) - 1;
    if (!json_is_integer(seed)) return keep(out, "seed", seed, err);
    return set(out, "seed", json_integer(json_integer_value(seed) & most), err);
}

/* Adds the variables that the body has for the template, `reasoning_effort` among them; the
 * template does not read others. */
static bool read_variables(json_t *out, const json_t *body, const struct jinja_template *template,
                           struct base_error *err)
{
    const json_t *given = json_object_get(body, "chat_template_kwargs");
    const json_t *effort = json_object_get(body, "reasoning_effort");
    if (!effort) effort = json_object_get(json_object_get(body, "reasoning"), "effort");
    json_t *all = text_json_is_object(given) ? text_json_copy(given) : json_object(), *value;
    const char *name;
    void *next;
    bool ok = all && (!json_is_string(effort) ||
                      json_object_set(all, "reasoning_effort", (json_t *)(uintptr_t)effort) == 0);
    json_object_foreach_safe(all, next, name, value)
    {
        if (!template || !jinja_template_uses(template, name)) json_object_del(all, name);
    }
    if (!ok) base_fail(err, BASE_NO_MEMORY, "not enough memory for a line");
    ok = ok && (json_object_size(all) == 0 || keep(out, "template_var", all, err));
    json_decref(all);
    const bool none = json_is_string(effort) && strcmp(json_string_value(effort), "none") == 0;
    return ok && (!none || set(out, "reasoning_budget", json_integer(0), err));
}

static bool read_member(json_t *out, const char *name, const json_t *value, struct base_error *err)
{
    /* No matter of what is generated, or read elsewhere. */
    static const char *const ignored[] = {"model",
                                          "user",
                                          "metadata",
                                          "store",
                                          "service_tier",
                                          "stream",
                                          "stream_options",
                                          "top_logprobs",
                                          "logprobs",
                                          "tool_choice",
                                          "verbosity",
                                          "reasoning_effort",
                                          "prediction",
                                          "parallel_tool_calls",
                                          "best_of",
                                          "chat_template_kwargs",
                                          "modalities",
                                          "prompt_cache_retention",
                                          "prompt_cache_key",
                                          "safety_identifier"};
    if (json_is_null(value) || is_one_of(name, ignored, sizeof ignored / sizeof *ignored))
        return true;
    if (strcmp(name, "echo") == 0)
        return json_is_false(value) ||
               fail_member("echo", "is not false: answers do not repeat the prompt", err);
    if (strcmp(name, "reasoning") == 0 && text_json_is_object(value)) return true;
    if (strcmp(name, "n") == 0)
        return (json_is_integer(value) && json_integer_value(value) == 1) ||
               fail_member("n", "is not 1: write a line for each answer", err);
    if (strcmp(name, "max_tokens") == 0 || strcmp(name, "max_completion_tokens") == 0)
        return json_is_integer(value) ? keep(out, "predict", value, err)
                                      : fail_member(name, "is not a whole number", err);
    if (strcmp(name, "response_format") == 0) return read_format(out, value, err);
    if (strcmp(name, "logit_bias") == 0 && text_json_is_object(value))
        return read_bias(out, value, err);
    if (strcmp(name, "prompt") == 0) return read_prompt(out, value, err);
    if (strcmp(name, "seed") == 0) return read_seed(out, value, err);
    return keep(out, name, value, err);
}

static bool read_body(json_t *out, const json_t *body, bool is_chat,
                      const struct jinja_template *template, struct base_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, name,
                        value) if (!read_member(out, name, value, err)) return false;
    const json_t *choice = json_object_get(body, "tool_choice");
    if (choice && !json_is_null(choice) && !read_tool_choice(out, choice, err)) return false;
    if (!is_chat && !set(out, "raw", json_true(), err)) return false;
    if (is_chat && !read_variables(out, body, template, err)) return false;
    return read_logprobs(out, body, err);
}

json_t *cli_openai_read(const json_t *line, const struct jinja_template *template,
                        struct base_error *err)
{
    const json_t *body = json_object_get(line, "body");
    if (!json_object_get(line, "custom_id") || !body)
        return base_null(base_fail(err, BASE_USAGE,
                                   "the line has a %s and no %s: the batch form needs both",
                                   body ? "body" : "custom_id", body ? "custom_id" : "body"));
    const char *url = json_string_value(json_object_get(line, "url"));
    const bool is_chat = !url || strcmp(url, "/v1/chat/completions") == 0;
    if (!is_chat && strcmp(url, "/v1/completions") != 0) {
        fail_member("url", "is not /v1/chat/completions or /v1/completions", err);
        return NULL;
    }
    const char *wanted = is_chat ? "messages" : "prompt";
    if (!text_json_is_object(body) || !json_object_get(body, wanted))
        return base_null(base_fail_at(err, BASE_USAGE, "body", -1, "has no %s", wanted));
    json_t *out = json_object();
    if (!out) base_fail(err, BASE_NO_MEMORY, "not enough memory for a line");
    if (out && read_body(out, body, is_chat, template, err)) return out;
    json_decref(out);
    return NULL;
}

/* ---- Answers ---- */

static void add_head(uint64_t number, const struct base_buffer *id, struct base_buffer *out)
{
    base_buffer_add_format(out, "{\"line\":%llu,\"id\":\"batch_req_%llu\",\"custom_id\":",
                           (unsigned long long)number, (unsigned long long)number);
    base_buffer_add_text(out, id->size ? id->data : "null");
}

static const char *reason_of(const struct cli_openai_answer *a)
{
    const enum generate_ending ending = a->outcome->ending;
    if (ending == GENERATE_END_LIMIT || ending == GENERATE_END_CONTEXT) return "length";
    return json_object_get(a->message, "tool_calls") ? "tool_calls" : "stop";
}

/* Moves the members of an item of cli/out/logprobs.h to their names in this form. */
static bool rename_item(json_t *item)
{
    static const char *const names[][2] = {{"text", "token"}, {"top", "top_logprobs"}};
    size_t i;
    json_t *one;
    json_object_del(item, "id");
    for (size_t k = 0; k < 2; k++) {
        json_t *value = json_object_get(item, names[k][0]);
        if (value && json_object_set(item, names[k][1], value) != 0) return false;
        json_object_del(item, names[k][0]);
    }
    json_array_foreach(json_object_get(item, "top_logprobs"), i,
                       one) if (!rename_item(one)) return false;
    return true;
}

static json_t *as_chat(json_t *list)
{
    size_t i;
    json_t *item, *out = json_object();
    bool ok = out != NULL;
    json_array_foreach(list, i, item)
    {
        ok = ok && rename_item(item);
        if (ok && !json_object_get(item, "top_logprobs"))
            ok = json_object_set_new(item, "top_logprobs", json_array()) == 0;
    }
    if (ok && json_object_set(out, "content", list) == 0) return out;
    json_decref(out);
    return NULL;
}

/* Returns the text of a token as this form has it: of incomplete characters the bytes. NULL: no
 * memory. */
static json_t *text_of(const json_t *item)
{
    json_t *text = json_object_get(item, "text"), *byte;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    size_t i;
    if (!strstr(json_string_value(text), "\xef\xbf\xbd")) return json_incref(text);
    base_buffer_add_text(&out, "bytes:");
    json_array_foreach(json_object_get(item, "bytes"), i, byte)
        base_buffer_add_format(&out, "\\x%02x", (unsigned)json_integer_value(byte));
    return out.failed ? NULL : json_string(out.data);
}

/* Adds an item's probability under its text; of items with one text the first counts. */
static bool add_by_text(json_t *out, const json_t *item)
{
    json_auto_t *shown = text_of(item);
    const char *text = json_string_value(shown);
    return shown && (json_object_get(out, text) ||
                     json_object_set(out, text, json_object_get(item, "logprob")) == 0);
}

/* Returns the number of characters that begin in a token. */
static size_t characters_of(const json_t *item)
{
    size_t n = 0, i;
    json_t *byte;
    json_array_foreach(json_object_get(item, "bytes"), i, byte) n +=
        (json_integer_value(byte) & 0xc0) != 0x80;
    return n;
}

/* Makes a list of each member; the best tokens are an object by their texts, with the chosen one.
 */
static json_t *as_completion(const json_t *list)
{
    json_t *out = json_pack("{s:[],s:[],s:[],s:[]}", "tokens", "token_logprobs", "top_logprobs",
                            "text_offset");
    json_t *item, *one;
    size_t i, k, offset = 0;
    bool ok = out != NULL;
    json_array_foreach(list, i, item)
    {
        json_t *top = json_object();
        json_array_foreach(json_object_get(item, "top"), k, one) ok = ok && add_by_text(top, one);
        ok = ok && add_by_text(top, item) &&
             json_array_append_new(json_object_get(out, "tokens"), text_of(item)) == 0 &&
             json_array_append(json_object_get(out, "token_logprobs"),
                               json_object_get(item, "logprob")) == 0 &&
             json_array_append(json_object_get(out, "top_logprobs"), top) == 0 &&
             json_array_append_new(json_object_get(out, "text_offset"),
                                   json_integer((json_int_t)offset)) == 0;
        json_decref(top);
        offset += characters_of(item);
    }
    if (ok) return out;
    json_decref(out);
    return NULL;
}

/* Appends the probabilities in the form of the answer, or null. */
static bool add_logprobs(const struct cli_openai_answer *a, struct base_buffer *out,
                         struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    if (!a->logprobs) {
        base_buffer_add_text(out, "null");
        return true;
    }
    base_buffer_add_text(&text, "[");
    base_buffer_add(&text, a->logprobs, a->n_logprobs);
    base_buffer_add_text(&text, "]");
    json_auto_t *list = cli_buffer_check(&text, err)
                            ? text_json_parse(text.data, text.size, "logprobs", err)
                            : NULL;
    json_t *shown = !list ? NULL : a->message ? as_chat(list) : as_completion(list);
    if (list && !shown) base_fail(err, BASE_NO_MEMORY, "not enough memory for probabilities");
    if (shown) text_json_write(out, shown, false);
    json_decref(shown);
    return shown != NULL;
}

bool cli_openai_add(const struct cli_openai_answer *a, struct base_buffer *out,
                    struct base_error *err)
{
    const unsigned long long n = a->number, n_prompt = a->outcome->n_prompt,
                             n_text = a->outcome->n_generated;
    const bool is_chat = a->message != NULL;
    add_head(a->number, a->id, out);
    base_buffer_add_format(out,
                           ",\"error\":null,\"response\":{\"status_code\":200,\"request_id\":"
                           "\"req_%llu\",\"body\":{\"id\":\"%s-%llu\",\"object\":\"%s\","
                           "\"created\":0,",
                           n, is_chat ? "chatcmpl" : "cmpl", n,
                           is_chat ? "chat.completion" : "text_completion");
    base_buffer_add_member(out, "model", a->model, strlen(a->model));
    base_buffer_add_text(out, ",\"choices\":[{\"index\":0,");
    if (is_chat) {
        base_buffer_add_text(out, "\"message\":");
        text_json_write(out, a->message, false);
    } else {
        base_buffer_add_member(out, "text", a->text, a->size);
    }
    base_buffer_add_text(out, ",\"logprobs\":");
    if (!add_logprobs(a, out, err)) return false;
    base_buffer_add_format(out,
                           ",\"finish_reason\":\"%s\"}],\"usage\":{\"prompt_tokens\":%llu,"
                           "\"completion_tokens\":%llu,\"total_tokens\":%llu}}}}\n",
                           reason_of(a), n_prompt, n_text, n_prompt + n_text);
    return cli_buffer_check(out, err);
}

void cli_openai_fail(uint64_t number, const struct base_buffer *id, const struct base_error *failed,
                     struct base_buffer *out)
{
    char text[900];
    base_error_format(failed, text, sizeof text);
    add_head(number, id, out);
    base_buffer_add_format(out, ",\"response\":null,\"error\":{\"code\":\"%d\",",
                           (int)failed->code);
    base_buffer_add_member(out, "message", text, strlen(text));
    base_buffer_add_text(out, "}}\n");
}
