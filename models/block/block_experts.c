/* models/block/block_experts.c: a mixture of experts. See models/block/blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

struct experts {
    uint32_t n_embd, n_ff, n_expert, n_used; /* E, F of an expert, X, U */
    struct model_linear router;              /* X x E */
    struct model_linear gate, up;            /* X of F x E */
    struct model_linear down;                /* X of E x F */
};

#define AT(member) MODEL_AT(struct experts, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ffn_gate_inp", MODEL_LINEAR, MODEL_REQUIRED, AT(router), .inputs = AT(n_embd), .outputs = AT(n_expert)},
    {"ffn_gate_exps", MODEL_STACK, MODEL_REQUIRED, AT(gate), .inputs = AT(n_embd), .outputs = AT(n_ff), .depth = AT(n_expert)},
    {"ffn_up_exps", MODEL_STACK, MODEL_REQUIRED, AT(up), .inputs = AT(n_embd), .outputs = AT(n_ff), .depth = AT(n_expert)},
    {"ffn_down_exps", MODEL_STACK, MODEL_REQUIRED, AT(down), .inputs = AT(n_ff), .outputs = AT(n_embd), .depth = AT(n_expert)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct experts *e = self;
    e->n_embd = p->n_embd;
    e->n_expert = p->n_expert;
    e->n_used = p->n_expert_used;
    return model_read_layer_u32(r, "feed_forward_length", MODEL_REQUIRED, l->index, 1,
                                MODEL_MAX_DIM, &e->n_ff);
}

/* Row (t, u) of x [n][1 or U][..] times expert ids[t][u], as [n][U][outputs]. */
static struct engine_tensor *linear_id(const struct model_builder *b, const struct model_linear *l,
                                       struct engine_tensor *x, struct engine_tensor *ids)
{
    x = engine_mul_mat_id(b->g, l->weight, x, ids);
    if (!l->scale || !ids) return x;
    /* The scale of each chosen expert: rows of one number by the flat list of ids. */
    const int64_t used = ids->ne[0], n = ids->ne[1];
    struct engine_tensor *list =
        engine_reshape(b->g, engine_cont(b->g, ids), 1, (int64_t[]){used * n});
    struct engine_tensor *scale =
        engine_reshape(b->g, l->scale, 2, (int64_t[]){1, l->scale->ne[0]});
    scale = engine_get_rows(b->g, scale, list);
    return engine_mul(b->g, x, engine_reshape(b->g, scale, 3, (int64_t[]){1, used, n}));
}

/* x [n][E] through the U experts that the router chooses for each row: their outputs, weighted by
 * the router's probabilities normalized over the chosen (Mixtral: Jiang et al. 2024). */
static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct experts *e = self;
    const int64_t n = x ? x->ne[1] : 0, used = e->n_used, n_embd = e->n_embd;
    struct engine_tensor *probs =
        engine_soft_max(b->g, model_linear(b, &e->router, x), NULL, NULL, 1.0f, 0.0f);
    struct engine_tensor *ids = engine_top_k(b->g, model_named(b, probs, "router"), (int)used);
    probs = engine_reshape(b->g, probs, 3, (int64_t[]){1, e->n_expert, n});
    struct engine_tensor *share = engine_get_rows(b->g, probs, ids); /* [n][U][1] */
    share = engine_reshape(b->g, share, 2, (int64_t[]){used, n});
    /* The sum is kept above the smallest normal half-precision number, as in training. */
    struct engine_tensor *sum =
        engine_clamp(b->g, engine_sum_rows(b->g, share), 0x1p-14f, INFINITY);
    share = engine_div(b->g, share, sum);
    share = engine_reshape(b->g, share, 3, (int64_t[]){1, used, n});

    x = engine_reshape(b->g, x, 3, (int64_t[]){n_embd, 1, n});
    struct engine_tensor *gate = linear_id(b, &e->gate, x, ids);
    struct engine_tensor *up = linear_id(b, &e->up, x, ids);
    x = engine_glu(b->g, gate, up, b->params->arch->ffn.act); /* [n][U][F] */
    x = engine_mul(b->g, linear_id(b, &e->down, x, ids), share);
    struct engine_tensor *total = NULL;
    for (int64_t u = 0; x && u < used; u++) {
        struct engine_tensor *one = engine_view(b->g, x, 2, (int64_t[]){n_embd, n},
                                                (int64_t[]){x->nb[0], x->nb[2]}, u * x->nb[1]);
        total = total ? engine_add(b->g, total, one) : one;
    }
    return model_named(b, total, "ffn_out");
}

const struct model_block model_block_experts = {.name = "experts",
                                                .size = sizeof(struct experts),
                                                .read = read,
                                                .tensors = tensors,
                                                .build = build};
