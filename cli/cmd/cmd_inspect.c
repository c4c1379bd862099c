/* cli/cmd/cmd_inspect.c: `infer inspect`: the content of a GGUF file, as text or JSON.
 *
 * Files without weights (vocabularies) work too. Texts of the file are escaped, so that a terminal
 * does not interpret them. */
#include "base/interrupt.h"
#include "cli/cmd/model_summary.h"
#include "cli/expert_stream.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/out/gguf_text.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include "engine/cpu/threads.h"
#include <string.h>

struct inspection {
    const struct gguf_file *file;
    const struct text_tokenizer *tokenizer; /* NULL: none, or not supported */
    struct base_error tokenizer_error;
    bool json;
    struct cli_model *model;
    struct cli_plan_probe probe;
    struct cli_model_summary summary;
    struct base_buffer out;
};

static double mebibytes(uint64_t bytes)
{
    return (double)bytes / 0x1p20;
}

/* ---- Parts of the text ---- */

static void text_metadata(struct inspection *v)
{
    base_buffer_add_format(&v->out, "\nMetadata (%llu)\n",
                           (unsigned long long)gguf_kv_count(v->file));
    for (uint64_t i = 0; i < gguf_kv_count(v->file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(v->file, i);
        base_buffer_add_text(&v->out, "  ");
        size_t start = v->out.size;
        cli_gguf_add_string(&v->out, v->json, kv->key, CLI_SHOWN_BYTES, false);
        while (!v->out.failed && v->out.size < start + 44) base_buffer_add_text(&v->out, " ");
        base_buffer_add_text(&v->out, " ");
        cli_gguf_add_typed(&v->out, false, v->file, kv);
        base_buffer_add_text(&v->out, "\n");
    }
}

static void text_token(struct inspection *v, const char *name, int32_t id)
{
    if (id < 0) return;
    base_buffer_add_format(&v->out, "  %-10s %d ", name, id);
    cli_gguf_add_string(&v->out, v->json, text_token_raw(v->tokenizer, id), CLI_SHOWN_BYTES, true);
    base_buffer_add_text(&v->out, "\n");
}

static void text_tokenizer(struct inspection *v)
{
    const struct text_tokenizer *t = v->tokenizer;
    base_buffer_add_text(&v->out, "\nTokenizer\n");
    if (!t) {
        char why[600];
        base_error_format_here(&v->tokenizer_error, why, sizeof why);
        base_buffer_add_text(&v->out, "  not usable: ");
        cli_show(&v->out, why, strlen(why), false);
        base_buffer_add_text(&v->out, "\n");
        return;
    }
    const char *model = text_tokenizer_model(t), *pre = text_tokenizer_pre(t);
    base_buffer_add_text(&v->out, "  model      ");
    cli_gguf_add_string(&v->out, v->json, (struct gguf_str){model, strlen(model)}, CLI_SHOWN_BYTES,
                        false);
    if (*pre) base_buffer_add_text(&v->out, ", pre-tokenizer ");
    cli_gguf_add_string(&v->out, v->json, (struct gguf_str){pre, strlen(pre)}, CLI_SHOWN_BYTES,
                        false);
    base_buffer_add_format(&v->out, "\n  vocabulary %u\n", text_vocab_size(t));
    text_token(v, "begin", text_token_bos(t));
    text_token(v, "end", text_token_eos(t));
    text_token(v, "turn end", text_token_eot(t));
    base_buffer_add_format(&v->out, "  adds       %s\n",
                           text_adds_bos(t) && text_adds_eos(t) ? "begin and end"
                           : text_adds_bos(t)                   ? "begin"
                           : text_adds_eos(t)                   ? "end"
                                                                : "nothing");
}

static void text_tensors(struct inspection *v)
{
    base_buffer_add_format(&v->out, "\nTensors (%llu)\n",
                           (unsigned long long)gguf_tensor_count(v->file));
    for (uint64_t i = 0; i < gguf_tensor_count(v->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(v->file, i);
        base_buffer_add_text(&v->out, "  ");
        size_t start = v->out.size;
        cli_gguf_add_string(&v->out, v->json, t->name, CLI_SHOWN_BYTES, false);
        while (!v->out.failed && v->out.size < start + 36) base_buffer_add_text(&v->out, " ");
        base_buffer_add_format(&v->out, " %-8s %10.3f MiB  ", t->type->name, mebibytes(t->size));
        cli_gguf_add_shape(&v->out, t->ne, t->n_dims, ", ");
        base_buffer_add_text(&v->out, "\n");
    }
}

static void text_types(struct inspection *v)
{
    const struct cli_gguf_sums s = cli_gguf_sum(v->file);
    base_buffer_add_text(&v->out, "\nTypes\n");
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        if (s.count[id])
            base_buffer_add_format(&v->out, "  %-8s %6llu tensors %12.3f MiB\n",
                                   quant_type_by_id(id)->name, (unsigned long long)s.count[id],
                                   mebibytes(s.bytes_of[id]));
    if (s.elements > 0)
        base_buffer_add_format(&v->out,
                               "  all      %6llu tensors %12.3f MiB, %.2f M weights, %.3f bits "
                               "each\n",
                               (unsigned long long)gguf_tensor_count(v->file), mebibytes(s.bytes),
                               (double)s.elements / 1e6, 8 * (double)s.bytes / (double)s.elements);
}

/* ---- Parts of the JSON ---- */

static void json_metadata(struct inspection *v)
{
    base_buffer_add_text(&v->out, ",\n\"metadata\":{");
    for (uint64_t i = 0; i < gguf_kv_count(v->file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(v->file, i);
        base_buffer_add_text(&v->out, i ? ",\n" : "\n");
        cli_gguf_add_string(&v->out, v->json, kv->key, SIZE_MAX, true);
        base_buffer_add_text(&v->out, ":");
        cli_gguf_add_typed(&v->out, true, v->file, kv);
    }
    base_buffer_add_text(&v->out, "\n}");
}

static void json_tokenizer(struct inspection *v)
{
    const struct text_tokenizer *t = v->tokenizer;
    base_buffer_add_text(&v->out, ",\n\"tokenizer\":");
    if (!t) {
        base_buffer_add_text(&v->out, "null");
        return;
    }
    const char *model = text_tokenizer_model(t), *pre = text_tokenizer_pre(t);
    base_buffer_add_text(&v->out, "{\"model\":");
    base_buffer_add_json(&v->out, model, strlen(model));
    base_buffer_add_text(&v->out, ",\"pre\":");
    base_buffer_add_json(&v->out, pre, strlen(pre));
    base_buffer_add_format(&v->out,
                           ",\"vocabulary\":%u,\"bos\":%d,\"eos\":%d,\"eot\":%d,"
                           "\"adds_bos\":%s,\"adds_eos\":%s}",
                           text_vocab_size(t), text_token_bos(t), text_token_eos(t),
                           text_token_eot(t), text_adds_bos(t) ? "true" : "false",
                           text_adds_eos(t) ? "true" : "false");
}

static void json_tensors(struct inspection *v)
{
    base_buffer_add_text(&v->out, ",\n\"tensors\":[");
    for (uint64_t i = 0; i < gguf_tensor_count(v->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(v->file, i);
        base_buffer_add_text(&v->out, i ? ",\n{\"name\":" : "\n{\"name\":");
        cli_gguf_add_string(&v->out, v->json, t->name, SIZE_MAX, true);
        base_buffer_add_format(&v->out, ",\"type\":\"%s\",\"shape\":", t->type->name);
        cli_gguf_add_shape(&v->out, t->ne, t->n_dims, ",");
        base_buffer_add_format(&v->out, ",\"bytes\":%llu,\"offset\":%llu,\"part\":%d}",
                               (unsigned long long)t->size, (unsigned long long)t->offset, t->part);
    }
    base_buffer_add_text(&v->out, "\n]");
}

static void add_json(struct inspection *v, bool metadata, bool tensors)
{
    const char *path = gguf_path(v->file);
    base_buffer_add_text(&v->out, "{\"file\":");
    base_buffer_add_json(&v->out, path, strlen(path));
    base_buffer_add_format(
        &v->out, ",\"version\":%u,\"parts\":%d,\"bytes\":%llu,\"alignment\":%llu",
        gguf_version(v->file), gguf_part_count(v->file), (unsigned long long)gguf_size(v->file),
        (unsigned long long)gguf_alignment(v->file));
    if (metadata && tensors) {
        base_buffer_add_text(&v->out, ",\n\"summary\":");
        cli_summary_add_json(&v->summary, v->model, &v->probe, &v->out);
    }
    if (metadata) json_metadata(v);
    if (metadata) json_tokenizer(v);
    if (tensors) json_tensors(v);
    base_buffer_add_text(&v->out, "}\n");
}

/* ---- The command ---- */

/* Opens a session of n_ctx tokens that only plans, and computes what it needs. */
static bool plan(struct inspection *v, const struct cli_values *values, uint32_t n_ctx,
                 struct cli_memory_plan *p, struct base_error *err)
{
    return base_goes_on(err) && cli_model_plan_session(v->model, values, 1, n_ctx, err) &&
           cli_plan_measure(v->model, values, 0, &v->probe, p, err);
}

/* --fit: finds the largest context, at most that of the training, that needs no more bytes. */
static bool fit(struct inspection *v, const struct cli_values *values, uint64_t bytes,
                struct cli_memory_plan *p, struct base_error *err)
{
    uint32_t low = 1, high = model_facts(v->model->model)->n_ctx_train;
    /* The first plan measures the program, with the tables of a whole batch. */
    if (!plan(v, values, high, p, err) || !plan(v, values, low, p, err)) return false;
    if (p->total > bytes)
        return base_fail_at(err, BASE_FAILED, "--fit", -1,
                            "%.1f MB are needed even for a context of one token",
                            (double)p->total / 1e6);
    while (low < high) { /* `low` fits; contexts above `high` do not, or are not wanted */
        const uint32_t middle = high - (high - low) / 2;
        if (!plan(v, values, middle, p, err)) return false;
        if (p->total <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return plan(v, values, low, p, err);
}

static bool show_plan(struct inspection *v, const struct cli_values *values, struct base_error *err)
{
    struct cli_memory_plan p;
    uint64_t bytes = 0;
    uint32_t n_ctx = (uint32_t)values->ctx_size;
    if (values->fit && !cli_size_parse(values->fit, "--fit", &bytes, err)) return false;
    if (!cli_model_open_weights(v->model, values, err)) return false;
    if (v->probe.room_known) cli_stream_look(v->model, v->probe.room); /* read before the sandbox */
    if (n_ctx == 0) n_ctx = cli_model_pick_ctx(v->model, 0);
    return (values->fit ? fit(v, values, bytes, &p, err) : plan(v, values, n_ctx, &p, err)) &&
           cli_plan_print(&p, v->model, values, &v->probe, err);
}

/* Appends the lines of a text; on a terminal those that are too wide continue below themselves. */
static void add_fitting(const struct base_buffer *text, struct base_buffer *out)
{
    const size_t width = cli_stdout_is_terminal() ? cli_stdout_width() : SIZE_MAX;
    for (size_t at = 0, size; at < text->size; at += size + 1) {
        const char *line = text->data + at;
        size = (size_t)((const char *)memchr(line, '\n', text->size - at) - line);
        cli_show_wrapped(line, size, 0, CLI_SUMMARY_INDENT, width, out);
    }
}

static bool show_text(struct inspection *v, const struct cli_values *values, struct base_error *err)
{
    const bool metadata = values->metadata || (values->verbose && !values->tensors);
    const bool tensors = values->tensors || (values->verbose && !values->metadata);
    if (!values->metadata && !values->tensors)
        cli_summary_add_text(&v->summary, v->model, &v->probe, &v->out);
    if (metadata) text_metadata(v);
    if (metadata && gguf_kv_find(v->file, "tokenizer.ggml.model")) text_tokenizer(v);
    if (tensors) text_tensors(v);
    if (tensors) text_types(v);
    struct base_buffer out = {.failed = v->out.failed};
    add_fitting(&v->out, &out);
    const bool ok = cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

static bool show(struct inspection *v, struct cli_values *values, struct base_error *err)
{
    if (!values->tensors && gguf_kv_find(v->file, "tokenizer.ggml.model"))
        v->tokenizer = v->model->tokenizer = text_tokenizer_open(v->file, &v->tokenizer_error);
    if (v->tokenizer_error.code == BASE_NO_MEMORY || v->tokenizer_error.code == BASE_INTERRUPTED) {
        *err = v->tokenizer_error;
        return false;
    }
    if (values->plan) return show_plan(v, values, err);
    values->plan = true; /* sessions are only planned */
    if (!values->metadata && !values->tensors &&
        !cli_summary_measure(&v->summary, v->model, values, &v->probe, err))
        return false;
    if (!v->json) return show_text(v, values, err);
    add_json(v, !values->tensors, !values->metadata);
    return cli_write_buffer(&v->out, err);
}

static bool cmd_inspect(struct cli_values *values, struct base_error *err)
{
    struct cli_model m = {0};
    struct inspection view = {.json = values->json,
                              .model = &m,
                              .probe = {.statm = -1},
                              .tokenizer_error = BASE_ERROR_INIT};
    if (values->n_arguments > 0) values->model = values->argument[0];
    values->plan = values->plan || values->fit; /* they need the header only */
    bool ok = cli_model_open_file(&m, values, err);
    if (ok) {
        /* What the sandbox would not let it read. */
        if (values->threads == 0) values->threads = engine_threads_default();
        cli_plan_probe_open(&view.probe);
        if (!values->no_sandbox) cli_sandbox_close(0);
        view.file = m.file;
        ok = show(&view, values, err);
    }
    cli_plan_probe_close(&view.probe);
    base_buffer_free(&view.out);
    cli_model_close(&m);
    return ok;
}

const struct cli_command cli_command_inspect = {
    .name = "inspect",
    .usage = "infer inspect [MODEL] [options]",
    .effect = "show the content of a GGUF file",
    .about = "Prints what the model is and the memory that it needs; with -v also all\n"
             "metadata, tokenizer and tensors, long arrays shortened. --json has all.",
    .max_arguments = 1,
    .takes = {"FILE"},
    .run = cmd_inspect,
};
