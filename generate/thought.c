/* generate/thought.c: phases of a text with reasoning. See generate/thought.h. */
#include "generate/thought.h"
#include <string.h>

enum { ROOM = 1 << 12 };

/* ---- Beginning ---- */

static bool is_special(const struct text_tokenizer *t, int32_t id)
{
    const enum text_token_kind kind = text_token_kind(t, id);
    return kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_USER;
}

/* Appends the ids of a mark; NULL: none. */
static bool read_mark(const struct text_tokenizer *t, const char *mark, struct text_ids *ids,
                      struct base_error *err)
{
    const size_t size = mark ? strlen(mark) : 0;
    return size == 0 || text_encode(t, mark, size, TEXT_PARSE_SPECIAL | TEXT_CONTINUES, ids, err);
}

static bool read_marks(struct generate_thought *t, const struct generate_thought_marks *marks,
                       bool has_header, struct base_error *err)
{
    const char *answer = has_header ? NULL : marks->answer;
    t->open.count = t->close.count = t->after.count = t->start.count = 0;
    return read_mark(t->tokenizer, marks->open, &t->open, err) &&
           read_mark(t->tokenizer, marks->close, &t->close, err) &&
           (!t->driver || (read_mark(t->tokenizer, marks->turn, &t->after, err) &&
                           read_mark(t->tokenizer, answer, &t->after, err) &&
                           read_mark(t->tokenizer, answer, &t->start, err)));
}

static void start_thinking(struct generate_thought *t)
{
    generate_stop_reset(t->match);
    t->n_since = t->close_size;
    t->phase = GENERATE_THINKING;
}

/* Reserves a quarter of the tokens, or those of the shortest answer if that is more. */
static bool reserve_answer(struct generate_thought *t, uint64_t left, struct base_error *err)
{
    uint64_t shortest;
    t->owed = 0;
    if (!t->driver) return true;
    if (!generate_driver_min_tokens(t->driver, &shortest, err)) return false;
    t->owed = left / 4;
    if (shortest != UINT64_MAX && shortest > t->owed) t->owed = shortest;
    return true;
}

static void write_ids(struct generate_thought *t, const struct text_ids *ids)
{
    if (ids->count) memcpy(t->written + t->n_written, ids->id, ids->count * sizeof *t->written);
    t->n_written += ids->count;
}

/* Writes the ids, then the answer. */
static void start_writing(struct generate_thought *t, const struct text_ids *ids)
{
    t->phase = ids->count ? GENERATE_CLOSING : GENERATE_ANSWERING;
    t->n_written = t->written_at = 0;
    write_ids(t, ids);
}

bool generate_thought_begin(struct generate_thought *t, const struct generate_thought_marks *marks,
                            bool has_header, int64_t max_thought, uint64_t left,
                            struct base_error *err)
{
    t->phase = GENERATE_ANSWERING;
    t->begins = false;
    if (!marks || (!t->driver && max_thought < 0)) return true;
    if (!read_marks(t, marks, has_header, err)) return false;
    if (t->open.count == 0 || t->close.count == 0 ||
        t->close.count + t->after.count > GENERATE_MARK_TOKENS)
        return true; /* the vocabulary cannot form the marks */
    generate_stop_free(t->match);
    t->match = generate_stop_new(&marks->close, 1, err);
    t->close_size = strlen(marks->close);
    t->close_is_token = is_special(t->tokenizer, t->close.id[0]);
    base_buffer_reserve(&t->bytes, ROOM);
    base_buffer_reserve(&t->scratch, ROOM);
    if (!t->match || !reserve_answer(t, left, err)) return false;
    if (t->bytes.failed || t->scratch.failed)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a thought");
    t->open_text = marks->open;
    t->left = max_thought < 0 ? UINT64_MAX : (uint64_t)max_thought;
    t->n_opened = t->n_written = t->written_at = 0;
    t->refused = t->is_start = false;
    if (marks->opened)
        start_thinking(t);
    else
        t->phase = GENERATE_OPENING;
    return true;
}

void generate_thought_free(struct generate_thought *t)
{
    text_ids_free(&t->open);
    text_ids_free(&t->close);
    text_ids_free(&t->after);
    text_ids_free(&t->start);
    generate_stop_free(t->match);
    base_buffer_free(&t->bytes);
    base_buffer_free(&t->scratch);
}

/* ---- Token by token ---- */

/* Returns whether two special tokens have the same text; a vocabulary may have copies. */
static bool has_text_of(const struct generate_thought *t, int32_t id, int32_t other)
{
    const struct gguf_str a = text_token_raw(t->tokenizer, id),
                          b = text_token_raw(t->tokenizer, other);
    return id == other || (is_special(t->tokenizer, id) && gguf_str_compare(a, b) == 0);
}

static int32_t write_next(struct generate_thought *t)
{
    t->wrote = true;
    return t->written[t->written_at++];
}

static void start_closing(struct generate_thought *t)
{
    start_writing(t, &t->close);
    write_ids(t, &t->after);
}

/* Chooses the next token of the opening mark or of the answer's header. */
static int32_t choose_header(const struct generate_thought *t, const float *logits)
{
    const size_t n = t->n_opened;
    if (t->is_start) return t->start.id[n];
    if (n >= t->start.count || memcmp(t->open.id, t->start.id, n * sizeof *t->open.id) != 0)
        return t->open.id[n];
    return logits[t->start.id[n]] > logits[t->open.id[n]] ? t->start.id[n] : t->open.id[n];
}

int32_t generate_thought_offer(struct generate_thought *t, const float *logits, uint64_t left,
                               int32_t *id)
{
    const uint64_t after = t->close.count + t->after.count + t->owed;
    *id = -1;
    t->wrote = t->begins = false;
    if (t->phase == GENERATE_OPENING) {
        const bool has_room = left > t->open.count + after && (t->left > 0 || !t->driver);
        if (t->n_opened || has_room) {
            if (t->refused || t->start.count) *id = choose_header(t, logits);
            return t->open.id[t->n_opened < t->open.count ? t->n_opened : 0];
        }
        start_writing(t, &t->start); /* no room for reasoning */
    }
    if (t->phase == GENERATE_THINKING && (t->left == 0 || (t->driver && left <= after)))
        start_closing(t);
    if (t->phase == GENERATE_CLOSING) *id = write_next(t);
    return -1;
}

/* Compares texts: a model may write a mark in other tokens than its shortest ones. */
static bool take_open_text(struct generate_thought *t, int32_t id, struct base_error *err)
{
    const char *left = t->open_text + t->n_opened;
    base_buffer_clear(&t->bytes);
    text_token_bytes(t->tokenizer, id, true, &t->bytes);
    if (t->bytes.failed) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a thought");
    const bool is_token = t->n_opened || !is_special(t->tokenizer, t->open.id[0]) ||
                          has_text_of(t, id, t->open.id[0]);
    if (!is_token || t->bytes.size == 0 || t->bytes.size > strlen(left) ||
        memcmp(t->bytes.data, left, t->bytes.size) != 0) {
        t->phase = GENERATE_ANSWERING;
        return true;
    }
    t->n_opened += t->bytes.size;
    if (t->open_text[t->n_opened] == '\0') start_thinking(t);
    return true;
}

static bool take_opening(struct generate_thought *t, int32_t id, struct base_error *err)
{
    bool accepted = true;
    if (!t->driver) return take_open_text(t, id, err);
    if (t->start.count) {
        t->is_start |= t->n_opened >= t->open.count || id != t->open.id[t->n_opened];
        t->n_opened++;
        if (t->is_start && t->n_opened == t->start.count) {
            t->phase = GENERATE_ANSWERING;
            t->begins = true;
        } else if (!t->is_start && t->n_opened == t->open.count) {
            start_thinking(t);
        }
        return true;
    }
    if (id != t->open.id[t->n_opened]) {
        t->phase = GENERATE_ANSWERING;
        return true;
    }
    if (++t->n_opened == t->open.count) {
        start_thinking(t);
        return true;
    }
    if (!t->refused && !generate_driver_follow(t->driver, id, &accepted, err)) return false;
    t->refused |= !accepted;
    return true;
}

/* Searches t->bytes for the end of the closing mark. Returns the number of bytes up to it; 0 if it
 * is absent. */
static size_t find_close(struct generate_thought *t)
{
    for (size_t i = 0; i < t->bytes.size; i++) {
        if (t->close_is_token && t->n_since++ >= t->close_size) return 0;
        base_buffer_clear(&t->scratch);
        if (generate_stop_feed(t->match, t->bytes.data + i, 1, &t->scratch) >= 0) return i + 1;
    }
    return 0;
}

static bool is_space(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && memchr(" \t\r\n", s[i], 4)) i++;
    return i == n;
}

/* A token that extends past the closing mark would begin an answer that the constraint has not
 * checked: the rest of the mark replaces it. */
static bool take_thinking(struct generate_thought *t, int32_t *id, struct base_error *err)
{
    if (t->driver && text_token_is_end(t->tokenizer, *id)) {
        start_closing(t);
        *id = write_next(t);
        return true;
    }
    t->left--;
    base_buffer_clear(&t->bytes);
    text_token_bytes(t->tokenizer, *id, true, &t->bytes);
    if (t->bytes.failed) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a thought");
    if (t->close_is_token && has_text_of(t, *id, t->close.id[0])) {
        generate_stop_reset(t->match);
        t->n_since = 0;
    }
    const size_t used = find_close(t);
    if (used == 0) return true;
    start_writing(t, &t->after);
    t->begins = t->phase == GENERATE_ANSWERING;
    if (!t->driver || is_space(t->bytes.data + used, t->bytes.size - used)) return true;
    size_t n = 0;
    if (used + t->after.count <= GENERATE_MARK_TOKENS &&
        !generate_driver_tokenize(t->driver, t->bytes.data, used, t->written, &n, err))
        return false;
    if (n) {
        t->phase = GENERATE_CLOSING;
        t->n_written = n;
        write_ids(t, &t->after);
    } else {
        start_closing(t);
    }
    t->begins = false;
    *id = write_next(t);
    return true;
}

bool generate_thought_take(struct generate_thought *t, int32_t *id, struct base_error *err)
{
    if (t->phase == GENERATE_OPENING) {
        if (!take_opening(t, *id, err)) return false;
    } else if (t->phase == GENERATE_THINKING) {
        if (!take_thinking(t, id, err)) return false;
    }
    if (t->phase == GENERATE_CLOSING && t->written_at == t->n_written) {
        t->phase = GENERATE_ANSWERING;
        t->begins = true;
    }
    return true;
}
