/* models/arch/arch.h: what an architecture is: a row of data, an enum for each axis of variation.
 *
 * A row says how an architecture differs from llama: every field that is absent (0) is llama's. An
 * architecture of known blocks is one row in a *_tables.c of this folder; rows are read by blocks
 * and builders, which test fields and never names. docs/adding-a-model.md shows an addition. */
#ifndef MODELS_ARCH_ARCH_H
#define MODELS_ARCH_ARCH_H

#include "engine/graph.h"
#include "gguf/gguf.h"

/* ---- The layer plan: which blocks a layer is made of ---- */

/* Blocks by number: models/block/blocks.c has the table of their rows. */
enum model_block_id {
    MODEL_ATTENTION,
    MODEL_FFN,
    MODEL_EXPERTS,
    MODEL_BLOCK_COUNT,
    MODEL_NOTHING = MODEL_BLOCK_COUNT /* the layer has no such part */
};

enum model_plan_rule {
    MODEL_PLAN_SAME,    /* every layer has `mixer` */
    MODEL_PLAN_KV_HEADS /* layers of attention.head_count_kv 0 have `recurrent`, others `mixer` */
};

struct model_plan {
    enum model_plan_rule rule;
    enum model_block_id mixer, recurrent;
};

/* ---- Norms and residuals ---- */

enum model_norm_kind {
    MODEL_RMS_NORM,         /* x / sqrt(mean(x^2) + eps) * weight (+ bias where the file has one) */
    MODEL_LAYER_NORM,       /* (x - mean) / sqrt(variance + eps) * weight (+ bias) */
    MODEL_LAYER_NORM_PLAIN, /* the same without weights: the file has no tensors of norms */
    MODEL_RMS_NORM_PLAIN
};

/* x: the layer's input; m, f: mixer and feed-forward network; N: norms with weights of their own.
 */
enum model_residual {
    MODEL_PRE_NORM, /* x += m(N x); x += f(N x) */
    MODEL_SANDWICH, /* x += N m(N x); x += N f(N x) */
    MODEL_POST_NORM /* x += N m(x); x += N f(x) */
};

/* ---- Attention ---- */

enum model_rope_kind { MODEL_ROPE_NORMAL, MODEL_ROPE_NEOX, MODEL_ROPE_NONE };

enum model_qk_norm {
    MODEL_QK_NORM_NONE,
    MODEL_QK_NORM_HEAD /* over each head, before RoPE */
};

/* What scores are multiplied by: 1 / sqrt(D), or 1 / sqrt(E / H). */
enum model_score_scale { MODEL_SCALE_BY_HEAD, MODEL_SCALE_BY_EMBD };

enum model_window_rule { MODEL_WINDOW_NONE, MODEL_WINDOW_PERIOD };

/* How windowed layers rotate. */
enum model_window_rope {
    MODEL_WINDOW_ROPE_SAME, /* as the others */
    MODEL_WINDOW_ROPE_OWN   /* base of rope.freq_base_swa, 10000 by default; never scaled */
};

/* Sliding windows: which layers see the last attention.sliding_window positions only. */
struct model_window {
    enum model_window_rule rule; /* of each `period` layers the last sees all */
    uint32_t period;             /* where the file has no attention.sliding_window_pattern */
    enum model_window_rope rope;
};

struct model_attention_row {
    enum model_rope_kind rope;
    enum model_qk_norm qk_norm;
    enum model_score_scale scale;
    struct model_window window;
};

/* ---- Feed-forward networks ---- */

struct model_ffn_row {
    enum engine_unary act;
};

struct model_experts_row {
    bool allowed; /* a file with expert_count > 0 is a mixture */
};

/* ---- Both ends ---- */

enum model_embd_scale { MODEL_EMBD_PLAIN, MODEL_EMBD_SQRT /* times sqrt(E) */ };

struct model_ends_row {
    enum model_embd_scale embd_scale;
};

/* ---- The row ---- */

struct model_arch;

/* Published models that differ from their architecture in what no key of their files says: known by
 * their sizes (0: any), they take the row `as` instead. */
struct model_known {
    uint32_t min_layers, max_layers, n_vocab;
    const struct model_arch *as; /* NULL: no more */
};

/* A tensor that this architecture spells otherwise: full names without "blk.N.". */
struct model_alias {
    const char *usual, *here; /* NULL: no more */
};

enum { MODEL_MAX_KNOWN = 3, MODEL_MAX_ALIASES = 8, MODEL_MAX_NAMES = 4 };

struct model_arch {
    const char *name[MODEL_MAX_NAMES]; /* general.architecture, and the prefix of its keys */
    struct model_plan plan;
    enum model_norm_kind norm;
    enum model_residual residual;
    struct model_attention_row attn;
    struct model_ffn_row ffn;
    struct model_experts_row experts;
    struct model_ends_row ends;
    struct model_known known[MODEL_MAX_KNOWN];
    struct model_alias alias[MODEL_MAX_ALIASES];
};

/* Name i of all the rows' names, its row in *row (may be NULL); NULL past the last one. */
const char *model_arch_name(size_t i, const struct model_arch **row);
/* The row of a name; *spelled is the table's copy of the name. NULL if there is none. */
const struct model_arch *model_arch_find(struct gguf_str name, const char **spelled);
/* The row that a model of these sizes takes: `arch`, or what its table of known sizes says. */
const struct model_arch *model_arch_known(const struct model_arch *arch, uint32_t n_layer,
                                          uint32_t n_vocab);

#endif
