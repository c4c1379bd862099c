/* test/test_rope.c: the rotary position embedding that a file's keys give a layer: base, scale and
 * which factors divide its frequencies. */
#include "test/support.h"

#include "models/block/blocks.h"
#include "test/support_model.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* A model file with further keys, and what was read of it. */
struct world {
    struct gguf_file *file;
    struct model_params params;
    struct base_error err;
    struct model_reader reader;
};

static void open_world(struct world *w, const char *arch, const char *keys)
{
    struct support_model m = support_model_default(arch);
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-%d-rope.gguf", (int)getpid());
    m.keys = keys;
    *w = (struct world){.err = BASE_ERROR_INIT};
    assert_true(support_model_write(&m, path, &w->err));
    w->file = gguf_open(path, &w->err);
    unlink(path);
    if (!w->file || !model_params_read(&w->params, w->file, &w->err)) fail_msg("%s", w->err.text);
    w->reader = (struct model_reader){
        .file = w->file, .name = arch, .n_layer = w->params.n_layer, .err = &w->err};
}

static void close_world(struct world *w)
{
    model_params_free(&w->params);
    gguf_close(w->file);
}

/* The RoPE of a head of `size` elements. */
static struct engine_rope rope_of(struct world *w, bool windowed, uint32_t size)
{
    struct engine_rope rope;
    bool rotates;
    if (!model_read_rope(&w->reader, &w->params, windowed, size, 0, &rope, &rotates))
        fail_msg("%s", w->err.text);
    return rope;
}

static void check_near(float got, double want)
{
    if (!(fabs((double)got - want) <= 1e-6 * fabs(want))) fail_msg("%g, not %g", (double)got, want);
}

static void the_base_for_long_contexts_depends_on_the_size_of_a_head(void **state)
{
    struct world w;
    (void)state;
    /* Half of the 16 elements rotate; the exponent is D / (D - 2) with D = 16. */
    open_world(&w, "hunyuan_vl",
               "rope.scaling.alpha=50.0 rope.dimension_count=8 rope.freq_base=20000.0");
    const struct engine_rope rope = rope_of(&w, false, 16);
    assert_int_equal(rope.n_rot, 8);
    check_near(rope.freq_base, 20000 * pow(50, 16.0 / 14));
    close_world(&w);
    open_world(&w, "hunyuan_vl", "rope.freq_base=20000.0");
    check_near(rope_of(&w, false, 16).freq_base, 20000);
    close_world(&w);
}

static void factors_for_long_contexts_apply_above_the_original_length(void **state)
{
    struct engine_tensor freqs, longer, shorter;
    struct model_layer layer = {0};
    struct model_state cache = {0};
    struct world w;
    (void)state;
    open_world(&w, "phi3", "rope.scaling.original_context_length=64");
    const struct engine_rope rope = rope_of(&w, false, 16);
    assert_int_equal(rope.n_ctx_orig, 64);
    w.params.ends.rope_long = &longer;
    w.params.ends.rope_short = &shorter;
    const struct model_builder b = {.params = &w.params, .layer = &layer, .state = &cache};
    for (cache.n_ctx = 63; cache.n_ctx <= 65; cache.n_ctx++)
        assert_ptr_equal(model_rope_factors(&b, &rope), cache.n_ctx > 64 ? &longer : &shorter);
    w.params.ends.rope_freqs = &freqs; /* those for all contexts come first */
    assert_ptr_equal(model_rope_factors(&b, &rope), &freqs);
    close_world(&w);
}

static void the_original_length_is_that_of_training_unless_the_file_has_one(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "llama", NULL);
    assert_int_equal(rope_of(&w, false, 16).n_ctx_orig, w.params.n_ctx_train);
    close_world(&w);
}

static void layers_with_a_window_are_not_scaled(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "gemma3",
               "rope.freq_base=500000.0 rope.scaling.type=linear rope.scaling.factor=8.0");
    const struct engine_rope full = rope_of(&w, false, 16), window = rope_of(&w, true, 16);
    check_near(full.freq_base, 500000);
    check_near(full.freq_scale, 1.0 / 8);
    check_near(window.freq_base, 10000); /* that of the architecture */
    check_near(window.freq_scale, 1);
    close_world(&w);
}

static void a_factor_scales_unless_the_type_is_none(void **state)
{
    static const struct {
        const char *keys;
        double scale, ext;
    } cases[] = {
        {"rope.scaling.type=linear rope.scaling.factor=4.0", 0.25, 0},
        {"rope.scaling.type=none rope.scaling.factor=4.0", 1, 0},
        {"rope.scaling.type=yarn rope.scaling.factor=4.0", 0.25, 1},
        {"rope.scale_linear=4.0", 0.25, 0},
        {"rope.scaling.factor=2.0 rope.scale_linear=4.0", 0.5, 0}, /* the newer key */
        {"rope.scaling.factor=0.0", 1, 0},
    };
    struct world w;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_world(&w, "llama", cases[i].keys);
        const struct engine_rope rope = rope_of(&w, false, 16);
        check_near(rope.freq_scale, cases[i].scale);
        assert_true(rope.ext_factor == (float)cases[i].ext);
        assert_true(rope.attn_factor == 1.0f);
        close_world(&w);
    }
}

/* YaRN's magnitude is 1 + 0.1 ln(factor), which the op computes; the log multiplier divides it. */
static void the_log_multiplier_divides_the_magnitude(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "mistral3",
               "attention.temperature_scale=0.5 rope.scaling.type=yarn rope.scaling.factor=4.0 "
               "rope.scaling.original_context_length=8 rope.scaling.yarn_log_multiplier=0.5");
    check_near(rope_of(&w, false, 16).attn_factor, 1 / (1 + 0.1 * 0.5 * log(4)));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_for_long_contexts_depends_on_the_size_of_a_head),
        cmocka_unit_test(factors_for_long_contexts_apply_above_the_original_length),
        cmocka_unit_test(the_original_length_is_that_of_training_unless_the_file_has_one),
        cmocka_unit_test(layers_with_a_window_are_not_scaled),
        cmocka_unit_test(a_factor_scales_unless_the_type_is_none),
        cmocka_unit_test(the_log_multiplier_divides_the_magnitude),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
