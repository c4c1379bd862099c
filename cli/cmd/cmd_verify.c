/* cli/cmd/cmd_verify.c: `infer verify`: checks a model file: its structure, values that are not
 * finite, hashes. Status 0: no problem; 3: problems. */
#include "base/interrupt.h"
#include "base/sha256.h"
#include "cli/load.h"
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/out/gguf_text.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include "engine/cpu/cpu_device.h"
#include "gguf/values.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { HASH_STEP = 1 << 20 /* bytes between two checks for Ctrl-C */ };

struct verify {
    const struct gguf_file *file;
    struct engine_cpu *cpu;
    bool json;
    uint64_t n_problems;
    char (*hash)[BASE_SHA256_HEX]; /* --hash: of each file, then of all data, then of each tensor */
    struct base_buffer out;
};

static uint64_t hash_count(const struct verify *v)
{
    return (uint64_t)gguf_part_count(v->file) + 1 + gguf_tensor_count(v->file);
}

/* ---- Problems ---- */

static void begin_problem(struct verify *v, const char *what)
{
    if (v->json)
        base_buffer_add_format(&v->out, "%s\n{\"what\":\"%s\"", v->n_problems ? "," : "", what);
    v->n_problems++;
}

static void end_problem(struct verify *v)
{
    base_buffer_add_text(&v->out, v->json ? "}" : "\n");
}

static bool add_part_name(struct verify *v, int part, struct base_error *err)
{
    char *name = gguf_part_name(v->file, part, err);
    if (!name) return false;
    if (v->json)
        base_buffer_add_string(&v->out, "file", name);
    else
        cli_gguf_add_string(&v->out, false, (struct gguf_str){name, strlen(name)}, SIZE_MAX, false);
    free(name);
    return true;
}

/* Adds a problem of a part that has a number of bytes. */
static bool add_bytes(struct verify *v, int part, const char *what, const char *text, uint64_t n,
                      struct base_error *err)
{
    begin_problem(v, what);
    if (!add_part_name(v, part, err)) return false;
    base_buffer_add_format(&v->out, v->json ? ",\"bytes\":%llu" : ": %llu ", (unsigned long long)n);
    if (!v->json) base_buffer_add_text(&v->out, text);
    return true;
}

static bool check_layout(struct verify *v, struct base_error *err)
{
    for (int i = 0; i < gguf_part_count(v->file); i++) {
        const struct gguf_layout l = gguf_layout_measure(v->file, i);
        if (l.padding) {
            if (!add_bytes(v, i, "padding", "bytes of padding are not zero, the first at ",
                           l.padding, err))
                return false;
            base_buffer_add_format(&v->out, v->json ? ",\"at\":%llu" : "%llu",
                                   (unsigned long long)l.padding_at);
            end_problem(v);
        }
        if (l.odd) {
            if (!add_bytes(v, i, l.unordered ? "order" : "gap",
                           l.unordered ? "bytes of gaps; data is not in the order of the "
                                         "directory, first that of "
                                       : "bytes between tensors are more than padding, before ",
                           l.gaps, err))
                return false;
            if (v->json) base_buffer_add_text(&v->out, ",\"tensor\":");
            cli_gguf_add_string(&v->out, v->json, l.odd->name, CLI_SHOWN_BYTES, false);
            end_problem(v);
        }
        if (l.tail) {
            if (!add_bytes(v, i, "tail", "bytes follow the last tensor", l.tail, err)) return false;
            end_problem(v);
        }
    }
    return gguf_check_parts(v->file, err);
}

/* ---- Values ---- */

struct scan_job {
    const struct quant_kernels *kernels;
    const struct gguf_tensor *tensor;
    int64_t units;
    struct gguf_scan sum[]; /* [threads]; the result does not depend on the order of addition */
};

static void scan_units(const struct engine_worker *w, void *user)
{
    struct scan_job *j = user;
    for (int64_t u; (u = engine_pool_claim(w, 1)) < j->units && !base_interrupted();) {
        const struct gguf_scan scan = gguf_scan_unit(j->kernels, j->tensor, (uint64_t)u);
        gguf_scan_join(&j->sum[w->ith], &scan);
        cli_progress_add(j->tensor->size / (uint64_t)j->units);
    }
}

static void add_scan(struct verify *v, const struct gguf_tensor *t, const struct gguf_scan *s)
{
    uint64_t at[GGUF_MAX_DIMS];
    begin_problem(v, "values");
    if (v->json) base_buffer_add_text(&v->out, ",\"tensor\":");
    cli_gguf_add_string(&v->out, v->json, t->name, CLI_SHOWN_BYTES, false);
    base_buffer_add_format(&v->out,
                           v->json ? ",\"nan\":%llu,\"infinite\":%llu,\"first\":"
                                   : ": %llu NaN, %llu infinite, the first at ",
                           (unsigned long long)s->nan, (unsigned long long)s->infinite);
    gguf_element_at(t, s->first, at);
    cli_gguf_add_shape(&v->out, at, t->n_dims, ", ");
    end_problem(v);
}

static bool check_values(struct verify *v, struct base_error *err)
{
    const int n = engine_pool_threads(v->cpu->pool);
    struct scan_job *job = calloc(1, sizeof *job + (size_t)n * sizeof job->sum[0]);
    bool ok = job || base_fail(err, BASE_NO_MEMORY, "not enough memory to check the values");
    uint64_t bytes = 0;
    cli_progress_begin("checking", "bytes", cli_gguf_sum(v->file).bytes);
    for (uint64_t i = 0; ok && i < gguf_tensor_count(v->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(v->file, i);
        struct gguf_scan all = {.first = UINT64_MAX};
        job->kernels = &v->cpu->quant;
        job->tensor = t;
        job->units = (int64_t)gguf_unit_count(t);
        for (int k = 0; k < n; k++) job->sum[k] = all;
        engine_pool_run(v->cpu->pool, scan_units, job);
        for (int k = 0; k < n; k++) gguf_scan_join(&all, &job->sum[k]);
        ok = base_goes_on(err);
        bytes += t->size;
        cli_progress_set(bytes);
        if (ok && all.first != UINT64_MAX) add_scan(v, t, &all);
    }
    cli_progress_end();
    free(job);
    return ok;
}

/* ---- Hashes ---- */

static void hash_bytes(struct base_sha256 *h, const void *bytes, uint64_t size)
{
    for (uint64_t done = 0; done < size && !base_interrupted();) {
        const uint64_t step = size - done < HASH_STEP ? size - done : HASH_STEP;
        base_sha256_add(h, (const char *)bytes + done, (size_t)step);
        done += step;
        cli_progress_add(step);
    }
}

/* Computes one hash. Long jobs come first: files, then all data, then tensors. */
static void hash_one(const struct verify *v, uint64_t number)
{
    const uint64_t parts = (uint64_t)gguf_part_count(v->file);
    struct base_sha256 h;
    base_sha256_init(&h);
    if (number < parts) {
        const struct gguf_part_facts part = gguf_part_facts(v->file, (int)number);
        hash_bytes(&h, part.bytes, part.size);
    }
    const uint64_t first = number > parts ? number - parts - 1 : 0;
    const uint64_t end = number > parts ? first + 1 : gguf_tensor_count(v->file);
    for (uint64_t i = first; number >= parts && i < end; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(v->file, i);
        hash_bytes(&h, t->data, t->size);
    }
    base_sha256_hex(&h, v->hash[number]);
}

static void hash_all(const struct engine_worker *w, void *user)
{
    const struct verify *v = user;
    const int64_t n = (int64_t)hash_count(v);
    for (int64_t i; (i = engine_pool_claim(w, 1)) < n && !base_interrupted();)
        hash_one(v, (uint64_t)i);
}

static bool text_hashes(struct verify *v, struct base_error *err)
{
    const int parts = gguf_part_count(v->file);
    const char *path = gguf_path(v->file);
    for (uint64_t i = 0; i < gguf_tensor_count(v->file); i++) {
        const struct gguf_str name = gguf_tensor_at(v->file, i)->name;
        base_buffer_add_format(&v->out, "sha256    %s  ", v->hash[(uint64_t)parts + 1 + i]);
        cli_gguf_add_string(&v->out, false, (struct gguf_str){path, strlen(path)}, SIZE_MAX, false);
        base_buffer_add_text(&v->out, ":");
        cli_gguf_add_string(&v->out, false, name, SIZE_MAX, false);
        base_buffer_add_text(&v->out, "\n");
    }
    base_buffer_add_format(&v->out, "sha256    %s  ", v->hash[parts]);
    cli_gguf_add_string(&v->out, false, (struct gguf_str){path, strlen(path)}, SIZE_MAX, false);
    base_buffer_add_text(&v->out, "\n");
    for (int i = 0; i < parts; i++) {
        base_buffer_add_format(&v->out, "file      %s  ", v->hash[i]);
        if (!add_part_name(v, i, err)) return false;
        base_buffer_add_text(&v->out, "\n");
    }
    return true;
}

static bool json_hashes(struct verify *v, struct base_error *err)
{
    const int parts = gguf_part_count(v->file);
    base_buffer_add_text(&v->out, ",\n\"sha256\":{\"files\":[");
    for (int i = 0; i < parts; i++) {
        base_buffer_add_format(&v->out, "%s{\"sha256\":\"%s\"", i ? "," : "", v->hash[i]);
        if (!add_part_name(v, i, err)) return false;
        base_buffer_add_text(&v->out, "}");
    }
    base_buffer_add_format(&v->out, "],\"data\":\"%s\",\"tensors\":{", v->hash[parts]);
    for (uint64_t i = 0; i < gguf_tensor_count(v->file); i++) {
        base_buffer_add_text(&v->out, i ? ",\n" : "\n");
        cli_gguf_add_string(&v->out, true, gguf_tensor_at(v->file, i)->name, SIZE_MAX, true);
        base_buffer_add_format(&v->out, ":\"%s\"", v->hash[(uint64_t)parts + 1 + i]);
    }
    base_buffer_add_text(&v->out, "}}");
    return true;
}

static bool add_hashes(struct verify *v, struct base_error *err)
{
    v->hash = calloc(hash_count(v), sizeof *v->hash);
    if (!v->hash) return base_fail(err, BASE_NO_MEMORY, "not enough memory for the hashes");
    /* Files, each tensor, and all data. */
    cli_progress_begin("hashing", "bytes", gguf_size(v->file) + 2 * cli_gguf_sum(v->file).bytes);
    engine_pool_run(v->cpu->pool, hash_all, v);
    cli_progress_end();
    return base_goes_on(err) && (v->json ? json_hashes : text_hashes)(v, err);
}

/* --sha256: compares the sum of the file; of a split model that of the part that was named. */
static bool check_sum(struct verify *v, const struct cli_values *values, struct base_error *err)
{
    struct base_sha256 h;
    struct stat st;
    char sum[BASE_SHA256_HEX];
    int named = gguf_part_count(v->file);
    const bool is_there = stat(values->argument[0], &st) == 0;
    struct gguf_part_facts part;
    do {
        part = gguf_part_facts(v->file, --named);
    } while (named > 0 &&
             !(is_there && part.device == (uint64_t)st.st_dev && part.inode == st.st_ino));
    base_sha256_init(&h);
    hash_bytes(&h, part.bytes, part.size);
    base_sha256_hex(&h, sum);
    if (!base_goes_on(err) || strcasecmp(sum, values->sha256) == 0) return err->code == BASE_OK;
    begin_problem(v, "sha256");
    if (!add_part_name(v, named, err)) return false;
    base_buffer_add_format(&v->out, v->json ? ",\"sha256\":\"%s\"" : ": its SHA-256 is %s", sum);
    end_problem(v);
    return true;
}

/* ---- The command ---- */

/* Adds whether the file has a model that can run. Having none is not a problem: files may be
 * vocabularies or parts of models. */
static bool add_summary(struct verify *v, struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    const bool runs = cli_model_check(v->file, &why);
    char text[sizeof why.item + sizeof why.text + 2];
    if (why.code == BASE_NO_MEMORY || why.code == BASE_INTERRUPTED) {
        *err = why;
        return false;
    }
    why.file[0] = '\0';
    why.offset = -1;
    base_error_format(&why, text, sizeof text);
    if (v->json) {
        base_buffer_add_format(&v->out,
                               "],\n\"problems_found\":%llu,\"parts\":%d,\"bytes\":%llu,\"keys\":%"
                               "llu,\"tensors\":%llu,",
                               (unsigned long long)v->n_problems, gguf_part_count(v->file),
                               (unsigned long long)gguf_size(v->file),
                               (unsigned long long)gguf_kv_count(v->file),
                               (unsigned long long)gguf_tensor_count(v->file));
        base_buffer_add_member(&v->out, "cannot_run", runs ? NULL : text, strlen(text));
        return true;
    }
    base_buffer_add_format(
        &v->out, "%d file%s, %llu keys, %llu tensors, %llu bytes: %llu problem%s\n",
        gguf_part_count(v->file), gguf_part_count(v->file) == 1 ? "" : "s",
        (unsigned long long)gguf_kv_count(v->file), (unsigned long long)gguf_tensor_count(v->file),
        (unsigned long long)gguf_size(v->file), (unsigned long long)v->n_problems,
        v->n_problems == 1 ? "" : "s");
    if (runs) return true;
    base_buffer_add_text(&v->out, "cannot run here: ");
    cli_show(&v->out, text, strlen(text), false);
    base_buffer_add_text(&v->out, "\n");
    return true;
}

static bool verify(struct verify *v, const struct cli_values *values, struct base_error *err)
{
    const char *path = gguf_path(v->file);
    if (v->json) {
        base_buffer_add_text(&v->out, "{");
        base_buffer_add_string(&v->out, "file", path);
        base_buffer_add_text(&v->out, ",\n\"problems\":[");
    }
    bool ok = check_layout(v, err) && check_values(v, err) &&
              (!values->sha256 || check_sum(v, values, err)) && add_summary(v, err) &&
              (!values->hash || add_hashes(v, err)) && gguf_check_unchanged(v->file, err);
    if (v->json) base_buffer_add_text(&v->out, "}\n");
    ok = ok && cli_write_buffer(&v->out, err);
    if (ok && v->n_problems) {
        ok = base_fail(err, BASE_MODEL, "%llu problem%s found", (unsigned long long)v->n_problems,
                       v->n_problems == 1 ? " was" : "s were");
        base_error_set_file(err, path);
    }
    return ok;
}

static bool cmd_verify(struct cli_values *values, struct base_error *err)
{
    struct verify v = {.json = values->json || strcmp(values->format, "json") == 0};
    struct engine_options o = engine_options_default();
    if (values->sha256 && !base_sha256_is_hex(values->sha256))
        return base_fail_at(err, BASE_USAGE, "--sha256", -1, "is no sum: 64 hexadecimal digits");
    o.n_threads = (int)values->threads;
    if (!values->no_sandbox) cli_sandbox_limit(NULL);
    struct gguf_file *file = cli_model_open_path(values->argument[0], err);
    v.file = file;
    v.cpu = file ? engine_cpu_new(&o, err) : NULL;
    if (v.cpu && !values->no_sandbox) cli_sandbox_close(0);
    const bool ok = v.cpu && verify(&v, values, err);
    free(v.hash);
    engine_cpu_free(v.cpu);
    base_buffer_free(&v.out);
    gguf_close(file);
    return ok;
}

const struct cli_command cli_command_verify = {
    .name = "verify",
    .usage = "infer verify MODEL.gguf [options]",
    .effect = "check a model file: structure, values, hashes",
    .about = "Checks everything that opening a model checks, then padding, order, gaps and\n"
             "bytes after the data, and decodes every tensor to find values that are NaN or\n"
             "infinite. Status 0: no problem; 3: there are problems.",
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = {"FILE"},
    .run = cmd_verify,
};
