/* cli/load.c: opens a model. See cli/load.h. */
#include "cli/load.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/size.h"
#include "cli/gpu_layers.h"
#include "cli/model_path.h"
#include "cli/overrides.h"
#include "cli/system.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void find_name(struct cli_model *m)
{
    struct gguf_str name = {0};
    struct base_error ignored = BASE_ERROR_INIT; /* a name of a wrong kind counts as absent */
    if (gguf_get_str(m->file, "general.name", &name, &ignored) && name.size > 0) {
        base_buffer_add(&m->name, name.data, name.size);
        return;
    }
    const char *path = gguf_path(m->file), *slash = strrchr(path, '/');
    base_buffer_add_text(&m->name, slash ? slash + 1 : path);
}

bool cli_model_open_file(struct cli_model *m, const struct cli_values *values,
                         struct base_error *err)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    bool done = false;
    if (cli_model_path_of(m->drafts ? values->draft : values->model, &path, err)) {
        m->file = values->plan ? gguf_open_header(path.data, err) : gguf_open(path.data, err);
        if (!m->file) base_error_set_file(err, path.data);
        done = m->file && cli_overrides_apply(m->file, values, m->drafts, err);
        if (done) find_name(m);
    }
    return done && cli_buffer_check(&m->name, err) && base_goes_on(err);
}

bool cli_model_has_vocabulary(const struct cli_model *m)
{
    static const char *const without[] = {"no_vocab", "none"};
    struct gguf_str name = {NULL, 0};
    if (!gguf_get_str(m->file, "tokenizer.ggml.model", &name, NULL) || !name.data) return false;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (gguf_str_is(name, without[i])) return false;
    return true;
}

/* Fails for a file that is no language model. */
static bool check_kind(const struct cli_model *m, struct base_error *err)
{
    if (model_kind_check(m->file, err)) return true;
    const size_t n = strlen(err->text);
    if (model_is_drafter(m->file)) snprintf(err->text + n, sizeof err->text - n, " (--draft)");
    base_error_set_file(err, gguf_path(m->file));
    return false;
}

bool cli_model_open_tokenizer(struct cli_model *m, struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    if (!m->encodes && !check_kind(m, err)) return false;
    m->tokenizer = text_tokenizer_open(m->file, &why);
    /* What the file is explains more than the key that it lacks. */
    if (!m->tokenizer && (why.code != BASE_MODEL || model_kind_check(m->file, err))) *err = why;
    if (!m->tokenizer) base_error_set_file(err, gguf_path(m->file));
    return m->tokenizer && base_goes_on(err);
}

bool cli_model_end_source(const struct cli_model *m, struct text_ids *ids, struct base_error *err)
{
    const int32_t id = m->model ? model_facts(m->model)->start_id : model_start_id(m->file);
    return id < 0 || ids->count == 0 || text_ids_add(ids, id, err);
}

/* Checks that there is memory for rows that are rewritten when the model is opened: the system
 * would end the process. */
static bool check_copies(const struct gguf_file *file, struct base_error *err)
{
    struct base_memory memory;
    uint64_t copies = 0, room;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        const struct quant_type *plain = quant_type_plain(t->type, t->ne[0]);
        uint64_t bytes;
        if (plain && (!quant_row_bytes(plain, t->ne[0], &bytes) ||
                      !base_mul(bytes, t->ne[1] * t->ne[2] * t->ne[3], &bytes) ||
                      !base_add(copies, bytes, &copies)))
            copies = UINT64_MAX;
    }
    if (copies == 0) return true;
    base_memory_read("", &memory);
    if (!base_memory_room(&memory, &room) || copies <= room) return true;
    return base_fail_file(err, BASE_NO_MEMORY, gguf_path(file),
                          "copies of interleaved rows need %.1f MB, of %.1f MB that are free "
                          "(infer quantize IN OUT COPY makes a file without)",
                          (double)copies / 1e6, (double)room / 1e6);
}

bool cli_model_open_weights(struct cli_model *m, const struct cli_values *values,
                            struct base_error *err)
{
    struct engine_options o = engine_options_default();
    if (!check_kind(m, err)) return false;
    o.n_threads = (int)values->threads;
    o.use_blas = values->blas;
    o.columns = values->sparse && strcmp(values->sparse, "on") == 0;
    o.predicts = values->sparse && strcmp(values->sparse, "predict") == 0;
    o.pin_threads = values->pin;
    o.plan_only = values->plan;
    if (values->isa && !cpu_level_by_name(values->isa, &o.level))
        return base_fail_at(err, BASE_USAGE, "--isa", -1, "'%s' is not a level", values->isa);
    if (!o.plan_only && !check_copies(m->file, err)) return false;
    m->engine = engine_new(&o, err);
    if (!m->engine) return false;
    m->model = model_open(m->file, m->engine, NULL, err);
    if (!m->model) base_error_set_file(err, gguf_path(m->file));
    if (m->model && !cli_gpu_join(m, values, err)) return false;
    if (m->model && o.predicts && model_facts(m->model)->n_predictors == 0)
        return base_fail_at(err, BASE_USAGE, "--sparse", -1,
                            "predict: the model has no predictor (fc1 and fc2, in files of "
                            "PowerInfer)");
    if (m->model) cli_stream_open(m);
    return m->model && cli_overrides_check(m->file, m->tokenizer != NULL, err) &&
           cli_adapters_open(&m->adapters, values, m->model, err) &&
           cli_drafter_open(&m->drafter, values, m->engine, m->model, err) && base_goes_on(err);
}

void cli_model_add_approximate(const struct cli_model *m, struct base_buffer *out)
{
    if (m->engine->options.predicts)
        base_buffer_add_text(out, ",\"approximate\":\"zeros are predicted\"");
}

void cli_model_add_settings(const struct cli_values *v, struct base_buffer *out)
{
    const float reals[] = {v->rope_scale,      v->rope_freq_base,   v->rope_freq_scale,
                           v->yarn_ext_factor, v->yarn_attn_factor, v->yarn_beta_fast,
                           v->yarn_beta_slow};
    const bool predicts = v->sparse && strcmp(v->sparse, "predict") == 0;
    base_buffer_add_format(out, "%s %s %d%d %s %lld\n", v->cache_type_k, v->cache_type_v, v->blas,
                           predicts, v->rope_scaling ? v->rope_scaling : "",
                           (long long)v->yarn_orig_ctx);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        base_buffer_add_format(out, "%a\n", (double)reals[i]);
    for (size_t i = 0; i < v->override_kv.count; i++) /* with the NUL: no two lists are equal */
        base_buffer_add(out, v->override_kv.item[i], strlen(v->override_kv.item[i]) + 1);
}

bool cli_model_check(const struct gguf_file *file, struct base_error *err)
{
    struct engine_options o = engine_options_default();
    o.n_threads = 1;
    o.plan_only = true;
    struct engine *engine = engine_new(&o, err);
    struct model *model = engine ? model_open(file, engine, NULL, err) : NULL;
    const bool ok = model != NULL;
    model_close(model);
    engine_free(engine);
    return ok;
}

uint32_t cli_model_pick_ctx(const struct cli_model *m, uint64_t need)
{
    uint32_t trained = model_facts(m->model)->n_ctx_train;
    if (need < 4096) need = 4096;
    return need < trained ? (uint32_t)need : trained;
}

/* Returns the factor of position scaling for a longer context; 1: none; infinite if the user
 * specifies a base. */
static double scaling(const struct gguf_file *file, const char *arch)
{
    static const char *const names[] = {"rope.scaling.factor", "rope.scale_linear"};
    const char *const prefixes[] = {arch, MODEL_OPTION_PREFIX}; /* the last that has a key counts */
    struct base_error ignored = BASE_ERROR_INIT; /* model_open has checked the keys */
    struct gguf_str type = {0};
    char key[128];
    float factor = 0;
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        snprintf(key, sizeof key, "%.64s.rope.freq_base", prefixes[p]);
        const struct gguf_kv *base = gguf_kv_find(file, key);
        if (base && base->given) return INFINITY;
        snprintf(key, sizeof key, "%.64s.rope.scaling.type", prefixes[p]);
        gguf_get_str(file, key, &type, &ignored);
        for (size_t i = sizeof names / sizeof *names; i-- > 0;) {
            snprintf(key, sizeof key, "%.64s.%s", prefixes[p], names[i]);
            gguf_get_f32(file, key, &factor, &ignored);
        }
    }
    if (gguf_str_is(type, "none")) return 1;
    return factor > 1 ? factor : 1;
}

/* A warning, because past its training context a model generates nonsense without an error. */
static void note_long_context(const struct model *m, const struct gguf_file *file, bool drafts,
                              uint32_t n_ctx)
{
    const struct model_facts *f = model_facts(m);
    if ((double)n_ctx > f->n_ctx_train * scaling(file, f->arch))
        cli_note("the context of %u tokens is longer than the %u that %s%s was trained with; "
                 "beyond them its %s",
                 n_ctx, f->n_ctx_train, drafts ? "the draft model " : "the model",
                 drafts ? gguf_path(file) : "",
                 drafts ? "guesses are mostly wrong" : "text makes no sense");
}

bool cli_model_keeps_mtp(const struct cli_model *m, const struct cli_values *values)
{
    const enum cli_draft_source source = cli_draft_source(values);
    const struct model_facts *f = model_facts(m->model);
    /* The MTP layer of a model with one layer takes longer than the model itself. */
    return f->has_mtp && (source == CLI_DRAFT_MTP || (source == CLI_DRAFT_AUTO && f->n_layer > 1));
}

bool cli_model_plan_session(struct cli_model *m, const struct cli_values *values, uint32_t n_seq,
                            uint32_t n_ctx, struct base_error *err)
{
    struct model_session_options o = model_session_options_default();
    const struct quant_type *k = quant_type_by_name(values->cache_type_k);
    const struct quant_type *v = quant_type_by_name(values->cache_type_v);
    if (!k || !v) return base_fail(err, BASE_USAGE, "unknown cache type");
    o.n_seq = n_seq;
    o.n_ctx = n_ctx;
    o.n_batch = (uint32_t)values->batch_size;
    o.type_k = k->id;
    o.type_v = v->id;
    o.mtp = cli_model_keeps_mtp(m, values);
    o.drafter = m->drafter.model;
    o.hidden = m->embeds;
    o.whole = m->whole;
    model_session_free(m->session);
    m->session = NULL;
    if (!cli_gpu_place(m, &o, cli_draft_source(values) != CLI_DRAFT_OFF, err)) return false;
    m->session = model_session_new(m->model, &o, err);
    return m->session != NULL;
}

bool cli_model_open_session(struct cli_model *m, const struct cli_values *values, uint32_t n_seq,
                            uint32_t n_ctx, struct base_error *err)
{
    if (!cli_model_plan_session(m, values, n_seq, n_ctx, err)) return false;
    note_long_context(m->model, m->file, m->drafts, n_ctx);
    if (m->drafter.model) note_long_context(m->drafter.model, m->drafter.file, true, n_ctx);
    return true;
}

bool cli_model_open_slots(struct cli_model *m, const struct cli_values *values, uint32_t n_ctx,
                          uint32_t usual, uint32_t n_more, uint32_t *n_slots,
                          struct base_error *err)
{
    if (n_ctx == 0) n_ctx = cli_model_pick_ctx(m, 0);
    *n_slots = values->n_slots ? (uint32_t)values->n_slots : usual;
    if (!cli_model_open_session(m, values, *n_slots + n_more, n_ctx, err)) return false;
    const uint64_t bytes = model_session_cache_bytes(m->session);
    const uint64_t room = base_memory_half(bytes);
    if (values->n_slots || bytes <= room) return true;
    const uint64_t fit = room / (bytes / (*n_slots + n_more) + 1);
    *n_slots = fit > n_more + 1 ? (uint32_t)fit - n_more : 1;
    return cli_model_open_session(m, values, *n_slots + n_more, n_ctx, err);
}

static uint64_t length_of(const void *session)
{
    return model_session_length(session);
}

static uint64_t evaluated_of(const void *session)
{
    return model_session_n_evaluated(session);
}

void cli_model_progress_length(const struct cli_model *m, uint64_t n)
{
    cli_progress_begin("reading", "tokens", n);
    cli_progress_watch(length_of, m->session, 0);
}

void cli_model_progress_tokens(const struct cli_model *m, const char *what, uint64_t n)
{
    cli_progress_begin(what, "tokens", n);
    cli_progress_watch(evaluated_of, m->session, model_session_n_evaluated(m->session));
}

void cli_model_close(struct cli_model *m)
{
    model_session_free(m->session);
    cli_drafter_close(&m->drafter);
    model_close(m->model);
    cli_adapters_close(&m->adapters);
    cli_activations_free(&m->gpu.counts);
    engine_free(m->engine);
    text_tokenizer_close(m->tokenizer);
    gguf_close(m->file);
    base_buffer_free(&m->name);
    *m = (struct cli_model){0};
}

static void note_unused(const uint32_t count[MODEL_UNUSED_COUNT])
{
    static const char *const names[MODEL_UNUSED_COUNT] = {[MODEL_UNUSED_IMAGES] = "images",
                                                          [MODEL_UNUSED_AUDIO] = "audio",
                                                          [MODEL_UNUSED_DRAFTS] = "drafts",
                                                          [MODEL_UNUSED_HEADS] = "other heads",
                                                          [MODEL_UNUSED_OTHER] =
                                                              "without effect here"};
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; i < MODEL_UNUSED_COUNT; i++)
        if (count[i])
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u %s", used ? ", " : "",
                                     count[i], names[i]);
    if (used) cli_note("tensors of the file that are not used: %s", list);
}

void cli_model_note(const struct cli_model *m)
{
    const struct model_facts *f = model_facts(m->model);
    cli_note("%s: %s, %.1f M parameters, %.1f MiB of weights, vocabulary %u", m->name.data, f->arch,
             (double)f->n_params / 1e6, (double)f->weight_bytes / 0x1p20, f->n_vocab);
    cli_note("%s, %d threads%s, context %u (%.1f MiB)%s", cpu_level_name(m->engine->options.level),
             m->engine->options.n_threads, m->engine->options.use_blas ? ", OpenBLAS" : "",
             model_session_n_ctx(m->session),
             (double)model_session_cache_bytes(m->session) / 0x1p20,
             m->drafter.model                      ? ", with a drafter"
             : model_session_can_draft(m->session) ? ", with an MTP layer"
                                                   : "");
    cli_gpu_note(m);
    cli_adapters_note(&m->adapters, m->model);
    if (f->n_predictors)
        cli_note("predictors of zeros in %u layers: %s", f->n_predictors,
                 m->engine->options.predicts ? "used, so results are approximate" : "not used");
    note_unused(f->n_unused);
}
