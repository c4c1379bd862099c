/* text/tokenizer/plamo2.c: PLaMo-2's tokenizer. See text/tokenizer/vocab.h.
 *
 * A text becomes the tokens with the lowest total cost. A token costs -score, in units of 1/10,000;
 * a character as byte tokens costs UNKNOWN. Costs are summed from the end of the text; among equal
 * sums the one with the longest first token is used, and byte tokens last. */
#include "text/tokenizer/vocab.h"
#include <math.h>
#include <stdlib.h>

enum { UNKNOWN = 10 * 1000 * 1000, MAX_COST = 2 * UNKNOWN };

struct plamo2 {
    struct text_trie tokens; /* all but byte tokens */
    int32_t *cost;           /* [n_tokens]; MAX_COST: the token is never used */
};

static int32_t cost_of(float score)
{
    if (!isfinite(score)) return MAX_COST;
    const double cost = -round(score * 1e4);
    return cost < -MAX_COST ? -MAX_COST : cost > MAX_COST ? MAX_COST : (int32_t)cost;
}

static bool open_plamo2(struct text_tokenizer *t, struct base_error *err)
{
    struct plamo2 *p = t->state = calloc(1, sizeof *p);
    struct text_key *keys = malloc((size_t)t->n_tokens * sizeof *keys);
    uint32_t n = 0;
    if (p) p->cost = malloc((size_t)t->n_tokens * sizeof *p->cost);
    bool ok = (p && p->cost && keys) ||
              base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", t->n_tokens);
    ok = ok && text_scores_load(t, err);
    for (int b = 0; ok && b < 256; b++)
        if (t->byte_token[b] < 0)
            ok = base_fail_at(err, BASE_MODEL, "tokenizer.ggml.tokens", -1, "no token <0x%02X>", b);
    for (uint32_t id = 0; ok && id < t->n_tokens; id++) {
        const struct gguf_str text = text_token(t, id);
        p->cost[id] = cost_of(text_score(t, id));
        if (t->kind[id] != TEXT_TOKEN_BYTE && p->cost[id] < MAX_COST)
            keys[n++] = (struct text_key){text.data, (uint32_t)text.size, (int32_t)id};
    }
    ok = ok && text_trie_init(&p->tokens, keys, n, err);
    free(keys);
    return ok;
}

static void close_plamo2(void *state)
{
    struct plamo2 *p = state;
    text_trie_free(&p->tokens);
    free(p->cost);
    free(p);
}

/* Copies the text to w->text without a byte order mark at its start, with U+FFFD for each invalid
 * byte. */
static bool clean(struct text_work *w, const char *text, size_t size)
{
    base_buffer_clear(&w->text);
    for (size_t at = 0, used; at < size; at += used) {
        int32_t code;
        char bytes[4];
        used = text_decode_loose(text + at, size - at, &code);
        if (at == 0 && code == 0xfeff) continue;
        base_buffer_add(&w->text, bytes, text_encode_loose(code < 0 ? 0xfffd : code, bytes));
    }
    return !w->text.failed || base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes", size);
}

/* The cheapest tokens from here to the text's end: the cost, and the first token, or -1: the first
 * character as byte tokens. */
struct plamo2_path {
    int64_t cost;
    int32_t id;
    uint32_t size; /* bytes of the first token */
};

static bool find_paths(const struct text_tokenizer *t, const char *text, size_t size,
                       struct plamo2_path *path, struct base_error *err)
{
    const struct plamo2 *p = t->state;
    path[size] = (struct plamo2_path){0};
    for (size_t at = size; at-- > 0;) {
        if (((unsigned char)text[at] & 0xc0) == 0x80) {
            path[at].cost = INT64_MAX / 2; /* inside a character */
            continue;
        }
        const size_t n = text_lead_size((unsigned char)text[at]);
        path[at] = (struct plamo2_path){path[at + n].cost + UNKNOWN, -1, (uint32_t)n};
        uint32_t node = 0;
        if (!base_goes_on(err)) return false;
        for (size_t end = at; end < size; end++) {
            node = text_trie_step(&p->tokens, node, (unsigned char)text[end]);
            if (!node) break;
            const int32_t id = p->tokens.node[node].value;
            if (id < 0) continue;
            const int64_t cost = path[end + 1].cost + p->cost[id];
            if (cost <= path[at].cost)
                path[at] = (struct plamo2_path){cost, id, (uint32_t)(end + 1 - at)};
        }
    }
    return true;
}

static bool emit(const struct text_tokenizer *t, struct text_work *w,
                 const struct plamo2_path *path)
{
    for (size_t at = 0; at < w->text.size; at += path[at].size) {
        const size_t n = path[at].id < 0 ? path[at].size : 1;
        for (size_t i = 0; i < n; i++) {
            const unsigned char byte = (unsigned char)w->text.data[at + i];
            const int32_t id = path[at].id < 0 ? t->byte_token[byte] : path[at].id;
            if (!text_ids_add(w->out, id, w->err)) return false;
        }
    }
    return true;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    (void)first;
    if (!clean(w, text, size)) return false;
    if (w->text.size == 0) return true;
    struct plamo2_path *path = malloc((w->text.size + 1) * sizeof *path);
    if (!path) return base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes of text", size);
    const bool ok = find_paths(t, w->text.data, w->text.size, path, w->err) && emit(t, w, path);
    free(path);
    return ok;
}

static void decode(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out)
{
    (void)t;
    base_buffer_add(out, text.data, text.size);
}

const struct text_algorithm text_plamo2 = {
    .name = "plamo2",
    .defaults = {.bos = 1, .eos = 2, .unk = 0, .sep = -1},
    .all_kinds = true,
    .open = open_plamo2,
    .close = close_plamo2,
    .encode = encode,
    .ends = text_no_ends,
    .decode = decode,
};
