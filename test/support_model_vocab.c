/* test/support_model_vocab.c: see support_model_write_tokens in test/support_model.h. */
#include "base/buffer.h"
#include "base/utf8.h"
#include "test/support_gguf.h"
#include "test/support_model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct token_list {
    struct base_buffer text;
    uint64_t *start; /* [n_vocab + 1], into text */
    struct gguf_str *piece;
    float *score;
    int32_t *kind;
    uint32_t count, room;
};

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6 };

static void add_token(struct token_list *list, const char *text, size_t size, int kind)
{
    if (list->count < list->room) {
        list->start[list->count] = list->text.size;
        list->kind[list->count] = kind;
        list->score[list->count] = kind == NORMAL ? -(float)list->count : 0.0f;
        base_buffer_add(&list->text, text, size);
    }
    list->count++; /* also counts tokens beyond the room, so that the caller can report the number
                    */
}

static void add_word(struct token_list *list, const char *text, int kind)
{
    add_token(list, text, strlen(text), kind);
}

/* GPT-2 represents bytes by printable characters: other bytes map to U+0100 and above. */
static void add_byte_letters(struct token_list *list)
{
    int32_t moved = 256;
    for (int32_t byte = 0; byte < 256; byte++) {
        bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        char utf8[4];
        size_t size = base_utf8_encode(printable ? byte : moved++, utf8);
        add_token(list, utf8, size, NORMAL);
    }
}

/* U+0120 represents a space in GPT-2's alphabet. */
static const char *const merges[] = {"t h",  "i n",        "e r",         "a n",
                                     "th e", "\xc4\xa0 a", "\xc4\xa0 the"};
enum { MERGES = sizeof merges / sizeof *merges };

static uint32_t add_bpe(struct token_list *list)
{
    add_byte_letters(list);
    for (int i = 0; i < MERGES; i++) {
        char joined[16];
        const char *space = strchr(merges[i], ' ');
        snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        add_word(list, joined, NORMAL);
    }
    uint32_t first_control = list->count;
    add_word(list, "<|endoftext|>", CONTROL);
    add_word(list, "<|im_start|>", CONTROL);
    add_word(list, "<|im_end|>", CONTROL);
    return first_control;
}

static void add_spm(struct token_list *list)
{
    static const char *const words[] = {"\xe2\x96\x81", "th", "the", "\xe2\x96\x81the", "in"};
    char text[8];
    add_word(list, "<unk>", UNKNOWN);
    add_word(list, "<s>", CONTROL);
    add_word(list, "</s>", CONTROL);
    for (int byte = 0; byte < 256; byte++) {
        snprintf(text, sizeof text, "<0x%02X>", byte);
        add_word(list, text, BYTE);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(list, words[i], NORMAL);
    for (char c = 'a'; c <= 'z'; c++) add_token(list, &c, 1, NORMAL);
    for (char c = 'A'; c <= 'Z'; c++) add_token(list, &c, 1, NORMAL);
}

static void write_token_ids(struct gguf_writer *w, uint32_t bos, uint32_t eos)
{
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", bos);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", eos);
    gguf_writer_u32(w, "tokenizer.ggml.padding_token_id", bos);
}

static void write_bpe_keys(struct gguf_writer *w, uint32_t first_control)
{
    struct gguf_str items[MERGES];
    for (int i = 0; i < MERGES; i++) {
        items[i] = (struct gguf_str){.data = merges[i], .size = strlen(merges[i])};
    }
    gguf_writer_str(w, "tokenizer.ggml.model", "gpt2", 4);
    gguf_writer_str(w, "tokenizer.ggml.pre", "gpt-2", 5);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", items, MERGES);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    write_token_ids(w, first_control, first_control + 2);
}

static void write_spm_keys(struct gguf_writer *w, const struct token_list *list)
{
    gguf_writer_str(w, "tokenizer.ggml.model", "llama", 5);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, list->score, list->room);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    write_token_ids(w, 1, 2);
}

static bool fill_tokens(struct token_list *list, const struct support_model *m,
                        struct gguf_writer *w, struct base_error *err)
{
    bool bpe = m->tokens == SUPPORT_TOKENS_BPE;
    uint32_t first_control = 0;
    if (bpe) {
        first_control = add_bpe(list);
    } else {
        add_spm(list);
    }
    if (list->count > list->room) {
        return base_fail(err, BASE_USAGE, "this vocabulary needs %u tokens at least", list->count);
    }
    while (list->count < list->room) {
        char text[32];
        snprintf(text, sizeof text, "<unused%u>", list->count);
        add_word(list, text, UNUSED);
    }
    list->start[list->count] = list->text.size;
    for (uint32_t i = 0; i < list->count; i++) {
        list->piece[i] = (struct gguf_str){.data = list->text.data + list->start[i],
                                           .size = list->start[i + 1] - list->start[i]};
    }
    if (list->text.failed) return base_fail(err, BASE_NO_MEMORY, "no memory for the vocabulary");
    gguf_writer_str_array(w, "tokenizer.ggml.tokens", list->piece, list->count);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, list->kind, list->count);
    if (bpe) {
        write_bpe_keys(w, first_control);
    } else {
        write_spm_keys(w, list);
    }
    return true;
}

bool support_model_write_tokens(const struct support_model *m, struct gguf_writer *w,
                                struct base_error *err)
{
    if (m->tokens == SUPPORT_TOKENS_NONE) {
        gguf_writer_str(w, "tokenizer.ggml.model", "no_vocab", 8);
        return true;
    }
    struct token_list list = {.text = BASE_BUFFER_INIT, .room = m->n_vocab};
    list.start = calloc(m->n_vocab + (size_t)1, sizeof *list.start);
    list.piece = calloc(m->n_vocab, sizeof *list.piece);
    list.score = calloc(m->n_vocab, sizeof *list.score);
    list.kind = calloc(m->n_vocab, sizeof *list.kind);
    bool done = list.start && list.piece && list.score && list.kind;
    done = done ? fill_tokens(&list, m, w, err)
                : base_fail(err, BASE_NO_MEMORY, "no memory for the vocabulary");
    free(list.start);
    free(list.piece);
    free(list.score);
    free(list.kind);
    base_buffer_free(&list.text);
    return done;
}
