/* models/model.c: opens a model. See models/model.h. */
#include "models/internal.h"
#include <stdlib.h>
#include <string.h>

static void collect_facts(struct model *m)
{
    const struct model_params *p = &m->params;
    m->facts = (struct model_facts){.arch = p->name,
                                    .n_vocab = p->n_vocab,
                                    .n_ctx_train = p->n_ctx_train,
                                    .n_layer = p->n_layer,
                                    .n_embd = p->n_embd,
                                    .n_head = p->n_head,
                                    .n_head_kv = p->n_head_kv,
                                    .has_mtp = p->n_mtp,
                                    .writes = !p->arch->encoder && !p->bidirectional,
                                    .start_id = p->start_id,
                                    .diffusion = p->arch->diffusion,
                                    .bidirectional = p->bidirectional,
                                    .has_pooling = p->has_pooling,
                                    .pooling = p->pooling,
                                    .rank_of = p->arch->pool.rank ? p->arch->pool.rank
                                               : p->arch->encoder ? MODEL_POOL_CLS
                                                                  : MODEL_POOL_LAST,
                                    .n_pooled = model_pool_size(p, false),
                                    .n_rank = model_pool_size(p, true)};
    m->facts.placed_bytes = m->weights.placed_bytes;
    m->facts.copied_bytes = m->weights.column_bytes;
    m->facts.separated_bytes = m->weights.separated_bytes;
    m->facts.row_bytes = m->weights.row_bytes;
    m->facts.shifted = p->shifted;
    m->facts.mask_id = p->mask_id;
    memcpy(m->facts.n_unused, m->weights.n_unused, sizeof m->facts.n_unused);
    for (uint64_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->file, i);
        if (quant_type_has_weights(t->type))
            m->facts.n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        m->facts.weight_bytes += t->size;
        m->facts.n_predictors +=
            gguf_str_begins(t->name, "blk.") && gguf_str_ends(t->name, ".fc1.weight");
    }
}

/* Sets the places of layers; the MTP layer follows the others. */
static void place_layers(struct model_params *p, const struct model_placement *placement)
{
    const uint32_t n = p->n_layer + (p->n_mtp > 0);
    const uint32_t first = placement->n_layers < n ? n - placement->n_layers : 0;
    const struct engine_place *place = placement->place;
    double all = 0, end = placement->share[0]; /* of this place's share */
    for (int i = 0; i < placement->n_places; i++) all += placement->share[i];
    for (uint32_t i = first, at = 0; i < n; i++) {
        const bool cut = placement->hot && i < p->n_layer && placement->hot[i].n > 0;
        while ((int)at + 1 < placement->n_places && (i - first + 0.5) / (n - first) * all > end) {
            end += placement->share[++at];
            place++;
        }
        p->layer[i].place = place;
        p->layer[i].hot = cut ? &placement->hot[i] : NULL;
    }
    if (placement->output) p->ends.place = place;
    p->experts_here = placement->experts_here;
}

/* Checks the ids that are read instead of those that choose adapters, and the decoder's first. */
static bool check_ids(const struct model_params *p, struct base_error *err)
{
    if (p->start_id >= (int32_t)p->n_vocab)
        return base_fail_at(err, BASE_MODEL, "decoder_start_token_id", -1,
                            "%d is no id of the vocabulary", (int)p->start_id);
    for (uint32_t i = 0; i < p->adapters.n; i++)
        if (gguf_array_int(p->adapters.as, i) < 0 ||
            gguf_array_int(p->adapters.as, i) >= p->n_vocab)
            return base_fail_at(err, BASE_MODEL, "adapters.token_ids_substitute",
                                (int64_t)p->adapters.as->offset,
                                "item %u is no id of the vocabulary", i);
    return true;
}

static struct model *open_model(const struct gguf_file *file, struct engine *engine,
                                const struct model_placement *placement, bool drafts,
                                struct base_error *err)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the model's tables"));
    m->file = file;
    m->engine = engine;
    bool ok = drafts ? model_params_read_drafter(&m->params, file, err)
                     : model_params_read(&m->params, file, err);
    m->params.predicts = engine->options.predicts;
    m->params.makes_columns = engine->options.columns && !engine->options.plan_only;
    m->params.plans_rows = engine->options.plan_only;
    m->params.plans_columns = engine->options.columns && engine->options.plan_only;
    if (ok && placement) place_layers(&m->params, placement);
    if (!ok || !model_weights_bind(&m->weights, &m->params, file, engine, err) ||
        !check_ids(&m->params, err)) {
        base_error_set_file(err, gguf_path(file));
        model_close(m);
        return NULL;
    }
    collect_facts(m);
    return m;
}

struct model *model_open(const struct gguf_file *file, struct engine *engine,
                         const struct model_placement *placement, struct base_error *err)
{
    return open_model(file, engine, placement, false, err);
}

struct model *model_open_drafter(const struct gguf_file *file, struct engine *engine,
                                 struct base_error *err)
{
    return open_model(file, engine, NULL, true, err);
}

void model_close(struct model *m)
{
    if (!m) return;
    model_adapters_free(&m->adapters);
    model_weights_free(&m->weights);
    model_params_free(&m->params);
    free(m);
}

const struct model_facts *model_facts(const struct model *m)
{
    return &m->facts;
}

uint32_t model_layers_in(const struct model *m, const struct engine_place *place)
{
    const struct model_params *p = &m->params;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_layer + (p->n_mtp > 0); i++) n += p->layer[i].place == place;
    return n;
}

int32_t model_start_id(const struct gguf_file *file)
{
    struct base_error ignored = BASE_ERROR_INIT;
    struct model_params p;
    if (!model_params_read(&p, file, &ignored)) return -1;
    const int32_t id = p.start_id;
    model_params_free(&p);
    return id;
}
