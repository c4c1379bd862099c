/* cli/out/memory_plan.c: --plan. See cli/out/memory_plan.h. */
#include "cli/out/memory_plan.h"
#include "base/memory.h"
#include "base/os.h"
#include "cli/draft_model.h"
#include "cli/gpu_layers.h"
#include "cli/system.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void cli_plan_probe_open(struct cli_plan_probe *p)
{
    struct base_memory memory;
    base_memory_read("", &memory);
    p->room_known = base_memory_room(&memory, &p->room);
    p->program = 0;
    p->statm = base_os_resident_open();
}

void cli_plan_probe_close(struct cli_plan_probe *p)
{
    if (p->statm >= 0) close(p->statm);
    p->statm = -1;
}

/* Returns the present memory of this process: the program, its libraries, the vocabulary, its
 * tables. A run needs all of it too. In steps of 4 MB, because it differs by some pages between
 * equal calls: what fits for one of them fits for all. 0: not known. */
static uint64_t resident_bytes(const struct cli_plan_probe *p)
{
    enum { STEP = 4 * 1000 * 1000, LIBRARIES = 2 * 1000 * 1000 };
    const uint64_t bytes = base_os_resident(p->statm);
    return bytes ? (bytes + LIBRARIES + STEP - 1) / STEP * STEP : 0;
}

static double mb(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static void add_gpu_text(const struct cli_model *m, int i, struct base_buffer *out)
{
    char hot[48] = "";
    const struct cli_model_gpu *g = &m->gpu;
    const struct engine_gpu_facts *facts = &g->device->card[i].facts;
    const struct engine_gpu_plan *plan = &g->plan[i];
    if (g->counts.n) snprintf(hot, sizeof hot, ", %.0f %% of their rows", 100 * g->share);
    base_buffer_add_format(out,
                           "GPU         %10.1f MB  %u layers%s: weights %.1f MB, cache %.1f MB, "
                           "activations %.1f MB\n",
                           mb(plan->total), model_layers_in(m->model, g->at.place + i), hot,
                           mb(plan->bytes[ENGINE_BUFFER_WEIGHTS]),
                           mb(plan->bytes[ENGINE_BUFFER_STATE]),
                           mb(plan->bytes[ENGINE_BUFFER_GRAPH]));
    if (facts->free)
        base_buffer_add_format(out, "%25s  of %.1f MB that are free on %s: %s\n", "",
                               mb(facts->free), facts->name,
                               plan->total <= facts->free ? "fits" : "does not fit");
}

/* What the larger part of the copies is. */
static const char *copies_of(const struct cli_model *m)
{
    const struct model_facts *f = model_facts(m->model);
    if (f->separated_bytes > f->copied_bytes + f->row_bytes)
        return "rows that are rewritten when the model is opened";
    return m->gpu.counts.n ? "cold rows (--cpu-cold)" : "matrices by columns (--sparse)";
}

static void add_text(const struct cli_memory_plan *p, const struct cli_model *m,
                     const struct cli_plan_probe *probe, struct base_buffer *out)
{
    const struct engine_options *e = &m->engine->options;
    base_buffer_add_format(
        out, "weights     %10.1f MB  mapped from the file, shared by processes\n", mb(p->weights));
    if (p->copies)
        base_buffer_add_format(out, "copies      %10.1f MB  of %s\n", mb(p->copies), copies_of(m));
    base_buffer_add_format(out,
                           "cache       %10.1f MB  for %u tokens, %.1f kB each; resident as far as "
                           "it is filled\n",
                           mb(p->cache), p->n_ctx, (double)p->cache / p->n_ctx / 1e3);
    base_buffer_add_format(
        out, "activations %10.1f MB  a prompt of %llu tokens, then one by one%s\n",
        mb(p->activations), (unsigned long long)p->n_prompt, p->drafts ? ", or with guesses" : "");
    if (p->program)
        base_buffer_add_format(out, "program     %10.1f MB  with vocabulary and tables\n",
                               mb(p->program));
    else
        base_buffer_add_text(out, "program      not known\n");
    base_buffer_add_format(out, "total       %10.1f MB%s", mb(p->total),
                           p->program ? "" : "  without the program");
    if (probe->room_known)
        base_buffer_add_format(out, "  of %.1f MB that are free: %s", mb(probe->room),
                               p->total <= probe->room ? "fits" : "does not fit");
    else
        base_buffer_add_text(out, "; free memory not known");
    base_buffer_add_text(out, "\n");
    for (int i = 0; m->gpu.device && i < m->gpu.device->n; i++) add_gpu_text(m, i, out);
    if (m->stream.on)
        base_buffer_add_format(
            out,
            "experts     %10.1f MB  read from the disk as tokens choose them: of "
            "%.1f MB for a token\n%25s  about %.1f MB, so 10 tokens/s need "
            "%.1f MB/s\n",
            mb(m->stream.experts), mb(m->stream.chosen), "", mb(m->stream.missing),
            10 * mb(m->stream.missing));
    base_buffer_add_format(out, "threads     %10d     %s kernels\n", e->n_threads,
                           cpu_level_name(e->level));
}

/* Returns the bytes of a kind on all GPUs; ENGINE_BUFFER_KINDS: of all kinds. */
static uint64_t on_gpus(const struct cli_model_gpu *g, enum engine_buffer_kind kind)
{
    uint64_t sum = 0;
    for (int i = 0; i < CLI_GPUS_MAX; i++)
        sum += kind == ENGINE_BUFFER_KINDS ? g->plan[i].total : g->plan[i].bytes[kind];
    return sum;
}

static void add_gpu_json(const struct cli_model *m, struct base_buffer *out)
{
    const struct cli_model_gpu *g = &m->gpu;
    uint64_t free_bytes = 0;
    bool fits = true;
    for (int i = 0; i < g->device->n; i++) {
        free_bytes += g->device->card[i].facts.free;
        fits &= g->plan[i].total <= g->device->card[i].facts.free;
    }
    base_buffer_add_text(out, ",\"gpu\":{");
    base_buffer_add_string(out, "name", free_bytes ? g->device->name : NULL);
    base_buffer_add_format(
        out,
        ",\"layers\":%u,\"bytes\":{\"weights\":%llu,\"cache\":%llu,\"activations\":%llu,"
        "\"total\":%llu},",
        g->at.n_layers, (unsigned long long)on_gpus(g, ENGINE_BUFFER_WEIGHTS),
        (unsigned long long)on_gpus(g, ENGINE_BUFFER_STATE),
        (unsigned long long)on_gpus(g, ENGINE_BUFFER_GRAPH),
        (unsigned long long)on_gpus(g, ENGINE_BUFFER_KINDS));
    if (g->counts.n) base_buffer_add_format(out, "\"hot_share\":%.6g,", g->share);
    if (free_bytes)
        base_buffer_add_format(out, "\"free\":%llu,\"fits\":%s}", (unsigned long long)free_bytes,
                               fits ? "true" : "false");
    else
        base_buffer_add_text(out, "\"free\":null,\"fits\":null}");
}

static void add_json(const struct cli_memory_plan *p, const struct cli_model *m,
                     const struct cli_plan_probe *probe, struct base_buffer *out)
{
    const struct engine_options *e = &m->engine->options;
    const char *path = gguf_path(m->file);
    base_buffer_add_text(out, "{\"model\":");
    base_buffer_add_json(out, m->name.data, m->name.size);
    base_buffer_add_text(out, ",\"model_path\":");
    base_buffer_add_json(out, path, strlen(path));
    base_buffer_add_format(out,
                           ",\"prompt_tokens\":%llu,\"context\":%u,\"threads\":%d,"
                           "\"level\":\"%s\",\"bytes\":{\"weights\":%llu,\"cache\":%llu,"
                           "\"activations\":%llu,",
                           (unsigned long long)p->n_prompt, p->n_ctx, e->n_threads,
                           cpu_level_name(e->level), (unsigned long long)p->weights,
                           (unsigned long long)p->cache, (unsigned long long)p->activations);
    if (p->copies) base_buffer_add_format(out, "\"copies\":%llu,", (unsigned long long)p->copies);
    if (p->program)
        base_buffer_add_format(out, "\"program\":%llu,\"total\":%llu},",
                               (unsigned long long)p->program, (unsigned long long)p->total);
    else
        base_buffer_add_text(out, "\"program\":null,\"total\":null},");
    if (probe->room_known)
        base_buffer_add_format(out, "\"free\":%llu,", (unsigned long long)probe->room);
    else
        base_buffer_add_text(out, "\"free\":null,");
    base_buffer_add_format(out, "\"fits\":%s",
                           !probe->room_known || !p->program ? "null"
                           : p->total <= probe->room         ? "true"
                                                             : "false");
    if (m->gpu.device) add_gpu_json(m, out);
    if (m->stream.on)
        base_buffer_add_format(out,
                               ",\"streams\":{\"experts\":%llu,\"chosen\":%llu,"
                               "\"read_per_token\":%llu}",
                               (unsigned long long)m->stream.experts,
                               (unsigned long long)m->stream.chosen,
                               (unsigned long long)m->stream.missing);
    base_buffer_add_text(out, "}\n");
}

bool cli_plan_measure(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                      struct cli_plan_probe *probe, struct cli_memory_plan *out,
                      struct base_error *err)
{
    struct cli_memory_plan p = {.n_ctx = model_session_n_ctx(m->session),
                                .n_prompt = n_prompt,
                                .drafts = cli_draft_source(values) != CLI_DRAFT_OFF};
    if (p.n_prompt == 0) p.n_prompt = (uint64_t)values->batch_size;
    if (p.n_prompt > p.n_ctx) p.n_prompt = p.n_ctx;
    if (!model_session_plan(m->session, p.n_prompt, &p.activations, err) ||
        (p.drafts && !generate_draft_plan(m->session, &p.activations, err)))
        return false;
    /* What is on a GPU is not here. */
    const struct model_facts *f = model_facts(m->model);
    p.weights = f->weight_bytes - f->placed_bytes - f->row_bytes;
    if (m->drafter.model) p.weights += model_facts(m->drafter.model)->weight_bytes;
    p.activations -= on_gpus(&m->gpu, ENGINE_BUFFER_GRAPH);
    p.copies = f->copied_bytes + f->row_bytes + f->separated_bytes;
    p.cache = model_session_cache_bytes(m->session) - on_gpus(&m->gpu, ENGINE_BUFFER_STATE);
    if (!probe->program) probe->program = resident_bytes(probe);
    p.program = probe->program;
    p.total = p.weights + p.copies + p.cache + p.activations + p.program;
    *out = p;
    return true;
}

bool cli_plan_print(const struct cli_memory_plan *p, const struct cli_model *m,
                    const struct cli_values *values, const struct cli_plan_probe *probe,
                    struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    if (values->json)
        add_json(p, m, probe, &out);
    else
        add_text(p, m, probe, &out);
    return cli_write_buffer(&out, err);
}

bool cli_plan_show(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                   struct base_error *err)
{
    struct cli_plan_probe probe;
    struct cli_memory_plan p;
    cli_plan_probe_open(&probe);
    const bool ok = cli_plan_measure(m, values, n_prompt, &probe, &p, err) &&
                    cli_plan_print(&p, m, values, &probe, err);
    cli_plan_probe_close(&probe);
    return ok;
}
