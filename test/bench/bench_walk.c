/* test/bench/bench_walk.c: random texts that constraints allow, and the time of their masks.
 *
 *   bench_walk MODEL.gguf|- WALKS TOKENS SEED < LINES
 *
 * A line is a kind (schema, grammar, regex, choices), a tab and the source, or @ and the name of a
 * file with it (choices: one per line). Each walk draws from the tokens that the mask allows, of
 * MODEL's vocabulary or of an invented one; after TOKENS tokens the shortest ending is appended.
 * Standard output: the line's number, a tab, the text as a JSON string. Standard error: per line
 * the times of the masks, separately for the first tenth of the tokens. */
#include "sample/constrain/constraint.h"
#include "sample/sample.h"
#include "test/support_tokens.h"
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TIMES = 1 << 20 };

struct times {
    double *us;
    uint32_t n;
};
struct walker {
    struct gguf_file *file;
    struct text_tokenizer *tokenizer;
    struct support_tokens made;
    struct constrain_token_trie *vocab;
    struct base_buffer piece;
    struct sample_random random;
    struct times times;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    struct walker *w = context;
    if (!w->tokenizer)
        support_tokens_bytes(&w->made, id, out);
    else if (!text_token_is_end(w->tokenizer, id))
        text_token_bytes(w->tokenizer, id, false, out);
}

static bool open_vocab(struct walker *w, const char *path, struct base_error *err)
{
    uint32_t n = 128 * 1024;
    if (strcmp(path, "-") == 0) {
        support_tokens_make(&w->made, n, 1);
    } else {
        w->file = gguf_open(path, err);
        w->tokenizer = w->file ? text_tokenizer_open(w->file, err) : NULL;
        if (!w->tokenizer) return false;
        n = text_vocab_size(w->tokenizer);
    }
    w->vocab = constrain_token_trie_new(n, token_bytes, w, err);
    return w->vocab != NULL;
}

static struct constraint *compile_choices(char *text, struct base_error *err)
{
    const char *choice[5000];
    size_t n = 0;
    for (char *one = strtok(text, "\n"); one && n < 5000; one = strtok(NULL, "\n"))
        choice[n++] = one;
    return constraint_from_choices(choice, n, err);
}

static struct constraint *compile(const char *kind, char *text, struct base_error *err)
{
    struct constrain_schema_options options = {.generate = true};
    size_t size = strlen(text);
    if (strcmp(kind, "schema") == 0) return constraint_from_schema(text, size, &options, err);
    if (strcmp(kind, "grammar") == 0) return constraint_from_grammar(text, size, err);
    if (strcmp(kind, "regex") == 0) return constraint_from_regex(text, size, err);
    return compile_choices(text, err);
}

/* A random set bit; -1 if there is none. */
static int64_t draw(struct walker *w, const uint64_t *mask)
{
    uint32_t n = 0, pick;
    const uint32_t size = w->tokenizer ? text_vocab_size(w->tokenizer) : w->made.count;
    const uint32_t words = (size + 63) / 64;
    for (uint32_t i = 0; i < words; i++) n += (uint32_t)__builtin_popcountll(mask[i]);
    if (n == 0) return -1;
    pick = sample_random_u32(&w->random) % n;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t here = (uint32_t)__builtin_popcountll(mask[i]);
        if (pick >= here) {
            pick -= here;
            continue;
        }
        uint64_t bits = mask[i];
        while (pick--) bits &= bits - 1;
        return 64 * (int64_t)i + __builtin_ctzll(bits);
    }
    return -1;
}

/* One text; false with *err on a limit. */
static bool walk(struct walker *w, const struct constraint *c, struct constrain_masker *m,
                 struct constrain_finisher *f, uint32_t tokens, struct base_buffer *text,
                 struct base_error *err)
{
    struct constrain_state *s = constrain_state_new(c, err);
    bool ok = s != NULL, found;
    size_t used;
    for (uint32_t i = 0; ok && i < tokens; i++) {
        if (constrain_state_may_end(s) && sample_random_u32(&w->random) % 8 == 0) break;
        double start = now();
        const uint64_t *mask = constrain_masker_mask(m, s, err);
        if (w->times.n < MAX_TIMES) w->times.us[w->times.n++] = now() - start;
        int64_t id = mask ? draw(w, mask) : -1;
        ok = mask &&
             (id >= 0 || constrain_state_may_end(s) || base_fail(err, BASE_FAILED, "a dead end"));
        if (id < 0) break;
        base_buffer_clear(&w->piece);
        token_bytes(w, (int32_t)id, &w->piece);
        ok = ok && constrain_state_feed(s, w->piece.data, w->piece.size, &used, err);
        if (ok && used != w->piece.size) ok = base_fail(err, BASE_FAILED, "a mask is wrong");
        base_buffer_add(text, w->piece.data, w->piece.size);
    }
    ok = ok && constrain_finisher_text(f, s, CONSTRAIN_NOTHING, 1 << 16, text, &found, err);
    if (ok && !found) ok = base_fail(err, BASE_FAILED, "no ending is found");
    constrain_state_free(s);
    return ok;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(int line, const char *name, const struct times *t)
{
    uint32_t cold = t->n / 10, n = t->n - cold;
    double *us = t->us + cold, sum = 0, worst_cold = 0;
    for (uint32_t i = 0; i < cold; i++)
        if (t->us[i] > worst_cold) worst_cold = t->us[i];
    for (uint32_t i = 0; i < n; i++) sum += us[i];
    qsort(us, n, sizeof *us, compare_times);
    if (n)
        fprintf(stderr,
                "%d %.40s: %u tokens, mean %.1f us, 99 %% %.1f us, worst %.1f us (cold %.1f)\n",
                line, name, n, sum / n, us[n - 1 - n / 100], us[n - 1], worst_cold);
}

static void run_line(struct walker *w, int number, char *line, uint32_t walks, uint32_t tokens)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer source = BASE_BUFFER_INIT, out = BASE_BUFFER_INIT;
    char *text = strchr(line, '\t'), byte;
    if (!text) return;
    *text++ = '\0';
    FILE *file = *text == '@' ? fopen(text + 1, "r") : NULL;
    for (; file && fread(&byte, 1, 1, file) == 1;) base_buffer_add(&source, &byte, 1);
    if (file) fclose(file);
    struct constraint *c = compile(line, source.data ? source.data : text, &err);
    struct constrain_masker *m = c ? constrain_masker_new(c, w->vocab, 64 << 20, &err) : NULL;
    struct constrain_finisher *f = m ? constrain_finisher_new(c, NULL, &err) : NULL;
    w->times.n = 0;
    for (uint32_t i = 0; f && i < walks; i++) {
        base_buffer_clear(&out);
        const bool ok = walk(w, c, m, f, tokens, &out, &err);
        struct base_buffer quoted = BASE_BUFFER_INIT;
        base_buffer_add_json(&quoted, out.size ? out.data : "", out.size);
        if (ok)
            printf("%d\t%s\n", number, quoted.data);
        else
            printf("%d\terror\t%s after %s\n", number, err.text, quoted.data);
        err = BASE_ERROR_INIT;
        base_buffer_free(&quoted);
    }
    if (!f) printf("%d\trefused\t%s\n", number, err.text);
    if (f) report(number, text, &w->times);
    constrain_finisher_free(f);
    constrain_masker_free(m);
    constraint_free(c);
    base_buffer_free(&source);
    base_buffer_free(&out);
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct walker w = {.times = {calloc(MAX_TIMES, sizeof(double)), 0}};
    char *line = NULL;
    size_t room = 0;
    if (argc != 5 || !open_vocab(&w, argv[1], &err)) {
        fprintf(stderr, "bench_walk MODEL.gguf|- WALKS TOKENS SEED < LINES: %s\n", err.text);
        return 2;
    }
    sample_random_seed(&w.random, strtoull(argv[4], NULL, 10));
    for (int number = 0; getline(&line, &room, stdin) > 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        run_line(&w, number, line, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
    }
    free(line);
    free(w.times.us);
    base_buffer_free(&w.piece);
    constrain_token_trie_free(w.vocab);
    support_tokens_free(&w.made);
    text_tokenizer_close(w.tokenizer);
    gguf_close(w.file);
    return 0;
}
