/* cli/gpu_layers.c: --gpu. See cli/gpu_layers.h. */
#include "cli/gpu_layers.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/user_folder.h"
#include "generate/draft.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE = 32, /* one part of the free memory is for what the driver needs itself */
    SHARES = 64 /* steps of the share of hot rows */
};

/* ---- The device ---- */

/* Reads the value at `offset` of the values, of option `name`. Other programs go on without a GPU.
 */
static bool read_layers(const struct cli_values *values, size_t offset, const char *name,
                        struct cli_gpu_layers *out, struct base_error *err)
{
    const char *text = *(const char *const *)((const char *)values + offset);
    const char *typed = cli_option_typed(values, offset);
    char *end;
    *out = (struct cli_gpu_layers){UINT32_MAX, !text || cli_is_choice("auto", text)};
    if (out->fits || cli_is_choice("all", text)) return true;
    const unsigned long n = cli_is_choice("off", text) ? 0 : strtoul(text, &end, 10);
    if (!cli_is_choice("off", text) && (*text < '0' || *text > '9' || *end))
        return base_fail_at(err, BASE_USAGE, name, -1,
                            "'%s' is no number of layers, nor all, auto or off", text);
    out->n = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    out->fits = typed && strcmp(typed, name) != 0;
    return true;
}

/* Opens the GPU, or with --plan reads only what it is. */
static bool open_device(struct cli_gpu *g, const struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER cache = BASE_BUFFER_INIT;
    struct engine_gpu_options o = {.library = ENGINE_GPU_LIBRARY, .index = (int)values->gpu_device};
    struct stat st;
    if (values->plan) { /* a number of layers needs no GPU */
        struct base_error ignored = BASE_ERROR_INIT;
        return engine_gpu_find(&o, &g->facts, g->wanted.fits ? err : &ignored) || !g->wanted.fits;
    }
    if (cli_user_path("XDG_CACHE_HOME", ".cache", "gpu", &cache) && !cache.failed &&
        cli_user_make_folder(cache.data, 0700) && stat(cache.data, &st) == 0 && cli_user_owns(&st))
        o.cache = cache.data;
    g->gpu = engine_gpu_open(&o, err);
    return g->gpu && engine_gpu_read_facts(g->gpu, &g->facts, err);
}

bool cli_gpu_open(struct cli_values *values, struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct cli_gpu g = {0};
    if (!read_layers(values, offsetof(struct cli_values, gpu_draft), "--gpu-draft", &g.draft, err))
        return false;
    if (!values->gpu || cli_is_choice("off|0", values->gpu)) return true;
    if (!read_layers(values, offsetof(struct cli_values, gpu), "--gpu", &g.wanted, err))
        return false;
    const char *other = values->blas                                              ? "--blas"
                        : values->sparse && !cli_is_choice("off", values->sparse) ? "--sparse"
                        : values->profile                                         ? "--profile"
                        : values->zeros                                           ? "--zeros"
                                                                                  : NULL;
    if (other)
        return base_fail_at(err, BASE_USAGE, "--gpu", -1, "%s is for the processor alone", other);
    if (!open_device(&g, values, &why)) {
        engine_gpu_close(g.gpu);
        if (!g.wanted.fits) return base_fail_at(err, why.code, "--gpu", -1, "%s", why.text);
        cli_note("no GPU, so the processor computes: %s", why.text);
        return true;
    }
    values->device = malloc(sizeof *values->device);
    if (!values->device) {
        engine_gpu_close(g.gpu);
        return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    }
    *values->device = g;
    return true;
}

void cli_gpu_close(struct cli_values *values)
{
    if (values->device) engine_gpu_close(values->device->gpu);
    free(values->device);
    values->device = NULL;
}

unsigned cli_gpu_allows(const struct cli_values *values)
{
    return values->device ? CLI_SANDBOX_GPU : 0;
}

/* ---- Places ---- */

bool cli_gpu_join(struct cli_model *m, const struct cli_values *values, struct base_error *err)
{
    const struct cli_gpu *g = m->gpu.device = values->device;
    /* A wrong file is an error on machines without a GPU too. */
    if (values->cpu_cold && !cli_activations_read(&m->gpu.counts, values->cpu_cold,
                                                  model_facts(m->model)->n_layer, err))
        return false;
    if (!g) return true;
    m->gpu.wanted = g->wanted;
    m->gpu.at.experts_here = values->cpu_moe;
    m->gpu.given_share = (double)values->hot_share;
    m->gpu.at.place = values->plan
                          ? engine_add_place(m->engine, &engine_backend_gpu_plan, &m->gpu.plan, err)
                          : engine_add_place(m->engine, &engine_backend_gpu, g->gpu, err);
    return m->gpu.at.place != NULL;
}

void cli_gpu_join_draft(struct cli_model *draft, const struct cli_model *model)
{
    const struct cli_model_gpu *g = &model->gpu;
    if (!g->device || g->device->draft.n == 0) return;
    draft->gpu.device = g->device;
    draft->gpu.wanted = g->device->draft;
    draft->gpu.at.place = g->at.place;
    draft->gpu.room = g->room > g->taken ? g->room - g->taken : 0;
}

struct measurement {
    struct cli_model *m;
    const struct model_session_options *options;
    bool drafts;
};

/* Makes a share of the rows of the last n layers hot, with --cpu-cold. */
static void choose_rows(struct cli_model *m, uint32_t n, double share)
{
    const uint32_t all = model_facts(m->model)->n_layer + model_facts(m->model)->has_mtp;
    if (m->gpu.counts.n) cli_activations_choose(&m->gpu.counts, n < all ? all - n : 0, share);
    m->gpu.at.hot = m->gpu.counts.hot;
}

/* Computes the bytes that a session and n layers need on a GPU: weights, states, and the graphs of
 * long prompts, of single tokens and of drafts. Fails with BASE_USAGE if it lacks an op. */
static bool measure(const struct measurement *of, uint32_t n, uint64_t *bytes,
                    struct base_error *err)
{
    struct engine_options o = of->m->engine->options;
    struct engine_gpu_plan plan = {0};
    struct model_placement at = {.n_layers = n,
                                 .output = true,
                                 .experts_here = of->m->gpu.at.experts_here,
                                 .hot = of->m->gpu.at.hot};
    struct model *model = NULL;
    struct model_session *s = NULL;
    uint64_t here;
    o.plan_only = true;
    o.n_threads = 1;
    struct engine *engine = engine_new(&o, err);
    if (engine) at.place = engine_add_place(engine, &engine_backend_gpu_plan, &plan, err);
    if (at.place) model = model_open(of->m->file, engine, &at, err);
    if (model && cli_adapters_apply(&of->m->adapters, model, err))
        s = model_session_new(model, of->options, err);
    const uint32_t n_batch = s ? model_session_n_batch(s) : 0;
    const bool ok = s && model_session_plan(s, 2 * (uint64_t)n_batch, &here, err) &&
                    model_session_plan_batch(s, n_batch, &here, err) &&
                    (!of->drafts || generate_draft_plan(s, &here, err));
    *bytes = plan.total;
    model_session_free(s);
    model_close(model);
    engine_free(engine);
    return ok;
}

/* Reduces *n to the number of layers whose bytes fit in m->gpu.room. */
static bool fit(const struct measurement *of, uint32_t *n, struct base_error *err)
{
    struct cli_model_gpu *g = &of->m->gpu;
    uint32_t least = 0, most = *n;
    for (uint32_t k = most; least < most; k = least + (most - least + 1) / 2) {
        uint64_t bytes;
        choose_rows(of->m, k, 0);
        if (!measure(of, k, &bytes, err)) return false;
        if (bytes <= g->room) {
            least = k;
            g->taken = bytes;
        } else
            most = k - 1;
    }
    *n = least;
    return least > 0 || base_fail(err, BASE_USAGE, "its free memory has no room for a layer");
}

/* Chooses the hot rows of n layers: the given share, or the largest that fits. */
static bool fit_rows(const struct measurement *of, uint64_t room, uint32_t n,
                     struct base_error *err)
{
    struct cli_model_gpu *g = &of->m->gpu;
    uint32_t least = 0, most = SHARES;
    for (uint32_t k = most; g->given_share == 0 && least < most;
         k = least + (most - least + 1) / 2) {
        uint64_t bytes;
        choose_rows(of->m, n, (double)k / SHARES);
        if (!measure(of, n, &bytes, err)) return false;
        if (bytes <= room) {
            least = k;
            g->taken = bytes;
        } else
            most = k - 1;
    }
    g->share = g->given_share > 0 ? g->given_share : (double)least / SHARES;
    choose_rows(of->m, n, g->share);
    return g->given_share == 0 || measure(of, n, &g->taken, err);
}

static bool choose(struct cli_model *m, const struct model_session_options *options, bool drafts,
                   uint32_t *n, struct base_error *err)
{
    const struct measurement of = {m, options, drafts};
    const struct cli_gpu *g = m->gpu.device;
    struct engine_gpu_facts facts = g->facts;
    const uint32_t all = model_facts(m->model)->n_layer + model_facts(m->model)->has_mtp;
    const struct cli_gpu_layers *wanted = &m->gpu.wanted;
    *n = wanted->n < all ? wanted->n : all;
    if (m->gpu.counts.n && model_adapter_count(m->model))
        return base_fail(err, BASE_USAGE, "--cpu-cold divides matrices, so adapters cannot act");
    if (g->gpu && m->gpu.at.n_layers == 0 && !engine_gpu_read_facts(g->gpu, &facts, err))
        return false;
    if (m->gpu.at.n_layers == 0 && !m->drafts) m->gpu.room = facts.free - facts.free / SPARE;
    choose_rows(m, *n, 0);
    if (!(wanted->fits ? fit(&of, n, err) : measure(&of, *n, &m->gpu.taken, err))) return false;
    /* Without a GPU (--plan) all rows fit. */
    return m->gpu.counts.n == 0 || fit_rows(&of, facts.free ? m->gpu.room : UINT64_MAX, *n, err);
}

bool cli_gpu_place(struct cli_model *m, const struct model_session_options *options, bool drafts,
                   struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct model_placement *at = &m->gpu.at;
    const double share = m->gpu.share;
    uint32_t n;
    if (!m->gpu.device) return true;
    if (!choose(m, options, drafts, &n, &why)) {
        if (why.code != BASE_USAGE || !m->gpu.wanted.fits)
            return base_fail_at(err, why.code, m->drafts ? "--gpu-draft" : "--gpu", -1, "%s",
                                why.text);
        cli_note("no layer %sis on the GPU: %s", m->drafts ? "of the draft model " : "", why.text);
        m->gpu.taken = 0;
        n = 0;
    }
    if (n == at->n_layers && share == m->gpu.share) return true;
    model_close(m->model);
    at->n_layers = n;
    at->output = n > 0;
    m->model = model_open(m->file, m->engine, n ? at : NULL, err);
    if (!m->model) base_error_set_file(err, gguf_path(m->file));
    return m->model && cli_adapters_apply(&m->adapters, m->model, err);
}

uint32_t cli_gpu_layers(const struct cli_model *m)
{
    const uint32_t n = model_facts(m->model)->n_layer;
    return m->gpu.at.n_layers < n ? m->gpu.at.n_layers : n;
}

void cli_gpu_add_json(const struct cli_model *m, struct base_buffer *out)
{
    if (!m->gpu.device) return;
    base_buffer_add_text(out, ",\"gpu\":{");
    base_buffer_add_string(out, "name", m->gpu.device->facts.name);
    base_buffer_add_format(out, ",\"layers\":%u", cli_gpu_layers(m));
    if (m->gpu.counts.n) base_buffer_add_format(out, ",\"hot_share\":%.6g", m->gpu.share);
    base_buffer_add_text(out, "}");
}

void cli_gpu_note(const struct cli_model *m)
{
    char hot[64] = "";
    if (m->gpu.counts.n)
        snprintf(hot, sizeof hot, ", %.0f %% of the rows of their networks", 100 * m->gpu.share);
    if (m->gpu.device)
        cli_note("%s: %u of %u layers%s%s", m->gpu.device->facts.name, cli_gpu_layers(m),
                 model_facts(m->model)->n_layer, m->drafts ? " of the draft model" : "", hot);
}
