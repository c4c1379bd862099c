/* models/source.c: the text for an encoder before a decoder, in a session. See models/internal.h.
 */
#include "models/internal.h"

uint32_t model_source_length(const struct model *m, const struct model_state *state,
                             const struct model_token *tokens, uint32_t n)
{
    const uint32_t seq = tokens[0].seq;
    uint32_t i = 0;
    if (m->params.n_source == 0 || state->length[seq] > 0) return 0;
    while (i < n && tokens[i].seq == seq && tokens[i].id != m->params.start_id) i++;
    return i;
}

bool model_source_check(const struct model *m, const struct model_state *state, uint32_t seq,
                        uint64_t length, int32_t next, struct base_error *err)
{
    const uint32_t held = state->length[seq];
    if (held > state->cross.source[seq]) return true;
    if (next == m->params.start_id && (held > 0 || length > 0)) return true;
    return base_fail(err, BASE_USAGE,
                     "sequence %u has no text for the encoder with token %d after it", seq,
                     m->params.start_id);
}

bool model_source_graph_of(struct model_source_graph *g, struct model *m, struct model_state *state,
                           uint32_t n, struct base_error *err)
{
    if (g->graph && g->n_tokens == n) return true;
    engine_graph_free(g->graph);
    g->graph = NULL;
    return model_source_build(g, m, state, n, err);
}

static int32_t *ints(struct engine_tensor *t)
{
    return engine_input_data(t);
}

bool model_source_eval(struct model_source_graph *g, struct model *m, struct model_state *state,
                       const struct model_adaptation *adaptation, const struct model_token *tokens,
                       uint32_t n, struct base_error *err)
{
    const uint32_t seq = tokens[0].seq, n_adapters = model_adapter_count(m);
    if (!model_source_graph_of(g, m, state, n, err)) return false;
    model_state_append(state, seq, n);
    const int32_t *slots = state->cross.table + (size_t)seq * state->n_ctx;
    for (uint32_t t = 0; t < n; t++) {
        int32_t *range = ints(g->range) + 4 * (size_t)t;
        ints(g->ids)[t] = tokens[t].id;
        ints(g->table)[t] = (int32_t)t;
        ints(g->slots)[t] = slots[t];
        range[0] = range[1] = 0;
        range[2] = (int32_t)n;
        range[3] = (int32_t)(n - 1 - t);
        for (uint32_t i = 0; i < n_adapters; i++)
            ((float *)engine_input_data(g->adapters))[(size_t)i * n + t] =
                t >= adaptation[seq].from[i] ? adaptation[seq].scale[i] : 0.0f;
    }
    for (int32_t i = 0; i <= 2 * MODEL_RELATIVE_RADIUS; i++)
        ints(g->buckets)[i] =
            model_relative_bucket(i - MODEL_RELATIVE_RADIUS, m->params.n_buckets, true);
    if (engine_graph_run(g->graph, err)) return true;
    model_state_truncate(state, seq, 0);
    return false;
}
