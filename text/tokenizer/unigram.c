/* text/tokenizer/unigram.c: SentencePiece's unigram model ("t5"). See text/tokenizer/vocab.h.
 *
 * The character map normalizes a text, and spaces become U+2581. Of all divisions into tokens the
 * one with the highest sum of scores is used (Viterbi, forward from the first byte). A character
 * that is not a token by itself may be the unknown token, with a score of 10 below the lowest;
 * consecutive unknown tokens become one. Scores are summed as doubles from the first token on, as
 * in SentencePiece, because the order decides which of two close sums is greater. */
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/vocab.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum {
    MAX_SCORE = 1 << 20, /* largest score in a part whose ids are reused */
    MAX_SUM = 1 << 30,   /* largest sum before such a part */
    MARGIN = 1024        /* sums that differ by less than 1 / MARGIN are close */
};

struct unigram {
    struct text_charsmap map;
    struct text_trie tokens; /* normal, user-defined and unused tokens */
    struct text_trie user;   /* user-defined tokens */
    float *score;            /* [n_tokens] */
    float unknown_score;
    bool merge_spaces;
    bool reuses_parts; /* all scores are small enough to reuse parts: see struct lattice */
    bool plain[256];   /* ASCII that normalization leaves unchanged before other ASCII */
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

static bool is_small(float score)
{
    return fabsf(score) < MAX_SCORE;
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
    u->reuses_parts = is_small(u->unknown_score);
    for (uint32_t id = 0; id < t->n_tokens; id++) u->reuses_parts &= is_small(u->score[id]);
    for (unsigned c = 1; c < 0x80; c++)
        u->plain[c] = !u->user.root[c] && text_charsmap_keeps(&u->map, (unsigned char)c);
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
    static const char mark[] = "\xe2\x96\x81";
    for (size_t i = 0, end; i < size; i = end) {
        if (bytes[i] == ' ') {
            n->in_word = false;
            if (!n->u->merge_spaces) base_buffer_add(n->out, mark, sizeof mark - 1);
            end = i + 1;
            continue;
        }
        const char *space = memchr(bytes + i, ' ', size - i);
        end = space ? (size_t)(space - bytes) : size;
        if (!n->in_word && (n->add_space || n->u->merge_spaces)) {
            base_buffer_add(n->out, mark, sizeof mark - 1);
            n->add_space = false;
        }
        n->in_word = true;
        base_buffer_add(n->out, bytes + i, end - i);
    }
}

/* Returns the number of bytes at the start that normalization leaves unchanged, without spaces. */
static size_t plain_size(const struct unigram *u, const char *text, size_t size)
{
    enum { AT_ONCE = 4096 };
    size_t n = 0;
    if (size > AT_ONCE) size = AT_ONCE;
    while (n < size && u->plain[(unsigned char)text[n]]) n++;
    return n && n < size && (unsigned char)text[n] >= 0x80 ? n - 1 : n;
}

/* Returns the size of the longest beginning of any user-defined token at the start of the text;
 * these bytes are not normalized. */
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
        used = plain_size(n.u, text + at, size - at);
        if (!used) used = follow_user(n.u, text + at, size - at);
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

/* The best division of the part up to here: its last token and the offset of that token. */
struct unigram_path {
    double score;
    int32_t id;
    uint32_t start;
};

/* A text is encoded in parts; no token crosses their borders. Scores are summed over all parts, so
 * rounding may decide between divisions whose sums are close. The ids of a part without close sums
 * are reused, because another sum before the part gives the same order of its divisions:
 *
 *     |sum| < MAX_SUM + 128 MAX_SCORE < 2^31, so an addition of a double rounds by less than 2^-22
 *     128 additions of each of two sums round by less than 2 * 128 * 2^-22 = 2^-14 < 1 / MARGIN */
struct lattice {
    struct unigram_path *path; /* [room] */
    size_t room;
    double sum; /* the sum before the part */
    bool close; /* two sums of the part were close */
};

static void extend_path(struct lattice *l, size_t end, double score, int32_t id, size_t start)
{
    struct unigram_path *b = &l->path[end];
    l->close |= fabs(score - b->score) < 1.0 / MARGIN;
    if (score > b->score) *b = (struct unigram_path){score, id, (uint32_t)start};
}

static bool find_paths(const struct text_tokenizer *t, const char *text, size_t size,
                       struct lattice *l, struct base_error *err)
{
    const struct unigram *u = t->state;
    if (size >= l->room) {
        const size_t room = 2 * size + 64;
        struct unigram_path *grown = realloc(l->path, room * sizeof *grown);
        if (!grown) return base_fail(err, BASE_NO_MEMORY, "no memory for %zu bytes of text", size);
        l->path = grown;
        l->room = room;
    }
    l->close = false;
    for (size_t i = 0; i <= size; i++) l->path[i] = (struct unigram_path){-DBL_MAX, t->unk, 0};
    l->path[0].score = l->sum;
    for (size_t start = 0, n; start < size; start += n) {
        const double sum = l->path[start].score;
        bool has_token = false; /* the character at `start` is a token */
        uint32_t node = 0;
        n = text_lead_size((unsigned char)text[start]);
        if (n > size - start) n = size - start;
        if (!base_goes_on(err)) return false;
        for (size_t end = start; end < size; end++) {
            node = text_trie_step(&u->tokens, node, (unsigned char)text[end]);
            if (!node) break;
            const int32_t id = u->tokens.node[node].value;
            if (id < 0) continue;
            has_token |= end + 1 - start == n;
            extend_path(l, end + 1, sum + u->score[id], id, start);
        }
        if (!has_token) extend_path(l, start + n, sum + u->unknown_score, t->unk, start);
    }
    l->sum = l->path[size].score;
    return true;
}

/* Collects the tokens from the last to the first, then reverses them. *unknown: one of them is
 * unknown. */
static bool emit(const struct text_tokenizer *t, const struct lattice *l, size_t size,
                 bool after_unknown, struct text_ids *out, bool *unknown, struct base_error *err)
{
    const size_t first = out->count;
    *unknown = false;
    for (size_t end = size, start; end > 0; end = start) {
        const int32_t id = l->path[end].id;
        start = l->path[end].start;
        if (id < 0)
            return base_fail(err, BASE_MODEL, "the vocabulary has no token for unknown text");
        *unknown |= id == t->unk;
        const bool before_unknown = start ? l->path[start].id == t->unk : after_unknown;
        if (id == t->unk && before_unknown) continue; /* only the first of a run remains */
        if (!text_ids_add(out, id, err)) return false;
    }
    for (size_t i = first, k = out->count; i + 1 < k; i++) {
        const int32_t id = out->id[i];
        out->id[i] = out->id[--k];
        out->id[k] = id;
    }
    return true;
}

/* Returns the end of the part that begins at `start`: the next U+2581, at the beginning of a
 * character, that no token joins to the byte before it. */
static size_t part_end(const bool joins[256], const char *text, size_t size, size_t start)
{
    size_t i = start;
    do {
        i += text_lead_size((unsigned char)text[i]);
    } while (i < size && (joins[(unsigned char)text[i - 1]] || !text_is_mark(text + i, size - i)));
    return i < size ? i : size;
}

static bool encode_parts(const struct text_tokenizer *t, struct text_work *w, const char *text,
                         size_t size, struct lattice *l)
{
    const struct unigram *u = t->state;
    const bool parted = size > TEXT_WHOLE && u->reuses_parts;
    bool joins[256] = {false}, unknown = false;
    if (parted && !text_find_joins(t, joins, w->err)) return false;
    for (size_t start = 0, end; start < size; start = end) {
        const size_t n_before = w->out->count;
        const bool reuses = u->reuses_parts && fabs(l->sum) < MAX_SUM;
        struct text_cached_piece *place = NULL;
        bool found = false;
        end = parted ? part_end(joins, text, size, start) : size;
        if (reuses && !text_piece_cache_find(w, text + start, end - start, &place, &found))
            return false;
        if (found) {
            for (size_t i = n_before; i < w->out->count; i++) l->sum += u->score[w->out->id[i]];
            unknown = false;
            continue;
        }
        const bool after_unknown = unknown;
        if (!find_paths(t, text + start, end - start, l, w->err) ||
            !emit(t, l, end - start, after_unknown, w->out, &unknown, w->err))
            return false;
        if (!l->close && !unknown)
            text_piece_cache_add(w, place, text + start, end - start, n_before);
        unknown = l->path[end - start].id == t->unk;
    }
    return true;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    struct lattice l = {0};
    (void)first;
    if (!normalize(t, w, text, size) || !text_piece_cache_begin(&w->pieces, w->text.size, w->err))
        return false;
    const bool ok = encode_parts(t, w, w->text.data, w->text.size, &l);
    free(l.path);
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
