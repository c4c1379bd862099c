/* cli/out/bench_report.c: writes the results of `infer bench` as md, json, jsonl and csv. */
#include "cli/out/bench.h"
#include <stdio.h>
#include <string.h>

const char *cli_bench_test_name(const struct cli_bench_result *r)
{
    return r->is_prompt ? "prompt" : "generate";
}

static void add_markdown(const struct cli_bench *b, struct base_buffer *out)
{
    const struct model_facts *f = model_facts(b->model.model);
    base_buffer_add_format(
        out,
        "%s, %.1f MiB, %s, %d threads, batch %lld\n"
        "limits here: reading %.1f GB/s, int8 %.1f G multiply-adds/s; shares of them:\n\n"
        "| test     | tokens | depth | seq | tokens/s |  lowest-highest |  read |  int8 |\n"
        "|----------|-------:|------:|----:|---------:|----------------:|------:|------:|\n",
        b->model.name.data, (double)f->weight_bytes / 0x1p20,
        cpu_level_name(b->model.engine->options.level), b->model.engine->options.n_threads,
        (long long)b->values->batch_size, b->bandwidth / 1e9, b->int8 / 1e9);
    for (size_t i = 0; i < b->n_results; i++) {
        const struct cli_bench_result *r = &b->result[i];
        char range[40];
        snprintf(range, sizeof range, "%.1f-%.1f", r->low, r->high);
        base_buffer_add_format(out,
                               "| %-8s | %6u | %5u | %3u | %8.2f | %15s | %3.0f %% | %3.0f %% |\n",
                               cli_bench_test_name(r), r->n_tokens, r->depth, r->n_seq, r->median,
                               range, 100 * r->of_bandwidth, 100 * r->of_int8);
    }
}

static void add_json_result(const struct cli_bench_result *r, struct base_buffer *out)
{
    base_buffer_add_format(out,
                           "\"test\":\"%s\",\"tokens\":%u,\"depth\":%u,\"sequences\":%u,"
                           "\"tokens_per_second\":%.3f,\"lowest\":%.3f,\"highest\":%.3f,"
                           "\"share_of_bandwidth\":%.4f,\"share_of_int8\":%.4f",
                           cli_bench_test_name(r), r->n_tokens, r->depth, r->n_seq, r->median,
                           r->low, r->high, r->of_bandwidth, r->of_int8);
}

static void add_json_facts(const struct cli_bench *b, struct base_buffer *out)
{
    const struct model_facts *f = model_facts(b->model.model);
    base_buffer_add_text(out, "\"model\":");
    base_buffer_add_json(out, b->model.name.data, b->model.name.size);
    base_buffer_add_format(out,
                           ",\"weight_bytes\":%llu,\"parameters\":%llu,\"isa\":\"%s\","
                           "\"threads\":%d,\"batch_size\":%lld,\"cache_type_k\":\"%s\","
                           "\"cache_type_v\":\"%s\",\"repetitions\":%lld,"
                           "\"bandwidth_bytes_per_second\":%.0f,\"int8_macs_per_second\":%.0f",
                           (unsigned long long)f->weight_bytes, (unsigned long long)f->n_params,
                           cpu_level_name(b->model.engine->options.level),
                           b->model.engine->options.n_threads, (long long)b->values->batch_size,
                           b->values->cache_type_k, b->values->cache_type_v,
                           (long long)b->values->repetitions, b->bandwidth, b->int8);
}

static void add_json(const struct cli_bench *b, bool lines, struct base_buffer *out)
{
    if (!lines) {
        base_buffer_add_text(out, "{");
        add_json_facts(b, out);
        base_buffer_add_text(out, ",\"results\":[");
    }
    for (size_t i = 0; i < b->n_results; i++) {
        base_buffer_add_text(out, lines ? "{" : i ? ",{" : "{");
        if (lines) {
            add_json_facts(b, out);
            base_buffer_add_text(out, ",");
        }
        add_json_result(&b->result[i], out);
        base_buffer_add_text(out, lines ? "}\n" : "}");
    }
    if (!lines) base_buffer_add_text(out, "]}\n");
}

static void add_csv(const struct cli_bench *b, struct base_buffer *out)
{
    base_buffer_add_text(out, "test,tokens,depth,sequences,tokens_per_second,lowest,highest,"
                              "share_of_bandwidth,share_of_int8,threads,isa,batch_size,"
                              "bandwidth_bytes_per_second,int8_macs_per_second\n");
    for (size_t i = 0; i < b->n_results; i++) {
        const struct cli_bench_result *r = &b->result[i];
        base_buffer_add_format(out, "%s,%u,%u,%u,%.3f,%.3f,%.3f,%.4f,%.4f,%d,%s,%lld,%.0f,%.0f\n",
                               cli_bench_test_name(r), r->n_tokens, r->depth, r->n_seq, r->median,
                               r->low, r->high, r->of_bandwidth, r->of_int8,
                               b->model.engine->options.n_threads,
                               cpu_level_name(b->model.engine->options.level),
                               (long long)b->values->batch_size, b->bandwidth, b->int8);
    }
}

void cli_bench_report(const struct cli_bench *b, const char *format, struct base_buffer *out)
{
    if (strcasecmp(format, "json") == 0)
        add_json(b, false, out);
    else if (strcasecmp(format, "jsonl") == 0)
        add_json(b, true, out);
    else if (strcasecmp(format, "csv") == 0)
        add_csv(b, out);
    else
        add_markdown(b, out);
}
