/* text/tokenizer/rwkv.c: RWKV's World tokenizer: at each place the longest token. See
 * text/tokenizer/vocab.h.
 *
 * Tokens are any bytes; files write them as literals: \t, \n, \r, \xHH, and a backslash before any
 * other character that represents itself. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>

struct rwkv {
    struct text_trie tokens;
};

static int digit_of(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Appends the bytes of a literal; a backslash at the end, or one before fewer than two digits, adds
 * nothing. */
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
    struct base_buffer bytes = BASE_BUFFER_INIT;
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
    base_buffer_free(&bytes);
    return ok;
}

static void close_rwkv(void *state)
{
    struct rwkv *r = state;
    text_trie_free(&r->tokens);
    free(r);
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    const struct rwkv *r = t->state;
    (void)first;
    for (size_t at = 0, used; at < size; at += used) {
        int32_t id = text_trie_longest(&r->tokens, text + at, size - at, &used);
        if (id < 0) {
            used = 1;
            id = t->unk;
        }
        if (!base_goes_on(w->err)) return false;
        if (id < 0 ? !text_lose_byte(w, at) : !text_ids_add(w->out, id, w->err)) return false;
    }
    return true;
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
