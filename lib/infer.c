/* lib/infer.c: the library's interface over the rooms. See lib/infer.h. */
#pragma GCC visibility push(default) /* all else is hidden (Makefile) */
#include "lib/infer.h"
#pragma GCC visibility pop
#include "chat/chat_template.h"
#include "chat/messages.h"
#include "generate/generate.h"
#include "text/json/json_load.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct infer_model {
    struct gguf_file *file;
    struct text_tokenizer *tokenizer;
    struct engine *engine;
    struct model *model;
};

struct infer_session {
    struct infer_model *model;
    struct model_session *state;
    struct text_ids held; /* the tokens of the sequence */
};

struct infer_sampler {
    struct sampler *sampler;
};

/* Copies an error to the caller's, if there is one. Returns `ok`. */
static bool report(bool ok, const struct base_error *from, struct infer_error *to)
{
    if (ok || !to) return ok;
    to->status = (enum infer_status)from->code;
    base_error_format(from, to->text, sizeof to->text);
    return false;
}

static bool fail_no_memory(struct base_error *err)
{
    return base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

const char *infer_version(void)
{
    return INFER_VERSION;
}

/* ---- Models ---- */

static bool open_model(struct infer_model *m, const char *path, int n_threads,
                       struct base_error *err)
{
    struct engine_options o = engine_options_default();
    o.n_threads = n_threads;
    if (n_threads < 0) return base_fail(err, BASE_USAGE, "%d threads", n_threads);
    if (!cpu_check(err)) return false;
    m->file = gguf_open(path, err);
    m->tokenizer = m->file ? text_tokenizer_open(m->file, err) : NULL;
    m->engine = m->tokenizer ? engine_new(&o, err) : NULL;
    m->model = m->engine ? model_open(m->file, m->engine, NULL, err) : NULL;
    if (!m->model) base_error_set_file(err, path);
    return m->model != NULL;
}

struct infer_model *infer_model_open(const char *path, int n_threads, struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct infer_model *m = calloc(1, sizeof *m);
    const bool ok = m ? open_model(m, path, n_threads, &why) : fail_no_memory(&why);
    if (report(ok, &why, err)) return m;
    infer_model_close(m);
    return NULL;
}

void infer_model_close(struct infer_model *m)
{
    if (!m) return;
    model_close(m->model);
    engine_free(m->engine);
    text_tokenizer_close(m->tokenizer);
    gguf_close(m->file);
    free(m);
}

uint32_t infer_model_n_vocab(const struct infer_model *m)
{
    return model_facts(m->model)->n_vocab;
}

uint32_t infer_model_n_ctx(const struct infer_model *m)
{
    return model_facts(m->model)->n_ctx_train;
}

/* ---- Tokens ---- */

/* Copies as many ids as there is room for. Returns their number, or -1. */
static ptrdiff_t give_ids(bool ok, const struct text_ids *from, int32_t *ids, size_t room,
                          const struct base_error *why, struct infer_error *err)
{
    const size_t n = from->count < room ? from->count : room;
    if (!report(ok, why, err)) return -1;
    if (n > 0) memcpy(ids, from->id, n * sizeof *ids);
    return (ptrdiff_t)from->count;
}

ptrdiff_t infer_tokenize(const struct infer_model *m, const char *text, size_t size, unsigned flags,
                         int32_t *ids, size_t room, struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct text_ids out = TEXT_IDS_INIT;
    const unsigned known = (flags & INFER_ADD_SPECIAL ? TEXT_ADD_SPECIAL : 0) |
                           (flags & INFER_PARSE_SPECIAL ? TEXT_PARSE_SPECIAL : 0);
    const bool ok = text_encode(m->tokenizer, text, size, known, &out, &why);
    const ptrdiff_t n = give_ids(ok, &out, ids, room, &why, err);
    text_ids_free(&out);
    return n;
}

static void ignore_note(const char *text)
{
    (void)text;
}

static const struct chat_caller chat_caller = {
    .template = "template",
    .variable = "variable",
    .tools = "tools",
    .tool_choice = "tool_choice",
    .no_template = "infer_tokenize completes a text",
    .lossy = "the text must be UTF-8",
    .note = ignore_note,
};

static json_t *read_messages(const char *messages, const struct chat_request *request,
                             struct base_error *err)
{
    json_error_t at = {.line = 0};
    errno = 0;
    json_auto_t *given = text_json_load(messages, strlen(messages), 0, &at);
    if (!given && errno == ENOMEM) fail_no_memory(err);
    if (!given)
        base_fail(err, BASE_USAGE, "messages: line %d, column %d: %s", at.line, at.column, at.text);
    return given ? chat_messages_of_line(given, request, NULL, err) : NULL;
}

ptrdiff_t infer_tokenize_chat(const struct infer_model *m, const char *messages, int32_t *ids,
                              size_t room, struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    const struct chat_request request = {.chat.caller = &chat_caller};
    struct chat_template template = {0};
    struct chat_prompt prompt = {0};
    json_auto_t *list = read_messages(messages, &request, &why);
    const bool ok =
        list && chat_template_open(&template, &request.chat, m->file, m->tokenizer, NULL, &why) &&
        chat_template_render(&template, &request, list, &prompt, &why);
    const ptrdiff_t n = give_ids(ok, &prompt.ids, ids, room, &why, err);
    chat_prompt_free(&prompt);
    chat_template_close(&template);
    return n;
}

size_t infer_token_bytes(const struct infer_model *m, int32_t id, char *out, size_t room)
{
    struct base_buffer bytes = BASE_BUFFER_INIT;
    text_token_bytes(m->tokenizer, id, false, &bytes);
    const size_t size = bytes.failed ? 0 : bytes.size;
    if (size > 0 && room > 0) memcpy(out, bytes.data, size < room ? size : room);
    base_buffer_free(&bytes);
    return size;
}

bool infer_token_is_end(const struct infer_model *m, int32_t id)
{
    return text_token_is_end(m->tokenizer, id);
}

/* ---- Sessions ---- */

struct infer_session *infer_session_open(struct infer_model *m, uint32_t n_ctx,
                                         struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct model_session_options o = model_session_options_default();
    struct infer_session *s = calloc(1, sizeof *s);
    if (!s) fail_no_memory(&why);
    o.n_ctx = n_ctx;
    if (s && model_facts(m->model)->writes)
        s->state = model_session_new(m->model, &o, &why);
    else if (s)
        base_fail(&why, BASE_MODEL, "the model writes no text");
    if (report(s && s->state, &why, err)) {
        s->model = m;
        return s;
    }
    free(s);
    return NULL;
}

void infer_session_close(struct infer_session *s)
{
    if (!s) return;
    model_session_free(s->state);
    text_ids_free(&s->held);
    free(s);
}

uint32_t infer_session_length(const struct infer_session *s)
{
    return model_session_length(s->state);
}

uint32_t infer_session_truncate(struct infer_session *s, uint32_t length)
{
    s->held.count = model_session_truncate(s->state, length);
    return (uint32_t)s->held.count;
}

bool infer_session_append(struct infer_session *s, const int32_t *ids, size_t n,
                          struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    const size_t before = s->held.count;
    bool ok = model_eval(s->state, ids, n, MODEL_LOGITS_LAST, NULL, NULL, &why);
    for (size_t i = 0; i < n && ok; i++) ok = text_ids_add(&s->held, ids[i], &why);
    if (!ok) infer_session_truncate(s, (uint32_t)before);
    return report(ok, &why, err);
}

const float *infer_session_logits(const struct infer_session *s)
{
    return model_last_logits(s->state);
}

/* ---- Sampling ---- */

static bool read_settings(const struct infer_model *m, const char *settings,
                          struct sample_options *o, struct base_error *err)
{
    *o = sample_options_default();
    o->level = m->engine->options.level;
    for (const char *c = settings ? settings : ""; *(c += strspn(c, " ")); c += strcspn(c, " "))
        if (!sample_options_set(o, c, strcspn(c, " "), err)) return false;
    return sample_options_check(o, err);
}

struct infer_sampler *infer_sampler_open(const struct infer_model *m, const char *settings,
                                         struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct sample_options o;
    struct infer_sampler *s = calloc(1, sizeof *s);
    if (!s) fail_no_memory(&why);
    if (s && read_settings(m, settings, &o, &why))
        s->sampler = sample_new(&o, infer_model_n_vocab(m), infer_model_n_ctx(m), &why);
    if (report(s && s->sampler, &why, err)) return s;
    free(s);
    return NULL;
}

void infer_sampler_close(struct infer_sampler *s)
{
    if (s) sample_free(s->sampler);
    free(s);
}

void infer_sampler_accept(struct infer_sampler *s, int32_t id)
{
    sample_accept(s->sampler, id);
}

int32_t infer_sampler_choose(struct infer_sampler *s, const float *logits, struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    const int32_t id = logits ? sample_next(s->sampler, logits, &why) : -1;
    if (!logits) base_fail(&why, BASE_USAGE, "no logits: the session has no tokens");
    report(id >= 0, &why, err);
    return id;
}

/* ---- A whole answer ---- */

struct writing {
    infer_write_fn *write;
    void *user;
    bool ended; /* by `write` */
};

static bool write_piece(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct writing *w = user;
    if (piece->size > 0 && !w->write(w->user, piece->text, piece->size)) w->ended = true;
    return !w->ended || base_fail(err, BASE_FAILED, "ended by the caller");
}

/* Records what the sequence has, ids[n]; without memory it becomes empty. */
static bool hold(struct infer_session *s, const int32_t *ids, size_t n, struct base_error *err)
{
    bool ok = true;
    s->held.count = 0;
    for (size_t i = 0; i < n && ok; i++) ok = text_ids_add(&s->held, ids[i], err);
    if (!ok) infer_session_truncate(s, 0);
    return ok;
}

/* Returns how many of the tokens of the sequence ids[n] begins with. */
static size_t common_prefix(const struct text_ids *held, const int32_t *ids, size_t n)
{
    size_t i = 0;
    while (i < held->count && i < n && held->id[i] == ids[i]) i++;
    return i;
}

bool infer_generate(struct infer_session *s, const int32_t *ids, size_t n, const char *settings,
                    int64_t max_tokens, infer_write_fn *write, void *user, struct infer_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct generate_options o = {.max_thought = -1,
                                 .max_tokens = max_tokens < 0 ? UINT64_MAX : (uint64_t)max_tokens};
    const struct generate_model model = {
        .model = s->model->model, .tokenizer = s->model->tokenizer, .session = s->state};
    struct generate_request *request = NULL;
    struct generate_outcome outcome;
    struct writing w = {.write = write, .user = user};
    if (read_settings(s->model, settings, &o.sample, &why))
        request = generate_request_new(&o, &model, 0, &why);
    const struct generate_prompt prompt = {
        .ids = ids, .n = n, .n_held = common_prefix(&s->held, ids, n), .seed = o.sample.seed};
    bool ok = request && generate_request_begin(request, &prompt, &why);
    if (ok) {
        ok = generate_run(request, NULL, write_piece, &w, &outcome, &why) || w.ended;
        const int32_t *held = generate_request_held(request, &n);
        if (!hold(s, held, n, &why)) ok = false;
    }
    generate_request_free(request);
    return report(ok, &why, err);
}
