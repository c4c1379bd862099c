/* cli/cmd/cmd_doctor.c: `infer doctor`: facts about this machine, the engine's settings for it, and
 * advice for speed. It measures for a short time, and has no advice on facts that it cannot
 * read. */
#include "cli/hwinfo.h"
#include "cli/load.h"
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/out/gguf_text.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include "engine/cpu/matmul/blas.h"
#include "engine/cpu/roofline.h"
#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_code.h"
#include <stdio.h>
#include <string.h>

enum { ADVICE_MAX = 12 };

struct doctor {
    const struct cli_values *values;
    struct cli_machine machine;
    struct engine *engine;
    double bandwidth, int8; /* bytes and multiply-adds per second; 0: not measured */
    struct base_buffer model;
    uint64_t model_bytes;
    struct base_error model_error;
    bool has_blas;
    struct engine_gpu_facts gpu;
    struct base_error gpu_error;
    struct cli_sandbox_facts sandbox;
    struct base_buffer why;                /* why this level was selected */
    struct base_buffer advice[ADVICE_MAX]; /* one line each */
    size_t n_advice;
};

/* ---- Facts ---- */

static void explain_level(struct doctor *d)
{
    const enum cpu_level best = cpu_level_best(), level = d->engine->options.level;
    struct base_buffer *why = &d->why;
    if (level != best) {
        base_buffer_add_format(why, "--isa or INFER_ISA caps it; this processor can do %s",
                               cpu_level_name(best));
        return;
    }
    const enum cpu_level next_level = best + 1;
    if (next_level == CPU_LEVEL_COUNT || !cpu_level_built(next_level)) {
        base_buffer_add_text(why, "the highest there is");
        return;
    }
    if (!d->machine.features_known) {
        base_buffer_add_text(why, "what the processor lacks for more is not known");
        return;
    }
    bool any = false;
    const char *next = cpu_level_name(next_level);
    for (const char *word = cpu_level_needs(next_level); *word; word += *word == ' ') {
        char name[32];
        const size_t n = strcspn(word, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        word += n;
        if (cli_machine_has(&d->machine, name)) continue;
        if (!any) base_buffer_add_format(why, "for %s the processor lacks", next);
        base_buffer_add_format(why, " %s", name);
        any = true;
    }
    if (!any) base_buffer_add_format(why, "for %s the system does not save the registers", next);
}

static void check_model(struct doctor *d)
{
    d->model_error = BASE_ERROR_INIT;
    if (!cli_model_path(d->values, &d->model, &d->model_error)) return;
    struct gguf_file *file = gguf_open(d->model.data, &d->model_error);
    if (file && cli_model_check(file, &d->model_error)) d->model_bytes = cli_gguf_sum(file).bytes;
    gguf_close(file);
}

static bool collect(struct doctor *d, struct base_error *err)
{
    struct base_error ignored = BASE_ERROR_INIT; /* without memory the report says "not measured" */
    struct engine_options o = engine_options_default();
    cli_machine_read(&d->machine);
    o.n_threads = (int)d->values->threads;
    if (d->values->isa && !cpu_level_by_name(d->values->isa, &o.level))
        return base_fail_at(err, BASE_USAGE, "--isa", -1, "'%s' is not a level", d->values->isa);
    d->engine = engine_new(&o, err);
    if (!d->engine) return false;
    explain_level(d);
    check_model(d);
    if (d->model_error.code == BASE_NO_MEMORY) {
        *err = d->model_error;
        return false;
    }
    struct engine_blas *blas = engine_blas_open(&ignored);
    d->has_blas = blas != NULL;
    d->gpu_error = BASE_ERROR_INIT;
    (void)engine_gpu_find(&(struct engine_gpu_options){.library = ENGINE_GPU_LIBRARY}, &d->gpu,
                          &d->gpu_error);
    d->sandbox = cli_sandbox_facts();
    engine_blas_close(blas);
    d->bandwidth = engine_roofline_bandwidth(d->engine->cpu, &ignored);
    d->int8 = engine_roofline_int8(d->engine->cpu);
    return base_goes_on(err);
}

/* ---- Advice ---- */

static struct base_buffer *line(struct doctor *d)
{
    return &d->advice[d->n_advice < ADVICE_MAX - 1 ? d->n_advice++ : ADVICE_MAX - 1];
}

static void advise_threads(struct doctor *d)
{
    const struct cli_machine *m = &d->machine;
    const int n = d->engine->options.n_threads;
    if (d->engine->options.level != cpu_level_best())
        base_buffer_add_format(line(d), "leave out --isa (INFER_ISA): %s kernels are faster",
                               cpu_level_name(cpu_level_best()));
    if (cpu_level_best() == CPU_SCALAR)
        base_buffer_add_text(line(d), "a processor with AVX2 would be several times faster");
    if (n < m->threads)
        base_buffer_add_format(line(d), "leave out --threads (INFER_THREADS): %d threads may run",
                               m->threads);
    if (n > m->threads)
        base_buffer_add_format(line(d),
                               "take %d threads: more than the cores that this process has "
                               "wait for each other",
                               m->threads);
    if (m->quota > 0 && m->quota < m->cores)
        base_buffer_add_format(line(d),
                               "a control group grants %d of %d cores: a larger CPU quota "
                               "(docker --cpus, systemd CPUQuota) gives more threads",
                               m->quota, m->cores);
    if (m->allowed < m->online)
        base_buffer_add_format(line(d),
                               "the affinity mask allows %d of %d processors (taskset, cpuset)",
                               m->allowed, m->online);
    if (m->load > 0.5 * m->allowed)
        base_buffer_add_format(line(d),
                               "other programs are busy here (load %.1f on %d processors): "
                               "figures will vary",
                               m->load, m->allowed);
    if (m->governor[0] && strcmp(m->governor, "performance") != 0)
        base_buffer_add_format(line(d),
                               "the clock governor is '%s': 'performance' avoids slow starts "
                               "(cpupower frequency-set -g performance)",
                               m->governor);
}

static void advise_model(struct doctor *d)
{
    const struct cli_machine *m = &d->machine;
    uint64_t room;
    if (d->model_error.code) {
        char text[512];
        base_error_format(&d->model_error, text, sizeof text);
        cli_show(line(d), text, strlen(text), false);
        return;
    }
    if (base_memory_room(&m->memory, &room) && d->model_bytes + d->model_bytes / 8 > room)
        base_buffer_add_text(line(d), "the model hardly fits the free memory: a smaller "
                                      "quantization avoids reading it from disk again and again");
    if (d->bandwidth > 0 && d->model_bytes > 0)
        base_buffer_add_format(line(d),
                               "a token reads about %.0f MB of weights, so memory allows at most "
                               "%.0f tokens/s: fewer bits per weight (infer quantize) or faster "
                               "memory raise that",
                               (double)d->model_bytes / 1e6, d->bandwidth / (double)d->model_bytes);
}

/* ---- Reports ---- */

/* Returns the text, or that it is not known. */
static const char *known(const char *text)
{
    return *text ? text : "not known";
}

static void text_processor(const struct doctor *d, struct base_buffer *out)
{
    const struct cli_machine *m = &d->machine;
    base_buffer_add_format(out, "processor     %s\nfeatures      ", known(m->cpu));
    for (int i = 0; i < m->n_features; i++)
        base_buffer_add_format(out, "%s%s", i ? " " : "", m->feature[i]);
    base_buffer_add_text(out, m->n_features       ? "\n"
                              : m->features_known ? "none that kernels use\n"
                                                  : "not known\n");
    base_buffer_add_format(out,
                           "level         %s: %s\n"
                           "family        %s (%s)\n"
                           "threads       %d; %d processors online, %d allowed, %d physical cores",
                           cpu_level_name(d->engine->options.level), d->why.size ? d->why.data : "",
                           cpu_family()->name, cpu_family()->what, d->engine->options.n_threads,
                           m->online, m->allowed, m->cores);
    if (m->quota > 0)
        base_buffer_add_format(out, ", CPU quota %d\n", m->quota);
    else
        base_buffer_add_text(out, m->quota == 0 ? ", no CPU quota\n" : ", CPU quota not known\n");
    base_buffer_add_format(out, "clock         governor %s\n", known(m->governor));
}

static void text_memory(const struct doctor *d, struct base_buffer *out)
{
    const struct cli_machine *m = &d->machine;
    if (m->memory.known)
        base_buffer_add_format(out, "memory        %.1f GB free of %.1f GB",
                               (double)m->memory.free / 1e9, (double)m->memory.total / 1e9);
    else
        base_buffer_add_text(out, "memory        free memory not known");
    if (m->memory.limit != UINT64_MAX)
        base_buffer_add_format(out, ", limit %.1f GB, of which %.1f GB are free",
                               (double)m->memory.limit / 1e9, (double)m->memory.left / 1e9);
    else if (!m->memory.limits_known)
        base_buffer_add_text(out, ", limits not known");
    base_buffer_add_format(out,
                           "\nhuge pages    %s (weights are read where the file is mapped: it "
                           "matters little)\n",
                           known(m->huge_pages));
    if (d->model_error.code)
        base_buffer_add_text(out, "model         none that can be used\n");
    else
        base_buffer_add_format(out, "model         %s, %.1f MB of weights\n", d->model.data,
                               (double)d->model_bytes / 1e6);
    base_buffer_add_format(out, "OpenBLAS      %s\nGPU           ",
                           d->has_blas ? "found (used with --blas only)"
                                       : "not found (needed for --blas only)");
    if (d->gpu_error.code)
        base_buffer_add_text(out, d->gpu_error.text);
    else
        base_buffer_add_format(out, "%s, compute capability %d.%d, %.1f GB, %.1f GB free (--gpu)",
                               d->gpu.name, d->gpu.major, d->gpu.minor, (double)d->gpu.memory / 1e9,
                               (double)d->gpu.free / 1e9);
    base_buffer_add_format(
        out, "\nGPU code      %s\nsandbox       %s",
        engine_gpu_has_code
            ? "built in"
            : "not built in (infer was compiled without clang or xz, or as one static file)",
        d->sandbox.seccomp ? "seccomp: no file, program or network once all is open"
                           : "no seccomp: files, programs and the network stay open");
    if (d->sandbox.landlock)
        base_buffer_add_format(out, "; Landlock %d: outputs in their folder%s\n",
                               d->sandbox.landlock,
                               d->sandbox.landlock < CLI_SANDBOX_SCOPED
                                   ? ", signals without a scope (from version 6 on)"
                                   : "");
    else
        base_buffer_add_text(out, "; no Landlock\n");
    if (d->bandwidth > 0)
        base_buffer_add_format(out, "bandwidth     %.1f GB/s reading: the limit of generating\n",
                               d->bandwidth / 1e9);
    else
        base_buffer_add_text(out, "bandwidth     not measured: no memory\n");
    base_buffer_add_format(out,
                           "int8 rate     %.0f G multiply-adds/s: the limit of reading a prompt\n",
                           d->int8 / 1e9);
}

static void json_bytes(struct base_buffer *out, const char *name, bool known, uint64_t bytes)
{
    base_buffer_add_format(out, known ? "\"%s\":%llu," : "\"%s\":null,", name,
                           (unsigned long long)bytes);
}

static void add_json(const struct doctor *d, struct base_buffer *out)
{
    const struct cli_machine *m = &d->machine;
    char why[600];
    base_buffer_add_text(out, "{\"version\":\"" INFER_VERSION "\",\"cpu\":{");
    base_buffer_add_string(out, "name", m->cpu);
    base_buffer_add_text(out, m->features_known ? ",\"features\":[" : ",\"features\":null");
    for (int i = 0; i < m->n_features; i++)
        base_buffer_add_format(out, "%s\"%s\"", i ? "," : "", m->feature[i]);
    base_buffer_add_format(out, "%s,\"level\":\"%s\",\"best_level\":\"%s\",",
                           m->features_known ? "]" : "", cpu_level_name(d->engine->options.level),
                           cpu_level_name(cpu_level_best()));
    base_buffer_add_string(out, "why", d->why.data);
    base_buffer_add_string(out, "family", cpu_family()->name);
    base_buffer_add_string(out, "governor", m->governor);
    base_buffer_add_format(out,
                           "},\n\"threads\":{\"used\":%d,\"standard\":%d,\"online\":%d,"
                           "\"allowed\":%d,\"cores\":%d,\"quota\":",
                           d->engine->options.n_threads, m->threads, m->online, m->allowed,
                           m->cores);
    base_buffer_add_format(out, m->quota > 0 ? "%d" : "null", m->quota);
    base_buffer_add_format(out, m->load < 0 ? ",\"load\":null}" : ",\"load\":%.2f}", m->load);
    base_buffer_add_text(out, ",\n\"memory\":{");
    json_bytes(out, "total", m->memory.known, m->memory.total);
    json_bytes(out, "free", m->memory.known, m->memory.free);
    json_bytes(out, "limit", m->memory.limit != UINT64_MAX, m->memory.limit);
    json_bytes(out, "left", m->memory.limit != UINT64_MAX, m->memory.left);
    base_buffer_add_string(out, "huge_pages", m->huge_pages);
    base_buffer_add_text(out, "},\n\"model\":{");
    base_error_format_here(&d->model_error, why, sizeof why);
    base_buffer_add_string(out, "path", d->model.data);
    base_buffer_add_text(out, ",");
    json_bytes(out, "weight_bytes", !d->model_error.code, d->model_bytes);
    base_buffer_add_string(out, "error", d->model_error.code ? why : NULL);
    base_buffer_add_text(out, "},\n\"measured\":{");
    base_buffer_add_format(
        out, d->bandwidth > 0 ? "\"bytes_per_second\":%.0f," : "\"bytes_per_second\":null,",
        d->bandwidth);
    base_buffer_add_format(out,
                           "\"int8_multiply_adds_per_second\":%.0f},\n\"openblas\":%s,\"gpu\":{",
                           d->int8, d->has_blas ? "true" : "false");
    base_buffer_add_format(out, "\"code\":%s,", engine_gpu_has_code ? "true" : "false");
    base_buffer_add_string(out, "name", d->gpu_error.code ? NULL : d->gpu.name);
    base_buffer_add_text(out, ",");
    json_bytes(out, "memory", !d->gpu_error.code, d->gpu.memory);
    json_bytes(out, "free", !d->gpu_error.code, d->gpu.free);
    base_buffer_add_string(out, "error", d->gpu_error.code ? d->gpu_error.text : NULL);
    base_buffer_add_format(out, "},\"sandbox\":{\"seccomp\":%s,\"landlock\":%d},\n\"advice\":[",
                           d->sandbox.seccomp ? "true" : "false", d->sandbox.landlock);
    for (size_t i = 0; i < d->n_advice; i++) {
        if (i) base_buffer_add_text(out, ",");
        base_buffer_add_json(out, d->advice[i].data, d->advice[i].size);
    }
    base_buffer_add_text(out, "]}\n");
}

static void add_text(const struct doctor *d, struct base_buffer *out)
{
    text_processor(d, out);
    text_memory(d, out);
    for (size_t i = 0; i < d->n_advice; i++)
        base_buffer_add_format(out, "-> %s\n", d->advice[i].data ? d->advice[i].data : "");
}

static bool cmd_doctor(struct cli_values *values, struct base_error *err)
{
    struct doctor d = {.values = values};
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    bool ok = collect(&d, err);
    if (!ok) goto done;
    advise_threads(&d);
    advise_model(&d);
    if (values->json)
        add_json(&d, &out);
    else
        add_text(&d, &out);
    out.failed |= d.why.failed | d.model.failed;
    for (size_t i = 0; i < d.n_advice; i++) out.failed |= d.advice[i].failed;
    ok = cli_write_buffer(&out, err);
done:
    for (size_t i = 0; i < ADVICE_MAX; i++) base_buffer_free(&d.advice[i]);
    base_buffer_free(&d.why);
    base_buffer_free(&d.model);
    engine_free(d.engine);
    return ok;
}

const struct cli_command cli_command_doctor = {
    .name = "doctor",
    .usage = "infer doctor [-m MODEL] [options]",
    .effect = "report what limits speed on this machine",
    .about = "Shows the features of this machine and the settings that infer chooses, with\n"
             "reasons, and measures the limits of its speed for about a second. Lines that\n"
             "begin with -> are advice for more speed. Always ends with status 0.",
    .positional = "model",
    .takes = {"FILE"},
    .run = cmd_doctor,
};
