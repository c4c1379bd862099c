/* generate/thought.c: phases of a text with reasoning. See generate/thought.h. */
#include "generate/thought.h"
#include <string.h>

enum { ROOM = 1 << 12 };

/* ---- Beginning ---- */

static bool read_mark(const struct text_tokenizer *t, const char *mark, struct text_ids *ids,
                      struct base_error *err)
{
    ids->count = 0;
    return text_encode(t, mark, strlen(mark), TEXT_PARSE_SPECIAL, ids, err);
}

static void start_thinking(struct generate_thought *t)
{
    generate_stop_reset(t->match);
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

bool generate_thought_begin(struct generate_thought *t, const struct generate_thought_marks *marks,
                            int64_t max_thought, uint64_t left, struct base_error *err)
{
    t->phase = GENERATE_ANSWERING;
    if (!marks || (!t->driver && max_thought < 0)) return true;
    if (!read_mark(t->tokenizer, marks->open, &t->open, err) ||
        !read_mark(t->tokenizer, marks->close, &t->close, err))
        return false;
    if (t->open.count == 0 || t->close.count == 0 || t->close.count > GENERATE_MARK_TOKENS)
        return true; /* the vocabulary cannot form the marks */
    generate_stop_free(t->match);
    t->match = generate_stop_new(&marks->close, 1, err);
    base_buffer_reserve(&t->bytes, ROOM);
    base_buffer_reserve(&t->scratch, ROOM);
    if (!t->match || !reserve_answer(t, left, err)) return false;
    if (t->bytes.failed || t->scratch.failed)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a thought");
    t->left = max_thought < 0 ? UINT64_MAX : (uint64_t)max_thought;
    t->n_opened = t->n_written = t->written_at = 0;
    t->refused = false;
    if (marks->opened)
        start_thinking(t);
    else if (t->left > 0 || !t->driver)
        t->phase = GENERATE_OPENING;
    return true;
}

void generate_thought_free(struct generate_thought *t)
{
    text_ids_free(&t->open);
    text_ids_free(&t->close);
    generate_stop_free(t->match);
    base_buffer_free(&t->bytes);
    base_buffer_free(&t->scratch);
}

/* ---- Token by token ---- */

static int32_t write_next(struct generate_thought *t)
{
    t->wrote = true;
    return t->written[t->written_at++];
}

static void start_closing(struct generate_thought *t)
{
    t->phase = GENERATE_CLOSING;
    t->n_written = t->close.count;
    t->written_at = 0;
    memcpy(t->written, t->close.id, t->close.count * sizeof *t->written);
}

int32_t generate_thought_offer(struct generate_thought *t, uint64_t left, int32_t *id)
{
    const uint64_t after = t->close.count + t->owed;
    *id = -1;
    t->wrote = false;
    if (t->phase == GENERATE_OPENING) {
        const int32_t next = t->open.id[t->n_opened];
        if (t->refused) *id = next;
        if (t->n_opened || left > t->open.count + after) return next;
        t->phase = GENERATE_ANSWERING; /* no room for reasoning */
        return -1;
    }
    if (t->phase == GENERATE_THINKING && (t->left == 0 || (t->driver && left <= after)))
        start_closing(t);
    if (t->phase == GENERATE_CLOSING) *id = write_next(t);
    return -1;
}

static bool take_opening(struct generate_thought *t, int32_t id, struct base_error *err)
{
    bool accepted = true;
    if (id != t->open.id[t->n_opened]) {
        t->phase = GENERATE_ANSWERING;
        return true;
    }
    if (++t->n_opened == t->open.count) {
        start_thinking(t);
        return true;
    }
    if (t->driver && !t->refused && !generate_driver_follow(t->driver, id, &accepted, err))
        return false;
    t->refused |= !accepted;
    return true;
}

/* Searches t->bytes for the end of the closing mark. Returns the number of bytes up to it; 0 if it
 * is absent. */
static size_t find_close(struct generate_thought *t)
{
    for (size_t i = 0; i < t->bytes.size; i++) {
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
    const size_t used = find_close(t);
    if (used == 0) return true;
    t->phase = GENERATE_ANSWERING;
    if (!t->driver || is_space(t->bytes.data + used, t->bytes.size - used)) return true;
    start_closing(t);
    size_t n = 0;
    if (used <= GENERATE_MARK_TOKENS &&
        !generate_driver_spell(t->driver, t->bytes.data, used, t->written, &n, err))
        return false;
    if (n)
        t->n_written = n;
    else
        start_closing(t);
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
    if (t->phase == GENERATE_CLOSING && t->written_at == t->n_written)
        t->phase = GENERATE_ANSWERING;
    return true;
}
