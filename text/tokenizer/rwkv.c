/* text/tokenizer/rwkv.c: RWKV's World tokenizer: the longest token at each offset. See
 * text/tokenizer/vocab.h.
 *
 * Tokens are any bytes. Files write them as literals: \t, \n, \r, \xHH, and a backslash before any
 * other character, which means this character. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

struct rwkv {
    struct text_trie tokens;
};

static int digit_of(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Appends the bytes of a literal. A backslash at the end, and an \x with fewer than two digits,
 * append nothing. */
static void read_literal(struct gguf_str text, struct base_buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '\\') {
            if (++i == text.size) return;
            byte = text.data[i];
            if (byte == 'x') {
                if (text.size - i < 3) return;
                byte = (char)(digit_of(text.data[i + 1]) * 16 + digit_of(text.data[i + 2]));
                i += 2;
            } else {
                byte = byte == 't' ? '\t' : byte == 'n' ? '\n' : byte == 'r' ? '\r' : byte;
            }
        }
        base_buffer_add(out, &byte, 1);
    }
}

static bool open_rwkv(struct text_tokenizer *t, struct base_error *err)
{
    struct rwkv *r = t->state = calloc(1, sizeof *r);
    struct text_key *keys = malloc((size_t)t->n_tokens * sizeof *keys);
    BASE_LOCAL_BUFFER bytes = BASE_BUFFER_INIT;
    bool ok = r && keys;
    for (uint32_t id = 0; ok && id < t->n_tokens; id++) {
        const size_t start = bytes.size;
        read_literal(text_token(t, id), &bytes);
        keys[id] = (struct text_key){NULL, (uint32_t)(bytes.size - start), (int32_t)id};
    }
    ok = (ok && !bytes.failed) || base_fail(err, BASE_NO_MEMORY, "no memory for the tokenizer");
    const char *at = bytes.data;
    for (uint32_t id = 0; ok && id < t->n_tokens; at += keys[id++].size) keys[id].bytes = at;
    ok = ok && text_trie_init(&r->tokens, keys, t->n_tokens, err);
    free(keys);
    return ok;
}

static void close_rwkv(void *state)
{
    struct rwkv *r = state;
    text_trie_free(&r->tokens);
    free(r);
}

/* Caches the results for the first LEAD bytes of a token: most tokens of a longer text begin with
 * LEAD bytes that occurred before, and the cache saves their steps through the trie. */
enum {
    LEAD = 4,
    LEAD_BITS = 12,
    MIN_TEXT = 16 << 10 /* bytes; shorter texts do not repay the
                         * table */
};

struct token_lead {
    uint32_t bytes;
    uint32_t size; /* of the longest token in them; 1: there is none; 0: free entry */
    int32_t id;    /* id of that token, or -1 */
    uint32_t node; /* node of all of these bytes; 0: no token begins with them */
};

static int32_t find_longest(const struct text_trie *t, struct token_lead *leads, const char *text,
                            size_t size, size_t *used)
{
    *used = 1;
    if (!leads || size < LEAD) return text_trie_longest(t, text, size, used);
    uint32_t bytes, node = 0;
    memcpy(&bytes, text, sizeof bytes);
    struct token_lead *l = &leads[bytes * 0x9e3779b1u >> (32 - LEAD_BITS)];
    if (l->bytes != bytes || !l->size) {
        const int32_t id = text_trie_go(t, &node, text, 0, LEAD, -1, used);
        *l = (struct token_lead){bytes, (uint32_t)*used, id, node};
    }
    *used = l->size;
    node = l->node;
    return node ? text_trie_go(t, &node, text, LEAD, size, l->id, used) : l->id;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    const struct rwkv *r = t->state;
    /* The ids do not depend on the table, so a failed allocation is not an error. */
    struct token_lead *leads = size < MIN_TEXT ? NULL : calloc(1 << LEAD_BITS, sizeof *leads);
    bool ok = true;
    (void)first;
    for (size_t at = 0, used; ok && at < size; at += used) {
        int32_t id = find_longest(&r->tokens, leads, text + at, size - at, &used);
        if (id < 0) id = t->unk;
        ok = base_goes_on(w->err) &&
             (id < 0 ? text_lose_byte(w, at) : text_ids_add(w->out, id, w->err));
    }
    free(leads);
    return ok;
}

static void decode(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out)
{
    (void)t;
    read_literal(text, out);
}

const struct text_algorithm text_rwkv = {
    .name = "rwkv",
    .defaults = {.bos = -1, .eos = -1, .unk = -1, .sep = -1},
    .all_kinds = true,
    .open = open_rwkv,
    .close = close_rwkv,
    .encode = encode,
    .ends = text_no_ends,
    .decode = decode,
};
