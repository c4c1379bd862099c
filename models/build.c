/* models/build.c: the graph of a decoder-only transformer: norms and residuals around the blocks.
 * See models/internal.h and models/block/blocks.h. */
#include "models/internal.h"
#include <float.h>
#include <math.h>

enum {
    NODES_PER_LAYER = 112,
    NODES_OF_STREAMS = 160,
    NODES_OF_HYPER = 160,
    NODES_OF_ADAPTER = 96, /* of each, for a layer and for the ends */
    NODES_AROUND = 64,
    HEAD_BYTES = 64 * 1024 * 1024, /* maximum size of the logits of a graph (at least one row) */
    HEAD_ROWS = 64
};

static struct engine_tensor *build_part(struct model_builder *b, const struct model_part *part,
                                        struct engine_tensor *x)
{
    return part->block->build(b, part->self, x);
}

/* Returns the output of the mixer, or the sum of the outputs of two mixers. */
static struct engine_tensor *build_mixer(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    struct engine_tensor *m = build_part(b, &l->mixer, x);
    return l->mixer_2.block ? engine_add(b->g, m, build_part(b, &l->mixer_2, x)) : m;
}

/* Returns a sublayer's output x times residual_scale. */
static struct engine_tensor *scaled(const struct model_builder *b, struct engine_tensor *x)
{
    const float scale = b->params->residual_scale;
    return scale == 1.0f ? x : engine_scale(b->g, x, scale, 0.0f);
}

/* x += m(N x) + f(N x): both sublayers read the layer's input, through one norm or one norm
 * each. */
static struct engine_tensor *build_parallel(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    struct engine_tensor *h = model_norm(b, x, &l->mixer_norm);
    struct engine_tensor *m = l->mixer_norm_2.weight ? model_norm(b, x, &l->mixer_norm_2) : h;
    m = model_wanted_rows(b, build_mixer(b, m));
    struct engine_tensor *f = l->ffn_norm.weight ? model_norm(b, x, &l->ffn_norm) : h;
    b->residual = model_wanted_rows(b, x);
    f = build_part(b, &l->ffn, model_wanted_rows(b, f));
    x = engine_add(b->g, scaled(b, m), b->residual);
    return model_named(b, engine_add(b->g, scaled(b, f), x), "layer_out");
}

/* Returns the output of the layer's feed-forward networks for the normalized rows x. */
static struct engine_tensor *build_networks(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    struct engine_tensor *f = build_part(b, &l->ffn, x);
    if (!l->beside.block) return f;
    if (b->params->arch->experts.beside == MODEL_BESIDE_NORMS) {
        x = build_part(b, &l->beside, model_norm(b, b->residual, &l->beside_norm));
        f = model_norm(b, f, &l->ffn_norm_1);
        return engine_add(b->g, model_norm(b, x, &l->beside_post_norm), f);
    }
    if (l->beside_norm.weight) x = model_norm(b, b->layer_in, &l->beside_norm);
    f = engine_add(b->g, build_part(b, &l->beside, x), f);
    const bool mean = b->params->arch->experts.beside == MODEL_BESIDE_MEAN;
    return mean ? engine_scale(b->g, f, sqrtf(0.5f), 0.0f) : f;
}

/* x += m(x), then x += f(x), with a norm of each sublayer's input, of its output, or both. */
static struct engine_tensor *build_serial(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    const enum model_residual residual = b->params->residual;
    const bool before = residual != MODEL_POST_NORM;
    const bool after = residual == MODEL_SANDWICH || residual == MODEL_POST_NORM;
    const bool plain = b->params->arch->plan.first_plain && !l->mixer_norm.weight;
    struct engine_tensor *in = x;
    if (l->mixer.block) {
        if (before && !plain) x = model_norm(b, x, &l->mixer_norm);
        x = build_mixer(b, x);
        if (!l->recurrent.shift_channels && !l->cross.block) {
            x = model_wanted_rows(b, x);
            in = b->layer_in = model_wanted_rows(b, in);
        }
        if (after) x = model_post_norm(b, x, &l->mixer_post_norm);
        in = model_named(b, engine_add(b->g, scaled(b, x), in), "ffn_in");
        if (l->cross.block) {
            x = build_part(b, &l->cross, model_norm(b, in, &l->cross_norm));
            in = b->layer_in = model_wanted_rows(b, engine_add(b->g, x, in));
        }
    } else {
        in = b->layer_in = model_wanted_rows(b, in);
    }
    if (!l->ffn.block) return in;
    b->residual = in;
    x = build_networks(b, before ? model_norm(b, in, &l->ffn_norm) : in);
    if (after) x = model_post_norm(b, x, &l->ffn_post_norm);
    if (l->recurrent.shift_channels) in = model_wanted_rows(b, in);
    x = engine_add(b->g, scaled(b, x), in);
    if (l->halved) x = engine_scale(b->g, x, 0.5f, 0.0f);
    if (l->tail.block) x = build_part(b, &l->tail, x);
    if (l->out_scale) x = engine_mul(b->g, x, l->out_scale);
    return model_named(b, x, "layer_out");
}

/* The normalized rows continue beside each sublayer, not the rows before their norm. */
static struct engine_tensor *build_norm_stream(struct model_builder *b, struct engine_tensor *x)
{
    struct engine_tensor *h = model_norm(b, x, &b->layer->mixer_norm);
    x = model_wanted_rows(b, build_mixer(b, h));
    x = engine_add(b->g, x, scaled(b, model_wanted_rows(b, h)));
    h = model_norm(b, model_named(b, x, "ffn_in"), &b->layer->ffn_norm);
    x = engine_add(b->g, build_part(b, &b->layer->ffn, h), scaled(b, h));
    return model_named(b, x, "layer_out");
}

/* Streams with gates are normalized by these. */
static struct engine_tensor *build_hyper(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    const bool gated = b->params->hyper_rank > 0;
    struct model_hyper_back back;
    if (l->front.block) x = build_part(b, &l->front, x);
    struct engine_tensor *y = model_hyper_read(b, &l->mixer_hyper, x, &back);
    y = gated ? y : model_norm(b, y, &l->mixer_norm);
    y = model_wanted_rows(b, build_mixer(b, y));
    back.back = model_wanted_rows(b, back.back);
    if (back.mix) back.mix = model_wanted_rows(b, back.mix);
    x = model_hyper_write(b, model_wanted_rows(b, x), y, &back);
    y = model_hyper_read(b, &l->ffn_hyper, x, &back);
    y = build_part(b, &l->ffn, gated ? y : model_norm(b, y, &l->ffn_norm));
    return model_named(b, model_hyper_write(b, x, y, &back), "layer_out");
}

/* Returns the mixture of the streams set aside and x [n][E], by their scores. */
static struct engine_tensor *attend_streams(const struct model_builder *b, struct engine_tensor *x,
                                            struct engine_tensor *score)
{
    if (!b->aside || !x) return x;
    const int64_t embd = x->ne[0], n = x->ne[1], n_streams = b->aside->ne[1] + 1;
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, 1, n});
    struct engine_tensor *all = engine_concat(b->g, b->aside, x, 1);
    struct engine_tensor *p = engine_rms_norm(b->g, all, b->params->norm_eps);
    p = engine_sum_rows(b->g, engine_mul(b->g, p, score));
    p = engine_reshape(b->g, p, 2, (int64_t[]){n_streams, n});
    return engine_expert_sum(b->g, all, engine_soft_max(b->g, p, NULL, NULL, 1.0f, 0.0f));
}

/* Adds the stream x [n][E] to those set aside. */
static void set_aside(struct model_builder *b, struct engine_tensor *x)
{
    if (!x) return;
    x = engine_reshape(b->g, x, 3, (int64_t[]){x->ne[0], 1, x->ne[1]});
    b->aside = b->aside ? engine_concat(b->g, b->aside, x, 1) : x;
}

/* The rows of the streams set aside that continue after the mixer. */
static void want_streams(struct model_builder *b)
{
    struct engine_tensor *x = b->aside;
    if (!b->out_rows || !x) return;
    const int64_t embd = x->ne[0], n = x->ne[1];
    x = engine_reshape(b->g, x, 2, (int64_t[]){embd * n, x->ne[2]});
    x = model_wanted_rows(b, x);
    b->aside = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, x ? x->ne[1] : 0});
}

/* Pre-norm sublayers whose inputs are mixtures of earlier streams. */
static struct engine_tensor *build_attended(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    const bool begins = b->params->set_aside && l->index % b->params->set_aside == 0;
    struct engine_tensor *m = attend_streams(b, x, l->mixer_score);
    if (begins) set_aside(b, x);
    m = model_wanted_rows(b, build_mixer(b, model_norm(b, m, &l->mixer_norm)));
    want_streams(b);
    x = model_named(b, begins ? m : engine_add(b->g, m, model_wanted_rows(b, x)), "ffn_in");
    m = model_norm(b, attend_streams(b, x, l->ffn_score), &l->ffn_norm);
    return model_named(b, engine_add(b->g, build_part(b, &l->ffn, m), x), "layer_out");
}

/* x = N (x + m(x)), then x = N (x + f(x)). */
static struct engine_tensor *build_sum_norm(struct model_builder *b, struct engine_tensor *x)
{
    const struct model_layer *l = b->layer;
    struct engine_tensor *in = model_wanted_rows(b, x);
    x = engine_add(b->g, model_wanted_rows(b, build_mixer(b, x)), in);
    x = model_norm(b, x, &l->mixer_post_norm);
    if (l->mixer_norm_2.weight) x = model_norm(b, engine_add(b->g, x, in), &l->mixer_norm_2);
    x = model_named(b, x, "ffn_in");
    b->residual = x;
    x = engine_add(b->g, build_part(b, &l->ffn, x), x);
    return model_named(b, model_norm(b, x, &l->ffn_post_norm), "layer_out");
}

/* Builds one layer, x [T][E] to [T][E]. In the last layer only the rows whose logits are requested
 * continue after the mixer. */
static struct engine_tensor *build_layer(struct model_builder *b, struct engine_tensor *x)
{
    const enum model_residual residual = b->params->residual;
    engine_graph_set_place(b->g, b->layer->place);
    if (b->params->ends.n_streams) return build_part(b, &b->layer->tail, x);
    if (b->layer->idle) return model_wanted_rows(b, x);
    if (residual == MODEL_SUM_NORM) return build_sum_norm(b, x);
    if (b->params->n_hyper) return build_hyper(b, x);
    if (residual == MODEL_NORM_STREAM) return build_norm_stream(b, x);
    if (residual == MODEL_ATTENDED) return build_attended(b, x);
    const bool parallel = residual == MODEL_PARALLEL ||
                          (residual == MODEL_PARALLEL_BY_NORM && !b->layer->ffn_norm.weight);
    x = parallel ? build_parallel(b, x) : build_serial(b, x);
    if (!b->layer->skip) return x;
    struct engine_tensor *embedding = model_wanted_rows(b, b->embedding);
    return engine_add(b->g, x, engine_mul(b->g, embedding, b->layer->skip));
}

static struct engine_tensor *build_embedding(const struct model_builder *b,
                                             struct engine_tensor *table)
{
    engine_graph_set_place(b->g, NULL);
    const struct model_params *p = b->params;
    const struct model_ends_row *row = &p->arch->ends;
    struct engine_tensor *ids = b->inputs.read_ids ? b->inputs.read_ids : b->ids;
    struct engine_tensor *x = model_rows_of(b, table, ids);
    if (p->embd_scale != 1.0f) x = engine_scale(b->g, x, p->embd_scale, 0.0f);
    model_adapters_refuse(b, p->ends.types.weight);
    if (p->ends.types.weight) /* all tokens are of type 0 */
        x = engine_add(b->g, x,
                       engine_view(b->g, p->ends.types.weight, 1, (int64_t[]){p->n_embd}, NULL, 0));
    struct engine_tensor *positions = p->ends.positions;
    if (positions && row->first_position)
        positions = engine_view(b->g, positions, 2, (int64_t[]){p->n_embd, p->n_ctx_train}, NULL,
                                row->first_position * positions->nb[1]);
    if (positions) x = engine_add(b->g, x, model_rows_of(b, positions, b->positions));
    if (row->embd_norm != MODEL_EMBD_NORM_NONE) x = model_norm(b, x, &p->ends.embd_norm);
    return engine_name(x, "embedding");
}

/* Makes the logits x [n][V] of the architecture's silent ids too small to be chosen. */
static struct engine_tensor *silence(const struct model_builder *b, struct engine_tensor *x)
{
    const int64_t first = b->params->arch->ends.silent[0], n = b->params->n_vocab;
    const int64_t end = b->params->arch->ends.silent[1] < n ? b->params->arch->ends.silent[1] : n;
    if (first >= end) return x;
    struct engine_tensor *low =
        engine_clamp(b->g, engine_cols(b->g, x, first, end - first), -FLT_MAX, -FLT_MAX);
    low = engine_concat(b->g, engine_cols(b->g, x, 0, first), low, 0);
    return end == n ? low : engine_concat(b->g, low, engine_cols(b->g, x, end, n - end), 0);
}

/* Returns the logits [n][V] of the normalized rows x [n][E]. */
static struct engine_tensor *build_logits(const struct model_builder *b,
                                          const struct model_linear *output,
                                          struct engine_tensor *x)
{
    const struct model_params *p = b->params;
    engine_graph_set_place(b->g, p->ends.place);
    x = model_linear(b, output, x);
    if (p->logit_scale != 1.0f) x = engine_scale(b->g, x, p->logit_scale, 0.0f);
    if (p->logit_softcap > 0.0f) x = engine_softcap(b->g, x, p->logit_softcap);
    return engine_name(silence(b, x), "logits");
}

/* Return upper bounds of the graph nodes that one layer, and the ends, need. */
static uint32_t nodes_of_layer(const struct model *m)
{
    const struct model_params *p = &m->params;
    return NODES_PER_LAYER + 2 * p->n_expert_used + (p->ends.n_streams ? NODES_OF_STREAMS : 0) +
           (p->n_hyper ? NODES_OF_HYPER : 0) + m->adapters.count * NODES_OF_ADAPTER;
}

static uint32_t nodes_of_ends(const struct model *m)
{
    return NODES_AROUND + m->adapters.count * NODES_OF_ADAPTER;
}

/* Adds the control vectors of a layer to its output x [n][E]; with AltUp to all streams. */
static struct engine_tensor *build_direction(struct model_builder *b, const struct model *m,
                                             struct engine_tensor *x)
{
    struct engine_tensor *direction = m->adapters.direction;
    if (!direction || !direction[b->layer->index].data) return x;
    direction += b->layer->index;
    for (int i = 0; m->params.ends.n_streams && i < MODEL_STREAMS; i++)
        b->stream[i] = engine_add(b->g, b->stream[i], direction);
    return m->params.ends.n_streams ? b->stream[0] : engine_add(b->g, x, direction);
}

/* Makes the last layer's state the outputs of a graph without logits. Every other node is an input
 * of these writes, directly or not, so the graph's planner keeps it. */
static void output_state(const struct model_builder *b)
{
    for (int i = 0; i < 3; i++)
        if (b->written[i]) engine_output(b->g, b->written[i]);
}

/* Builds the MTP layer from the embeddings x [T][E] and the hidden states [T][E] before them. */
static struct engine_tensor *build_mtp(struct model_builder *b, struct engine_tensor *x,
                                       struct engine_tensor *hidden)
{
    const struct model_mtp *mtp = &b->params->mtp;
    x = engine_concat(b->g, model_norm(b, x, &mtp->embd_norm),
                      model_norm(b, hidden, &mtp->hidden_norm), 0);
    return build_layer(b, model_named(b, model_linear(b, &mtp->in, x), "mtp_in"));
}

/* Builds EAGLE-3's layer (Li et al. 2025) from the embeddings e [T][E] and the hidden states g
 * before them, which are its own, or F of those that it reads:
 *
 *     y = g + m([N e, N g]) (or N g + ..),  z = y + f(N y) */
static struct engine_tensor *build_eagle3(struct model_builder *b, struct engine_tensor *x,
                                          struct engine_tensor *hidden, bool reads)
{
    const struct model_drafter_ends *d = &b->params->drafter;
    const struct model_layer *l = b->layer;
    if (reads && d->norm.weight) hidden = model_norm(b, hidden, &d->norm);
    if (reads) hidden = model_named(b, model_linear(b, &d->in, hidden), "drafter_in");
    struct engine_tensor *h = model_norm(b, hidden, &d->hidden_norm);
    x = engine_concat(b->g, model_norm(b, x, &l->mixer_norm), h, 0);
    x = engine_add(b->g, build_part(b, &l->mixer, x), d->adds_normalized ? h : hidden);
    x = engine_add(b->g, build_part(b, &l->ffn, model_norm(b, x, &l->ffn_norm)), x);
    return model_named(b, x, "layer_out");
}

/* Builds the keys and values of DFlash's layers, all made of F of the hidden states that it reads.
 */
static void build_dflash_keys(struct model_builder *b, const struct model_drafter *d,
                              struct engine_tensor *hidden)
{
    const struct model_drafter_ends *ends = &b->params->drafter;
    hidden = model_norm(b, model_linear(b, &ends->in, hidden), &ends->norm);
    hidden = model_named(b, hidden, "drafter_in");
    for (uint32_t i = 0; i < d->n_layer; i++, b->layer++, b->kv_layer++) {
        build_part(b, &b->layer->mixer, hidden); /* of which only keys and values are computed */
        output_state(b);
    }
}

/* Builds DFlash's layers for the embeddings x [T][E] of tokens and masks; returns the rows of all
 * but the first. */
static struct engine_tensor *build_dflash(struct model_builder *b, const struct model_drafter *d,
                                          struct engine_tensor *x, struct engine_tensor *near)
{
    struct engine_tensor **range = &b->inputs.kv.range[MODEL_KV_FULL], *all = *range;
    for (uint32_t i = 0; i < d->n_layer; i++, b->layer++, b->kv_layer++) {
        *range = b->layer->near ? near : all;
        x = build_layer(b, x);
    }
    return x ? engine_view(b->g, x, 2, (int64_t[]){x->ne[0], x->ne[1] - 1}, NULL, x->nb[1]) : NULL;
}

/* Builds the hidden states and the logits of draft tokens from the layers' output x [n][E]. */
static void build_draft(struct model_builder *b, struct model_drafter_graph *out,
                        const struct model_params *model, struct engine_tensor *x)
{
    const struct model_params *p = b->params;
    const struct model_mtp *mtp = &p->mtp;
    const struct model_linear *output = mtp->output.weight ? &mtp->output : &p->ends.output;
    out->next = x;
    x = model_norm(b, x, mtp->output_norm.weight ? &mtp->output_norm : &p->ends.output_norm);
    if (p->arch->mtp == MODEL_MTP_NORMALIZED) out->next = x;
    if (!output->weight) { /* the model's, in its place */
        b->params = model;
        output = &model->ends.output;
    }
    out->logits = build_logits(b, output, x);
    engine_output(b->g, out->next);
    engine_output(b->g, out->logits);
}

bool model_drafter_build(struct model_drafter_graph *out, const struct model_drafter *d,
                         uint32_t n_tokens, enum model_drafter_use use, struct base_error *err)
{
    const struct model_params *model = &d->m->params, *p = &d->own->params;
    struct engine_tensor *const tables[] = {p->mtp.token_embd, p->ends.token_embd,
                                            model->ends.token_embd};
    const int64_t size = use == MODEL_DRAFTER_CHAINS ? p->n_embd : d->n_hidden;
    const bool blocks = p->arch->drafter == MODEL_DRAFTER_DFLASH;
    int table = 0;
    *out = (struct model_drafter_graph){0};
    out->graph = engine_graph_new(d->m->engine,
                                  (int)(d->n_layer * nodes_of_layer(d->own) + NODES_AROUND), err);
    if (!out->graph) return false;
    struct model_builder b = {.g = out->graph,
                              .params = p,
                              .state = d->state,
                              .n_tokens = n_tokens,
                              .layer = d->layer,
                              .kv_layer = model->n_run};
    b.ids = out->ids = engine_input(b.g, QUANT_I32, 1, (int64_t[]){n_tokens}, "ids");
    b.positions = out->positions =
        engine_input(b.g, QUANT_I32, 1, (int64_t[]){n_tokens}, "positions");
    if (use != MODEL_DRAFTER_BLOCKS)
        out->hidden = engine_input(b.g, QUANT_F32, 2, (int64_t[]){size, n_tokens}, "hidden_in");
    model_state_kv.add_inputs(d->state, b.g, n_tokens, n_tokens, &b.inputs);
    out->inputs = b.inputs;

    if (use == MODEL_DRAFTER_BLOCKS && d->near)
        out->near = engine_input(b.g, QUANT_I32, 2, (int64_t[]){4, n_tokens}, "near");
    while (!tables[table]) table++;
    struct engine_tensor *x = build_embedding(&b, tables[table]);
    engine_graph_set_place(b.g, b.layer->place);
    if (blocks && use == MODEL_DRAFTER_STORES) {
        build_dflash_keys(&b, d, out->hidden);
    } else {
        x = blocks             ? build_dflash(&b, d, x, out->near)
            : p->arch->drafter ? build_eagle3(&b, x, out->hidden, use != MODEL_DRAFTER_CHAINS)
                               : build_mtp(&b, x, out->hidden);
        if (use == MODEL_DRAFTER_STORES)
            output_state(&b);
        else
            build_draft(&b, out, model, x);
    }
    if (engine_graph_plan(b.g, true, err)) return true;
    engine_graph_free(out->graph);
    *out = (struct model_drafter_graph){0};
    return false;
}

bool model_source_build(struct model_source_graph *out, struct model *m, struct model_state *state,
                        uint32_t n_tokens, struct base_error *err)
{
    const struct model_params *p = &m->params;
    const uint32_t n_layers = p->n_source + p->n_layer;
    const int64_t n[1] = {n_tokens};
    *out = (struct model_source_graph){.n_tokens = n_tokens};
    out->graph =
        engine_graph_new(m->engine, (int)(n_layers * nodes_of_layer(m) + nodes_of_ends(m)), err);
    if (!out->graph) return false;
    struct model_builder b = {.g = out->graph, .params = p, .state = state, .n_tokens = n_tokens};
    b.ids = out->ids = engine_input(b.g, QUANT_I32, 1, n, "ids");
    b.source_range = out->range =
        engine_input(b.g, QUANT_I32, 2, (int64_t[]){4, n_tokens}, "range");
    b.source_table = out->table =
        engine_input(b.g, QUANT_I32, 2, (int64_t[]){n_tokens, 1}, "table");
    out->slots = engine_input(b.g, QUANT_I32, 1, n, "slots");
    b.buckets = out->buckets =
        engine_input(b.g, QUANT_I32, 1, (int64_t[]){2 * MODEL_RELATIVE_RADIUS + 1}, "buckets");
    out->adapters = model_adapters_begin(&b, &m->adapters);
    struct engine_tensor *x = build_embedding(&b, p->ends.token_embd);
    for (uint32_t i = 0; i < p->n_source; i++) {
        b.layer = &p->source[i];
        x = build_layer(&b, x);
    }
    x = model_norm(&b, x, &p->ends.source_norm);
    for (uint32_t i = 0; i < p->n_layer; i++) {
        b.layer = &p->layer[i];
        engine_graph_set_place(b.g, b.layer->place);
        model_cross_store(&b, x, out->slots);
    }
    output_state(&b);
    if (engine_graph_plan(b.g, true, err)) return true;
    engine_graph_free(out->graph);
    *out = (struct model_source_graph){0};
    return false;
}

/* Keeps the hidden states x [n][E] between layers if a drafter reads those of this place. */
static void read_hidden(struct model_graph *out, const struct model_reads *reads, uint32_t layer,
                        struct engine_tensor *x)
{
    for (uint32_t i = 0; reads && i < reads->n; i++)
        if (reads->layer[i] == layer) out->read[i] = x;
}

/* Makes what a drafter reads the graph's outputs. */
static void output_hidden(const struct model_builder *b, const struct model_graph *out)
{
    const struct model_reads *reads = b->state->reads;
    const uint32_t n = b->params->n_run;
    for (uint32_t i = 0; reads && i < reads->n; i++)
        if (reads->layer[i] < n || out->n_rows > 0) engine_output(b->g, out->read[i]);
}

bool model_graph_build(struct model_graph *out, struct model *m, struct model_state *state,
                       uint32_t n_tokens, uint32_t n_span, uint32_t n_rows, uint32_t n_out,
                       struct base_error *err)
{
    const struct model_params *p = &m->params;
    const struct model_reads *reads = state->reads;
    const uint32_t n_layer = p->n_run;
    *out = (struct model_graph){
        .n_tokens = n_tokens, .n_span = n_span, .n_rows = n_rows, .n_out = n_out};
    out->graph =
        engine_graph_new(m->engine, (int)(n_layer * nodes_of_layer(m) + nodes_of_ends(m)), err);
    if (!out->graph) return false;
    struct model_builder b = {.g = out->graph, .params = p, .state = state, .n_tokens = n_tokens};
    const int64_t n[1] = {n_tokens};
    b.ids = out->ids = engine_input(b.g, QUANT_I32, 1, n, "ids");
    b.positions = out->positions = engine_input(b.g, QUANT_I32, 1, n, "positions");
    if (p->temperature != 0.0f)
        b.q_scale = out->q_scale =
            engine_input(b.g, QUANT_F32, 3, (int64_t[]){1, 1, n_tokens}, "q_scale");
    if (p->n_buckets)
        b.buckets = out->buckets =
            engine_input(b.g, QUANT_I32, 1, (int64_t[]){2 * MODEL_RELATIVE_RADIUS + 1}, "buckets");
    model_state_add_inputs(state, b.g, n_tokens, n_span, &b.inputs);
    out->inputs = b.inputs;
    if (n_rows > 0 && n_rows < n_tokens)
        out->rows = engine_input(b.g, QUANT_I32, 1, (int64_t[]){n_rows}, "rows");
    if (n_out > 0 && n_out < n_rows)
        out->out_rows = engine_input(b.g, QUANT_I32, 1, (int64_t[]){n_out}, "out_rows");

    out->adapters = model_adapters_begin(&b, &m->adapters);
    struct engine_tensor *x = b.embedding = build_embedding(&b, p->ends.token_embd);
    if (p->ends.n_per_layer) b.per_layer = model_build_per_layer(&b, x);
    if (p->ends.n_streams) model_altup_begin(&b, x);
    if (p->n_hyper) x = model_hyper_begin(&b, x);
    struct engine_tensor *high = x, *low = p->ends.low; /* of the two stacks */
    for (uint32_t i = 0; i < n_layer; i++) {
        b.layer = &p->layer[model_run_layer(p, i)];
        b.kv_layer = i;
        b.out_rows = i == n_layer - 1 ? out->rows : NULL;
        if (i > 0 && b.layer->index == 0 && p->pass_norm)
            x = model_norm(&b, x, &p->ends.output_norm);
        if (p->n_stack && i % p->n_stack == 0) x = engine_add(b.g, high, low);
        read_hidden(out, reads, i, x);
        x = build_direction(&b, m, build_layer(&b, x));
        if (p->n_stack == 0 || (i + 1) % p->n_stack || i + 1 == p->n_run) continue;
        x = model_norm(&b, x, &p->ends.output_norm);
        *(b.layer->index < p->n_stack ? &low : &high) = x;
    }
    engine_graph_set_place(b.g, p->ends.place);
    model_adapters_select(&b, out->rows);
    if (p->ends.n_streams) x = model_altup_end(&b);
    x = attend_streams(&b, x, p->ends.score);
    if (p->n_hyper) x = model_hyper_read(&b, &p->ends.hyper, x, NULL);
    read_hidden(out, reads, n_layer, x);
    if (p->residual != MODEL_SUM_NORM && !p->hyper_rank)
        x = model_norm(&b, x, &p->ends.output_norm);
    if (reads && reads->normalized) read_hidden(out, reads, n_layer, x);
    if (out->out_rows) x = engine_get_rows(b.g, x, out->out_rows);
    model_adapters_select(&b, out->out_rows);
    out->hidden = x = engine_name(x, "hidden");
    output_hidden(&b, out);
    if (n_out > 0) {
        if (!state->hidden && n_out <= model_head_rows(p))
            x = out->logits = build_logits(&b, &p->ends.output, x);
        engine_output(b.g, x);
    } else if (n_rows == 0) {
        output_state(&b);
    }
    if (engine_graph_plan(b.g, true, err)) return true;
    model_graph_free(out);
    return false;
}

void model_graph_free(struct model_graph *g)
{
    engine_graph_free(g->graph);
    *g = (struct model_graph){0};
}

uint64_t model_graph_bytes(const struct model_graph *g)
{
    return (uint64_t)engine_graph_bytes(g->graph);
}

uint32_t model_head_rows(const struct model_params *p)
{
    const uint64_t rows = HEAD_BYTES / sizeof(float) / p->n_vocab;
    return rows < 1 ? 1 : rows < HEAD_ROWS ? (uint32_t)rows : HEAD_ROWS;
}

bool model_head_build(struct model_head *h, struct model *m, const struct engine_tensor *hidden,
                      struct base_error *err)
{
    const struct model_params *p = &m->params;
    const int64_t ne[2] = {p->n_embd, model_head_rows(p)};
    *h = (struct model_head){0};
    if (!engine_tensor_init(&h->hidden, hidden->type, 2, ne, hidden->data, "hidden", err))
        return false;
    h->hidden.place = hidden->place;
    h->graph = engine_graph_new(m->engine, (int)nodes_of_ends(m), err);
    if (!h->graph) return false;
    struct model_builder b = {.g = h->graph, .params = p, .n_tokens = model_head_rows(p)};
    h->adapters = model_adapters_begin(&b, &m->adapters);
    h->logits = build_logits(&b, &p->ends.output, &h->hidden);
    engine_output(h->graph, h->logits);
    if (engine_graph_plan(h->graph, true, err)) return true;
    engine_graph_free(h->graph);
    *h = (struct model_head){0};
    return false;
}

bool model_pool_build(struct model_pool_graph *out, struct model *m, bool rank, uint32_t n_rows,
                      struct base_error *err)
{
    const struct model_params *p = &m->params;
    out->graph = engine_graph_new(m->engine, (int)nodes_of_ends(m), err);
    if (!out->graph) return false;
    struct model_builder b = {.g = out->graph, .params = p, .n_tokens = n_rows, .rank = rank};
    out->adapters = model_adapters_begin(&b, &m->adapters);
    out->rows = engine_input(b.g, QUANT_F32, 2, (int64_t[]){p->n_embd, n_rows}, "rows");
    out->result = build_part(&b, &p->pool, out->rows);
    engine_output(b.g, out->result);
    if (engine_graph_plan(b.g, true, err)) return true;
    engine_graph_free(out->graph);
    return false;
}
