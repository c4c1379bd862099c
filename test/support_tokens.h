/* test/support_tokens.h: an invented vocabulary like real ones: single bytes, words with and
 * without a leading space, numbers, white space, and JSON punctuation such as `","`. */
#pragma once

#include "sample/constrain/constraint.h"

struct support_tokens {
    struct base_buffer text;
    size_t *at; /* [count + 1]: token i is text[at[i]..at[i + 1]) */
    uint32_t count;
};
void support_tokens_make(struct support_tokens *v, uint32_t count, uint64_t seed);
void support_tokens_free(struct support_tokens *v);
/* For constrain_token_trie_new. */
void support_tokens_bytes(void *context, int32_t id, struct base_buffer *out);
