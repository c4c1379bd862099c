/* models/block/block_ffn.c: the feed-forward network. See models/block/blocks.h. */
#include "base/elementary.h"
#include "models/block/blocks.h"
#include <math.h>
#include <string.h>

struct ffn {
    enum model_ffn_form form;
    enum engine_unary act;
    bool sparse; /* only the largest gate values are used; never with FUSED */
    uint32_t n_embd, n_ff;
    uint32_t zeros;                   /* 1 if many inputs of down are zero */
    uint32_t n_gate, n_up;            /* rows; n_gate: 0 without a gate or if up has both */
    uint32_t n_down, n_down_t;        /* F and 0; 0 and F if the file has down transposed */
    uint32_t n_rank, n_predicted;     /* of the predictor, and F; 0: none */
    struct model_linear gate, up;     /* F x E */
    struct model_linear fc1, fc2;     /* the predictor: rank x E, F x rank */
    struct model_norm sub_norm;       /* applied before down */
    struct engine_tensor *act_scales; /* [F]: divisors of the activation's output; or NULL */
    struct model_linear down, down_t; /* E x F */
    struct model_parts gate_parts, up_parts, down_parts;
    float alpha_p, alpha_n, beta; /* parameters of xIELU */
    float threshold;              /* rows with a lower score of the predictor are zero */
    float clamp;                  /* bound of gated units; 0: none */
    uint32_t n_lora, n_slots;     /* of adapters that ids choose: rank, number and one; or 0 */
    struct model_switched switched[2], switched_down; /* of gate and up; of down */
};

#define AT(member) MODEL_AT(struct ffn, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ffn_gate",     MODEL_LINEAR, MODEL_REQUIRED, AT(gate),     .inputs = AT(n_embd), .outputs = AT(n_gate), .parts = AT(gate_parts), .cut = MODEL_CUT_HOT},
    {"ffn_up",       MODEL_LINEAR, MODEL_REQUIRED, AT(up),       .inputs = AT(n_embd), .outputs = AT(n_up), .parts = AT(up_parts), .cut = MODEL_CUT_HOT},
    {"ffn_act_scales", MODEL_VECTOR, MODEL_OPTIONAL, AT(act_scales), .inputs = AT(n_ff)},
    {"ffn_sub_norm", MODEL_NORM,   MODEL_OPTIONAL, AT(sub_norm), .inputs = AT(n_ff)},
    {"ffn_down",     MODEL_LINEAR, MODEL_REQUIRED, AT(down),     .inputs = AT(n_down), .outputs = AT(n_embd), .zeros = AT(zeros), .parts = AT(down_parts), .cut = MODEL_CUT_SHARE},
    {"ffn_down_t",   MODEL_TRANSPOSED, MODEL_REQUIRED, AT(down_t), .inputs = AT(n_down_t), .outputs = AT(n_embd), .parts = AT(down_parts)},
    {"fc1",          MODEL_LINEAR, MODEL_REQUIRED, AT(fc1),      .inputs = AT(n_embd), .outputs = AT(n_rank)},
    {"fc2",          MODEL_LINEAR, MODEL_REQUIRED, AT(fc2),      .inputs = AT(n_rank), .outputs = AT(n_predicted)},
    {"ffn_gate_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched[0].a), .inputs = AT(n_embd), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"ffn_gate_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched[0].b), .inputs = AT(n_lora), .outputs = AT(n_ff), .depth = AT(n_slots)},
    {"ffn_up_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched[1].a), .inputs = AT(n_embd), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"ffn_up_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched[1].b), .inputs = AT(n_lora), .outputs = AT(n_ff), .depth = AT(n_slots)},
    {"ffn_down_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched_down.a), .inputs = AT(n_ff), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"ffn_down_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched_down.b), .inputs = AT(n_lora), .outputs = AT(n_embd), .depth = AT(n_slots)},
    {.name = NULL},
};
/* clang-format on */

/* log(1 + e^x); the quotient repairs the rounding of the sum. */
static float softplus(float x)
{
    if (x > 20.0f) return x;
    const double power = base_exp(x), sum = 1.0 + power;
    return (float)(sum == 1.0 ? power : base_log(sum) * power / (sum - 1.0));
}

/* xIELU's keys have no architecture prefix; files store the alphas before softplus. */
static bool read_xielu(struct model_reader *r, uint32_t layer, struct ffn *f)
{
    struct model_reader bare = *r;
    bare.name = "xielu";
    if (!model_read_layer_f32(&bare, "alpha_p", MODEL_REQUIRED, layer, -INFINITY, &f->alpha_p) ||
        !model_read_layer_f32(&bare, "alpha_n", MODEL_REQUIRED, layer, -INFINITY, &f->alpha_n) ||
        !model_read_layer_f32(&bare, "beta", MODEL_REQUIRED, layer, -INFINITY, &f->beta))
        return false;
    f->alpha_p = softplus(f->alpha_p);
    f->alpha_n = f->beta + softplus(f->alpha_n);
    return true;
}

/* Chooses the form of a layer by its tensors. */
static enum model_ffn_form form_of(const struct model_reader *r, uint32_t layer, uint32_t n_ff)
{
    if (model_reader_tensor(r, layer, "ffn_gate.weight")) return MODEL_FFN_GATED;
    const struct gguf_tensor *up = model_reader_tensor(r, layer, "ffn_up.weight");
    return up && up->ne[1] == 2 * (uint64_t)n_ff ? MODEL_FFN_FUSED : MODEL_FFN_PLAIN;
}

/* Sets the sizes of what files of PowerInfer have: down transposed, and a predictor of the rows of
 * gate and up whose results are not zero. */
static bool read_powerinfer(struct model_reader *r, uint32_t layer, struct ffn *f)
{
    const struct gguf_tensor *fc1 = model_reader_tensor(r, layer, "fc1.weight");
    const bool transposed = model_reader_tensor(r, layer, "ffn_down_t.weight");
    f->n_down = transposed ? 0 : f->n_ff;
    f->n_down_t = transposed ? f->n_ff : 0;
    if (!fc1 || (f->form != MODEL_FFN_GATED && f->form != MODEL_FFN_PLAIN)) return true;
    if (fc1->ne[1] > MODEL_MAX_DIM)
        return base_fail_at(r->err, BASE_MODEL, "fc1.weight", (int64_t)fc1->offset, "too large");
    f->n_rank = (uint32_t)fc1->ne[1];
    f->n_predicted = f->n_ff;
    struct model_reader bare = *r; /* its key has no architecture prefix */
    bare.name = "powerinfer";
    return model_read_f32(&bare, "sparse_threshold", MODEL_OPTIONAL, -INFINITY, &f->threshold);
}

static bool read_activation(struct model_reader *r, struct ffn *f)
{
    static const struct {
        const char *word;
        enum engine_unary act;
    } words[] = {{"gelu", ENGINE_GELU_ERF}, {"geglu", ENGINE_GELU_ERF}, {"silu", ENGINE_SILU},
                 {"swish", ENGINE_SILU},    {"swiglu", ENGINE_SILU},    {"reglu", ENGINE_RELU}};
    struct gguf_str word = {0};
    if (!gguf_get_str(r->file, model_reader_key(r, "hidden_activation"), &word, r->err))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!word.data ||
            (strlen(words[i].word) == word.size && !memcmp(words[i].word, word.data, word.size))) {
            if (word.data) f->act = words[i].act;
            return true;
        }
    return model_reader_fail(r, "hidden_activation", "'%.*s' is not known",
                             word.size < 32 ? (int)word.size : 32, word.data);
}

/* Whether each element of the input of down is computed by itself, of a row of gate and of up. */
static bool can_be_divided(const struct model_reader *r, uint32_t layer, const struct ffn *f)
{
    return (f->form == MODEL_FFN_GATED || f->form == MODEL_FFN_PLAIN) && !f->sparse && !f->n_lora &&
           !model_reader_tensor(r, layer, "ffn_gate.bias") &&
           !model_reader_tensor(r, layer, "ffn_up.bias");
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct ffn *f = self;
    const struct model_ffn_row *row = &p->arch->ffn;
    f->n_embd = p->n_embd;
    f->sparse = l->index < row->sparse;
    if (!model_read_layer_u32(r, "feed_forward_length", MODEL_REQUIRED, l->index, 1, MODEL_MAX_DIM,
                              &f->n_ff))
        return false;
    if (row->divisor) f->n_ff /= row->divisor;
    if (row->square) f->n_ff = p->n_embd;
    if (f->n_ff == 0) return model_reader_fail(r, "feed_forward_length", "too small");
    f->n_lora = p->adapters.rank;
    f->n_slots = p->adapters.n ? p->adapters.n + 1 : 0;
    f->act = p->act;
    f->form = row->form == MODEL_FFN_BY_TENSORS ? form_of(r, l->index, f->n_ff) : row->form;
    if (f->form == MODEL_FFN_PLAIN && row->plain_relu) f->act = ENGINE_RELU;
    f->n_gate = f->form == MODEL_FFN_GATED ? f->n_ff : 0;
    f->n_up = f->form == MODEL_FFN_FUSED ? 2 * f->n_ff : f->n_ff;
    if (row->act_key && !read_activation(r, f)) return false;
    f->gate_parts.can = f->up_parts.can = f->down_parts.can = can_be_divided(r, l->index, f);
    f->zeros = f->sparse || (f->form != MODEL_FFN_XIELU && engine_unary_has_zeros(f->act));
    return read_powerinfer(r, l->index, f) &&
           (row->clamps != MODEL_CLAMPS_EXPERTS ||
            model_read_glu_clamp(r, p, "swiglu_clamp_exp", l->index, &f->clamp)) &&
           model_read_glu_clamp(r, p, "swiglu_clamp_shexp", l->index, &f->clamp) &&
           (row->form != MODEL_FFN_XIELU || read_xielu(r, l->index, f));
}

/* Returns max(0, x - t) for x [n][F], where t is the row's mean plus 1.645 standard deviations
 * (with F - 1): about one in twenty of normally distributed values is above t. */
static struct engine_tensor *keep_largest(const struct model_builder *b, struct engine_tensor *x,
                                          uint32_t n_ff)
{
    const float quantile = 1.6448533535003662f; /* the 0.95 quantile of the normal distribution */
    struct engine_tensor *mean =
        engine_scale(b->g, engine_sum_rows(b->g, x), 1.0f / (float)n_ff, 0.0f);
    struct engine_tensor *off = engine_sub(b->g, x, mean);
    struct engine_tensor *square = engine_sum_rows(b->g, engine_mul(b->g, off, off));
    struct engine_tensor *deviation =
        engine_unary(b->g, engine_scale(b->g, square, 1.0f / (float)(n_ff - 1), 0.0f), ENGINE_SQRT);
    mean = engine_add(b->g, mean, engine_scale(b->g, deviation, quantile, 0.0f));
    return engine_unary(b->g, engine_sub(b->g, x, mean), ENGINE_RELU);
}

/* Returns 1 for rows of the first product that the predictor expects to be active, otherwise 0;
 * NULL if no predictor is used. It reads the input of the norm before the network. */
static struct engine_tensor *build_predicted(const struct model_builder *b, const struct ffn *f)
{
    if (!b->params->predicts || !f->n_rank || !b->residual) return NULL;
    struct engine_tensor *score = model_linear_as(b, &f->fc1, MODEL_IN_FFN, b->residual);
    score = engine_unary(b->g, score, ENGINE_RELU);
    score = model_linear_as(b, &f->fc2, MODEL_IN_FFN, score);
    score = engine_scale(b->g, score, 1.0f, -f->threshold);
    return model_named(b, engine_unary(b->g, score, ENGINE_STEP), "predicted");
}

/* Builds act(gate x) * up x, or act(up x) without a gate, for an activation that gives zeros: the
 * rows of `up` where the gate is zero are skipped, and of the first product those that are expected
 * to be zero. */
static struct engine_tensor *build_by_zeros(const struct model_builder *b, const struct ffn *f,
                                            struct engine_tensor *x)
{
    const struct model_linear *first = f->n_gate ? &f->gate : &f->up;
    struct engine_tensor *on = build_predicted(b, f);
    struct engine_tensor *y =
        on ? model_linear_active(b, first, x, on) : model_linear_as(b, first, MODEL_IN_FFN, x);
    if (f->sparse) y = keep_largest(b, y, f->n_ff);
    struct engine_tensor *gate = y;
    y = engine_unary(b->g, y, f->act);
    if (on) y = engine_mul(b->g, y, on); /* rows with a bias */
    if (!f->n_gate) return y;
    struct engine_tensor *up = model_linear_active(b, &f->up, x, y);
    if (b->params->arch->ffn.act_both)
        up = engine_unary(b->g, up, f->act);
    else if (!on && !f->sparse)
        return engine_glu(b->g, gate, up, f->act);
    return engine_mul(b->g, y, up);
}

/* Builds act(gate x) * up x; both are columns of one product. */
static struct engine_tensor *build_gated(const struct model_builder *b, const struct ffn *f,
                                         struct engine_tensor *x)
{
    static const struct model_linear none;
    const bool fused = f->n_gate == 0;
    const struct model_linear *const both[] = {fused ? &none : &f->gate, fused ? &none : &f->up};
    const uint32_t size[] = {f->n_ff, f->n_ff};
    struct engine_tensor *part[2];
    model_linears(b, fused ? &f->up : NULL, both, size, 2, x, "ffn_gate_up", MODEL_IN_FFN, part);
    for (int i = 0; i < 2; i++) part[i] = model_switched_add(b, &f->switched[i], x, part[i]);
    return model_glu(b, part[0], part[1], f->act, f->clamp);
}

/* Builds xIELU: for x > 0 alpha_p x^2 + beta x, otherwise alpha_n (exp(x) - 1 - x) + beta x. */
static struct engine_tensor *build_xielu(const struct model_builder *b, const struct ffn *f,
                                         struct engine_tensor *x)
{
    struct engine_tensor *above = engine_unary(b->g, x, ENGINE_RELU_SQR);
    struct engine_tensor *below = engine_clamp(b->g, x, -INFINITY, 0.0f);
    struct engine_tensor *bend = engine_sub(
        b->g, engine_scale(b->g, engine_unary(b->g, below, ENGINE_EXP), 1.0f, -1.0f), below);
    x = engine_add(b->g, engine_scale(b->g, above, f->alpha_p, 0.0f),
                   engine_scale(b->g, x, f->beta, 0.0f));
    return engine_add(b->g, engine_scale(b->g, bend, f->alpha_n, 0.0f), x);
}

/* Builds the input of down. */
static struct engine_tensor *build_inner(const struct model_builder *b, const struct ffn *f,
                                         struct engine_tensor *x)
{
    const bool simple = f->form == MODEL_FFN_GATED || f->form == MODEL_FFN_PLAIN;
    if (simple && f->clamp < 1e-6f && f->zeros) return build_by_zeros(b, f, x);
    if (f->form == MODEL_FFN_GATED || f->form == MODEL_FFN_FUSED) return build_gated(b, f, x);
    x = model_linear_as(b, &f->up, MODEL_IN_FFN, x);
    return f->form == MODEL_FFN_XIELU ? build_xielu(b, f, x) : engine_unary(b->g, x, f->act);
}

static const struct engine_place *place_of(const struct model_builder *b, int part)
{
    return part == 0 ? b->layer->place : NULL;
}

/* Builds the elements of the input of down that are computed from part i of gate and up. */
static struct engine_tensor *build_part(const struct model_builder *b, const struct ffn *f, int i,
                                        struct engine_tensor *x)
{
    struct ffn part = *f;
    if (f->up_parts.n[i] == 0) return NULL;
    part.n_ff = f->up_parts.n[i];
    part.n_gate = f->n_gate ? part.n_ff : 0;
    part.gate.weight = f->gate_parts.weight[i];
    part.up.weight = f->up_parts.weight[i];
    part.n_rank = 0;
    engine_graph_set_place(b->g, place_of(b, i));
    return build_inner(b, &part, x);
}

/* Concatenates rows of both parts, in the current place; either may be NULL. */
static struct engine_tensor *join(const struct model_builder *b, struct engine_tensor *first,
                                  struct engine_tensor *second)
{
    return first && second ? engine_concat(b->g, first, second, 0) : first ? first : second;
}

/* Sorts the elements of x [n][F], those of hot rows first, by the numbers of their rows. */
static struct engine_tensor *in_order(const struct model_builder *b, struct engine_tensor *x)
{
    if (!x) return NULL;
    const int64_t size = x->ne[0], n = x->ne[1];
    x = n == 1 ? engine_reshape(b->g, x, 2, (int64_t[]){1, size})
               : engine_cont(b->g, engine_permute(b->g, x, 1, 0, 2, 3));
    x = engine_get_rows(b->g, x, b->layer->order);
    return n == 1 ? engine_reshape(b->g, x, 2, (int64_t[]){size, 1})
                  : engine_cont(b->g, engine_permute(b->g, x, 1, 0, 2, 3));
}

/* Builds down x, whose rows are in two places. */
static struct engine_tensor *build_down(const struct model_builder *b, const struct ffn *f,
                                        struct engine_tensor *x)
{
    struct engine_tensor *y[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        engine_graph_set_place(b->g, place_of(b, i));
        if (f->down_parts.n[i]) y[i] = model_linear_of(b, f->down_parts.weight[i], x);
    }
    engine_graph_set_place(b->g, b->layer->place);
    return model_linear_finish(b, &f->down, MODEL_IN_FFN, join(b, y[0], y[1]));
}

/* Builds the network with its weights in two places. This machine's copy of x precedes the products
 * of the layer's place, so that both compute at once. */
static struct engine_tensor *build_divided(const struct model_builder *b, const struct ffn *f,
                                           struct engine_tensor *x)
{
    engine_graph_set_place(b->g, NULL);
    struct engine_tensor *here = engine_cast(b->g, x, QUANT_F32);
    struct engine_tensor *hot = build_part(b, f, 0, x);
    x = join(b, hot, build_part(b, f, 1, here));
    engine_graph_set_place(b->g, NULL);
    return in_order(b, x);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct ffn *f = self;
    const bool divided = f->up_parts.divided;
    x = model_named(b, divided ? build_divided(b, f, x) : build_inner(b, f, x), "ffn_gated");
    if (f->act_scales) x = engine_div(b->g, x, f->act_scales);
    if (f->sub_norm.weight) x = model_norm(b, x, &f->sub_norm);
    const struct model_linear *down = f->n_down ? &f->down : &f->down_t;
    struct engine_tensor *y =
        divided && f->n_down ? build_down(b, f, x) : model_linear_as(b, down, MODEL_IN_FFN, x);
    engine_graph_set_place(b->g, b->layer->place);
    return model_named(b, model_switched_add(b, &f->switched_down, x, y), "ffn_out");
}

MODEL_BLOCK(ffn, "ffn")
