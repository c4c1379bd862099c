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
    SPARE = 32,  /* one part of the free memory is for what the driver needs itself */
    SHARES = 64, /* steps of the share of hot rows */
    TURNS = 4    /* divisions of layers that are tried */
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

/* Opens GPU o->index, or with --plan reads only what it is. */
static bool open_card(struct cli_gpu *g, const struct cli_values *values,
                      const struct engine_gpu_options *o, struct base_error *err)
{
    struct cli_gpu_card *card = &g->card[g->n];
    struct base_error ignored = BASE_ERROR_INIT;
    const size_t used = strlen(g->name);
    bool ok;
    if (values->plan) { /* a number of layers needs no GPU */
        ok = engine_gpu_find(o, &card->facts, g->wanted.fits ? err : &ignored) || !g->wanted.fits;
    } else {
        card->gpu = engine_gpu_open(o, err);
        ok = card->gpu && engine_gpu_read_facts(card->gpu, &card->facts, err);
    }
    if (!ok) return false;
    g->n++;
    if (*card->facts.name)
        snprintf(g->name + used, sizeof g->name - used, "%s%s", used ? ", " : "", card->facts.name);
    return true;
}

/* Opens all GPUs before the first number that has none. */
static bool open_all(struct cli_gpu *g, const struct cli_values *values,
                     struct engine_gpu_options *o, struct base_error *err)
{
    for (o->index = 0; o->index < CLI_GPUS_MAX; o->index++) {
        struct base_error none = BASE_ERROR_INIT;
        const bool ok = open_card(g, values, o, o->index ? &none : err);
        if (o->index > 0 && (!ok || !g->card[o->index].facts.memory)) break;
        if (!ok) return false;
    }
    g->n = o->index;
    return true;
}

static bool open_list(struct cli_gpu *g, const struct cli_values *values,
                      struct engine_gpu_options *o, struct base_error *err)
{
    uint32_t seen = 0;
    for (const char *at = values->gpu_device;; at++) {
        char *end;
        const unsigned long i = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end && *end != ',') || i > 31 || (seen >> i & 1) ||
            g->n == CLI_GPUS_MAX)
            return base_fail(err, BASE_USAGE,
                             "--gpu-device '%s' is neither all nor up to %d numbers of GPUs",
                             values->gpu_device, CLI_GPUS_MAX);
        seen |= UINT32_C(1) << i;
        o->index = (int)i;
        if (!open_card(g, values, o, err)) return false;
        at = end;
        if (!*at) return true;
    }
}

static bool open_cards(struct cli_gpu *g, const struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER cache = BASE_BUFFER_INIT;
    struct engine_gpu_options o = {.library = ENGINE_GPU_LIBRARY};
    struct stat st;
    if (!values->plan && cli_user_path("XDG_CACHE_HOME", ".cache", "gpu", &cache) &&
        !cache.failed && cli_user_make_folder(cache.data, 0700) && stat(cache.data, &st) == 0 &&
        cli_user_owns(&st))
        o.cache = cache.data;
    return cli_is_choice("all", values->gpu_device) ? open_all(g, values, &o, err)
                                                    : open_list(g, values, &o, err);
}

static void close_cards(struct cli_gpu *g)
{
    for (int i = 0; i < CLI_GPUS_MAX; i++) engine_gpu_close(g->card[i].gpu);
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
    if (!open_cards(&g, values, &why)) {
        close_cards(&g);
        if (!g.wanted.fits) return base_fail_at(err, why.code, "--gpu", -1, "%s", why.text);
        cli_note("no GPU, so the processor computes: %s", why.text);
        return true;
    }
    values->device = malloc(sizeof *values->device);
    if (!values->device) {
        close_cards(&g);
        return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    }
    *values->device = g;
    return true;
}

void cli_gpu_close(struct cli_values *values)
{
    if (values->device) close_cards(values->device);
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
    m->gpu.at.n_places = g->n;
    for (int i = 0; i < g->n; i++) {
        const struct engine_place *place =
            values->plan
                ? engine_add_place(m->engine, &engine_backend_gpu_plan, &m->gpu.plan[i], err)
                : engine_add_place(m->engine, &engine_backend_gpu, g->card[i].gpu, err);
        if (!place) return false;
        if (i == 0) m->gpu.at.place = place;
    }
    return true;
}

void cli_gpu_join_draft(struct cli_model *draft, const struct cli_model *model)
{
    const struct cli_model_gpu *g = &model->gpu;
    if (!g->device || g->device->draft.n == 0) return;
    draft->gpu.device = g->device;
    draft->gpu.wanted = g->device->draft;
    draft->gpu.at.place = g->at.place;
    draft->gpu.at.n_places = g->at.n_places;
    for (int i = 0; i < g->device->n; i++)
        draft->gpu.room[i] = g->room[i] > g->taken[i] ? g->room[i] - g->taken[i] : 0;
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

/* Computes the bytes that a session and n layers need on each GPU: weights, states, and the graphs
 * of long prompts, of single tokens and of drafts. Fails with BASE_USAGE if it lacks an op. */
static bool measure(const struct measurement *of, uint32_t n, struct base_error *err)
{
    struct engine_options o = of->m->engine->options;
    struct engine_gpu_plan plan[CLI_GPUS_MAX] = {0};
    struct model_placement at = of->m->gpu.at;
    struct model *model = NULL;
    struct model_session *s = NULL;
    uint64_t here;
    o.plan_only = true;
    o.n_threads = 1;
    at.n_layers = n;
    at.output = true;
    struct engine *engine = engine_new(&o, err);
    for (int i = 0; engine && i < at.n_places; i++)
        (void)engine_add_place(engine, &engine_backend_gpu_plan, &plan[i], err);
    if (engine) at.place = &engine->place[1];
    if (engine) model = model_open(of->m->file, engine, &at, err);
    if (model && cli_adapters_apply(&of->m->adapters, model, err))
        s = model_session_new(model, of->options, err);
    const uint32_t n_batch = s ? model_session_n_batch(s) : 0;
    const bool ok = s && model_session_plan(s, 2 * (uint64_t)n_batch, &here, err) &&
                    model_session_plan_batch(s, n_batch, &here, err) &&
                    (!of->drafts || generate_draft_plan(s, &here, err));
    for (int i = 0; i < at.n_places; i++) of->m->gpu.taken[i] = plan[i].total;
    model_session_free(s);
    model_close(model);
    engine_free(engine);
    return ok;
}

/* Divides n layers among the GPUs, by their room and then by what the layers need of it, and
 * computes whether they fit. */
static bool divide(const struct measurement *of, uint32_t n, bool *fits, struct base_error *err)
{
    struct cli_model_gpu *g = &of->m->gpu;
    const int n_cards = g->device->n;
    for (int i = 0; i < n_cards; i++) g->at.share[i] = (double)g->room[i] + 1;
    for (int turn = 0; turn < TURNS; turn++) {
        *fits = true;
        if (!measure(of, n, err)) return false;
        for (int i = 0; i < n_cards; i++) *fits &= g->taken[i] <= g->room[i];
        if (*fits || n_cards == 1) break;
        for (int i = 0; i < n_cards && turn + 1 < TURNS; i++)
            g->at.share[i] *= ((double)g->room[i] + 1) / ((double)g->taken[i] + 1);
    }
    return true;
}

/* Finds the largest number up to *n whose layers fit, without hot rows, or with `rows` the largest
 * share of rows in SHARES of n layers. */
static bool fit(const struct measurement *of, uint32_t n_layers, bool rows, uint32_t *n,
                struct base_error *err)
{
    uint32_t least = 0, most = *n;
    for (uint32_t k = most; least < most; k = least + (most - least + 1) / 2) {
        bool fits;
        choose_rows(of->m, rows ? n_layers : k, rows ? (double)k / SHARES : 0);
        if (!divide(of, rows ? n_layers : k, &fits, err)) return false;
        if (fits)
            least = k;
        else
            most = k - 1;
    }
    *n = least;
    return true;
}

static bool choose(struct cli_model *m, const struct model_session_options *options, bool drafts,
                   uint32_t *n, struct base_error *err)
{
    const struct measurement of = {m, options, drafts};
    struct cli_model_gpu *g = &m->gpu;
    const uint32_t all = model_facts(m->model)->n_layer + model_facts(m->model)->has_mtp;
    uint32_t shares = SHARES;
    bool known = true, fits;
    if (g->counts.n && model_adapter_count(m->model))
        return base_fail(err, BASE_USAGE, "--cpu-cold divides matrices, so adapters cannot act");
    for (int i = 0; i < g->device->n; i++) {
        const struct cli_gpu_card *card = &g->device->card[i];
        struct engine_gpu_facts facts = card->facts;
        if (g->at.n_layers > 0 || m->drafts) break;
        if (card->gpu && !engine_gpu_read_facts(card->gpu, &facts, err)) return false;
        g->room[i] = facts.free - facts.free / SPARE;
    }
    for (int i = 0; i < g->device->n; i++) known &= g->room[i] > 0;
    *n = g->wanted.n < all ? g->wanted.n : all;
    if (g->wanted.fits && !fit(&of, 0, false, n, err)) return false;
    if (g->wanted.fits && *n == 0)
        return base_fail(err, BASE_USAGE, "its free memory has no room for a layer");
    /* Without a GPU (--plan) all rows fit. */
    if (g->counts.n && g->given_share == 0 && known && !fit(&of, *n, true, &shares, err))
        return false;
    if (g->counts.n) g->share = g->given_share > 0 ? g->given_share : (double)shares / SHARES;
    choose_rows(m, *n, g->share);
    return divide(&of, *n, &fits, err);
}

bool cli_gpu_place(struct cli_model *m, const struct model_session_options *options, bool drafts,
                   struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct model_placement *at = &m->gpu.at, before = *at;
    const double share = m->gpu.share;
    uint32_t n;
    if (!m->gpu.device) return true;
    if (!choose(m, options, drafts, &n, &why)) {
        if (why.code != BASE_USAGE || !m->gpu.wanted.fits)
            return base_fail_at(err, why.code, m->drafts ? "--gpu-draft" : "--gpu", -1, "%s",
                                why.text);
        cli_note("no layer %sis on the GPU: %s", m->drafts ? "of the draft model " : "", why.text);
        memset(m->gpu.taken, 0, sizeof m->gpu.taken);
        n = 0;
    }
    if (n == at->n_layers && share == m->gpu.share &&
        memcmp(before.share, at->share, sizeof at->share) == 0)
        return true;
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
    base_buffer_add_string(out, "name", m->gpu.device->name);
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
        cli_note("%s: %u of %u layers%s%s", m->gpu.device->name, cli_gpu_layers(m),
                 model_facts(m->model)->n_layer, m->drafts ? " of the draft model" : "", hot);
}
