/* test/support_model.h: whole models of random weights, written from a seed.
 *
 * The same options give the same bytes on every machine. Tensor names, metadata keys and shapes are
 * those of real files of the architecture, so any GGUF engine can load the result. */
#ifndef TEST_SUPPORT_MODEL_H
#define TEST_SUPPORT_MODEL_H

#include "gguf/gguf.h"

enum support_tokens {
    SUPPORT_TOKENS_BPE, /* "gpt2": 256 bytes, a few merges, three control tokens; >= 266 tokens */
    SUPPORT_TOKENS_SPM, /* "llama": unknown, begin, end, 256 bytes, letters, words; >= 317 tokens */
    SUPPORT_TOKENS_NONE /* "no_vocab": any vocabulary size */
};

struct support_model {
    const char *arch; /* the name of a row of models/arch/arch.c */
    uint64_t seed;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx;
    uint32_t window;   /* gemma3: keys that windowed layers see; 0: no windows */
    uint32_t n_expert; /* llama: 0 is a plain feed-forward network */
    uint32_t n_expert_used;
    const struct quant_type *type;  /* of matrices (test/support_row.h) */
    const struct quant_type *finer; /* of the output and of half of attn_v and ffn_down; NULL: as
                                       the others. Q4_K with Q6_K is llama.cpp's Q4_K_M. */
    bool tied;                      /* the output product uses the embedding */
    bool fused_qkv;                 /* one tensor attn_qkv instead of three */
    bool biases;                    /* of Q, K and V */
    enum support_tokens tokens;
    uint32_t distinct_rows; /* 0: every row is its own; else a matrix has this many different rows
                               in random order, because encoding a big model takes minutes */
};

/* A tiny F32 model: 2 layers, 64 wide, 4 heads on 2, 300 BPE tokens; gemma3 has 7 layers with a
 * window of 8, so that both kinds of layers occur; qwen2 has biases; gemma3 is tied. */
struct support_model support_model_default(const char *arch);

/* Writes the model to `path`. BASE_USAGE for options that make no model. */
bool support_model_write(const struct support_model *m, const char *path, struct base_error *err);

/* PCG32 (O'Neill 2014; public domain algorithm), for tests that need numbers from a seed. */
struct support_random {
    uint64_t state;
};
struct support_random support_random_new(uint64_t seed);
uint32_t support_random_u32(struct support_random *r);
/* Mean 0, standard deviation 1, nearly normal: four uniform numbers added; exact on any machine. */
float support_random_normal(struct support_random *r);

#endif
