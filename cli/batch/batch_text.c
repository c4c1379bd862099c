/* cli/batch/batch_text.c: makes jobs of lines. See cli/batch/batch_text.h. */
#include "cli/batch/batch_text.h"
#include "cli/batch/batch_input.h"
#include "cli/batch/openai.h"
#include "cli/chat/messages.h"
#include "cli/chat/tool_choice.h"
#include "cli/input.h"
#include "cli/system.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES_KEPT = 32 }; /* that no text uses; a compiled constraint may take 1 MB */

/* ---- Profiles ---- */

struct cli_batch_profile {
    struct cli_batch_profile *next;
    struct base_buffer key; /* options of the line as JSON, sorted by name; "": none */
    size_t n_texts;
    struct chat_request request; /* points into `options` and `keep` */
    json_t *options;
    struct base_keep keep;
    struct cli_generation generation;
    struct cli_chat_template own;             /* with a template, tools or variables of the line */
    const struct cli_chat_template *template; /* own, or the one of the context */
};

static void free_profile(struct cli_batch_profile *p)
{
    if (!p) return;
    cli_generation_close(&p->generation);
    cli_chat_template_close(&p->own);
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
    const struct cli_option *o = cli_option_of_request(CLI_BATCH, name, &known);
    if (!o && known)
        return base_fail_at(err, BASE_USAGE, name, -1,
                            "is an option of all lines: give it on the command line");
    return o ? cli_request_set_json(given, o, value, escapes, err) : fail_member(name, err);
}

/* Opens a template for a line with a template, tools or variables of its own; what the line does
 * not set is the command's. */
static bool open_own_template(struct cli_batch_profile *p, const struct cli_batch_context *c,
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
    const bool ok = cli_chat_template_open(&p->own, &p->request, false, c->model,
                                           json_is_array(tools) ? tools : NULL, err);
    json_decref(tools);
    return ok;
}

/* Decides whether the texts are answered through the chat template, and opens it. */
static bool open_chat(struct cli_batch_profile *p, const struct cli_batch_context *c,
                      const struct cli_given *given, struct base_error *err)
{
    struct chat_request *r = &p->request;
    const bool by_model = r->chat.mode == CHAT_MODE_BY_MODEL;
    bool *chat = &r->chat.chat;
    if (by_model && !cli_chat_template_exists(r, c->model, chat, err)) return false;
    p->generation.options.show_special = r->special || *chat;
    p->generation.options.hides_control = *chat && !r->special;
    if (!*chat || open_own_template(p, c, given, err))
        return !*chat || cli_tool_choice_open(r, p->template, c->model, &p->generation, err);
    const size_t n = strlen(err->text);
    if (by_model && err->code == BASE_USAGE)
        snprintf(err->text + n, sizeof err->text - n,
                 "; --raw completes texts without the chat template");
    return false;
}

/* `options`: the members of a line that are options, except the seed. */
static bool fill_profile(struct cli_batch_profile *p, const struct cli_batch_context *c,
                         json_t *options, struct base_error *err)
{
    const char *name;
    json_t *value;
    struct cli_given given;
    const bool escapes = json_is_true(json_object_get(options, "escape"));
    p->options = json_incref(options);
    cli_request_begin(&given, CLI_BATCH, c->values, &p->request, &p->keep);
    json_object_foreach(options, name, value)
    {
        if (!json_is_null(value) && !set_member(&given, name, value, escapes, err)) return false;
    }
    if (!cli_request_end(&given, c->values, err)) return false;
    p->request.escape = false; /* escapes are bytes already */
    p->generation.texts_only = true;
    /* The command's schema is noted once. */
    p->generation.no_notes =
        c->n_profiles && !cli_request_has(&given, CLI_REQUEST_AT(generate.constraint.schema));
    return cli_generation_prepare(&p->generation, &p->request, false, err) &&
           cli_sampler_finish(&p->request, c->model, &p->generation.parts,
                              &p->generation.options.sample, err) &&
           open_chat(p, c, &given, err);
}

/* Evicts the least recently used profiles, but not the latest. */
static void drop_profiles(struct cli_batch_context *c)
{
    while (c->n_profiles > PROFILES_KEPT) {
        struct cli_batch_profile **oldest = NULL;
        for (struct cli_batch_profile **at = &c->profile->next; *at; at = &(*at)->next)
            if ((*at)->n_texts == 0) oldest = at;
        if (!oldest) return;
        struct cli_batch_profile *p = *oldest;
        *oldest = p->next;
        c->n_profiles--;
        generate_scheduler_release(c->scheduler, &p->generation.options);
        free_profile(p);
    }
}

static struct cli_batch_profile *take_front(struct cli_batch_context *c,
                                            struct cli_batch_profile **at)
{
    struct cli_batch_profile *p = *at;
    *at = p->next;
    p->next = c->profile;
    return c->profile = p;
}

/* Returns the profile for these options, or NULL with an error. */
static struct cli_batch_profile *profile_of(struct cli_batch_context *c, json_t *options,
                                            struct base_error *err)
{
    struct base_buffer key = BASE_BUFFER_INIT;
    text_json_write(&key, options, true);
    struct cli_batch_profile *p = NULL;
    if (!cli_buffer_check(&key, err)) goto failed;
    for (struct cli_batch_profile **at = &c->profile; *at; at = &(*at)->next)
        if ((*at)->key.size == key.size && memcmp((*at)->key.data, key.data, key.size) == 0) {
            base_buffer_free(&key);
            return take_front(c, at);
        }
    p = calloc(1, sizeof *p);
    if (!p) base_fail(err, BASE_NO_MEMORY, "not enough memory for options");
    if (!p || !fill_profile(p, c, options, err)) goto failed;
    p->key = key;
    p->next = c->profile;
    c->profile = p;
    c->n_profiles++;
    drop_profiles(c);
    return p;
failed:
    base_buffer_free(&key);
    free_profile(p);
    return NULL;
}

/* ---- State shared by all lines ---- */

static bool open_template(struct cli_batch_context *c, struct base_error *err)
{
    const struct chat_settings *chat = &c->values->request.chat;
    json_t *tools = NULL;
    bool ok = cli_tools_read(chat, true, &tools, err);
    if (ok && !cli_chat_template_open(&c->template, &c->values->request, true, c->model, tools,
                                      &c->no_template)) {
        const bool must = chat->chat || (!chat->raw && (chat->template || tools));
        ok = !must && c->no_template.code != BASE_NO_MEMORY;
        if (!ok) *err = c->no_template;
        cli_chat_template_close(&c->template);
    }
    json_decref(tools);
    return ok;
}

bool cli_batch_context_open(struct cli_batch_context *c, const struct cli_values *values,
                            const struct cli_model *model, struct base_error *err)
{
    c->values = values;
    c->model = model;
    c->no_template = BASE_ERROR_INIT;
    if (values->each && !cli_each_read(values, &c->each, err)) return false;
    json_t *none = json_object();
    if (!none) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    const bool ok = open_template(c, err) && profile_of(c, none, err) != NULL;
    json_decref(none);
    return ok;
}

void cli_batch_context_close(struct cli_batch_context *c)
{
    for (struct cli_batch_profile *p = c->profile, *next; p; p = next) {
        next = p->next;
        free_profile(p);
    }
    cli_chat_template_close(&c->template);
    base_buffer_free(&c->each);
    cli_csv_close(&c->csv);
    *c = (struct cli_batch_context){0};
}

bool cli_batch_context_begin(struct cli_batch_context *c, const char *line, size_t size,
                             struct base_buffer *header, struct base_error *err)
{
    static const char name[] = "answer";
    if (!cli_csv_open(&c->csv, line, size, c->values->column, &c->each, err)) return false;
    if (cli_batch_is_plain(c->values))
        cli_csv_add(&c->csv, line, size, name, sizeof name - 1, header);
    return cli_buffer_check(header, err);
}

/* ---- Prompts of lines ---- */

/* Makes the prompt of a line of plain text or of a table. */
static bool fill_each(struct cli_batch_text *t, const char *line, size_t size,
                      struct base_buffer *prompt, struct base_error *err)
{
    const struct cli_batch_context *c = t->context;
    if (!c->values->csv) {
        cli_each_fill(&c->each, line, size, prompt);
        return true;
    }
    base_buffer_add(&t->record, line, size);
    return cli_buffer_check(&t->record, err) &&
           cli_csv_fill(&c->csv, &c->each, line, size, prompt, err);
}

static bool read_prompt(const struct cli_batch_text *t, struct base_buffer *out,
                        struct base_error *err)
{
    const json_t *prompt = cli_json_member(t->line, "prompt");
    const char *text = json_string_value(prompt);
    if (!prompt) return true;
    if (!text) return base_fail_at(err, BASE_USAGE, "prompt", -1, "is no text");
    if (json_is_true(json_object_get(t->line, "escape")))
        cli_input_unescape(text, json_string_length(prompt), out);
    else
        base_buffer_add(out, text, json_string_length(prompt));
    return cli_buffer_check(out, err);
}

/* Returns the conversation: the messages of the line, the system message, and the prompt as a
 * question. */
static json_t *read_messages(const struct cli_batch_text *t, const struct base_buffer *prompt,
                             bool asks, struct base_error *err)
{
    const struct chat_request *r = &t->profile->request;
    const json_t *given = cli_json_member(t->line, "messages");
    const bool own_system = cli_json_member(t->line, "system") != NULL;
    if (given && r->chat.system && own_system && cli_messages_n_system(given)) {
        base_fail_at(err, BASE_USAGE, "system", -1,
                     "the messages begin with a system message already");
        return NULL;
    }
    return cli_messages_of_line(given, r->chat.system, asks ? prompt : NULL, r->lossy, err);
}

static bool begin_chat(struct cli_batch_text *t, const struct base_buffer *prompt, bool asks,
                       struct base_error *err)
{
    const struct cli_batch_profile *p = t->profile;
    const struct cli_model *model = t->context->model;
    json_t *messages = read_messages(t, prompt, asks, err);
    const bool ok =
        messages && cli_chat_prompt_begin(&t->prompt, &p->request, messages, err) &&
        cli_chat_template_render(p->template, &p->request, model, messages, &t->prompt, err);
    json_decref(messages);
    t->reply.mode = cli_reasoning_mode(&p->request.chat, CLI_REASONING_HIDE);
    if (!ok || !cli_chat_reply_open(&t->reply, p->template, model, &t->prompt, err)) return false;
    t->ids = t->prompt.ids;
    t->prompt.ids = TEXT_IDS_INIT;
    return cli_chat_reply_begin(&t->reply, &t->prompt, &t->marks, &t->job.prompt, err);
}

/* Returns the members that are options, as a new object; NULL without memory. The seed is not part
 * of a profile. */
static json_t *options_of(const json_t *line, bool chat)
{
    json_t *options = line ? text_json_copy(line) : json_object();
    static const char *const others[] = {"id", "prompt", "messages", "seed"};
    for (size_t i = 0; options && i < sizeof others / sizeof *others; i++)
        json_object_del(options, others[i]);
    if (options && chat && json_object_set_new(options, "chat", json_true()) != 0) {
        json_decref(options);
        return NULL;
    }
    return options;
}

static bool read_seed(struct cli_batch_text *t, struct base_error *err)
{
    const json_t *own = json_object_get(t->line, "seed");
    int64_t seed = t->profile->request.generate.seed;
    if (own && !json_is_null(own)) {
        if (!json_is_integer(own) || json_integer_value(own) < -1 ||
            json_integer_value(own) > (int64_t)1 << 62)
            return base_fail_at(err, BASE_USAGE, "seed", -1,
                                "is not a whole number from -1 to 4611686018427387904");
        seed = json_integer_value(own);
    }
    return cli_seed_pick(seed, &t->job.prompt.seed, err);
}

static bool find_profile(struct cli_batch_text *t, struct base_error *err)
{
    const json_t *messages = cli_json_member(t->line, "messages");
    json_t *options = options_of(t->line, messages != NULL);
    if (!options) return base_fail(err, BASE_NO_MEMORY, "not enough memory for options");
    t->profile = profile_of(t->context, options, err);
    json_decref(options);
    if (!t->profile) return false;
    t->profile->n_texts++;
    t->job.options = &t->profile->generation.options;
    t->is_chat = t->profile->request.chat.chat;
    return cli_logprobs_open(&t->logprobs, t->context->model, t->profile->request.generate.logprobs,
                             err) &&
           read_seed(t, err);
}

static bool begin(struct cli_batch_text *t, const struct base_buffer *prompt, bool asks,
                  struct base_error *err)
{
    const struct cli_batch_context *c = t->context;
    if (t->is_chat) {
        if (!begin_chat(t, prompt, asks, err)) return false;
    } else if (!cli_input_encode(&t->profile->request, c->model->tokenizer, prompt, &t->ids, err)) {
        return false;
    }
    t->job.prompt.ids = t->ids.id;
    t->job.prompt.n = t->ids.count;
    t->job.prompt.continues = prompt->size > 0 && !t->is_chat;
    if (t->ids.count == 0)
        return base_fail(err, BASE_USAGE,
                         "the text is empty and this model has no beginning-of-text token");
    const uint32_t n_ctx = model_session_n_ctx(c->model->session);
    if (t->ids.count <= n_ctx) return true;
    return base_fail(err, BASE_TOO_LONG,
                     "the text has %zu tokens and the context holds %u: shorten it or raise "
                     "--ctx-size",
                     t->ids.count, n_ctx);
}

static bool parse_line(struct cli_batch_text *t, const char *line, size_t size,
                       struct base_error *err)
{
    t->line = cli_json_parse(line, size, "JSON", err);
    if (!t->line) return false;
    if (!text_json_is_object(t->line))
        return base_fail(err, BASE_USAGE, "the line is not a JSON object");
    const bool is_openai = cli_openai_is_line(t->line);
    const char *id = is_openai ? "custom_id" : "id";
    if (json_object_get(t->line, id)) cli_json_add_own(&t->id, t->line, line, size, id);
    if (!cli_buffer_check(&t->id, err)) return false;
    if (is_openai) {
        t->openai = t->line;
        t->line = cli_openai_read(t->openai, err);
        return t->line != NULL;
    }
    if (cli_json_member(t->line, "prompt") || cli_json_member(t->line, "messages")) return true;
    return base_fail(err, BASE_USAGE, "the line has neither a prompt nor messages");
}

bool cli_batch_text_open(struct cli_batch_text *t, struct cli_batch_context *c, uint64_t number,
                         const char *line, size_t size, struct base_error *err)
{
    struct base_buffer prompt = BASE_BUFFER_INIT;
    *t = (struct cli_batch_text){.context = c, .number = number};
    bool ok = c->values->each ? fill_each(t, line, size, &prompt, err)
                              : parse_line(t, line, size, err) && read_prompt(t, &prompt, err);
    const bool asks = c->values->each || cli_json_member(t->line, "prompt");
    ok = ok && cli_buffer_check(&prompt, err) && find_profile(t, err) &&
         begin(t, &prompt, asks, err);
    base_buffer_free(&prompt);
    return ok;
}

void cli_batch_text_close(struct cli_batch_text *t)
{
    if (t->profile) t->profile->n_texts--;
    json_decref(t->line);
    base_buffer_free(&t->id);
    json_decref(t->openai);
    text_ids_free(&t->ids);
    cli_chat_reply_close(&t->reply);
    cli_chat_prompt_free(&t->prompt);
    base_buffer_free(&t->record);
    base_buffer_free(&t->text);
    cli_logprobs_close(&t->logprobs);
    *t = (struct cli_batch_text){0};
}

/* ---- Answers ---- */

/* Collects the part of a chat that is shown. */
static bool show(void *user, const char *bytes, size_t size, bool dim, struct base_error *err)
{
    (void)dim;
    (void)err;
    base_buffer_add(user, bytes, size);
    return true;
}

bool cli_batch_text_take(struct cli_batch_text *t, const struct generate_piece *piece,
                         struct base_error *err)
{
    t->reply.show = show;
    t->reply.user = &t->text;
    if (t->is_chat && !cli_chat_reply_take(&t->reply, piece, err)) return false;
    if (!t->is_chat) base_buffer_add(&t->text, piece->text, piece->size);
    if (piece->id >= 0 && t->profile->request.generate.logprobs >= 0)
        cli_logprobs_take(&t->logprobs, piece);
    return cli_buffer_check(&t->text, err) && cli_buffer_check(&t->logprobs.items, err);
}

/* Appends a text as one line: line ends and backslashes become \n, \r and \\. */
static void add_escaped(struct base_buffer *out, const struct base_buffer *text)
{
    for (size_t i = 0; i < text->size; i++) {
        const char c = text->data[i];
        if (c == '\n' || c == '\r' || c == '\\')
            base_buffer_add_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\\\");
        else
            base_buffer_add(out, &c, 1);
    }
}

/* Appends a plain answer: a line, or a record of the table. */
static void add_plain(const struct cli_batch_text *t, struct base_buffer *out)
{
    const struct cli_batch_context *c = t->context;
    if (!c->values->csv) {
        add_escaped(out, &t->text);
        base_buffer_add_text(out, "\n");
        return;
    }
    cli_csv_add(&c->csv, t->record.size ? t->record.data : "", t->record.size,
                t->text.size ? t->text.data : "", t->text.size, out);
}

static void add_head(const struct cli_batch_text *t, struct base_buffer *out)
{
    base_buffer_add_format(out, "{\"line\":%llu", (unsigned long long)t->number);
    if (t->id.size == 0) return;
    base_buffer_add_text(out, ",\"id\":");
    base_buffer_add(out, t->id.data, t->id.size);
}

static void add_failure(const struct cli_batch_text *t, const struct base_error *failed,
                        struct base_buffer *out)
{
    char text[900];
    base_error_format(failed, text, sizeof text);
    if (cli_batch_is_plain(t->context->values)) {
        cli_note("line %llu: %s", (unsigned long long)t->number, text);
        return;
    }
    base_buffer_add_format(out, ",\"status\":%d,", (int)failed->code);
    base_buffer_add_member(out, "error", text, strlen(text));
}

static bool add_object(const struct cli_batch_text *t, const struct generate_outcome *o,
                       struct base_buffer *out, struct base_error *err)
{
    add_head(t, out);
    base_buffer_add_text(out, ",");
    base_buffer_add_member(out, "text", t->text.size ? t->text.data : "", t->text.size);
    if (t->is_chat) {
        json_t *message = cli_chat_reply_message(&t->reply, err);
        if (!message) return false;
        base_buffer_add_text(out, ",\"message\":");
        text_json_write(out, message, false);
        json_decref(message);
    }
    base_buffer_add_format(out, ",\"stop\":\"%s\",", generate_ending_name[o->ending]);
    base_buffer_add_member(out, "stop_text", o->stop_text, o->stop_text ? strlen(o->stop_text) : 0);
    base_buffer_add_format(out, ",\"prompt_tokens\":%llu,\"tokens\":%llu,\"chat\":%s,\"seed\":%llu",
                           (unsigned long long)o->n_prompt, (unsigned long long)o->n_generated,
                           t->is_chat ? "true" : "false", (unsigned long long)t->job.prompt.seed);
    if (t->profile->request.generate.logprobs < 0) return true;
    base_buffer_add_text(out, ",\"logprobs\":[");
    base_buffer_add(out, t->logprobs.items.size ? t->logprobs.items.data : "",
                    t->logprobs.items.size);
    base_buffer_add_text(out, "]");
    return true;
}

/* Counts answers that are empty, and keeps the reason of the first one. */
static void note_lack(const struct cli_batch_text *t, const struct generate_outcome *outcome)
{
    struct cli_batch_context *c = t->context;
    const char *why = t->is_chat     ? cli_chat_reply_lack(&t->reply, outcome)
                      : t->text.size ? NULL
                                     : cli_outcome_lack(outcome, false);
    if (!why) return;
    if (c->n_empty++) return;
    c->empty_line = t->number;
    c->empty_why = why;
}

/* Appends the answer to a line in OpenAI's form. */
static bool add_openai(const struct cli_batch_text *t, const struct generate_outcome *o,
                       struct base_buffer *out, struct base_error *err)
{
    const struct base_buffer *items = &t->logprobs.items;
    struct cli_openai_answer a = {.number = t->number,
                                  .id = &t->id,
                                  .model = t->context->model->name.data,
                                  .text = t->text.size ? t->text.data : "",
                                  .size = t->text.size,
                                  .outcome = o};
    if (t->profile->request.generate.logprobs >= 0) a.logprobs = items->size ? items->data : "";
    a.n_logprobs = items->size;
    if (t->is_chat && !(a.message = cli_chat_reply_message(&t->reply, err))) return false;
    const bool ok = cli_openai_add(&a, out, err);
    json_decref(a.message);
    return ok;
}

bool cli_batch_text_end(struct cli_batch_text *t, const struct generate_outcome *outcome, bool *cut,
                        struct base_buffer *out, struct base_error *err)
{
    struct base_error failed = BASE_ERROR_INIT;
    const bool plain = cli_batch_is_plain(t->context->values);
    if (t->is_chat && !cli_chat_reply_end(&t->reply, err)) return false;
    *cut = !cli_outcome_check(outcome, &failed);
    note_lack(t, outcome);
    if (t->openai && *cut) cli_openai_fail(t->number, &t->id, &failed, out);
    if (t->openai) return *cut || add_openai(t, outcome, out, err);
    if (plain)
        add_plain(t, out);
    else if (!add_object(t, outcome, out, err))
        return false;
    if (*cut) add_failure(t, &failed, out);
    if (!plain) base_buffer_add_text(out, "}\n");
    return cli_buffer_check(out, err);
}

void cli_batch_text_fail(const struct cli_batch_text *t, const struct base_error *failed,
                         struct base_buffer *out)
{
    const bool plain = cli_batch_is_plain(t->context->values);
    if (t->openai) {
        cli_openai_fail(t->number, &t->id, failed, out);
        return;
    }
    if (plain)
        add_plain(t, out);
    else
        add_head(t, out);
    add_failure(t, failed, out);
    if (!plain) base_buffer_add_text(out, "}\n");
}
