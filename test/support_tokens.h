/* test/support_tokens.h: a made-up vocabulary with the shape of a real one: single bytes, words with
 * and without a space before, numbers, white space, and the joints of JSON such as `","`. */
#ifndef TEST_SUPPORT_TOKENS_H
#define TEST_SUPPORT_TOKENS_H

#include "sample/constraint.h"

struct support_vocab {
    struct base_buffer text;
    size_t *at; /* [count + 1]: token i is text[at[i]..at[i + 1]) */
    uint32_t count;
};
void support_vocab_make(struct support_vocab *v, uint32_t count, uint64_t seed);
void support_vocab_free(struct support_vocab *v);
/* For sample_vocab_new. */
void support_vocab_bytes(void *context, int32_t id, struct base_buffer *out);

#endif
