/* generate/request.c: generates one text, token by token. See generate/generate.h.
 *
 * `held` contains the ids of the session's sequence, followed by the ids to evaluate next. Bytes
 * become a piece as soon as they are whole UTF-8 and cannot be part of a stop text. */
#include "base/clock.h"
#include "base/interrupt.h"
#include "generate/constraint_driver.h"
#include "generate/generate.h"
#include "generate/json_lines.h"
#include "generate/stop.h"
#include "generate/thought.h"
#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 1 << 16 };

const char *const generate_ending_name[] = {"eos",     "stop",       "limit",
                                            "context", "constraint", "interrupted"};

struct generate_request {
    const struct generate_options *options;
    struct generate_model model;
    uint32_t seq, n_ctx;
    int32_t *end_id; /* [n_ends]: end-of-turn tokens first, then end-of-text tokens */
    size_t n_ends;
    struct sampler *sampler;
    uint64_t seed;                  /* the seed of the sampler */
    bool sampler_is_new;            /* no text has used the sampler yet */
    struct generate_driver *driver; /* NULL: no constraint */
    struct generate_stop *stop;
    struct generate_thought thought;
    struct text_decoder decoder;

    int32_t *held; /* [n_ctx + 1] */
    size_t n_held;
    struct base_buffer piece, output; /* bytes of the latest token; text that may be shown */
    struct base_buffer lines;         /* that text in lines, if the options request them */
    struct generate_json_lines in_lines;
    uint64_t n_decoded, n_shown; /* in bytes of the text */
    uint64_t n_laid;             /* bytes that lines add to the text that was shown */
    uint64_t answer_at; /* offset of the answer in the text, in bytes; UINT64_MAX: not reached */
    struct generate_outcome outcome;
    bool over, has_read; /* has_read: the prompt has been evaluated */
    bool is_stop_token;  /* a control token ended the text; the text before it is complete */
    double start;
};

/* ---- Creation ---- */

static void token_bytes(void *tokenizer, int32_t id, struct base_buffer *out)
{
    text_token_bytes(tokenizer, id, true, out);
}

static bool list_ends(struct generate_request *r)
{
    const struct text_tokenizer *t = r->model.tokenizer;
    const int32_t first[2] = {text_token_eot(t), text_token_eos(t)};
    const uint32_t n = text_vocab_size(t);
    size_t count = 2;
    for (uint32_t id = 0; id < n; id++) count += text_token_is_end(t, (int32_t)id);
    r->end_id = malloc(count * sizeof *r->end_id);
    if (!r->end_id) return false;
    for (int i = 0; i < 2; i++)
        if (first[i] >= 0 && (i == 0 || first[i] != first[0])) r->end_id[r->n_ends++] = first[i];
    for (uint32_t id = 0; id < n; id++)
        if (text_token_is_end(t, (int32_t)id) && (int32_t)id != first[0] && (int32_t)id != first[1])
            r->end_id[r->n_ends++] = (int32_t)id;
    return true;
}

/* Replaces the sampler by a new one without history. */
static bool make_sampler(struct generate_request *r, uint64_t seed, struct base_error *err)
{
    struct sample_options o = r->options->sample;
    if (r->sampler_is_new && r->seed == seed) return true;
    o.seed = seed;
    o.token_bytes = token_bytes;
    o.token_context = (void *)r->model.tokenizer;
    o.end_id = r->end_id;
    o.n_ends = r->n_ends;
    sample_free(r->sampler);
    r->sampler = sample_new(&o, model_facts(r->model.model)->n_vocab, r->n_ctx, err);
    for (size_t i = 0; r->sampler && r->options->ignore_eos && i < r->n_ends; i++)
        sample_forbid(r->sampler, r->end_id[i]);
    r->seed = seed;
    r->sampler_is_new = r->sampler != NULL;
    return r->sampler_is_new;
}

static bool make_parts(struct generate_request *r, struct base_error *err)
{
    const struct generate_options *o = r->options;
    base_buffer_reserve(&r->piece, BUFFER_SIZE);
    base_buffer_reserve(&r->output, BUFFER_SIZE);
    if (o->in_lines) base_buffer_reserve(&r->lines, BUFFER_SIZE);
    r->held = calloc((size_t)r->n_ctx + 1, sizeof *r->held);
    if (!list_ends(r) || !r->held || r->piece.failed || r->output.failed || r->lines.failed)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory to generate");
    if (!make_sampler(r, o->sample.seed, err)) return false;
    r->stop = generate_stop_new(o->stop, o->n_stop, err);
    if (!r->stop) return false;
    r->thought.tokenizer = r->model.tokenizer;
    if (!o->constraint) return true;
    if (o->n_stop && constraint_token_count(o->constraint)) /* for text cut within tokens */
        return base_fail(err, BASE_USAGE, "a grammar that names tokens excludes stop texts");
    r->driver = r->thought.driver =
        generate_driver_new(o->constraint, r->model.tokenizer, r->model.trie,
                            model_facts(r->model.model)->n_vocab, o->marks, !o->ignore_eos, err);
    return r->driver != NULL;
}

struct generate_request *generate_request_new(const struct generate_options *options,
                                              const struct generate_model *model, uint32_t seq,
                                              struct base_error *err)
{
    struct generate_request *r = calloc(1, sizeof *r);
    if (!r) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory to generate"));
    r->options = options;
    r->model = *model;
    r->seq = seq;
    r->n_ctx = model_session_n_ctx(model->session);
    r->over = true;
    if (make_parts(r, err)) return r;
    generate_request_free(r);
    return NULL;
}

void generate_request_free(struct generate_request *r)
{
    if (!r) return;
    generate_thought_free(&r->thought);
    generate_driver_free(r->driver);
    generate_stop_free(r->stop);
    sample_free(r->sampler);
    base_buffer_free(&r->piece);
    base_buffer_free(&r->output);
    base_buffer_free(&r->lines);
    free(r->end_id);
    free(r->held);
    free(r);
}

/* ---- Beginning ---- */

static uint32_t seq_length(const struct generate_request *r)
{
    return model_seq_length(r->model.session, r->seq);
}

/* Keeps the sequence's common prefix with the prompt. At least the last id is evaluated, because
 * its logits select the first token. */
static void keep_common(struct generate_request *r, const struct generate_prompt *p)
{
    const size_t length = model_seq_adapt_to(r->model.session, r->seq, p->adapters, p->ids, p->n);
    size_t n = p->n_held < p->n ? p->n_held : p->n - 1;
    if (n > length) n = length;
    if (n > 0) r->n_held = 0;                   /* the ids are those of another text */
    if (r->n_held > length) r->n_held = length; /* the last token, or ids of an interrupted batch */
    while (n < r->n_held && n + 1 < p->n && r->held[n] == p->ids[n]) n++;
    r->outcome.n_cached = model_seq_truncate(r->model.session, r->seq, (uint32_t)n);
    memcpy(r->held, p->ids, p->n * sizeof *r->held);
    r->n_held = p->n;
}

static uint64_t tokens_left(const struct generate_request *r)
{
    const uint64_t room = r->n_ctx - r->n_held + 1;
    const uint64_t limit = r->options->max_tokens - r->outcome.n_generated;
    return room < limit ? room : limit;
}

static void stop_with(struct generate_request *r, enum generate_ending ending)
{
    r->outcome.ending = ending;
    r->over = true;
}

/* Returns whether the latest token is of reasoning or of a header, which is no part of an answer.
 */
static bool is_before_answer(const struct generate_request *r)
{
    const struct generate_thought *t = &r->thought;
    return t->phase == GENERATE_THINKING || t->phase == GENERATE_CLOSING ||
           (t->phase == GENERATE_OPENING && t->start.count);
}

bool generate_request_begin(struct generate_request *r, const struct generate_prompt *p,
                            struct base_error *err)
{
    const struct generate_options *o = r->options;
    if (p->n == 0) return base_fail(err, BASE_USAGE, "a prompt without tokens");
    if (p->n > r->n_ctx)
        return base_fail(err, BASE_TOO_LONG, "the prompt has %zu tokens and the context holds %u",
                         p->n, r->n_ctx);
    r->outcome = (struct generate_outcome){.n_prompt = p->n, .ending = GENERATE_END_LIMIT};
    r->over = r->has_read = r->is_stop_token = false;
    r->n_decoded = r->n_shown = r->n_laid = 0;
    generate_stop_reset(r->stop);
    base_buffer_clear(&r->piece);
    base_buffer_clear(&r->output);
    if (!make_sampler(r, p->seed, err) ||
        (r->driver && !generate_driver_begin(r->driver, p->continues, err)))
        return false;
    r->in_lines = (struct generate_json_lines){.indent = o->indent};
    if (o->in_lines && p->n_begun)
        generate_json_lines_add(&r->in_lines, p->begun, p->n_begun, &r->lines);
    if (r->driver && p->n_begun && !generate_driver_read(r->driver, p->begun, p->n_begun, err))
        return false;
    text_decoder_init(&r->decoder, r->model.tokenizer, p->continues, o->show_special);
    keep_common(r, p);
    for (size_t i = 0; i < p->n; i++) sample_accept(r->sampler, p->ids[i]);
    r->sampler_is_new = false;
    if (!generate_thought_begin(&r->thought, p->thought, o->marks, o->max_thought, tokens_left(r),
                                err))
        return false;
    r->answer_at = is_before_answer(r) ? UINT64_MAX : 0;
    if (o->max_tokens == 0)
        stop_with(r, GENERATE_END_LIMIT);
    else if (r->driver && generate_driver_is_over(r->driver))
        stop_with(r, GENERATE_END_CONSTRAINT);
    r->start = base_seconds();
    return true;
}

const int32_t *generate_request_next_ids(const struct generate_request *r, size_t *n)
{
    const size_t length = seq_length(r);
    *n = r->over || length > r->n_held ? 0 : r->n_held - length;
    return r->held + (*n ? length : 0);
}

const int32_t *generate_request_held(const struct generate_request *r, size_t *n)
{
    const size_t length = seq_length(r);
    *n = length < r->n_held ? length : r->n_held;
    return r->held;
}

const int32_t *generate_request_ids(const struct generate_request *r, size_t *n)
{
    *n = r->n_held;
    return r->held;
}

uint64_t generate_request_room(const struct generate_request *r)
{
    const uint64_t left = tokens_left(r);
    return left ? left - 1 : 0;
}

bool generate_request_has_read(const struct generate_request *r)
{
    return r->has_read;
}

bool generate_request_is_over(const struct generate_request *r)
{
    return r->over;
}

void generate_request_cut(struct generate_request *r)
{
    if (seq_length(r) >= r->n_held)
        model_seq_truncate(r->model.session, r->seq, (uint32_t)(r->n_held - 1));
}

uint32_t generate_request_seq(const struct generate_request *r)
{
    return r->seq;
}

struct model_session *generate_request_session(const struct generate_request *r)
{
    return r->model.session;
}

/* ---- A token ---- */

/* Records the time of the prompt's evaluation, which may have been interrupted. */
static void note_read(struct generate_request *r)
{
    if (r->has_read) return;
    r->has_read = true;
    r->outcome.read_seconds = base_seconds() - r->start;
    r->outcome.n_read = seq_length(r) - r->outcome.n_cached;
}

void generate_request_interrupt(struct generate_request *r)
{
    note_read(r);
    stop_with(r, GENERATE_END_INTERRUPTED);
}

/* Chooses the next id; -1 if the constraint allows none. */
static bool choose(struct generate_request *r, const float *logits, int32_t *id,
                   struct base_error *err)
{
    struct generate_thought *t = &r->thought;
    const uint64_t left = tokens_left(r);
    const int32_t extra = generate_thought_offer(t, logits, left, id);
    if (*id < 0 && r->driver && t->phase != GENERATE_THINKING) {
        if (!generate_driver_choose(r->driver, r->sampler, logits, left, extra, id, err))
            return false;
        if (*id < 0) return true;
    } else if (*id < 0) {
        *id = sample_next(r->sampler, logits, err);
        if (*id < 0) return false;
    }
    return generate_thought_take(t, id, err);
}

/* Returns whether the letters of a token are not those of the text that is shown. */
static bool is_hidden(const struct generate_request *r, int32_t id)
{
    const struct generate_options *o = r->options;
    const enum text_token_kind kind = text_token_kind(r->model.tokenizer, id);
    return (!o->show_special || o->hides_control) &&
           (kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_UNKNOWN);
}

/* Ends the text at stop text `index`, if it is not negative. */
static bool stop_at(struct generate_request *r, int index)
{
    if (index < 0) return false;
    stop_with(r, GENERATE_END_STOP);
    r->outcome.stop_text = r->options->stop[index];
    return true;
}

/* Passes the decoder's bytes to the stop texts. Returns whether one of them is complete. The
 * letters of a hidden token are no part of a stop text. */
static bool match_stop(struct generate_request *r, bool hidden)
{
    int index = -1;
    if (hidden) {
        generate_stop_end(r->stop, &r->output);
        base_buffer_add(&r->output, r->piece.data, r->piece.size);
    } else {
        index = generate_stop_feed(r->stop, r->piece.data, r->piece.size, &r->output);
    }
    r->n_decoded += r->piece.size;
    base_buffer_clear(&r->piece);
    return stop_at(r, index);
}

/* Ends the text at a control token that is a stop text, although the token has no text here. */
static void find_stop_token(struct generate_request *r, int32_t id)
{
    const struct gguf_str raw = text_token_raw(r->model.tokenizer, id);
    if (!is_hidden(r, id)) return;
    for (size_t i = 0; i < r->options->n_stop && !r->over; i++)
        r->is_stop_token = gguf_str_is(raw, r->options->stop[i]) && stop_at(r, (int)i);
}

/* Writes the answer in a piece's text in lines; the answer begins after `before` bytes. */
static bool lay_out(struct generate_request *r, struct generate_piece *piece, uint64_t before,
                    struct base_error *err)
{
    const size_t same = before < piece->size ? (size_t)before : piece->size;
    base_buffer_clear(&r->lines);
    base_buffer_add(&r->lines, piece->text, same);
    generate_json_lines_add(&r->in_lines, piece->text + same, piece->size - same, &r->lines);
    r->n_laid += r->lines.size - piece->size;
    piece->text = r->lines.size ? r->lines.data : "";
    piece->size = r->lines.size;
    return !r->lines.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory for the text");
}

/* Returns the text as a piece; passes the answer's part to the constraint if a stop text may cut
 * it. */
static bool make_piece(struct generate_request *r, struct generate_piece *piece,
                       struct base_error *err)
{
    const struct base_buffer *out = &r->output;
    if (out->failed || r->piece.failed)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for the text");
    piece->text = out->size ? out->data : "";
    piece->size = out->size;
    const uint64_t before = r->answer_at > r->n_shown ? r->answer_at - r->n_shown : 0;
    r->n_shown += out->size;
    if (r->options->in_lines && !lay_out(r, piece, before, err)) return false;
    if (!r->driver || r->options->n_stop == 0 || before >= out->size) return true;
    return generate_driver_show(r->driver, out->data + before, out->size - before, err);
}

/* Ends the reasoning: from here on the constraint applies. */
static bool begin_answer(struct generate_request *r, struct base_error *err)
{
    r->answer_at = r->n_decoded;
    r->in_lines = (struct generate_json_lines){.indent = r->options->indent};
    return !r->driver || generate_driver_begin(r->driver, true, err);
}

/* Continues after a token that belongs to the text. */
static bool continue_text(struct generate_request *r, int32_t id, struct base_error *err)
{
    const enum generate_phase phase = r->thought.phase;
    sample_accept(r->sampler, id);
    text_decoder_add(&r->decoder, id, &r->piece);
    if (match_stop(r, r->piece.size > 0 && is_hidden(r, id))) return true;
    if (is_before_answer(r)) r->answer_at = UINT64_MAX;
    if (r->thought.begins && !begin_answer(r, err)) return false;
    if (phase == GENERATE_ANSWERING && r->driver && generate_driver_is_over(r->driver))
        stop_with(r, GENERATE_END_CONSTRAINT);
    else if (r->outcome.n_generated == r->options->max_tokens)
        stop_with(r, GENERATE_END_LIMIT);
    else if (r->n_held > r->n_ctx) /* the context has no room for this token */
        stop_with(r, GENERATE_END_CONTEXT);
    return true;
}

/* Takes token `id`, or if it is -1 the one that is chosen by the logits. */
static bool take_token(struct generate_request *r, int32_t id, const float *logits,
                       struct generate_piece *piece, struct base_error *err)
{
    *piece = (struct generate_piece){.id = -1, .text = ""};
    base_buffer_clear(&r->output);
    note_read(r);
    if (base_interrupted()) {
        stop_with(r, GENERATE_END_INTERRUPTED);
        return true;
    }
    const double start = base_seconds();
    if (id < 0 && !choose(r, logits, &id, err)) return false;
    r->outcome.choose_seconds += base_seconds() - start;
    if (id < 0) {
        stop_with(r, GENERATE_END_CONSTRAINT);
        return true;
    }
    piece->id = id;
    piece->index = r->outcome.n_generated++;
    piece->logits = logits;
    r->held[r->n_held++] = id;
    if (!r->thought.wrote && text_token_is_end(r->model.tokenizer, id))
        stop_with(r, GENERATE_END_EOS); /* otherwise the token may close the reasoning */
    else
        find_stop_token(r, id);
    if (!r->over && !continue_text(r, id, err)) return false;
    if (!make_piece(r, piece, err)) return false;
    piece->end = r->n_decoded + r->n_laid;
    return true;
}

bool generate_request_take(struct generate_request *r, const float *logits,
                           struct generate_piece *piece, struct base_error *err)
{
    return take_token(r, -1, logits, piece, err);
}

bool generate_request_take_id(struct generate_request *r, int32_t id, struct generate_piece *piece,
                              struct base_error *err)
{
    return take_token(r, id, NULL, piece, err);
}

bool generate_request_is_forced(const struct generate_request *r)
{
    const struct generate_thought *t = &r->thought;
    if (r->over || r->options->all_logits) return false;
    return t->phase == GENERATE_CLOSING ||
           (t->phase == GENERATE_ANSWERING && r->driver && generate_driver_has_plan(r->driver));
}

/* ---- The end ---- */

static bool is_complete(const struct generate_request *r)
{
    if (!r->driver) return true;
    const struct generate_thought *t = &r->thought;
    if (r->answer_at == UINT64_MAX || t->phase == GENERATE_CLOSING) return false;
    if (t->phase == GENERATE_OPENING && t->refused) return false;
    return r->outcome.ending == GENERATE_END_STOP ? generate_driver_shown_complete(r->driver)
                                                  : generate_driver_is_complete(r->driver);
}

bool generate_request_end(struct generate_request *r, struct generate_piece *piece,
                          struct generate_outcome *outcome, struct base_error *err)
{
    *piece = (struct generate_piece){.id = -1, .text = ""};
    base_buffer_clear(&r->output);
    r->outcome.generate_seconds = base_seconds() - r->start - r->outcome.read_seconds;
    if (r->outcome.ending != GENERATE_END_STOP || r->is_stop_token) {
        text_decoder_end(&r->decoder, &r->piece);
        if (!match_stop(r, false)) generate_stop_end(r->stop, &r->output);
    }
    if (!make_piece(r, piece, err)) return false;
    r->outcome.complete = is_complete(r);
    *outcome = r->outcome;
    return true;
}
