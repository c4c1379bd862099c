/* cli/chat/chat_set.c: /set and /show: options of a running conversation, under the words of
 * ollama. See cli/chat/chat.h.
 *
 * A setting is an option of the command line that one text may have (cli_option_of_request); the
 * request of the session is that of the command line with all settings applied. */
#include "chat/messages.h"
#include "cli/chat/chat.h"
#include "cli/system.h"
#include <stdlib.h>
#include <string.h>

static bool no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for a setting");
}

/* ---- Changing options ---- */

static void remove_setting(struct cli_chat_settings *s, size_t i)
{
    free(s->text[i]);
    s->n--;
    for (; i < s->n; i++) {
        s->option[i] = s->option[i + 1];
        s->text[i] = s->text[i + 1];
    }
}

void cli_chat_settings_free(struct cli_chat_settings *s)
{
    while (s->n) remove_setting(s, s->n - 1);
    base_keep_free(&s->keep);
}

/* Applies all settings to the session. */
static bool apply(struct cli_chat *c, struct base_error *err)
{
    struct cli_chat_settings *s = &c->settings;
    struct chat_request request;
    struct base_keep keep = {0};
    struct cli_given given;
    cli_request_begin(&given, CLI_CHAT, c->values, &request, &keep);
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++)
        ok = cli_request_set_text(&given, s->option[i], s->text[i], err);
    ok = ok && cli_request_end(&given, c->values, err) &&
         cli_adapters_choose(&c->model.adapters, &request.generate.lora, s->adapters, err);
    if (!ok) {
        base_keep_free(&keep);
        return false;
    }
    struct base_keep before = s->keep; /* the generation points into it until it changes */
    s->keep = keep;
    c->request = request;
    ok = cli_generation_change(&c->generation, &c->request, &c->model, err);
    base_keep_free(&before);
    return ok;
}

/* Applies them; if that fails, goes back to the settings before, without the last one. */
static bool apply_or_undo(struct cli_chat *c, struct base_error *err)
{
    struct base_error again = BASE_ERROR_INIT;
    if (apply(c, err)) return true;
    remove_setting(&c->settings, c->settings.n - 1);
    if (!apply(c, &again)) *err = again;
    return false;
}

/* `text` replaces the option's other settings. */
static bool set_option(struct cli_chat *c, const struct cli_option *o, const char *text,
                       struct base_error *err)
{
    struct cli_chat_settings *s = &c->settings;
    if (s->n == CLI_CHAT_SETTINGS)
        return base_fail(err, BASE_USAGE, "too many settings: start a session with options");
    char *copy = strdup(text);
    if (!copy) return no_memory(err);
    s->option[s->n] = o;
    s->text[s->n++] = copy;
    if (!apply_or_undo(c, err)) return false;
    for (size_t i = 0; i + 1 < s->n; i++)
        if (s->option[i] == o) remove_setting(s, i--);
    return true;
}

/* ---- /set ---- */

static bool set_parameter(struct cli_chat *c, const char *argument, struct base_error *err)
{
    static const char *const names[][2] = {{"num_predict", "predict"}, {"num_ctx", "ctx_size"}};
    char name[64];
    const size_t n = strcspn(argument, " \t");
    const char *value = argument + n + strspn(argument + n, " \t");
    bool known;
    if (!n || !*value || n >= sizeof name)
        return base_fail_at(err, BASE_USAGE, "/set parameter", -1, "needs NAME VALUE");
    memcpy(name, argument, n);
    name[n] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0) strcpy(name, names[i][1]);
    const struct cli_option *o = cli_option_of_request(CLI_CHAT, name, &known);
    if (!o && known)
        return base_fail_at(err, BASE_USAGE, name, -1,
                            "cannot change in a conversation: start one with its option");
    if (!o)
        return base_fail_at(err, BASE_USAGE, name, -1,
                            "is not an option of `infer chat` that one answer may have");
    return set_option(c, o, value, err);
}

static bool set_thinking(struct cli_chat *c, bool on, struct base_error *err)
{
    static const char *const names[] = {"enable_thinking", "thinking"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(c->template.source.data, names[i]))
            return json_object_set_new(c->template.variables, names[i], json_boolean(on)) == 0 ||
                   no_memory(err);
    return base_fail_at(err, BASE_USAGE, on ? "/set think" : "/set nothink", -1,
                        "the chat template has no variable that switches reasoning");
}

static bool set_format(struct cli_chat *c, bool json, struct base_error *err)
{
    bool known;
    const struct cli_option *o = cli_option_of_request(CLI_CHAT, "json-schema", &known);
    if (json) return set_option(c, o, "{\"type\":\"object\"}", err);
    for (size_t i = c->settings.n; i-- > 0;)
        if (c->settings.option[i] == o) remove_setting(&c->settings, i);
    return apply(c, err);
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

bool cli_chat_set(struct cli_chat *c, const char *argument, struct base_error *err)
{
    const size_t n = strcspn(argument, " \t\n");
    const char *rest = argument + n + strspn(argument + n, " \t\n");
    if (is_word(argument, n, "parameter")) return set_parameter(c, rest, err);
    if (is_word(argument, n, "system") && *rest) {
        cli_chat_changed(c);
        return chat_messages_set_system(c->messages, rest, c->request.chat.caller, err);
    }
    if (is_word(argument, n, "format") && strcmp(rest, "json") == 0)
        return set_format(c, true, err);
    if (*rest == '\0') {
        const bool no = n > 2 && memcmp(argument, "no", 2) == 0;
        const char *word = argument + 2 * no;
        if (strcmp(word, "think") == 0) return set_thinking(c, !no, err);
        if (strcmp(word, "wordwrap") == 0) {
            c->no_wrap = no;
            return true;
        }
        if (no && strcmp(word, "format") == 0) return set_format(c, false, err);
        if (is_word(argument, n, "verbose") || is_word(argument, n, "quiet")) {
            c->verbose = *argument == 'v';
            return true;
        }
        if (strcmp(word, "history") == 0)
            return base_fail_at(err, BASE_USAGE, "/set", -1,
                                "the history is chosen when a session starts: --no-history");
    }
    return base_fail_at(err, BASE_USAGE, "/set", -1,
                        "needs parameter NAME VALUE, system TEXT, think, nothink, format json, "
                        "noformat, wordwrap, nowordwrap, verbose or quiet");
}

/* ---- /show ---- */

static void show_parameters(const struct cli_chat *c, struct base_buffer *out)
{
    const struct sample_options *o = &c->generation.options.sample;
    base_buffer_add_format(out, "temperature     %g\ntop_k           %lld\ntop_p           %g\n",
                           (double)o->temp, (long long)o->top_k, (double)o->top_p);
    base_buffer_add_format(out, "min_p           %g\nrepeat_penalty  %g\nseed            %llu\n",
                           (double)o->min_p, (double)o->repeat_penalty,
                           (unsigned long long)o->seed);
    base_buffer_add_format(out, "predict         %lld\nctx_size        %u\n",
                           (long long)c->request.generate.max_tokens,
                           model_session_n_ctx(c->model.session));
    for (size_t i = 0; i < c->generation.options.n_stop; i++)
        base_buffer_add_format(out, "stop            %s\n", c->generation.options.stop[i]);
    for (size_t i = 0; i < c->settings.n; i++)
        base_buffer_add_format(out, "set here        %s %s\n", c->settings.option[i]->name,
                               c->settings.text[i]);
}

static void show_info(const struct cli_chat *c, struct base_buffer *out)
{
    const struct model_facts *f = model_facts(c->model.model);
    base_buffer_add_format(out, "%s\n%s\n", c->model.name.data, gguf_path(c->model.file));
    base_buffer_add_format(out,
                           "architecture    %s\nparameters      %.1f M\ncontext         %u of %u "
                           "tokens\nmessages        %zu\n",
                           f->arch, (double)f->n_params / 1e6,
                           model_session_n_ctx(c->model.session), f->n_ctx_train,
                           json_array_size(c->messages));
}

bool cli_chat_show(struct cli_chat *c, const char *argument, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    const json_t *system =
        chat_messages_n_system(c->messages) ? json_array_get(c->messages, 0) : NULL;
    const char *text = json_string_value(json_object_get(system, "content"));
    bool ok = true;
    if (strcmp(argument, "info") == 0)
        show_info(c, &out);
    else if (strcmp(argument, "parameters") == 0)
        show_parameters(c, &out);
    else if (strcmp(argument, "system") == 0)
        base_buffer_add_format(&out, "%s\n", text ? text : "there is no system message");
    else if (strcmp(argument, "template") == 0)
        base_buffer_add_format(&out, "%s\n", c->template.source.data);
    else
        ok = base_fail_at(err, BASE_USAGE, "/show", -1,
                          "needs info, parameters, system or template");
    ok = ok && (!out.failed || no_memory(err));
    if (ok) cli_tell(out.data);
    return ok;
}
