/* test/fuzz_constraint.c: a fuzz door: the first byte chooses a grammar (g), a schema (s), an
 * expression (r) or choices (c); then the source, a NUL byte, and a text. What compiles reads the
 * text, with a mask before each piece that allows exactly what the state accepts, and finds an end.
 */
#include "generate/constraint_source.h"
#include "test/fuzz.h"
#include <string.h>

/* 256 single bytes and some longer tokens. */
static const char *const words[] = {"\"a\":", "{\"", "true", "ab", "  ", "\xc3\xa9", "10", "}}"};
enum { N_WORDS = sizeof words / sizeof *words, N_VOCAB = 256 + N_WORDS, STEPS = 40 };

static void token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const char byte = (char)id;
    (void)context;
    if (id < 256)
        base_buffer_add(out, &byte, 1);
    else
        base_buffer_add_text(out, words[id - 256]);
}

/* The mask against a copy of the state that reads each token. */
static void compare(const struct constrain_state *s, const uint64_t *mask, int32_t id)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer token = BASE_BUFFER_INIT;
    struct constrain_state *copy = constrain_state_clone(s, &err);
    size_t used;
    if (!copy) abort();
    token_bytes(NULL, id, &token);
    const bool ok = constrain_state_feed(copy, token.data, token.size, &used, &err);
    if (ok && (used == token.size) != (mask[id >> 6] >> (id & 63) & 1)) abort();
    constrain_state_free(copy);
    base_buffer_free(&token);
}

static void finish(const struct constraint *c, struct constrain_state *s)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer rest = BASE_BUFFER_INIT;
    size_t used;
    bool found = false;
    struct constrain_finisher *f = constrain_finisher_new(c, NULL, &err);
    if (f && constrain_finisher_text(f, s, -1, "", 0, 1000, &rest, &found, &err) && found) {
        if (!constrain_state_feed(s, rest.size ? rest.data : "", rest.size, &used, &err)) abort();
        if (used != rest.size || !constrain_state_may_end(s)) abort();
    }
    base_buffer_free(&rest);
    constrain_finisher_free(f);
}

static void use(const struct constraint *c, const char *text, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constrain_state *s = constrain_state_new(c, &err);
    struct constrain_token_trie *v = constrain_token_trie_new(N_VOCAB, token_bytes, NULL, &err);
    struct constrain_masker *m = v ? constrain_masker_new(c, v, 1 << 16, &err) : NULL;
    bool ok = s && m;
    for (size_t at = 0, step = 0; ok && step < STEPS && at < size; step++) {
        const uint64_t *mask = constrain_masker_mask(m, s, &err);
        const size_t n = size - at < 3 ? size - at : 3;
        size_t used = 0;
        ok = mask != NULL;
        if (ok) compare(s, mask, (unsigned char)text[at]);
        if (ok) compare(s, mask, (int32_t)(256 + step % N_WORDS));
        ok = ok && constrain_state_feed(s, text + at, n, &used, &err);
        if (used < n) break;
        at += n;
    }
    fuzz_check(ok, &err);
    if (ok) finish(c, s);
    constrain_masker_free(m);
    constrain_token_trie_free(v);
    constrain_state_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char kinds[] = "gsrc";
    static const enum generate_constraint_kind kind[] = {
        GENERATE_CONSTRAINT_GRAMMAR, GENERATE_CONSTRAINT_SCHEMA, GENERATE_CONSTRAINT_REGEX,
        GENERATE_CONSTRAINT_CHOICES};
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = NULL;
    const char *const all = (const char *)bytes;
    const char *k = size > 1 && all[0] ? strchr(kinds, all[0]) : NULL;
    if (!k) return 0;
    const char *nul = memchr(all + 1, '\0', size - 1);
    const size_t n = nul ? (size_t)(nul - all) - 1 : size - 1;
    const char *const text = nul ? nul + 1 : "";
    const size_t rest = nul ? size - n - 2 : 0;
    char *choice = strndup(all + 1, n);
    if (!choice) return 0;
    const struct generate_constraint_source source = {.kind = kind[k - kinds],
                                                      .text = all + 1,
                                                      .size = n,
                                                      .choice = (const char *const *)&choice,
                                                      .n_choices = 1,
                                                      .generate = rest % 2};
    fuzz_check(generate_constraint_compile(&source, &c, &err), &err);
    if (c) use(c, text, rest);
    constraint_free(c);
    free(choice);
    return 0;
}
