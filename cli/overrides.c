/* cli/overrides.c: metadata overrides of the command line. See cli/overrides.h. */
#include "cli/overrides.h"
#include "models/model.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 127 };

#define ROPE    MODEL_OPTION_PREFIX ".rope."
#define SCALING ROPE "scaling."

/* ---- KEY=TYPE:VALUE ---- */

static bool give_int(struct gguf_file *file, struct gguf_str key, const char *text,
                     struct base_error *err)
{
    const char *digits = text + (*text == '-' || *text == '+');
    errno = 0;
    const int64_t value = strtoll(text, NULL, 10);
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits) || errno)
        return base_fail_at(err, BASE_USAGE, "--override-kv", -1,
                            "'%s' is not a whole number of 64 bits", text);
    return gguf_override(file, key, GGUF_I64, &value, sizeof value, err);
}

static bool give_float(struct gguf_file *file, struct gguf_str key, const char *text,
                       struct base_error *err)
{
    char *end;
    const double value = strtod(text, &end);
    if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text) || *end ||
        !isfinite(value))
        return base_fail_at(err, BASE_USAGE, "--override-kv", -1, "'%s' is not a number", text);
    return gguf_override(file, key, GGUF_F64, &value, sizeof value, err);
}

static bool give_bool(struct gguf_file *file, struct gguf_str key, const char *text,
                      struct base_error *err)
{
    const unsigned char value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return base_fail_at(err, BASE_USAGE, "--override-kv", -1, "'%s' is neither true nor false",
                            text);
    return gguf_override(file, key, GGUF_BOOL, &value, sizeof value, err);
}

static bool give_str(struct gguf_file *file, struct gguf_str key, const char *text,
                     struct base_error *err)
{
    return gguf_override(file, key, GGUF_STRING, text, strlen(text), err);
}

static const struct {
    const char *prefix;
    bool (*give)(struct gguf_file *file, struct gguf_str key, const char *text,
                 struct base_error *err);
} types[] = {{"int:", give_int}, {"float:", give_float}, {"bool:", give_bool}, {"str:", give_str}};

static bool give(struct gguf_file *file, const char *text, struct base_error *err)
{
    const size_t n = strcspn(text, "=");
    if (n == 0 || n > MAX_KEY || text[n] == '\0')
        return base_fail_at(err, BASE_USAGE, "--override-kv", -1, "'%s' is not KEY=TYPE:VALUE",
                            text);
    const char *rest = text + n + 1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t size = strlen(types[i].prefix);
        if (strncmp(rest, types[i].prefix, size) == 0)
            return types[i].give(file, (struct gguf_str){text, n}, rest + size, err);
    }
    return base_fail_at(err, BASE_USAGE, "--override-kv", -1,
                        "'%s': the type is none of int, float, bool and str", text);
}

/* ---- Rotary positions ---- */

static bool give_rope(struct gguf_file *file, const char *name, enum gguf_kind kind,
                      const void *bytes, uint64_t size, struct base_error *err)
{
    return gguf_override(file, (struct gguf_str){name, strlen(name)}, kind, bytes, size, err);
}

static bool apply_rope(struct gguf_file *file, const struct cli_values *v, struct base_error *err)
{
    const struct {
        const char *name;
        double value;
        bool given;
    } reals[] = {
        {SCALING "factor", (double)v->rope_scale, v->rope_scale > 0},
        {SCALING "factor", 1.0 / (double)v->rope_freq_scale, v->rope_freq_scale > 0},
        {ROPE "freq_base", (double)v->rope_freq_base, v->rope_freq_base > 0},
        {SCALING "yarn_ext_factor", (double)v->yarn_ext_factor, v->yarn_ext_factor >= 0},
        {SCALING "yarn_attn_factor", (double)v->yarn_attn_factor, v->yarn_attn_factor >= 0},
        {SCALING "yarn_beta_fast", (double)v->yarn_beta_fast, v->yarn_beta_fast >= 0},
        {SCALING "yarn_beta_slow", (double)v->yarn_beta_slow, v->yarn_beta_slow >= 0},
    };
    const int64_t orig_ctx = v->yarn_orig_ctx;
    if ((v->rope_scaling && !give_rope(file, SCALING "type", GGUF_STRING, v->rope_scaling,
                                       strlen(v->rope_scaling), err)) ||
        (orig_ctx > 0 && !give_rope(file, SCALING "original_context_length", GGUF_I64, &orig_ctx,
                                    sizeof orig_ctx, err)))
        return false;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (reals[i].given &&
            !give_rope(file, reals[i].name, GGUF_F64, &reals[i].value, sizeof reals[i].value, err))
            return false;
    return true;
}

bool cli_overrides_apply(struct gguf_file *file, const struct cli_values *values, bool drafts,
                         struct base_error *err)
{
    for (size_t i = 0; !drafts && i < values->override_kv.count; i++)
        if (!give(file, values->override_kv.item[i], err)) return false;
    return apply_rope(file, values, err);
}

bool cli_overrides_check(const struct gguf_file *file, bool has_tokenizer, struct base_error *err)
{
    const struct gguf_kv *kv;
    bool used;
    for (uint64_t i = 0; (kv = gguf_override_at(file, i, &used)); i++) {
        if (used || gguf_str_begins(kv->key, MODEL_OPTION_PREFIX ".") ||
            gguf_str_begins(kv->key, "tokenizer.chat_template") ||
            (!has_tokenizer && gguf_str_begins(kv->key, "tokenizer.")))
            continue;
        return base_fail_at(err, BASE_USAGE, "--override-kv", -1,
                            "'%.*s': the file has no such key, and this model does not read it",
                            (int)kv->key.size, kv->key.data);
    }
    return true;
}
