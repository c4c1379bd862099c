/* cli/out/memory_plan.c: --plan. See cli/out/memory_plan.h. */
#include "cli/out/memory_plan.h"
#include "base/memory.h"
#include "cli/draft_model.h"
#include "cli/system.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct plan {
    uint64_t weights, cache, activations, program, total;
    uint64_t room; /* free memory within the limits of this process */
    bool room_known;
    uint64_t n_prompt;
    uint32_t n_ctx;
    bool guesses;
};

/* Returns the present memory of this process: the program, its libraries, the vocabulary, its
 * tables. A run needs all of it too. */
static uint64_t resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0; /* unknown */
    if (fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double mb(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static void add_text(const struct plan *p, const struct cli_model *m, struct base_buffer *out)
{
    const struct engine_options *e = &m->engine->options;
    base_buffer_add_format(
        out, "weights     %10.1f MB  mapped from the file, shared by processes\n", mb(p->weights));
    base_buffer_add_format(out,
                           "cache       %10.1f MB  for %u tokens, %.1f kB each; resident as far as "
                           "it is filled\n",
                           mb(p->cache), p->n_ctx, (double)p->cache / p->n_ctx / 1e3);
    base_buffer_add_format(
        out, "activations %10.1f MB  a prompt of %llu tokens, then one by one%s\n",
        mb(p->activations), (unsigned long long)p->n_prompt, p->guesses ? ", or with guesses" : "");
    if (p->program)
        base_buffer_add_format(out, "program     %10.1f MB  with vocabulary and tables\n",
                               mb(p->program));
    else
        base_buffer_add_text(out, "program      not known\n");
    base_buffer_add_format(out, "total       %10.1f MB%s", mb(p->total),
                           p->program ? "" : "  without the program");
    if (p->room_known)
        base_buffer_add_format(out, "  of %.1f MB that are free: %s", mb(p->room),
                               p->total <= p->room ? "fits" : "does not fit");
    else
        base_buffer_add_text(out, "; free memory not known");
    base_buffer_add_format(out, "\nthreads     %10d     %s kernels\n", e->n_threads,
                           cpu_level_name(e->level));
}

static void add_json(const struct plan *p, const struct cli_model *m, struct base_buffer *out)
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
    if (p->program)
        base_buffer_add_format(out, "\"program\":%llu,\"total\":%llu},",
                               (unsigned long long)p->program, (unsigned long long)p->total);
    else
        base_buffer_add_text(out, "\"program\":null,\"total\":null},");
    if (p->room_known)
        base_buffer_add_format(out, "\"free\":%llu,", (unsigned long long)p->room);
    else
        base_buffer_add_text(out, "\"free\":null,");
    base_buffer_add_format(out, "\"fits\":%s}\n",
                           !p->room_known || !p->program ? "null"
                           : p->total <= p->room         ? "true"
                                                         : "false");
}

bool cli_plan_show(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                   struct base_error *err)
{
    struct plan p = {.n_ctx = model_session_n_ctx(m->session),
                     .n_prompt = n_prompt,
                     .guesses = cli_draft_source(values) != CLI_DRAFT_OFF};
    struct base_memory memory;
    struct base_buffer out = BASE_BUFFER_INIT;
    if (p.n_prompt == 0) p.n_prompt = (uint64_t)values->batch_size;
    if (p.n_prompt > p.n_ctx) p.n_prompt = p.n_ctx;
    if (!model_session_plan(m->session, p.n_prompt, &p.activations, err) ||
        (p.guesses && !generate_draft_plan(m->session, &p.activations, err)))
        return false;
    base_memory_read("", &memory);
    p.room_known = base_memory_room(&memory, &p.room);
    p.weights = model_facts(m->model)->weight_bytes;
    p.cache = model_session_cache_bytes(m->session);
    p.program = resident_bytes();
    p.total = p.weights + p.cache + p.activations + p.program;
    if (values->json)
        add_json(&p, m, &out);
    else
        add_text(&p, m, &out);
    const bool ok = cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}
