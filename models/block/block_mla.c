/* models/block/block_mla.c: multi-head latent attention. See models/block/blocks.h.
 *
 * DeepSeek-V2 (2024): keys and values of all heads are products of one latent c [C] for each token;
 * the last R elements of a head are rotated, and all heads share the rotated part of the keys:
 *
 *     q = W_q x, or W_qb N(W_qa x)           heads of [N | R] elements
 *     c, p = W_kva x;  c = N(c)              [C], [R]; p and the R of q are rotated
 *     k_h = [W_kb_h c | p],  v_h = W_vb_h c  heads of N + R and DV
 *
 * If a file has W_kb and W_vb separately, W_kb is absorbed into the queries, and keys and values
 * are one head for all query heads: q_h' = [W_kb_h^T q_h | rotated q_h] attends to keys [c | p]
 * with the values c, and W_vb_h is applied to the result; the cache keeps C + R numbers per token.
 * If a file has both in one tensor, keys and values are computed and cached for each head. */
#include "models/block/blocks.h"
#include <math.h>

struct mla {
    uint32_t n_embd, n_head, d, dv;   /* E, H, N + R, DV */
    uint32_t n_latent, n_nope, n_rot; /* C, N, R */
    uint32_t n_q, n_q_optional;       /* H D; the first is 0 if queries have a latent too */
    uint32_t n_q_latent;              /* 0: queries have no latent */
    uint32_t n_q_heads, n_kv_a;       /* H D, C + R */
    uint32_t n_key_in, n_value_in;    /* N and C if the file has the two separately, else 0 */
    uint32_t n_both;                  /* H (N + DV) if they are one tensor, else 0 */
    uint32_t n_out;                   /* H DV */
    struct engine_rope rope;
    float scale;           /* factor of scores */
    struct model_linear q; /* or the next two, with a norm between them */
    struct model_linear q_a, q_b;
    struct model_norm q_a_norm, kv_a_norm;
    struct model_linear kv_a;
    struct engine_tensor *key, *value; /* [H][C][N], [H][DV][C]; or */
    struct model_linear both;          /* N, then DV rows per head */
    struct model_linear out;
};

#define AT(member) MODEL_AT(struct mla, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_q",         MODEL_LINEAR, MODEL_REQUIRED, AT(q),         .inputs = AT(n_embd),     .outputs = AT(n_q)},
    {"attn_q",         MODEL_LINEAR, MODEL_OPTIONAL, AT(q),         .inputs = AT(n_embd),     .outputs = AT(n_q_optional)},
    {"attn_q_a",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_a),       .inputs = AT(n_embd),     .outputs = AT(n_q_latent), .unless = AT(q)},
    {"attn_q_a_norm",  MODEL_NORM,   MODEL_REQUIRED, AT(q_a_norm),  .inputs = AT(n_q_latent), .unless = AT(q)},
    {"attn_q_b",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_b),       .inputs = AT(n_q_latent), .outputs = AT(n_q_heads), .unless = AT(q)},
    {"attn_kv_a_mqa",  MODEL_LINEAR, MODEL_REQUIRED, AT(kv_a),      .inputs = AT(n_embd),     .outputs = AT(n_kv_a)},
    {"attn_kv_a_norm", MODEL_NORM,   MODEL_REQUIRED, AT(kv_a_norm), .inputs = AT(n_latent)},
    {"attn_k_b",       MODEL_MATRIX, MODEL_REQUIRED, AT(key),       .inputs = AT(n_key_in),   .outputs = AT(n_latent), .depth = AT(n_head)},
    {"attn_v_b",       MODEL_MATRIX, MODEL_REQUIRED, AT(value),     .inputs = AT(n_value_in), .outputs = AT(dv),       .depth = AT(n_head)},
    {"attn_kv_b",      MODEL_LINEAR, MODEL_REQUIRED, AT(both),      .inputs = AT(n_latent),   .outputs = AT(n_both)},
    {"attn_output",    MODEL_LINEAR, MODEL_REQUIRED, AT(out),       .inputs = AT(n_out),      .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

/* ---- Keys ---- */

/* Reads the sizes of heads. A file with separate W_kb and W_vb (*apart) has keys ending in _mla for
 * these, because its key_length and value_length describe the one shared head. */
static bool read_heads(struct model_reader *r, const struct model_params *p, uint32_t layer,
                       struct mla *a, bool *apart)
{
    uint32_t d = 0, dv = 0;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, layer, 1, MODEL_MAX_HEADS,
                              &a->n_head) ||
        !model_read_u32(r, "attention.kv_lora_rank", MODEL_REQUIRED, 1, MODEL_MAX_DIM,
                        &a->n_latent) ||
        !model_read_u32(r, "attention.q_lora_rank", MODEL_OPTIONAL, 0, MODEL_MAX_DIM,
                        &a->n_q_latent) ||
        !model_read_u32(r, "attention.key_length_mla", MODEL_OPTIONAL, 0, MODEL_MAX_DIM, &d) ||
        !model_read_u32(r, "attention.value_length_mla", MODEL_OPTIONAL, 0, MODEL_MAX_DIM, &dv))
        return false;
    *apart = d > 0 && dv > 0;
    a->d = *apart ? d : p->n_embd / a->n_head;
    a->dv = *apart ? dv : p->n_embd / a->n_head;
    if (*apart) return true;
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d) ||
        !model_read_u32(r, "attention.value_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->dv))
        return false;
    if (a->d == 0 || a->dv == 0)
        return model_reader_fail(r, "attention.head_count", "%u heads of an embedding of %u",
                                 a->n_head, p->n_embd);
    return true;
}

/* YaRN's m(x) = 1 + 0.1 x ln(factor). */
static float magnitude(float x, float log_factor)
{
    return 1.0f + 0.1f * x * log_factor;
}

/* Sets the scale of scores and, with a log multiplier a, the magnitude M of the rotation: m(1) /
 * m(a) or 1. The op itself multiplies by m(1). The scale includes M. */
static bool read_scale(struct model_reader *r, const struct model_params *p, struct mla *a)
{
    const enum model_yarn_log kind = p->arch->attn.yarn_log;
    const float log_factor = -logf(a->rope.freq_scale);
    float multiplier = 0.0f;
    a->scale = 1.0f / sqrtf((float)a->d);
    if (kind == MODEL_YARN_LOG_NONE) return true;
    if (!model_read_f32(r, "rope.scaling.yarn_log_multiplier", MODEL_OPTIONAL, 0.0f, &multiplier))
        return false;
    multiplier /= 0.1f; /* files store 0.1 times the value */
    if (a->rope.ext_factor != 0.0f && log_factor > 0.0f && multiplier != 0.0f)
        a->rope.attn_factor /=
            magnitude(kind == MODEL_YARN_LOG_EQUAL ? 1.0f : multiplier, log_factor);
    const float s =
        a->rope.attn_factor * magnitude(1.0f, log_factor) * magnitude(multiplier, log_factor);
    a->scale *= s * s;
    return true;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct mla *a = self;
    bool apart, rotates;
    if (!read_heads(r, p, l->index, a, &apart) ||
        !model_read_rope(r, p, false, a->d, l->index, &a->rope, &rotates) || !read_scale(r, p, a))
        return false;
    a->n_embd = p->n_embd;
    a->n_rot = (uint32_t)a->rope.n_rot;
    a->n_nope = a->d - a->n_rot;
    if (apart && a->n_nope == 0)
        return model_reader_fail(r, "attention.key_length_mla", "all of its elements are rotated");
    if ((uint64_t)a->n_head * (a->d + a->dv) > INT32_MAX)
        return model_reader_fail(r, "attention.head_count", "%u heads are too many", a->n_head);
    a->n_q_heads = a->n_head * a->d;
    *(a->n_q_latent ? &a->n_q_optional : &a->n_q) = a->n_q_heads;
    a->n_kv_a = a->n_latent + a->n_rot;
    a->n_key_in = apart ? a->n_nope : 0;
    a->n_value_in = apart ? a->n_latent : 0;
    a->n_both = apart ? 0 : a->n_head * (a->n_nope + a->dv);
    a->n_out = a->n_head * a->dv;
    l->kv = apart ? (struct model_kv_shape){.n_head = 1, .size_k = a->n_kv_a, .size_v = a->n_latent}
                  : (struct model_kv_shape){.n_head = a->n_head, .size_k = a->d, .size_v = a->dv};
    if (p->n_head == 0) {
        p->n_head = a->n_head;
        p->n_head_kv = l->kv.n_head;
    }
    return true;
}

/* ---- Graph ---- */

/* Returns the last R elements of each row of x [T][n][size], rotated. */
static struct engine_tensor *rotated(const struct model_builder *b, const struct mla *a,
                                     struct engine_tensor *x)
{
    x = x ? engine_cols(b->g, x, x->ne[0] - a->n_rot, a->n_rot) : NULL;
    return engine_rope(b->g, x, b->positions, model_rope_factors(b, &a->rope), &a->rope);
}

/* Computes the queries [T][H][D] and the latents with the rotated part [T][1][C + R] of x
 * [T][E]. */
static void build_down(const struct model_builder *b, const struct mla *a, struct engine_tensor *x,
                       struct engine_tensor **q, struct engine_tensor **kv)
{
    const struct model_linear *first = a->q.weight ? &a->q : &a->q_a;
    const struct model_linear *const both[] = {first, &a->kv_a};
    const uint32_t size[] = {a->q.weight ? a->n_q_heads : a->n_q_latent, a->n_kv_a};
    struct engine_tensor *part[2];
    model_linears(b, NULL, both, size, 2, x, "q_kv", MODEL_IN_MIXER, part);
    *q = part[0];
    *kv = part[1];
    if (first == &a->q_a)
        *q = model_linear(b, &a->q_b, model_norm_as(b, *q, &a->q_a_norm, MODEL_RMS_NORM));
    *q = engine_reshape(b->g, *q, 3, (int64_t[]){a->d, a->n_head, b->n_tokens});
    *kv = engine_reshape(b->g, *kv, 3, (int64_t[]){a->n_kv_a, 1, b->n_tokens});
}

/* Multiplies x [T][H][k] by one matrix per head, w[H][n][k]: [T][H][n]. */
static struct engine_tensor *by_head(const struct model_builder *b, struct engine_tensor *w,
                                     struct engine_tensor *x)
{
    return model_swap_heads(b, model_linear_of(b, w, model_swap_heads(b, x)));
}

/* Builds attention with the latent as the one head of keys and values: [T][H * DV]. */
static struct engine_tensor *build_latent(struct model_builder *b, const struct mla *a,
                                          struct engine_tensor *q, struct engine_tensor *c,
                                          struct engine_tensor *p)
{
    const struct engine_attention how = {.scale = a->scale, .dv = (int)a->n_latent};
    struct engine_tensor *nope = by_head(b, a->key, engine_cols(b->g, q, 0, a->n_nope));
    q = model_named(b, engine_concat(b->g, nope, rotated(b, a, q), 0), "q");
    if (b->q_scale) q = engine_mul(b->g, q, b->q_scale);
    struct engine_tensor *k = model_named(b, engine_concat(b->g, c, p, 0), "k");
    struct engine_tensor *x = model_named(
        b, model_attend(b, b->state->kv.layer[b->kv_layer].kind, q, k, c, NULL, NULL, &how),
        "attention");
    x = engine_reshape(b->g, x, 3, (int64_t[]){a->n_latent, a->n_head, b->n_tokens});
    x = engine_cont(b->g, by_head(b, a->value, x));
    return engine_reshape(b->g, x, 2, (int64_t[]){a->n_out, b->n_tokens});
}

/* Builds attention with keys and values for each head: [T][H * DV]. */
static struct engine_tensor *build_heads(struct model_builder *b, const struct mla *a,
                                         struct engine_tensor *q, struct engine_tensor *c,
                                         struct engine_tensor *p)
{
    const struct engine_attention how = {.scale = a->scale, .dv = (int)a->dv};
    struct engine_tensor *both =
        engine_reshape(b->g, model_linear(b, &a->both, c), 3,
                       (int64_t[]){a->n_nope + a->dv, a->n_head, b->n_tokens});
    struct engine_tensor *pq = rotated(b, a, q), *k = engine_repeat(b->g, p, pq);
    if (a->n_nope) {
        pq = engine_concat(b->g, engine_cols(b->g, q, 0, a->n_nope), pq, 0);
        k = engine_concat(b->g, engine_cols(b->g, both, 0, a->n_nope), k, 0);
    }
    q = model_named(b, pq, "q");
    if (b->q_scale) q = engine_mul(b->g, q, b->q_scale);
    struct engine_tensor *v = engine_cols(b->g, both, a->n_nope, a->dv);
    return model_named(b,
                       model_attend(b, b->state->kv.layer[b->kv_layer].kind, q,
                                    model_named(b, k, "k"), v, NULL, NULL, &how),
                       "attention");
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct mla *a = self;
    struct engine_tensor *q, *kv;
    build_down(b, a, x, &q, &kv);
    struct engine_tensor *c =
        model_norm_as(b, engine_cols(b->g, kv, 0, a->n_latent), &a->kv_a_norm, MODEL_RMS_NORM);
    struct engine_tensor *p = rotated(b, a, kv);
    c = model_named(b, c, "latent");
    x = a->n_both ? build_heads(b, a, q, c, p) : build_latent(b, a, q, c, p);
    return model_named(b, model_linear(b, &a->out, x), "attn_out");
}

const struct model_block model_block_mla = {.name = "latent attention",
                                            .size = sizeof(struct mla),
                                            .read = read,
                                            .tensors = tensors,
                                            .build = build};
