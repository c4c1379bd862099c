/* text/tokenizer/unigram.c: SentencePiece's unigram model ("t5"). See text/tokenizer/vocab.h.
 *
 * A text is normalized by the character map, with spaces as U+2581; of all divisions into tokens
 * the one with the highest sum of scores is used (Viterbi, forward from the first byte). A
 * character that is not a token by itself may be the unknown token, at a score of 10 below the
 * lowest; consecutive unknown tokens become one. Scores are summed as doubles from the first token
 * on, as SentencePiece does, because the order decides which of two close sums is greater. */
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/vocab.h"
#include <float.h>
#include <limits.h>
#include <stdlib.h>

struct unigram {
    struct text_charsmap map;
    struct text_trie tokens; /* normal, user-defined and unused ones */
    struct text_trie user;   /* user-defined ones */
    float *score;            /* [n_tokens] */
    float unknown_score;
    bool merge_spaces;
};

static bool is_kind(const struct text_tokenizer *t, uint32_t id, bool user_only)
{
    const enum text_token_kind kind = t->kind[id];
    return kind == TEXT_TOKEN_USER ||
           (!user_only && (kind == TEXT_TOKEN_NORMAL || kind == TEXT_TOKEN_UNUSED));
}

static bool load_trie(const struct text_tokenizer *t, struct text_trie *trie, bool user_only,
                      struct base_error *err)
{
    struct text_key *keys = malloc((size_t)t->n_tokens * sizeof *keys);
    uint32_t n = 0;
    if (!keys) return base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", t->n_tokens);
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        const struct gguf_str text = text_token(t, id);
        if (is_kind(t, id, user_only))
            keys[n++] = (struct text_key){text.data, (uint32_t)text.size, (int32_t)id};
    }
    const bool ok = text_trie_init(trie, keys, n, err);
    free(keys);
    return ok;
}

static bool open_unigram(struct text_tokenizer *t, struct base_error *err)
{
    enum { PENALTY = 10 };
    struct unigram *u = t->state = calloc(1, sizeof *u);
    float min_score = FLT_MAX;
    if (!u) return base_fail(err, BASE_NO_MEMORY, "no memory for the tokenizer");
    if (!text_scores_load(t, err) || !text_charsmap_load(&u->map, t->file, err) ||
        !gguf_get_bool(t->file, "tokenizer.ggml.remove_extra_whitespaces", &u->merge_spaces, err) ||
        !load_trie(t, &u->tokens, false, err) || !load_trie(t, &u->user, true, err))
        return false;
    u->score = malloc(t->n_tokens * sizeof *u->score);
    if (!u->score) return base_fail(err, BASE_NO_MEMORY, "no memory for %u scores", t->n_tokens);
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        u->score[id] = t->kind[id] == TEXT_TOKEN_USER ? 0 : text_score(t, id);
        if (t->kind[id] == TEXT_TOKEN_NORMAL && u->score[id] < min_score) min_score = u->score[id];
    }
    u->unknown_score = min_score - PENALTY;
    return true;
}

static void close_unigram(void *state)
{
    struct unigram *u = state;
    text_trie_free(&u->tokens);
    text_trie_free(&u->user);
    free(u->score);
    free(u);
}

/* ---- Normalizing ---- */

struct normalizer {
    const struct unigram *u;
    struct base_buffer *out;
    bool add_space; /* before the first word */
    bool in_word;
};

static void add_normal(struct normalizer *n, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == ' ') {
            n->in_word = false;
            if (!n->u->merge_spaces) base_buffer_add_text(n->out, "\xe2\x96\x81");
            continue;
        }
        if (!n->in_word && (n->add_space || n->u->merge_spaces)) {
            base_buffer_add_text(n->out, "\xe2\x96\x81");
            n->add_space = false;
        }
        n->in_word = true;
        base_buffer_add(n->out, bytes + i, 1);
    }
}

/* How far the text follows the beginning of any user-defined token: these bytes stay as they
 * are. */
static size_t follow_user(const struct unigram *u, const char *text, size_t size)
{
    size_t i = 0;
    for (uint32_t node = 0; i < size; i++) {
        node = text_trie_step(&u->user, node, (unsigned char)text[i]);
        if (!node) break;
    }
    return i;
}

static bool normalize(const struct text_tokenizer *t, struct text_work *w, const char *text,
                      size_t size)
{
    const bool continues = w->flags & TEXT_CONTINUES && w->source_place == 0;
    struct normalizer n = {.u = t->state,
                           .out = &w->text,
                           .add_space = t->add_space_prefix && !continues,
                           .in_word = continues};
    base_buffer_clear(n.out);
    for (size_t at = 0, used; at < size; at += used) {
        struct gguf_str part;
        if (!base_goes_on(w->err)) return false;
        used = follow_user(n.u, text + at, size - at);
        if (used) {
            add_normal(&n, text + at, used);
            continue;
        }
        if (!text_charsmap_find(&n.u->map, text + at, size - at, &part, &used, w->err))
            return false;
        if (used) {
            add_normal(&n, part.data, part.size);
        } else {
            int32_t code;
            used = text_decode_loose(text + at, size - at, &code);
            add_normal(&n, code < 0 ? "\xef\xbf\xbd" : text + at, code < 0 ? 3 : used);
        }
        if (n.out->size > INT_MAX)
            return base_fail(w->err, BASE_TOO_LONG, "the normalized text is longer than %d bytes",
                             INT_MAX);
    }
    return !n.out->failed || base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes", size);
}

/* ---- Viterbi ---- */

/* The best way to write the text up to here: its last token, and where that begins. */
struct best {
    double score;
    int32_t id;
    uint32_t start;
};

static void offer(struct best *b, double score, int32_t id, size_t start)
{
    if (score > b->score) *b = (struct best){score, id, (uint32_t)start};
}

static bool find_best(const struct text_tokenizer *t, const char *text, size_t size,
                      struct best *best, struct base_error *err)
{
    const struct unigram *u = t->state;
    for (size_t i = 0; i <= size; i++) best[i] = (struct best){i ? -DBL_MAX : 0, t->unk, 0};
    for (size_t start = 0, n; start < size; start += n) {
        bool has_token = false; /* the character at `start` alone */
        uint32_t node = 0;
        n = text_lead_size((unsigned char)text[start]);
        if (n > size - start) n = size - start;
        if (!base_goes_on(err)) return false;
        for (size_t end = start; end < size; end++) {
            node = text_trie_step(&u->tokens, node, (unsigned char)text[end]);
            if (!node) break;
            const int32_t id = u->tokens.value[node];
            if (id < 0) continue;
            has_token |= end + 1 - start == n;
            offer(&best[end + 1], best[start].score + u->score[id], id, start);
        }
        if (!has_token)
            offer(&best[start + n], best[start].score + u->unknown_score, t->unk, start);
    }
    return true;
}

/* Collects the tokens from the last to the first, then reverses them. */
static bool emit(const struct text_tokenizer *t, const struct best *best, size_t size,
                 struct text_ids *out, struct base_error *err)
{
    const size_t first = out->count;
    bool was_unknown = false;
    for (size_t end = size; end > 0; end = best[end].start) {
        const int32_t id = best[end].id;
        const bool unknown = id == t->unk;
        if (id < 0)
            return base_fail(err, BASE_MODEL, "the vocabulary has no token for unknown text");
        if (!(unknown && was_unknown) && !text_ids_add(out, id, err)) return false;
        was_unknown = unknown;
    }
    for (size_t i = first, k = out->count; i + 1 < k; i++) {
        const int32_t id = out->id[i];
        out->id[i] = out->id[--k];
        out->id[k] = id;
    }
    return true;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    (void)first;
    if (!normalize(t, w, text, size)) return false;
    text = w->text.data;
    size = w->text.size;
    if (size == 0) return true;
    struct best *best = malloc((size + 1) * sizeof *best);
    if (!best) return base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes of text", size);
    const bool ok = find_best(t, text, size, best, w->err) && emit(t, best, size, w->out, w->err);
    free(best);
    return ok;
}

const struct text_algorithm text_unigram = {
    .name = "t5",
    .defaults = {.bos = -1, .eos = 1, .unk = 2, .sep = -1, .add_eos = true},
    .drops_space = TEXT_DROPS_DECLARED,
    .open = open_unigram,
    .close = close_unigram,
    .encode = encode,
    .ends = text_declared_ends,
    .decode = text_unescape,
};
