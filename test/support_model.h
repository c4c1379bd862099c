/* test/support_model.h: whole models of random weights, written from a seed.
 *
 * The same options give the same bytes on every machine. Tensor names, metadata keys and shapes are
 * those of real files of the architecture, so any GGUF engine can load the result. */
#ifndef TEST_SUPPORT_MODEL_H
#define TEST_SUPPORT_MODEL_H

#include "gguf/gguf.h"
#include "sample/sample.h"

enum support_tokens {
    SUPPORT_TOKENS_BPE, /* "gpt2": 256 bytes, a few merges, three control tokens; >= 266 tokens */
    SUPPORT_TOKENS_SPM, /* "llama": unknown, begin, end, 256 bytes, letters, words; >= 317 tokens */
    SUPPORT_TOKENS_NONE /* "no_vocab": any vocabulary size */
};

/* How experts are stored: stacked, or as old files have them, one tensor each (ffn_up.0 ..), at
 * equal distances or with the tensors in reverse. All hold the same values. */
enum support_experts { SUPPORT_STACKED, SUPPORT_ONE_BY_ONE, SUPPORT_REVERSED };

struct support_model {
    const char *arch; /* a name of models/arch/ */
    uint64_t seed;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx;
    uint32_t window;   /* keys that windowed layers see; 0: no windows */
    uint32_t n_expert; /* 0: a plain feed-forward network */
    uint32_t n_expert_used;
    const struct quant_type *type;  /* of matrices (test/support_row.h) */
    const struct quant_type *finer; /* of the output and of half of attn_v and ffn_down; NULL: as
                                       the others. Q4_K with Q6_K is llama.cpp's Q4_K_M. */
    bool tied;                      /* the output product uses the embedding */
    bool fused_qkv;                 /* one tensor attn_qkv instead of three */
    bool biases;                    /* of Q, K and V */
    /* Words with spaces between them. Tensors that files of the architecture may lack, without
     * "blk.N.": "attn_output.bias rope_freqs.weight"; keys beside the usual, without "ARCH."
     * (those that have no such prefix begin with '!'); tensors of one layer, where which there are
     * and how many rows they have decides what the layer is: "blk.0.attn_gate.weight=4":
     * "attention.scale=0.25 rope.scaling.type=yarn attention.head_count_kv=2,1 flag=true". */
    const char *with, *keys;
    enum support_experts experts;
    const char *beside; /* names of further tensors of 8 numbers */
    enum support_tokens tokens;
    uint32_t distinct_rows; /* 0: every row is its own; else a matrix has this many different rows
                               in random order, because encoding a big model takes minutes */
};

/* The tiny models that tests compare with other implementations: at least one for each
 * architecture (support_model_tables.c). A field that is absent is support_model_of's. */
struct support_fixture {
    const char *name, *arch;
    uint32_t n_layer, n_head, n_head_kv, window, n_expert, n_expert_used;
    bool tied;
    bool mtp;                /* the logits that are compared are those of the layer that guesses */
    const char *with, *keys; /* as of support_model */
    double bar;              /* NMSE against the other implementation; 0: 1e-12 */
};
extern const struct support_fixture support_fixtures[]; /* ended by one without a name */

/* A tiny F32 model: 2 layers, 64 wide, 4 heads on 2, 300 BPE tokens, and what the fixture says. */
struct support_model support_model_of(const struct support_fixture *f);
/* That of the architecture's first fixture, or of the fixture of that name. */
struct support_model support_model_default(const char *arch);

/* Writes the model to `path`. BASE_USAGE for options that make no model. */
bool support_model_write(const struct support_model *m, const char *path, struct base_error *err);
/* The vocabulary's metadata alone (support_vocab.c). */
bool support_model_write_tokens(const struct support_model *m, struct gguf_writer *w,
                                struct base_error *err);

/* PCG32 with a stream of its own, which the weights and the ids of stored logits come from. */
struct sample_random support_model_random(uint64_t seed);

#endif
