/* cli/batch/batch_text.c: makes jobs of lines. See cli/batch/batch_text.h. */
#include "cli/batch/batch_text.h"
#include "chat/messages.h"
#include "cli/batch/batch_input.h"
#include "cli/batch/openai.h"
#include "cli/input.h"
#include "cli/system.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"
#include "text/json/json_parse.h"
#include <stdlib.h>
#include <string.h>

/* ---- State shared by all lines ---- */

bool cli_batch_context_open(struct cli_batch_context *c, const struct cli_values *values,
                            const struct cli_model *model, struct base_error *err)
{
    c->values = values;
    c->model = model;
    return (!values->each || cli_each_read(values, &c->each, err)) &&
           cli_profiles_open(&c->profiles, CLI_BATCH, values, model, err);
}

void cli_batch_context_close(struct cli_batch_context *c)
{
    cli_profiles_close(&c->profiles);
    base_buffer_free(&c->each);
    cli_csv_close(&c->csv);
    *c = (struct cli_batch_context){0};
}

bool cli_batch_context_begin(struct cli_batch_context *c, const char *line, size_t size,
                             struct base_buffer *header, struct base_error *err)
{
    if (!cli_csv_open(&c->csv, line, size, c->values->column, &c->each, err)) return false;
    if (cli_batch_is_plain(c->values)) cli_csv_add_header(&c->csv, line, size, header);
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
    const json_t *prompt = text_json_member(t->line, "prompt");
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
                             bool has_question, struct base_error *err)
{
    const struct chat_request *r = &t->profile->request;
    const json_t *given = text_json_member(t->line, "messages");
    const bool own_system = text_json_member(t->line, "system") != NULL;
    if (given && r->chat.system && own_system && chat_messages_n_system(given))
        return base_null(base_fail_at(err, BASE_USAGE, "system", -1,
                                      "the messages begin with a system message already"));
    return chat_messages_of_line(given, r, has_question ? prompt : NULL, err);
}

static bool begin_chat(struct cli_batch_text *t, const struct base_buffer *prompt,
                       bool has_question, struct base_error *err)
{
    const struct cli_profile *p = t->profile;
    const char *continues = p->request.chat.continues;
    json_auto_t *messages = read_messages(t, prompt, has_question, err);
    bool ok = messages && chat_messages_take_begun(messages, &t->prompt.begun, err);
    if (ok && continues) base_buffer_add_text(&t->prompt.begun, continues);
    ok = ok && chat_template_render(p->template, &p->request, messages, &t->prompt, err);
    t->reply.mode = chat_reasoning_mode(&p->request.chat, CHAT_REASONING_HIDE);
    if (!ok || !chat_reply_open(&t->reply, p->template, &t->prompt, err)) return false;
    t->ids = t->prompt.ids;
    t->prompt.ids = TEXT_IDS_INIT;
    return chat_reply_begin(&t->reply, &t->prompt, &t->marks, &t->job.prompt, err);
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
    const json_t *messages = text_json_member(t->line, "messages");
    json_t *options = options_of(t->line, messages != NULL);
    if (!options) return base_fail(err, BASE_NO_MEMORY, "not enough memory for options");
    t->profile = cli_profile_of(&t->context->profiles, options, err);
    json_decref(options);
    if (!t->profile) return false;
    t->profile->n_texts++;
    t->job.options = &t->profile->generation.options;
    t->is_chat = t->profile->request.chat.chat;
    if (t->profile->has_adapters) t->job.prompt.adapters = t->profile->adapters;
    return cli_logprobs_open(&t->logprobs, t->context->model, t->profile->request.generate.logprobs,
                             err) &&
           read_seed(t, err);
}

static bool begin(struct cli_batch_text *t, const struct base_buffer *prompt, bool has_question,
                  struct base_error *err)
{
    const struct cli_batch_context *c = t->context;
    if (t->is_chat) {
        if (!begin_chat(t, prompt, has_question, err)) return false;
    } else if (!cli_input_encode(&t->profile->request, c->model->tokenizer, prompt, &t->ids, err) ||
               !cli_model_end_source(c->model, &t->ids, err)) {
        return false;
    }
    t->job.prompt.ids = t->ids.id;
    t->job.prompt.n = t->ids.count;
    t->job.prompt.continues =
        prompt->size > 0 && !t->is_chat && model_facts(c->model->model)->start_id < 0;
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
    t->line = text_json_parse(line, size, "JSON", err);
    if (!t->line) return false;
    if (!text_json_is_object(t->line))
        return base_fail(err, BASE_USAGE, "the line is not a JSON object");
    const bool is_openai = cli_openai_is_line(t->line);
    const char *id = is_openai ? "custom_id" : "id";
    if (json_object_get(t->line, id)) text_json_add_own(&t->id, t->line, line, size, id);
    if (!cli_buffer_check(&t->id, err)) return false;
    if (is_openai) {
        t->openai = t->line;
        t->line = cli_openai_read(t->openai, t->context->profiles.template.template, err);
        return t->line != NULL;
    }
    if (text_json_member(t->line, "prompt") || text_json_member(t->line, "messages")) return true;
    return base_fail(err, BASE_USAGE, "the line has neither a prompt nor messages");
}

bool cli_batch_text_open(struct cli_batch_text *t, struct cli_batch_context *c, uint64_t number,
                         const char *line, size_t size, struct base_error *err)
{
    BASE_LOCAL_BUFFER prompt = BASE_BUFFER_INIT;
    *t = (struct cli_batch_text){.context = c, .number = number};
    bool ok = c->values->each ? fill_each(t, line, size, &prompt, err)
                              : parse_line(t, line, size, err) && read_prompt(t, &prompt, err);
    const bool has_question = c->values->each || text_json_member(t->line, "prompt");
    return ok && cli_buffer_check(&prompt, err) && find_profile(t, err) &&
           begin(t, &prompt, has_question, err);
}

void cli_batch_text_close(struct cli_batch_text *t)
{
    if (t->profile) t->profile->n_texts--;
    json_decref(t->line);
    base_buffer_free(&t->id);
    json_decref(t->openai);
    text_ids_free(&t->ids);
    chat_reply_close(&t->reply);
    chat_prompt_free(&t->prompt);
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
    if (t->is_chat && !chat_reply_take(&t->reply, piece, err)) return false;
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
        json_t *message = chat_reply_message(&t->reply, err);
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
    cli_model_add_approximate(t->context->model, out);
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
    const char *why = t->is_chat     ? cli_reply_lack(&t->reply, outcome)
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
    if (t->is_chat && !(a.message = chat_reply_message(&t->reply, err))) return false;
    const bool ok = cli_openai_add(&a, out, err);
    json_decref(a.message);
    return ok;
}

bool cli_batch_text_end(struct cli_batch_text *t, const struct generate_outcome *outcome, bool *cut,
                        struct base_buffer *out, struct base_error *err)
{
    struct base_error failed = BASE_ERROR_INIT;
    const bool plain = cli_batch_is_plain(t->context->values);
    if (t->is_chat && !chat_reply_end(&t->reply, err)) return false;
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
