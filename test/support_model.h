/* test/support_model.h: writes complete models with random weights from a seed. The same options
 * write the same bytes on every machine. Tensor names, metadata keys and shapes are those of real
 * files of the architecture, so any GGUF engine can load the result. */
#pragma once

#include "gguf/gguf.h"
#include "sample/sample.h"

enum support_tokens {
    SUPPORT_TOKENS_BPE, /* "gpt2": 256 bytes, a few merges, three control tokens; >= 266 tokens */
    SUPPORT_TOKENS_SPM, /* "llama": unknown, begin, end, 256 bytes, letters, words; >= 317 tokens */
    SUPPORT_TOKENS_NONE /* "no_vocab": any vocabulary size */
};

/* How experts are stored: stacked, or as in old files one tensor each (ffn_up.0 ..), at equal
 * distances or in reverse order. The values are the same. */
enum support_experts { SUPPORT_STACKED, SUPPORT_ONE_BY_ONE, SUPPORT_REVERSED };

struct support_model {
    const char *arch; /* a name of models/arch/ */
    uint64_t seed;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx;
    uint32_t window;   /* keys in the range of windowed layers; 0: no windows */
    uint32_t n_expert; /* 0: a plain feed-forward network */
    uint32_t n_expert_used;
    const struct quant_type *type;        /* of matrices (test/support_row.h) */
    const struct quant_type *finer;       /* of the output and of half of attn_v and ffn_down; NULL:
                                             `type`. Q4_K with Q6_K is llama.cpp's Q4_K_M. */
    const struct quant_type *expert_type; /* of stacked experts; NULL: as the others */
    bool tied;                            /* the output product uses the embedding */
    bool fused_qkv;                       /* one tensor attn_qkv instead of three */
    bool biases;                          /* of Q, K and V */
    /* Lists of words, separated by spaces. with: optional tensors, without "blk.N.", such as
     * "attn_output.bias rope_freqs.weight"; tensors of one layer with their number of rows, if
     * these determine the kind of the layer: "blk.0.attn_gate.weight=4", and others whose number
     * of rows no key has: "token_types.weight=2". keys: further keys,
     * without "ARCH." (keys without this prefix begin with '!'), such as "attention.scale=0.25
     * rope.scaling.type=yarn attention.head_count_kv=2,1 flag=true". */
    const char *with, *keys;
    /* List of TENSOR.bias=NUMBER, added to all its values in every layer, or
     * blk.N.TENSOR.bias=NUMBER. */
    const char *shift;
    enum support_experts experts;
    const char *beside; /* names of further tensors of 8 numbers */
    enum support_tokens tokens;
    uint32_t distinct_rows; /* 0: all rows differ; otherwise a matrix has this many different rows
                               in random order, because encoding a big model takes minutes */
};

/* The tiny models that tests compare with other implementations: at least one for each architecture
 * (support_model_tables.c). Absent fields have the defaults of support_model_of. */
struct support_fixture {
    const char *name, *arch;
    uint32_t n_layer, n_head, n_head_kv, window, n_expert, n_expert_used;
    uint32_t n_vocab, n_embd; /* 0: 300, 64 */
    bool tied;
    bool mtp;                /* compares the logits of the MTP layer */
    bool predicts;           /* the predictors of zeros are used */
    const char *with, *keys; /* as in struct support_model */
    double bar;              /* NMSE against the other implementation; 0: 1e-12 */
    const char *base;        /* a drafter's: the fixture that it drafts for */
};
extern const struct support_fixture support_fixtures[]; /* the last one has no name */
extern const struct support_fixture support_drafters[]; /* likewise; no models by themselves */

/* A tiny F32 model: 2 layers, 64 wide, 4 heads on 2, 300 BPE tokens, modified by the fixture. */
struct support_model support_model_of(const struct support_fixture *f);
/* The model of the architecture's first fixture, or of the fixture of that name. */
struct support_model support_model_default(const char *arch);

/* Writes the model to `path`. BASE_USAGE for invalid options. */
bool support_model_write(const struct support_model *m, const char *path, struct base_error *err);
/* Writes only the vocabulary's metadata (support_model_vocab.c). */
bool support_model_write_tokens(const struct support_model *m, struct gguf_writer *w,
                                struct base_error *err);

/* PCG32 with the stream that generates the weights and the ids of stored logits. */
struct sample_random support_model_random(uint64_t seed);
