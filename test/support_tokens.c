/* test/support_tokens.c: see support_tokens.h. */
#include "test/support_tokens.h"
#include "base/utf8.h"
#include "sample/sample.h"
#include <stdlib.h>
#include <string.h>

static void add(struct support_tokens *v, const char *bytes, size_t size)
{
    base_buffer_add(&v->text, bytes, size);
    v->at[++v->count] = v->text.size;
}

static void add_word(struct support_tokens *v, struct sample_random *r)
{
    static const char *const syllables[] = {"an", "be",  "ca", "do", "el",  "fo", "gra", "hi", "in",
                                            "jo", "ka",  "le", "mo", "ni",  "or", "pre", "qu", "re",
                                            "st", "ton", "un", "ve", "wil", "xi", "y",   "zen"};
    char word[64] = "";
    uint32_t parts = 1 + sample_random_u32(r) % 4, kind = sample_random_u32(r) % 16;
    if (kind & 1) strcpy(word, " ");
    for (uint32_t i = 0; i < parts; i++) strcat(word, syllables[sample_random_u32(r) % 26]);
    if (kind == 2 || kind == 3) word[kind & 1] -= 32;
    if (kind == 4) strcat(word, sample_random_u32(r) % 2 ? "," : ".");
    if (kind == 6) strcat(word, "_");
    if (kind == 8 || kind == 9) /* a letter beyond ASCII */
        word[strlen(word) + base_utf8_encode((int32_t)(0xc0 + sample_random_u32(r) % 0x3000),
                                             word + strlen(word))] = '\0';
    add(v, word, strlen(word));
}

void support_tokens_make(struct support_tokens *v, uint32_t count, uint64_t seed)
{
    static const char *const joints[] = {
        "\"",  "\":",  "\": ", "\":\"", "\": \"", "\",",   "\",\"", "\", \"", "{\"",  "{\n",
        "[{",  "[{\"", "}]",   "},",    "},{",    "},{\"", "\"}",   "\"}]",   "\"]",  "\"],",
        "[\"", "[]",   "{}",   "true",  "false",  "null",  " true", "\\n",    "\\\"", "\\u",
        "```", "::",   "//",   "\",\n", "\n  \"", "0.",    ".5",    "e-"};
    struct sample_random r;
    sample_random_seed(&r, seed);
    *v = (struct support_tokens){.text = BASE_BUFFER_INIT, .at = calloc(count + 2, sizeof *v->at)};
    for (int b = 0; b < 256 && v->count < count; b++) add(v, &(char){(char)b}, 1);
    for (size_t i = 0; i < sizeof joints / sizeof joints[0] && v->count < count; i++)
        add(v, joints[i], strlen(joints[i]));
    for (int i = 10; i < 1000 && v->count < count; i++) {
        char digits[8];
        int n = 0;
        for (int k = 100; k; k /= 10)
            if (i >= k) digits[n++] = (char)('0' + i / k % 10);
        add(v, digits, (size_t)n);
    }
    for (int i = 2; i < 64 && v->count < count; i++) {
        char spaces[64];
        memset(spaces, ' ', sizeof spaces);
        add(v, spaces, (size_t)i);
    }
    while (v->count < count) {
        if (sample_random_u32(&r) % 40 == 0) { /* a word that ends in JSON punctuation */
            char bytes[32] = "";
            strcat(bytes, joints[sample_random_u32(&r) % 23]);
            strcat(bytes, sample_random_u32(&r) % 2 ? "in" : "re");
            add(v, bytes, strlen(bytes));
        } else {
            add_word(v, &r);
        }
    }
}

void support_tokens_free(struct support_tokens *v)
{
    base_buffer_free(&v->text);
    free(v->at);
    *v = (struct support_tokens){0};
}

void support_tokens_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const struct support_tokens *v = context;
    base_buffer_add(out, v->text.data + v->at[id], v->at[id + 1] - v->at[id]);
}
