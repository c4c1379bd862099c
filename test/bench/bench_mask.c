/* test/bench/bench_mask.c: times the masks of a realistic schema: texts that satisfy it are split
 * into the vocabulary's longest tokens, and the mask before each token is timed; the mask must
 * contain the token. `bench_mask [MODEL.gguf]`: the model's vocabulary, otherwise an invented one
 * of 128k. */
#include "sample/constrain/constraint.h"
#include "sample/constrain/token_trie.h"
#include "sample/sample.h"
#include "test/support_tokens.h"
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150},"
    "\"email\":{\"type\":\"string\",\"pattern\":\"^[a-z.]+@[a-z]+\\\\.[a-z]{2,3}$\"},"
    "\"status\":{\"enum\":[\"active\",\"inactive\",\"pending\"]},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"maxItems\":8},"
    "\"address\":{\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},"
    "\"city\":{\"type\":\"string\"},\"zip\":{\"type\":\"string\",\"pattern\":\"^[0-9]{5}$\"}},"
    "\"required\":[\"street\",\"city\"],\"additionalProperties\":false},"
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"sku\":{\"type\":\"string\",\"maxLength\":20},\"qty\":{\"type\":\"integer\",\"minimum\":1},"
    "\"price\":{\"type\":\"number\"},\"gift\":{\"type\":\"boolean\"}},"
    "\"required\":[\"sku\",\"qty\"],\"additionalProperties\":false}},"
    "\"parent\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]},"
    "\"extra\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}},"
    "\"required\":[\"name\",\"age\"],\"additionalProperties\":false}";

static void add_words(struct base_buffer *b, struct sample_random *r, uint32_t most)
{
    static const char *const word[] = {"lemon", "stone", "river", "unable", "question", "green"};
    uint32_t n = 1 + sample_random_u32(r) % most;
    for (uint32_t i = 0; i < n; i++)
        base_buffer_add_format(b, "%s%s", i ? " " : "", word[sample_random_u32(r) % 6]);
}

static void add_text(struct base_buffer *b, struct sample_random *r, const char *name,
                     uint32_t most)
{
    base_buffer_add_format(b, "\"%s\": \"", name);
    add_words(b, r, most);
    base_buffer_add_text(b, "\"");
}

static void make_document(struct base_buffer *b, struct sample_random *r, int depth)
{
    base_buffer_add_text(b, "{");
    add_text(b, r, "name", 4);
    base_buffer_add_format(b, ", \"age\": %u", sample_random_u32(r) % 151);
    if (sample_random_u32(r) % 2) base_buffer_add_text(b, ", \"email\": \"some.one@example.org\"");
    if (sample_random_u32(r) % 2) base_buffer_add_text(b, ", \"status\": \"pending\"");
    if (sample_random_u32(r) % 2) base_buffer_add_text(b, ", \"tags\": [\"red\", \"big one\"]");
    if (sample_random_u32(r) % 2) {
        base_buffer_add_text(b, ", \"address\": {");
        add_text(b, r, "street", 5);
        base_buffer_add_text(b, ", ");
        add_text(b, r, "city", 2);
        base_buffer_add_format(b, ", \"zip\": \"%05u\"}", sample_random_u32(r) % 100000);
    }
    base_buffer_add_text(b, ", \"items\": [");
    for (uint32_t i = 0, n = sample_random_u32(r) % 4; i < n; i++)
        base_buffer_add_format(b, "%s{\"sku\": \"K-%u\", \"qty\": %u, \"price\": %u.%02u}",
                               i ? ", " : "", sample_random_u32(r) % 100000,
                               1 + sample_random_u32(r) % 50, sample_random_u32(r) % 1000,
                               sample_random_u32(r) % 100);
    base_buffer_add_text(b, "], \"extra\": {");
    add_text(b, r, "note", 30);
    base_buffer_add_text(b, "}");
    if (depth) {
        base_buffer_add_text(b, ", \"parent\": ");
        make_document(b, r, depth - 1);
    }
    base_buffer_add_text(b, "}");
}

/* The longest token of a trie at the start of the text, if longer than *used. */
static int32_t longest_of(const struct constrain_trie *v, const char *text, size_t size, int32_t id,
                          size_t *used)
{
    uint32_t i = 1, end = v->n_node;
    for (size_t depth = 0; depth < size && i < end;) {
        if (v->node[i].byte != (uint8_t)text[depth]) {
            i = v->node[i].next;
            continue;
        }
        depth++;
        end = v->node[i].next;
        if (depth > *used && v->node[i].token < v->node[i + 1].token)
            id = v->order[v->node[i].token], *used = depth;
        i++;
    }
    return id;
}

static int32_t longest(const struct constrain_token_trie *v, const char *text, size_t size,
                       size_t *used)
{
    *used = 0;
    int32_t id = longest_of(&v->plain, text, size, -1, used);
    return longest_of(&v->other, text, size, id, used);
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static bool run(const struct constraint *c, const struct constrain_token_trie *v,
                struct constrain_masker *m, uint64_t seed, uint32_t documents, const char *title)
{
    struct base_error err = BASE_ERROR_INIT;
    struct sample_random r;
    double *time = calloc(1 << 20, sizeof *time), sum = 0;
    uint32_t n = 0, slow = 0;
    sample_random_seed(&r, seed);
    for (uint32_t d = 0; d < documents; d++) {
        struct base_buffer text = BASE_BUFFER_INIT;
        make_document(&text, &r, (int)(d % 3));
        struct constrain_state *s = constrain_state_new(c, &err);
        for (size_t at = 0, used = 0, fed; at < text.size && n < 1 << 20; at += used) {
            int32_t id = longest(v, text.data + at, text.size - at, &used);
            double start = now();
            const uint64_t *mask = constrain_masker_mask(m, s, &err);
            time[n] = now() - start;
            if (!mask || !(mask[id >> 6] >> (id & 63) & 1)) {
                printf("token '%.*s' is not allowed in '%.*s': %s\n", (int)used, text.data + at,
                       (int)at, text.data, err.text);
                return false;
            }
            if (!constrain_state_feed(s, text.data + at, used, &fed, &err) || fed != used)
                return false;
            if (time[n] > 1000) slow++;
            sum += time[n++];
        }
        constrain_state_free(s);
        base_buffer_free(&text);
    }
    qsort(time, n, sizeof *time, compare_times);
    printf("%s: %u tokens, mean %.1f us, median %.1f us, 99 %% %.1f us, worst %.1f us, %u above 1 "
           "ms\n",
           title, n, sum / n, time[n / 2], time[n * 99 / 100], time[n - 1], slow);
    free(time);
    return true;
}

struct model {
    struct text_tokenizer *tokenizer;
};
static void model_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const struct model *model = context;
    text_token_bytes(model->tokenizer, id, false, out);
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constrain_schema_options options = {.generate = true};
    struct support_tokens made = {0};
    struct gguf_file *file = NULL;
    struct model model = {NULL};
    struct constrain_token_trie *v = NULL;
    double start = now();
    struct constraint *c = constraint_from_schema(schema, sizeof schema - 1, &options, &err);
    printf("compile %.1f ms\n", (now() - start) / 1000);
    if (argc > 1) {
        file = gguf_open(argv[1], &err);
        if (file) model.tokenizer = text_tokenizer_open(file, &err);
        start = now();
        if (model.tokenizer)
            v = constrain_token_trie_new(text_vocab_size(model.tokenizer), model_bytes, &model,
                                         &err);
    } else {
        support_tokens_make(&made, 128 * 1024, 1);
        start = now();
        v = constrain_token_trie_new(made.count, support_tokens_bytes, &made, &err);
    }
    struct constrain_masker *m = c && v ? constrain_masker_new(c, v, 64 << 20, &err) : NULL;
    if (m)
        printf("tries of %u tokens, %u and %u nodes: %.1f ms\n", v->n_vocab, v->plain.n_node,
               v->other.n_node, (now() - start) / 1000);
    bool ok = m && run(c, v, m, 1, 10, "cold") && run(c, v, m, 2, 40, "warm") &&
              run(c, v, m, 3, 40, "warm");
    if (!ok) fprintf(stderr, "failed: %s\n", err.text);
    constrain_masker_free(m);
    constrain_token_trie_free(v);
    constraint_free(c);
    support_tokens_free(&made);
    text_tokenizer_close(model.tokenizer);
    gguf_close(file);
    return !ok;
}
