/* test/fuzz_constraint.c: a fuzz target: the first byte selects a grammar (g), a schema (s), an
 * expression (r) or choices (c); then the source, a NUL byte, and a text follow. A compiled
 * constraint reads the text and finds an end; before each piece its mask must allow exactly what
 * the state accepts. Tokens that a grammar names have arbitrary ids. */
#include "generate/constraint_source.h"
#include "sample/constrain/constrain_stack.h"
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

/* Compares the mask with reading a token on trial. */
static void compare(struct constrain_state *s, const uint64_t *mask, int32_t id)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer token = BASE_BUFFER_INIT;
    struct constrain_trial trial;
    bool accepted;
    if (!constrain_trial_begin(s, &trial)) abort();
    token_bytes(NULL, id, &token);
    const bool ok = constrain_state_take(s, (struct constrain_next){id, token.data, token.size},
                                         &accepted, &err);
    if (ok && accepted != (mask[id >> 6] >> (id & 63) & 1)) abort();
    constrain_trial_end(s, &trial);
    base_buffer_free(&token);
}

static void finish(const struct constraint *c, struct constrain_state *s)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer rest = BASE_BUFFER_INIT;
    bool found = false, accepted = true;
    struct constrain_finisher *f = constrain_finisher_new(c, NULL, &err);
    if (f && constrain_finisher_text(f, s, CONSTRAIN_NOTHING, 1000, &rest, &found, &err) && found) {
        const bool names = constraint_token_count(c) > 0;
        for (size_t i = 0; i < rest.size && accepted; i++) {
            int32_t id = -1;
            const bool named = names && (uint8_t)rest.data[i] == CONSTRAIN_TOKEN_BYTE;
            if (named) memcpy(&id, rest.data + i + 1, sizeof id);
            if (!constrain_state_take(s, (struct constrain_next){id, rest.data + i, !named},
                                      &accepted, &err))
                abort();
            if (named) i += sizeof id;
        }
        if (!accepted || !constrain_state_may_end(s)) abort();
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
    static int32_t id[CONSTRAIN_MAX_RULES];
    static const uint64_t any[N_VOCAB / 64 + 1] = {-1ull, -1ull, -1ull, -1ull, 0xff};
    static const struct constrain_names names = {id, any, {1, 2}};
    const uint32_t n_name = constraint_token_count(c);
    bool ok = s && m, accepted;
    for (uint32_t i = 0; i < n_name; i++) id[i] = (int32_t)(i * 37 % N_VOCAB);
    if (s) constrain_state_name(s, &names);
    for (size_t at = 0, step = 0; ok && step < STEPS && at < size; step++) {
        const uint64_t *mask = constrain_masker_mask(m, s, &err);
        const size_t n = n_name ? 1 : size - at < 3 ? size - at : 3;
        size_t used = 0;
        ok = mask != NULL;
        if (ok) compare(s, mask, (unsigned char)text[at]);
        if (ok) compare(s, mask, (int32_t)(256 + step % N_WORDS));
        if (ok && n_name)
            ok = constrain_state_take(
                s, (struct constrain_next){(unsigned char)text[at], text + at, used = n}, &accepted,
                &err);
        else if (ok)
            ok = constrain_state_feed(s, text + at, n, &used, &err);
        if (used < n || (ok && n_name && !accepted)) break;
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
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = NULL;
    const char *const all = (const char *)bytes;
    const char *k = size > 1 && all[0] ? strchr(kinds, all[0]) : NULL;
    if (!k) return 0;
    const char *nul = memchr(all + 1, '\0', size - 1);
    const size_t n = nul ? (size_t)(nul - all) - 1 : size - 1;
    const char *const text = nul ? nul + 1 : "";
    const size_t rest = nul ? size - n - 2 : 0;
    char *first = strndup(all + 1, n);
    const char *choice = first;
    if (!first) return 0;
    struct generate_constraint_source source = {.any_order = rest % 4 < 2};
    if (*k == 'c') source.choices = (struct base_texts){&choice, 1};
    *(*k == 's'   ? &source.schema
      : *k == 'r' ? &source.regex
                  : &source.grammar) = *k == 'c' ? NULL : first;
    fuzz_check(generate_constraint_compile(&source, rest % 2, NULL, &c, &err), &err);
    if (c) use(c, text, rest);
    constraint_free(c);
    free(first);
    return 0;
}
