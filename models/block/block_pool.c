/* models/block/block_pool.c: what follows pooling, the choice of a row of a sequence's hidden
 * states: a classifier that scores it, or projections that make the embedding. See
 * models/block/blocks.h.
 *
 *     scores      u = cls x;  u = tanh(u), or GELU;  u = LN(u; cls.norm);  u = cls.output u
 *     embedding   u = dense_3 (dense_2 x)
 *
 * A part that the file lacks is left out. A decoder's scores are its probabilities of some answers
 * ("yes" and "no"), a softmax over the outputs. */
#include "models/block/blocks.h"

struct pool {
    uint32_t n_embd, n_cls, n_norm, n_classes; /* E; rows of cls; its norm; of cls.output */
    uint32_t n_out_in;                         /* columns of cls.output: n_cls, or E without cls */
    uint32_t n_dense_2, n_dense_3, n_dense_3_in;
    struct model_linear cls, out, dense_2, dense_3;
    struct model_norm norm;
};

#define AT(member) MODEL_AT(struct pool, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"cls",        MODEL_LINEAR, MODEL_OPTIONAL, AT(cls),     .inputs = AT(n_embd), .outputs = AT(n_cls)},
    {"cls.norm",   MODEL_NORM,   MODEL_OPTIONAL, AT(norm),    .inputs = AT(n_norm)},
    {"cls.output", MODEL_LINEAR, MODEL_OPTIONAL, AT(out),     .inputs = AT(n_out_in), .outputs = AT(n_classes)},
    {"dense_2",    MODEL_LINEAR, MODEL_OPTIONAL, AT(dense_2), .inputs = AT(n_embd), .outputs = AT(n_dense_2)},
    {"dense_3",    MODEL_LINEAR, MODEL_OPTIONAL, AT(dense_3), .inputs = AT(n_dense_3_in), .outputs = AT(n_dense_3)},
    {.name = NULL},
};
/* clang-format on */

/* Returns the rows of a matrix of the file that has `inputs` columns; 0: none. */
static uint32_t rows_of(const struct model_reader *r, const char *name, uint32_t inputs)
{
    const struct gguf_tensor *t = gguf_tensor_find(r->file, name);
    return t && t->ne[0] == inputs && t->ne[1] <= MODEL_MAX_DIM && t->ne[2] == 1
               ? (uint32_t)t->ne[1]
               : 0;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct pool *a = self;
    (void)l;
    a->n_embd = p->n_embd;
    a->n_cls = rows_of(r, "cls.weight", p->n_embd);
    a->n_out_in = a->n_cls ? a->n_cls : p->n_embd;
    a->n_norm = rows_of(r, "cls.norm.weight", a->n_out_in) ? a->n_out_in : 0;
    a->n_classes = rows_of(r, "cls.output.weight", a->n_out_in);
    a->n_dense_2 = rows_of(r, "dense_2.weight", p->n_embd);
    a->n_dense_3_in = a->n_dense_2 ? a->n_dense_2 : p->n_embd;
    a->n_dense_3 = rows_of(r, "dense_3.weight", a->n_dense_3_in);
    return true;
}

uint32_t model_pool_size(const struct model_params *p, bool rank)
{
    const struct pool *a = p->pool.self;
    if (rank) return a->n_classes ? a->n_classes : a->n_cls;
    return a->n_dense_3 ? a->n_dense_3 : a->n_dense_2 ? a->n_dense_2 : p->n_embd;
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct pool *a = self;
    const struct model_arch *arch = b->params->arch;
    if (!b->rank) {
        if (a->dense_2.weight) x = model_linear(b, &a->dense_2, x);
        return a->dense_3.weight ? model_linear(b, &a->dense_3, x) : x;
    }
    if (a->cls.weight)
        x = engine_unary(b->g, model_linear(b, &a->cls, x),
                         arch->pool.gelu ? ENGINE_GELU_ERF : ENGINE_TANH);
    if (a->norm.weight) x = model_norm_as(b, x, &a->norm, MODEL_LAYER_NORM);
    if (a->out.weight) x = model_linear(b, &a->out, x);
    return arch->encoder ? x : engine_soft_max(b->g, x, NULL, NULL, 1.0f, 0.0f);
}

MODEL_BLOCK(pool, "pool")
