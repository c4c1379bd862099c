/* cli/out/result.c: writes completions as JSON. See cli/out/result.h. */
#include "cli/out/result.h"
#include "cli/commands.h"
#include "cli/gpu_layers.h"
#include "cli/system.h"
#include <string.h>

bool cli_result_wanted(const struct cli_values *values)
{
    return values->json || values->jsonl;
}

/* ---- Members ---- */

static void add_prompt_ids(const struct cli_result *r, struct base_buffer *out)
{
    if (!r->values->token_ids) return;
    base_buffer_add_text(out, ",\"prompt_ids\":[");
    for (size_t i = 0; i < r->prompt->count; i++)
        base_buffer_add_format(out, "%s%d", i ? "," : "", r->prompt->id[i]);
    base_buffer_add_text(out, "]");
}

static void add_model(const struct cli_result *r, struct base_buffer *out)
{
    const char *path = gguf_path(r->model->file);
    base_buffer_add_member(out, "model_path", path, strlen(path));
    base_buffer_add_string(out, "model_sha256", r->sha256);
    cli_model_add_approximate(r->model, out);
    cli_gpu_add_json(r->model, out);
    base_buffer_add_text(out, ",\"version\":\"" INFER_VERSION "\"");
}

/* ---- Start and pieces ---- */

bool cli_result_start(struct cli_result *r, struct base_error *err)
{
    if (!cli_logprobs_open(&r->logprobs, r->model, r->values->request.generate.logprobs, err))
        return false;
    if (!r->values->jsonl) return true;
    base_buffer_add_text(&r->line, "{\"event\":\"start\",");
    base_buffer_add_member(&r->line, "model", r->model->name.data, r->model->name.size);
    base_buffer_add_format(&r->line, ",\"prompt_tokens\":%zu,\"seed\":%llu,", r->prompt->count,
                           (unsigned long long)r->seed);
    add_model(r, &r->line);
    add_prompt_ids(r, &r->line);
    base_buffer_add_text(&r->line, "}\n");
    return cli_write_buffer(&r->line, err);
}

bool cli_result_piece(struct cli_result *r, const struct generate_piece *piece,
                      struct base_error *err)
{
    base_buffer_add(&r->text, piece->text, piece->size);
    if (r->values->jsonl && piece->id >= 0)
        base_buffer_add_format(&r->line, "{\"event\":\"token\",\"index\":%llu,\"id\":%d,",
                               (unsigned long long)piece->index, piece->id);
    else if (r->values->jsonl)
        base_buffer_add_text(&r->line, "{\"event\":\"text\",");
    if (r->values->jsonl) base_buffer_add_member(&r->line, "text", piece->text, piece->size);
    if (r->values->jsonl && r->part) base_buffer_add_format(&r->line, ",\"part\":\"%s\"", r->part);
    if (piece->id >= 0 && r->values->request.generate.logprobs >= 0) {
        cli_logprobs_take(&r->logprobs, piece);
        if (r->values->jsonl) {
            base_buffer_add_text(&r->line, ",");
            cli_logprobs_add_latest(&r->logprobs, &r->line);
        }
    }
    if (piece->id >= 0) base_buffer_add_format(&r->ids, "%s%d", r->ids.size ? "," : "", piece->id);
    if (r->values->jsonl) base_buffer_add_text(&r->line, "}\n");
    if (r->text.failed || r->ids.failed || r->logprobs.items.failed)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for the text");
    return !r->values->jsonl || cli_write_buffer(&r->line, err);
}

/* ---- End ---- */

static double rate(uint64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static void add_outcome(const struct cli_result *r, const struct generate_outcome *o,
                        struct base_buffer *out)
{
    base_buffer_add_member(out, "model", r->model->name.data, r->model->name.size);
    base_buffer_add_format(out, ",\"prompt_tokens\":%llu,\"tokens\":%llu,",
                           (unsigned long long)o->n_prompt, (unsigned long long)o->n_generated);
    base_buffer_add_member(out, "text", r->text.size ? r->text.data : "", r->text.size);
    base_buffer_add(out, r->message.size ? r->message.data : "", r->message.size);
    out->failed |= r->message.failed;
    base_buffer_add_format(out, ",\"stop\":\"%s\",", generate_ending_name[o->ending]);
    base_buffer_add_member(out, "stop_text", o->stop_text, o->stop_text ? strlen(o->stop_text) : 0);
    base_buffer_add_format(
        out,
        ",\"seed\":%llu,\"timings\":{\"load_ms\":%.3f,\"prompt_ms\":%.3f,\"generate_ms\":%.3f,"
        "\"choose_ms\":%.3f,\"prompt_per_second\":%.2f,\"tokens_per_second\":%.2f},\"cached_"
        "tokens\":%llu,\"chat\":%s,",
        (unsigned long long)r->seed, r->load_seconds * 1e3, o->read_seconds * 1e3,
        o->generate_seconds * 1e3, o->choose_seconds * 1e3, rate(o->n_read, o->read_seconds),
        rate(o->n_generated, o->generate_seconds), (unsigned long long)o->n_cached,
        r->values->request.chat.chat ? "true" : "false");
}

/* Appends an array of items that were collected during generation. */
static void add_items(struct base_buffer *out, const char *name, const struct base_buffer *items)
{
    base_buffer_add_format(out, ",\"%s\":[", name);
    base_buffer_add(out, items->size ? items->data : "", items->size);
    base_buffer_add_text(out, "]");
}

bool cli_result_end(struct cli_result *r, const struct generate_outcome *outcome,
                    struct base_error *err)
{
    base_buffer_add_text(&r->line, r->values->jsonl ? "{\"event\":\"end\"," : "{");
    add_outcome(r, outcome, &r->line);
    add_model(r, &r->line);
    add_prompt_ids(r, &r->line);
    add_items(&r->line, "ids", &r->ids);
    if (r->values->request.generate.logprobs >= 0)
        add_items(&r->line, "logprobs", &r->logprobs.items);
    base_buffer_add_text(&r->line, "}\n");
    return cli_write_buffer(&r->line, err);
}

void cli_result_free(struct cli_result *r)
{
    base_buffer_free(&r->text);
    base_buffer_free(&r->message);
    base_buffer_free(&r->ids);
    cli_logprobs_close(&r->logprobs);
    base_buffer_free(&r->line);
}
