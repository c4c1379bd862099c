/* models/block/rope.c: reads rotary position embeddings from the metadata. See
 * models/block/blocks.h. */
#include "base/elementary.h"
#include "models/block/blocks.h"
#include "models/model.h"
#include <math.h>

/* Position scaling as in the metadata; finish_scaling converts it to parameters of the op. */
struct scaling {
    struct gguf_str type;
    float factor;         /* 0: none */
    float ext_factor;     /* share of extrapolation; below 0: derived from the type */
    float magnitude;      /* used if ext_factor is 0 */
    float log_multiplier; /* used without YaRN: divides the magnitude; 0: none */
    float attn_factor;
};

static bool read_scaling(struct model_reader *r, struct scaling *s)
{
    /* "rope.scale_linear" is the older name of this key. */
    const char *factor_key =
        model_reader_has(r, "rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    return model_read_f32(r, factor_key, MODEL_OPTIONAL, 0.0f, &s->factor) &&
           model_read_f32(r, "rope.scaling.attn_factor", MODEL_OPTIONAL, 0.0f, &s->attn_factor) &&
           gguf_get_str(r->file, model_reader_key(r, "rope.scaling.type"), &s->type, r->err);
}

/* Reads keys that only some architectures have: the betas, and the divisor of the magnitude. */
static bool read_yarn(struct model_reader *r, struct scaling *s, struct engine_rope *rope)
{
    return model_read_f32(r, "rope.scaling.yarn_beta_fast", MODEL_OPTIONAL, 0.0f,
                          &rope->beta_fast) &&
           model_read_f32(r, "rope.scaling.yarn_beta_slow", MODEL_OPTIONAL, 0.0f,
                          &rope->beta_slow) &&
           model_read_f32(r, "rope.scaling.yarn_log_multiplier", MODEL_OPTIONAL, 0.0f,
                          &s->log_multiplier);
}

/* Reads the user's overrides (MODEL_OPTION_PREFIX); the file's own values of these keys are
 * ignored. */
static bool read_options(const struct model_reader *file, struct scaling *s, uint32_t *n_orig,
                         struct engine_rope *rope)
{
    struct model_reader options = *file, *const r = &options;
    r->name = MODEL_OPTION_PREFIX;
    const struct {
        const char *name;
        float *out;
    } reals[] = {{"rope.freq_base", &rope->freq_base},
                 {"rope.scaling.factor", &s->factor},
                 {"rope.scaling.yarn_ext_factor", &s->ext_factor},
                 {"rope.scaling.yarn_attn_factor", &s->magnitude},
                 {"rope.scaling.yarn_beta_fast", &rope->beta_fast},
                 {"rope.scaling.yarn_beta_slow", &rope->beta_slow}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (model_reader_given(r, reals[i].name) &&
            !model_read_f32(r, reals[i].name, MODEL_OPTIONAL, 0.0f, reals[i].out))
            return false;
    return (!model_reader_given(r, "rope.scaling.type") ||
            gguf_get_str(r->file, r->key, &s->type, r->err)) &&
           (!model_reader_given(r, "rope.scaling.original_context_length") ||
            model_read_u32(r, "rope.scaling.original_context_length", MODEL_OPTIONAL, 1,
                           MODEL_MAX_CTX, n_orig));
}

static float freq_scale_of(const struct scaling *s)
{
    return s->factor > 0.0f && !gguf_str_is(s->type, "none") ? 1.0f / s->factor : 1.0f;
}

/* With YaRN (Peng et al. 2023) the op multiplies by the magnitude 1 - 0.1 ln(freq_scale).
 * attn_factor cancels it for freq_scale > 1 and divides by the magnitude of the log multiplier. */
static bool finish_scaling(struct model_reader *r, const struct scaling *s,
                           struct engine_rope *rope)
{
    const bool yarn = gguf_str_is(s->type, "yarn");
    if (!yarn && !gguf_str_is(s->type, "none") && !gguf_str_is(s->type, "linear") &&
        !gguf_str_is(s->type, "longrope"))
        return model_reader_fail(
            r, "rope.scaling.type",
            "RoPE scaling '%.*s' is not supported (none, linear, yarn and longrope are)",
            s->type.size < 64 ? (int)s->type.size : 64, s->type.data);
    rope->freq_scale = freq_scale_of(s);
    rope->ext_factor = s->ext_factor >= 0.0f ? s->ext_factor : yarn ? 1.0f : 0.0f;
    rope->attn_factor = rope->ext_factor == 0.0f ? s->magnitude
                        : rope->freq_scale > 1.0f
                            ? 1.0f / (1.0f - 0.1f * (float)base_log(rope->freq_scale))
                            : 1.0f;
    rope->attn_factor *= s->attn_factor;
    if (rope->ext_factor != 0.0f && rope->freq_scale < 1.0f && s->log_multiplier != 0.0f)
        rope->attn_factor /= 1.0f - 0.1f * s->log_multiplier * (float)base_log(rope->freq_scale);
    return true;
}

/* Reads all parameters of YaRN. A negative ext_factor counts as absent. `magnitude` applies without
 * YaRN. */
static bool read_yarn_all(struct model_reader *r, struct scaling *s, struct engine_rope *rope)
{
    rope->beta_fast = 8.0f;
    return model_read_f32(r, "rope.scaling.yarn_beta_fast", MODEL_OPTIONAL, 0.0f,
                          &rope->beta_fast) &&
           model_read_f32(r, "rope.scaling.yarn_beta_slow", MODEL_OPTIONAL, 0.0f,
                          &rope->beta_slow) &&
           model_read_f32(r, "rope.scaling.yarn_ext_factor", MODEL_OPTIONAL, -INFINITY,
                          &s->ext_factor) &&
           model_read_f32(r, "rope.scaling.yarn_attn_factor", MODEL_OPTIONAL, 0.0f, &s->magnitude);
}

/* Sets base * alpha^(D / (D - 2)), the base for longer contexts; D elements of a head, even if
 * fewer of them rotate. */
static bool read_alpha(struct model_reader *r, uint32_t size, struct engine_rope *rope)
{
    float alpha = 0.0f;
    if (!model_read_f32(r, "rope.scaling.alpha", MODEL_OPTIONAL, 0.0f, &alpha)) return false;
    if (alpha > 0.0f && size > 2)
        rope->freq_base *= (float)base_pow(alpha, (double)((float)size / (float)(size - 2)));
    return true;
}

/* Reads rope.dimension_sections {time, height, width, extra}; zeros if the file has none. */
static bool read_sections(struct model_reader *r, int section[4])
{
    const struct gguf_kv *kv =
        gguf_kv_find(r->file, model_reader_key(r, "rope.dimension_sections"));
    if (!kv) return true;
    if (!gguf_is_integers(kv))
        return model_reader_fail(r, "rope.dimension_sections", "not a list of integers");
    for (uint64_t i = 0; i < 4 && i < kv->count; i++) {
        const int64_t size = gguf_array_int(kv, i);
        if (size < 0 || size > MODEL_MAX_DIM)
            return model_reader_fail(r, "rope.dimension_sections", "%lld is out of range",
                                     (long long)size);
        section[i] = (int)size;
    }
    return true;
}

/* A text token has the same position in all sections except the last, where it is 0. So consecutive
 * sections with an empty last one are NEOX rotation. */
static bool use_sections(struct model_reader *r, enum model_rope_keys keys,
                         struct engine_rope *rope)
{
    int section[4] = {0};
    if (!read_sections(r, section)) return false;
    if (keys == MODEL_ROPE_KEYS_INTERLEAVED)
        rope->kind = ENGINE_ROPE_INTERLEAVED;
    else if (section[0] > 0 && section[1] > 0)
        rope->kind = section[3] > 0 ? ENGINE_ROPE_MULTI : ENGINE_ROPE_NEOX;
    for (int i = 0; i < 4; i++) rope->section[i] = section[i];
    return true;
}

static bool layer_rotates(struct model_reader *r, const struct model_attention_row *row,
                          bool windowed, uint32_t layer, bool *rotates)
{
    bool finetuned = true;
    *rotates = row->rope != MODEL_ROPE_NONE;
    if (row->rotate == MODEL_ROTATE_WINDOWED) *rotates = windowed;
    if (row->rotate == MODEL_ROTATE_NOT_4TH) *rotates = (layer + 1) % 4 != 0;
    if (row->rotate == MODEL_ROTATE_LEADING) {
        uint32_t leading = 0;
        if (!model_read_u32(r, "leading_dense_block_count", MODEL_OPTIONAL, 0, MODEL_MAX_LAYERS,
                            &leading))
            return false;
        *rotates = windowed || layer < leading;
    }
    if (row->rotate == MODEL_ROTATE_PATTERN) {
        bool is_array, marked;
        if (!model_read_layer_flag(r, "attention.rope_pattern", layer, &is_array, &marked))
            return false;
        *rotates = marked || !is_array;
    }
    if (row->rotate == MODEL_ROTATE_NOT_1ST) {
        uint32_t window = 0;
        if (!model_read_u32(r, "attention.sliding_window", MODEL_OPTIONAL, 0, MODEL_MAX_CTX,
                            &window))
            return false;
        *rotates = window == 0 || layer % 4 != 0;
    }
    if (row->rotate != MODEL_ROTATE_FINETUNED) return true;
    if (!gguf_get_bool(r->file, model_reader_key(r, "rope.scaling.finetuned"), &finetuned, r->err))
        return false;
    *rotates = finetuned;
    return true;
}

/* Reads the number of elements that rotate. */
static bool read_size(struct model_reader *r, const struct model_attention_row *row, bool windowed,
                      uint32_t max, struct engine_rope *rope)
{
    uint32_t n_rot = max;
    const char *key = windowed && model_reader_has(r, "rope.dimension_count_swa")
                          ? "rope.dimension_count_swa"
                          : "rope.dimension_count";
    if (!model_read_u32(r, key, MODEL_OPTIONAL, 2, max, &n_rot)) return false;
    if (!windowed && row->half_rot) n_rot /= 2;
    if (n_rot % 2 || n_rot == 0)
        return model_reader_fail(r, key, "%u elements cannot rotate in pairs", n_rot);
    rope->n_rot = (int)n_rot;
    return true;
}

static void size_factors(struct model_params *p, const struct engine_rope *rope)
{
    const uint32_t n = (uint32_t)rope->n_rot / 2;
    if (n > p->ends.n_factors) p->ends.n_factors = n;
}

bool model_read_rope(struct model_reader *r, struct model_params *p, bool windowed, uint32_t max,
                     uint32_t layer, struct engine_rope *rope, bool *rotates)
{
    const struct model_attention_row *row = &p->arch->attn;
    uint32_t n_orig = p->n_ctx_train;
    struct scaling scaling = {
        .type = {"linear", 6}, .ext_factor = -1.0f, .magnitude = 1.0f, .attn_factor = 1.0f};
    *rope = (struct engine_rope){.kind = row->rope == MODEL_ROPE_NEOX ? ENGINE_ROPE_NEOX
                                                                      : ENGINE_ROPE_NORMAL,
                                 .n_rot = (int)max,
                                 .freq_base = 10000.0f,
                                 .freq_scale = 1.0f,
                                 .n_ctx_orig = (int)n_orig,
                                 .attn_factor = 1.0f,
                                 .beta_fast = 32.0f,
                                 .beta_slow = 1.0f};
    if (!layer_rotates(r, row, windowed, layer, rotates)) return false;
    if (row->rope == MODEL_ROPE_NONE || row->rope_keys == MODEL_ROPE_KEYS_NONE) {
        size_factors(p, rope);
        return true;
    }
    if (!read_size(r, row, windowed, max, rope) ||
        !model_read_u32(r, "rope.scaling.original_context_length", MODEL_OPTIONAL, 1, MODEL_MAX_CTX,
                        &n_orig) ||
        !model_read_f32(r, "rope.freq_base", MODEL_OPTIONAL, 1.0f, &rope->freq_base) ||
        !read_scaling(r, &scaling) ||
        (row->rope_keys >= MODEL_ROPE_KEYS_ALPHA && !use_sections(r, row->rope_keys, rope)) ||
        (row->rope_keys == MODEL_ROPE_KEYS_YARN && !read_yarn(r, &scaling, rope)) ||
        (row->rope_keys == MODEL_ROPE_KEYS_YARN_ALL && !read_yarn_all(r, &scaling, rope)) ||
        (row->rope_keys == MODEL_ROPE_KEYS_ALPHA && !read_alpha(r, max, rope)))
        return false;
    const float base = rope->freq_base, freq_scale = freq_scale_of(&scaling);
    if (!read_options(r, &scaling, &n_orig, rope) || !finish_scaling(r, &scaling, rope))
        return false;
    rope->n_ctx_orig = (int)n_orig;
    size_factors(p, rope);
    if (!windowed || row->window.rope == MODEL_WINDOW_ROPE_SAME) return true;
    if (row->window.rope == MODEL_WINDOW_ROPE_OWN) rope->freq_base = 10000.0f;
    if (row->window.rope == MODEL_WINDOW_ROPE_BASE) { /* before the user's overrides */
        rope->freq_base = base;
        rope->freq_scale = freq_scale;
    } else { /* never scaled */
        rope->freq_scale = 1.0f;
        rope->ext_factor = 0.0f;
        rope->attn_factor = 1.0f;
    }
    if (row->window.rope == MODEL_WINDOW_ROPE_UNSCALED) return true;
    return model_read_f32(r, "rope.freq_base_swa", MODEL_OPTIONAL, 1.0f, &rope->freq_base);
}

struct engine_tensor *model_rope_factors(const struct model_builder *b,
                                         const struct engine_rope *rope)
{
    const struct model_ends *ends = &b->params->ends;
    const enum model_window_rope kind = b->params->arch->attn.window.rope;
    const bool scaled = kind == MODEL_WINDOW_ROPE_SAME || kind == MODEL_WINDOW_ROPE_BASE;
    if (b->layer->kv.window && !scaled) return NULL;
    if (ends->rope_freqs) return ends->rope_freqs;
    return b->state->n_ctx > (uint32_t)rope->n_ctx_orig ? ends->rope_long : ends->rope_short;
}
