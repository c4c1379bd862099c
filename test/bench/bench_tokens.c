/* test/bench/bench_tokens.c: prints the ids of many texts, for comparison with another tokenizer.
 *
 *     bench_tokens FLAGS MODEL... < TEXTS
 *
 * TEXTS: each text as its size (4 bytes, little-endian) and its bytes. FLAGS: those of text_encode
 * as a number. Writes one line per model and text: its ids; prints the time of opening to standard
 * error. */
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const struct base_error *err)
{
    char line[1024];
    fprintf(stderr, "bench_tokens: %s\n", base_error_format(err, line, sizeof line));
    return err->code;
}

static void read_all(struct base_buffer *b)
{
    char part[65536];
    size_t n;
    while ((n = fread(part, 1, sizeof part, stdin)) > 0) base_buffer_add(b, part, n);
}

static int encode_all(const struct text_tokenizer *t, const struct base_buffer *texts,
                      unsigned flags)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    for (size_t at = 0; at + 4 <= texts->size && err.code == BASE_OK;) {
        uint32_t size;
        memcpy(&size, texts->data + at, 4);
        at += 4;
        if (size > texts->size - at) break;
        ids.count = 0;
        text_encode(t, texts->data + at, size, flags, &ids, &err);
        for (size_t i = 0; i < ids.count; i++) printf("%s%d", i ? " " : "", (int)ids.id[i]);
        printf("\n");
        at += size;
    }
    text_ids_free(&ids);
    return err.code == BASE_OK ? 0 : fail(&err);
}

static int run_model(const char *path, const struct base_buffer *texts, unsigned flags)
{
    struct base_error err = BASE_ERROR_INIT;
    double start = now_ms();
    struct gguf_file *file = gguf_open(path, &err);
    double opened = now_ms();
    struct text_tokenizer *t = file ? text_tokenizer_open(file, &err) : NULL;
    double ready = now_ms();
    int status = t ? 0 : fail(&err);
    if (t) {
        status = encode_all(t, texts, flags);
        fprintf(stderr, "%s: file %.2f ms, tokenizer %.2f ms, texts %.2f ms\n", path,
                opened - start, ready - opened, now_ms() - ready);
    }
    text_tokenizer_close(t);
    gguf_close(file);
    return status;
}

int main(int argc, char **argv)
{
    struct base_buffer texts = BASE_BUFFER_INIT;
    int status = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_tokens FLAGS MODEL... < TEXTS\n");
        return 2;
    }
    read_all(&texts);
    for (int i = 2; i < argc && status == 0; i++)
        status = run_model(argv[i], &texts, (unsigned)strtoul(argv[1], NULL, 10));
    base_buffer_free(&texts);
    return status;
}
