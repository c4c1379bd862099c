/* engine/op_params.h: the parameters of ops: a struct for each op that has some.
 *
 * A builder (engine/graph.h) fills the member of its op in the node's `params`; shape rules,
 * rewrites and every device read it there. */
#pragma once

#include "engine/unary.h"
#include "quant/quant.h"
#include <stdbool.h>

enum engine_rope_kind {
    ENGINE_ROPE_NORMAL,     /* pairs (2i, 2i + 1) */
    ENGINE_ROPE_NEOX,       /* pairs (i, i + n_rot / 2) */
    ENGINE_ROPE_MULTI,      /* NEOX pairs; sections of pairs use different rows of positions */
    ENGINE_ROPE_INTERLEAVED /* as MULTI, but pairs use the first three rows cyclically until a row's
                               section is exhausted, then the fourth (Qwen3-VL) */
};
struct engine_rope {
    enum engine_rope_kind kind;
    int n_rot; /* leading elements of each head that are rotated */
    float freq_base;
    float freq_scale;           /* 1 / linear scaling factor */
    int n_ctx_orig;             /* YaRN: the original training context */
    float ext_factor;           /* YaRN: 0 is off */
    float attn_factor;          /* YaRN: magnitude; 1 */
    float beta_fast, beta_slow; /* YaRN: 32, 1 */
    int section[4];             /* MULTI, INTERLEAVED */
    int inverse;                /* 1: rotates back, otherwise 0 */
};

static inline bool engine_rope_has_sections(const struct engine_rope *rope)
{
    return rope->kind == ENGINE_ROPE_MULTI || rope->kind == ENGINE_ROPE_INTERLEAVED;
}

/* What a row of an int16-quantized KV cache is (engine/graph.h). */
enum engine_kv_q16 { ENGINE_KV_Q16_KEYS, ENGINE_KV_Q16_VALUES };

struct engine_attention {
    float scale;     /* of q . k */
    float softcap;   /* 0: off; otherwise cap * tanh(s / cap) */
    int dv;          /* elements of a value in an int16-quantized cache */
    float max_alibi; /* 0: off; otherwise the exponent of ALiBi's largest slope */
};

struct engine_choose_keys {
    int n_used;  /* blocks that are chosen */
    int block;   /* consecutive positions, from a multiple of this on, that are chosen together */
    int n_local; /* the last blocks of a range, which are chosen in any case */
    int stride;  /* added to the slots of list l: l times this */
    int n_near;  /* maximum of near positions, which follow the chosen ones; 0: there are none */
    int n_each;  /* near positions that a position of the range stands for; 0: none */
};

struct engine_compress_keys {
    int ratio, size;        /* positions of a block; D */
    int value_at, score_at; /* the columns of a row where its values and its scores begin; score_at
                               -1: rows have no scores */
    bool overlaps;          /* a block's key is made of its own positions and those before it */
};

struct engine_sinkhorn {
    int iterations;
    float eps;
};

struct engine_glu_clamp {
    enum engine_unary f;
    float limit, offset;
};

struct engine_scale {
    float scale, bias;
};

struct engine_clamp {
    float low, high;
};

struct engine_norm {
    float eps;
};

struct engine_soft_max {
    float scale, max_bias;
};

struct engine_choose_experts {
    int n_used, n_groups, n_groups_used;
    int divisor; /* of the ids: the experts of a chunk */
};

struct engine_expert_weights {
    bool softmax, normalize;
    float scale;
};

struct engine_set_kv_q16 {
    enum engine_kv_q16 what;
    enum quant_id as;
};

union engine_params {
    enum quant_id cast; /* the type */
    int concat;         /* the dimension */
    int conv_ahead;     /* inputs after a token that ssm_conv reads */
    struct engine_scale scale;
    struct engine_clamp clamp;
    float softcap;           /* the bound */
    float low_rank;          /* factor of the scales */
    enum engine_unary unary; /* of unary, glu, mul_mat_glu, mul_mat_id_glu */
    struct engine_glu_clamp glu_clamp;
    struct engine_norm norm; /* of norm, rms_norm, l2_norm */
    struct engine_soft_max soft_max;
    struct engine_rope rope; /* of rope_table, rope */
    struct engine_choose_experts choose_experts;
    struct engine_expert_weights expert_weights;
    struct engine_set_kv_q16 set_kv_q16;
    struct engine_attention attention;
    struct engine_choose_keys choose_keys;
    struct engine_compress_keys compress_keys;
    struct engine_sinkhorn sinkhorn;
};
