/* cli/batch/request_profile.c: compiled options of texts. See cli/batch/request_profile.h. */
#include "cli/batch/request_profile.h"
#include "cli/chat/chat_files.h"
#include "cli/option_value.h"
#include "cli/system.h"
#include "cli/whole_text.h"
#include "text/json/json_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES_KEPT = 32 }; /* that no text uses; a compiled constraint may take 1 MB */

static void free_profile(struct cli_profile *p)
{
    if (!p) return;
    cli_generation_close(&p->generation);
    chat_template_close(&p->own);
    base_buffer_free(&p->key);
    base_keep_free(&p->keep);
    json_decref(p->options);
    free(p);
}

/* Fails for a member, such as `max_tokens`, as for its option --max-tokens. */
static bool fail_member(const char *name, struct base_error *err)
{
    char option[64], says[CLI_CLAUSE_SIZE];
    snprintf(option, sizeof option, "--%s", name);
    for (char *c = option; *c; c++)
        if (*c == '_') *c = '-';
    const struct cli_foreign *foreign = cli_foreign_find(option, strlen(option));
    if (!foreign)
        return base_fail_at(
            err, BASE_USAGE, name, -1,
            "is not a member of a line: prompt, messages, id or an option of one text");
    cli_foreign_say(foreign, says, sizeof says);
    return base_fail_at(err, BASE_USAGE, name, -1, "is not a member of a line; %s", says);
}

static bool set_member(struct cli_given *given, const char *name, const json_t *value, bool escapes,
                       struct base_error *err)
{
    bool known;
    const struct cli_option *o = cli_option_of_request(given->command, name, &known);
    if (!o && known)
        return base_fail_at(err, BASE_USAGE, name, -1,
                            "is an option of all lines: give it on the command line");
    return o ? cli_request_set_json(given, o, value, escapes, err) : fail_member(name, err);
}

/* Opens a template for a line with a template, tools or variables of its own; what the line does
 * not set is the command's. */
static bool open_own_template(struct cli_profile *p, const struct cli_profiles *c,
                              const struct cli_given *given, struct base_error *err)
{
    struct chat_settings *chat = &p->request.chat;
    const bool own_tools = cli_request_has(given, CLI_REQUEST_AT(chat.tools));
    const bool own_text = cli_request_has(given, CLI_REQUEST_AT(chat.template));
    json_t *tools = NULL;
    p->template = &c->template;
    if (!own_tools && !own_text && !cli_request_has(given, CLI_REQUEST_AT(chat.variable))) {
        if (!c->template.template) *err = c->no_template;
        return c->template.template != NULL;
    }
    p->template = &p->own;
    if (!own_text && chat->template) chat->template = c->template.source.data;
    if (own_tools && !cli_tools_read(chat, false, &tools, err)) return false;
    if (!own_tools) tools = json_incref(json_object_get(c->template.variables, "tools"));
    const bool ok =
        cli_template_open(&p->own, chat, false, c->model, json_is_array(tools) ? tools : NULL, err);
    json_decref(tools);
    return ok;
}

/* Decides whether the texts are answered through the chat template, and opens it. */
static bool open_chat(struct cli_profile *p, const struct cli_profiles *c,
                      const struct cli_given *given, struct base_error *err)
{
    struct chat_request *r = &p->request;
    const bool by_model = r->chat.mode == CHAT_MODE_BY_MODEL;
    bool *chat = &r->chat.chat;
    if (by_model && !chat_template_exists(&r->chat, c->model->file, chat, err)) return false;
    p->generation.options.show_special = r->special || *chat;
    p->generation.options.hides_control = *chat && !r->special;
    if (!*chat || open_own_template(p, c, given, err))
        return !*chat || cli_generation_choose_tool(&p->generation, r, p->template, err);
    const size_t n = strlen(err->text);
    if (by_model && err->code == BASE_USAGE)
        snprintf(err->text + n, sizeof err->text - n,
                 "; --raw completes texts without the chat template");
    return false;
}

/* `options`: the members of a line that are options, except the seed. */
static bool fill_profile(struct cli_profile *p, const struct cli_profiles *c, json_t *options,
                         struct base_error *err)
{
    const char *name;
    json_t *value;
    struct cli_given given;
    const bool escapes = json_is_true(json_object_get(options, "escape"));
    p->options = json_incref(options);
    cli_request_begin(&given, c->command, c->values, &p->request, &p->keep);
    json_object_foreach(options, name, value)
    {
        if (!json_is_null(value) && !set_member(&given, name, value, escapes, err)) return false;
    }
    if (!cli_request_end(&given, c->values, err)) return false;
    const size_t temp = CLI_REQUEST_AT(generate.sample.temp);
    const bool has_temp = cli_request_has(&given, temp) || cli_option_given(c->values, temp);
    p->has_adapters = cli_request_has(&given, CLI_REQUEST_AT(generate.lora));
    if (p->has_adapters &&
        !cli_adapters_choose(&c->model->adapters, &p->request.generate.lora, p->adapters, err))
        return false;
    p->generation.texts_only = true;
    /* The command's schema is noted once. */
    p->generation.no_notes =
        c->n_profiles && !cli_request_has(&given, CLI_REQUEST_AT(generate.constraint.schema));
    return cli_generation_prepare(&p->generation, &p->request, false, err) &&
           cli_sampler_finish(&p->request, c->model, &p->generation.parts,
                              &p->generation.options.sample, err) &&
           cli_diffusion_prepare(&p->generation.options, has_temp, c->values, c->model, err) &&
           open_chat(p, c, &given, err);
}

/* Evicts the least recently used profiles, but not the latest. */
static void drop_profiles(struct cli_profiles *c)
{
    while (c->n_profiles > PROFILES_KEPT) {
        struct cli_profile **oldest = NULL;
        for (struct cli_profile **at = &c->latest->next; *at; at = &(*at)->next)
            if ((*at)->n_texts == 0) oldest = at;
        if (!oldest) return;
        struct cli_profile *p = *oldest;
        *oldest = p->next;
        c->n_profiles--;
        generate_scheduler_release(c->scheduler, &p->generation.options);
        free_profile(p);
    }
}

static struct cli_profile *take_front(struct cli_profiles *c, struct cli_profile **at)
{
    struct cli_profile *p = *at;
    *at = p->next;
    p->next = c->latest;
    return c->latest = p;
}

struct cli_profile *cli_profile_of(struct cli_profiles *c, json_t *options, struct base_error *err)
{
    struct base_buffer key = BASE_BUFFER_INIT;
    text_json_write(&key, options, true);
    struct cli_profile *p = NULL;
    if (!cli_buffer_check(&key, err)) goto failed;
    for (struct cli_profile **at = &c->latest; *at; at = &(*at)->next)
        if ((*at)->key.size == key.size && memcmp((*at)->key.data, key.data, key.size) == 0) {
            base_buffer_free(&key);
            return take_front(c, at);
        }
    p = calloc(1, sizeof *p);
    if (!p) base_fail(err, BASE_NO_MEMORY, "not enough memory for options");
    if (!p || !fill_profile(p, c, options, err)) goto failed;
    p->key = key;
    p->next = c->latest;
    c->latest = p;
    c->n_profiles++;
    drop_profiles(c);
    return p;
failed:
    base_buffer_free(&key);
    free_profile(p);
    return NULL;
}

/* ---- The command's own ---- */

static bool open_template(struct cli_profiles *c, struct base_error *err)
{
    const struct chat_settings *chat = &c->values->request.chat;
    json_auto_t *tools = NULL;
    bool ok = cli_tools_read(chat, true, &tools, err);
    if (ok && !cli_template_open(&c->template, chat, true, c->model, tools, &c->no_template)) {
        const bool must = chat->chat || (!chat->raw && (chat->template || tools));
        ok = !must && c->no_template.code != BASE_NO_MEMORY;
        if (!ok) *err = c->no_template;
        chat_template_close(&c->template);
    }
    return ok;
}

bool cli_profiles_open(struct cli_profiles *c, enum cli_command_id command,
                       const struct cli_values *values, const struct cli_model *model,
                       struct base_error *err)
{
    *c = (struct cli_profiles){
        .command = command, .values = values, .model = model, .no_template = BASE_ERROR_INIT};
    json_auto_t *none = json_object();
    if (!none) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    return open_template(c, err) && cli_profile_of(c, none, err) != NULL;
}

void cli_profiles_close(struct cli_profiles *c)
{
    for (struct cli_profile *p = c->latest, *next; p; p = next) {
        next = p->next;
        free_profile(p);
    }
    chat_template_close(&c->template);
    *c = (struct cli_profiles){0};
}
