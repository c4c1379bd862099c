/* cli/cmd/model_summary.c: the summary of a model file. See cli/out/model_summary.h. */
#include "cli/cmd/model_summary.h"
#include "cli/cmd/quantize_plan.h"
#include "cli/out/gguf_text.h"
#include <string.h>

static const uint32_t contexts[CLI_SUMMARY_CONTEXTS] = {4096, 8192, 32768};

bool cli_summary_measure(struct cli_model_summary *s, struct cli_model *m,
                         const struct cli_values *values, struct cli_plan_probe *probe,
                         struct base_error *err)
{
    struct cli_memory_plan plan;
    *s = (struct cli_model_summary){.cannot_run = BASE_ERROR_INIT};
    bool ok = cli_model_open_weights(m, values, &s->cannot_run);
    if (ok) {
        const struct model_facts *f = model_facts(m->model);
        s->trained = f->n_ctx_train;
        m->whole = true;
        s->writes = f->writes || f->diffusion;
        s->embeds = !s->writes || f->has_pooling ? f->n_pooled : 0;
        s->scores = f->n_rank;
        s->predictors = f->n_predictors;
    }
    for (int i = 0; ok && s->writes && i < CLI_SUMMARY_CONTEXTS; i++) {
        ok = cli_model_plan_session(m, values, 1, contexts[i], &s->cannot_run) &&
             cli_plan_measure(m, values, 0, probe, &plan, &s->cannot_run);
        if (ok) s->bytes[i] = plan.total - plan.program; /* the same in each call */
    }
    if (s->cannot_run.code != BASE_NO_MEMORY && s->cannot_run.code != BASE_INTERRUPTED) return true;
    *err = s->cannot_run;
    return false;
}

static double bits_each(const struct cli_gguf_sums *s)
{
    return s->elements > 0 ? 8 * (double)s->bytes / (double)s->elements : 0;
}

static void add_name(struct base_buffer *out, const char *text)
{
    cli_gguf_add_string(out, false, (struct gguf_str){text, strlen(text)}, CLI_SHOWN_BYTES, false);
}

static struct gguf_str text_of(const struct gguf_file *file, const char *key)
{
    struct gguf_str text = {NULL, 0};
    struct base_error ignored = BASE_ERROR_INIT; /* a wrong kind counts as absent */
    gguf_get_str(file, key, &text, &ignored);
    return text;
}

static void add_types(const struct gguf_file *file, struct base_buffer *out)
{
    const struct cli_gguf_sums s = cli_gguf_sum(file);
    const char *mix = cli_quantize_name(file);
    base_buffer_add_format(out, "Type       %s%s%.1f M weights, %.2f bits each:", mix ? mix : "",
                           mix ? "; " : "", (double)s.elements / 1e6, bits_each(&s));
    const char *comma = "";
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        if (s.count[id] == 0) continue;
        base_buffer_add_format(out, "%s %llu %s", comma, (unsigned long long)s.count[id],
                               quant_type_by_id(id)->name);
        comma = ",";
    }
    base_buffer_add_text(out, "\n");
}

static void add_memory(const struct cli_model_summary *s, const struct cli_plan_probe *probe,
                       struct base_buffer *out)
{
    for (int i = 0; i < CLI_SUMMARY_CONTEXTS; i++) {
        base_buffer_add_format(out, "%-11s%9.1f MB with a context of %u tokens", i ? "" : "Memory",
                               (double)s->bytes[i] / 1e6, contexts[i]);
        if (probe->room_known)
            base_buffer_add_text(out, s->bytes[i] <= probe->room ? ", fits" : ", does not fit");
        base_buffer_add_text(out, contexts[i] > s->trained ? " (beyond its training)\n" : "\n");
    }
    if (probe->room_known)
        base_buffer_add_format(out, "%20.1f MB are free\n", (double)probe->room / 1e6);
    else
        base_buffer_add_text(out, "           free memory not known\n");
}

static void add_reason(const struct base_error *why, struct base_buffer *out)
{
    char text[sizeof why->item + sizeof why->text + 2];
    base_buffer_add_text(out, base_error_format_here(why, text, sizeof text));
}

void cli_summary_add_text(const struct cli_model_summary *s, const struct cli_model *m,
                          const struct cli_plan_probe *probe, struct base_buffer *out)
{
    const struct gguf_file *f = m->file;
    const struct gguf_str architecture = text_of(f, "general.architecture");
    const struct gguf_str template = text_of(f, "tokenizer.chat_template");
    const bool runs = s->cannot_run.code == BASE_OK;
    base_buffer_add_text(out, "Model      ");
    cli_gguf_add_string(out, false, (struct gguf_str){m->name.data, m->name.size}, CLI_SHOWN_BYTES,
                        false);
    if (architecture.size) {
        base_buffer_add_text(out, " (");
        cli_gguf_add_string(out, false, architecture, CLI_SHOWN_BYTES, false);
        base_buffer_add_text(out, ")");
    }
    base_buffer_add_text(out, "\nFile       ");
    add_name(out, gguf_path(f));
    base_buffer_add_format(out, ", %.1f MB", (double)gguf_size(f) / 1e6);
    if (gguf_part_count(f) > 1) base_buffer_add_format(out, " in %d parts", gguf_part_count(f));
    base_buffer_add_format(out, ", %s version %u\n",
                           gguf_is_powerinfer(f) ? "PowerInfer's GGUF" : "GGUF", gguf_version(f));
    add_types(f, out);
    if (s->trained)
        base_buffer_add_format(out, "Context    %u tokens in its training\n", s->trained);
    base_buffer_add_text(out, "Vocabulary ");
    if (m->tokenizer) base_buffer_add_format(out, "%u tokens, ", text_vocab_size(m->tokenizer));
    if (m->tokenizer) add_name(out, text_tokenizer_model(m->tokenizer));
    base_buffer_add_text(out, m->tokenizer ? "\n" : "none that is usable\n");
    if (template.size)
        base_buffer_add_format(out, "Template   %llu bytes\n", (unsigned long long)template.size);
    else
        base_buffer_add_text(out, "Template   none in the file\n");
    if (s->embeds)
        base_buffer_add_format(out, "Embeds     %u numbers for a text (infer embed)\n", s->embeds);
    if (s->scores)
        base_buffer_add_format(out, "Scores     %u for a query and a text (infer rerank)\n",
                               s->scores);
    if (s->predictors)
        base_buffer_add_format(
            out, "Predictor  of zeros in %u layers, used by --sparse predict only: approximate\n",
            s->predictors);
    if (runs) {
        if (s->writes) add_memory(s, probe, out);
        return;
    }
    base_buffer_add_text(out, "Runs       no: ");
    add_reason(&s->cannot_run, out);
    base_buffer_add_text(out, "\n");
}

void cli_summary_add_json(const struct cli_model_summary *s, const struct cli_model *m,
                          const struct cli_plan_probe *probe, struct base_buffer *out)
{
    const struct cli_gguf_sums sums = cli_gguf_sum(m->file);
    const struct gguf_str architecture = text_of(m->file, "general.architecture");
    const char *mix = cli_quantize_name(m->file);
    const bool runs = s->cannot_run.code == BASE_OK;
    char why[sizeof s->cannot_run.item + sizeof s->cannot_run.text + 2];
    base_error_format_here(&s->cannot_run, why, sizeof why);
    base_buffer_add_text(out, "{");
    base_buffer_add_member(out, "name", m->name.data, m->name.size);
    base_buffer_add_member(out, "architecture", architecture.data, architecture.size);
    base_buffer_add_string(out, "type", mix);
    base_buffer_add_format(out, ",\"weights\":%llu,\"bits_per_weight\":%.3f,\"context\":",
                           (unsigned long long)sums.elements, bits_each(&sums));
    base_buffer_add_format(out, s->trained ? "%u" : "null", s->trained);
    base_buffer_add_format(out, ",\"template\":%s,",
                           text_of(m->file, "tokenizer.chat_template").size ? "true" : "false");
    if (s->embeds) base_buffer_add_format(out, "\"embeds\":%u,", s->embeds);
    if (s->scores) base_buffer_add_format(out, "\"scores\":%u,", s->scores);
    if (s->predictors) base_buffer_add_format(out, "\"predictors\":%u,", s->predictors);
    base_buffer_add_member(out, "cannot_run", runs ? NULL : why, strlen(why));
    base_buffer_add_text(out, ",\"memory\":[");
    for (int i = 0; runs && s->writes && i < CLI_SUMMARY_CONTEXTS; i++)
        base_buffer_add_format(out, "%s{\"context\":%u,\"bytes\":%llu,\"fits\":%s}", i ? "," : "",
                               contexts[i], (unsigned long long)s->bytes[i],
                               !probe->room_known           ? "null"
                               : s->bytes[i] <= probe->room ? "true"
                                                            : "false");
    base_buffer_add_text(out, "]}");
}
