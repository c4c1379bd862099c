/* test/test_sample_golden.c: random chains over random logits, with masks and biases, draw the ids
 * that they drew when the numbers here were made, and log-probabilities have the same bits: a
 * change of the samplers' code that is not meant to change results does not. */
#include "sample/sample.h"
#include "test/support.h"
#include "test/support_sampling.h"
#include <stdlib.h>

enum { LARGEST = 262144, GROUPS = 16, TRIALS = 60 /* per group */, SHORT_GROUPS = 4 };

/* FNV-1a */
static void add(uint64_t *hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
}

/* Adds the ids of four calls of a sampler to the hash, and the three best log-probabilities. */
static void draw(struct sample_random *r, const struct sample_options *o, uint32_t n_vocab,
                 float *logits, uint64_t *mask, uint64_t *hash)
{
    struct base_error err = BASE_ERROR_INIT;
    const enum support_shape shape =
        (enum support_shape)(sample_random_u32(r) % SUPPORT_SHAPE_COUNT);
    struct sampler *s = sample_new(o, n_vocab, SUPPORT_N_CTX, &err);
    if (!s) fail_msg("%s: %s", err.item, err.text);
    for (uint32_t i = sample_random_u32(r) % 100; i > 0; i--)
        sample_accept(s, (int32_t)(sample_random_u32(r) % 6));
    for (int call = 0; call < 4; call++) {
        support_fill_logits(r, shape, n_vocab, logits);
        const uint32_t sparse = sample_random_u32(r) % 4;
        for (uint32_t i = 0; i < (n_vocab + 63) / 64; i++)
            mask[i] = sparse == 0 && sample_random_u32(r) % 8
                          ? 0
                          : (uint64_t)sample_random_u32(r) * sample_random_u32(r);
        if (sparse < 2) sample_restrict(s, mask);
        const int32_t id = sample_next(s, logits, &err);
        add(hash, &id, sizeof id);
        sample_accept(s, id);
    }
    struct sample_logprob best[3];
    double of_id;
    const uint32_t n = sample_logprobs(o->level, logits, n_vocab, 3, best, 0, &of_id);
    for (uint32_t i = 0; i < n; i++) {
        add(hash, &best[i].id, sizeof best[i].id);
        add(hash, &best[i].logprob, sizeof best[i].logprob);
    }
    add(hash, &of_id, sizeof of_id);
    sample_free(s);
}

static void chains_draw_the_recorded_ids(void **state)
{
    (void)state;
    static const uint64_t golden[GROUPS] = {
        0xdb90cc1853d0d59e, 0x5c8763db5ccc9ebc, 0x117c160d46d11723, 0xd317b5ffa727cb71,
        0x08a1b5f92e424870, 0xe0c2a7ddd988b898, 0xf8477531e74fff82, 0x6a2fb5d65f748ae8,
        0x6f855c2108afb6b1, 0x0715d52b031a3436, 0xda18ed3f6c38dc47, 0x1598b4aa8ea0715a,
        0x881cf5e1eda5f56b, 0x5dbe90c714ab8ee6, 0xa06615645bb5ece7, 0xb19e256cd537926b};
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 1000, 3000, 4096, 9999, 32000};
    float *logits = malloc(LARGEST * sizeof *logits);
    uint64_t *mask = malloc((LARGEST / 64) * sizeof *mask);
    assert_true(logits && mask);
    const int n_groups = getenv("INFER_TEST_QUICK") ? SHORT_GROUPS : GROUPS;
    bool same = true;
    for (int group = 0; group < n_groups; group++) {
        struct sample_random r;
        sample_random_seed(&r, (uint64_t)group);
        uint64_t hash = 0xcbf29ce484222325;
        for (int trial = 0; trial < TRIALS; trial++) {
            struct sample_options o =
                trial % 3 ? support_random_options(&r) : support_long_options(&r);
            const struct sample_bias bias[] = {{0, 1}, {(int32_t)(sample_random_u32(&r) % 60), -3}};
            const uint32_t n_vocab =
                trial == 0 ? LARGEST - (uint32_t)group % 2 : SUPPORT_PICK(&r, sizes);
            int order[SUPPORT_STAGES];
            char text[200];
            support_random_order(&r, &o, order, text, sizeof text);
            if (sample_random_u32(&r) % 2) o.samplers = text;
            o.bias = bias;
            o.n_biases = n_vocab > 60 ? sample_random_u32(&r) % 3 : 0;
            o.end_id = &(const int32_t){0};
            o.n_ends = 1;
            draw(&r, &o, n_vocab, logits, mask, &hash);
        }
        if (hash == golden[group]) continue;
        print_error("group %d: 0x%016llx\n", group, (unsigned long long)hash);
        same = false;
    }
    assert_true(same);
    free(logits);
    free(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_draw_the_recorded_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
