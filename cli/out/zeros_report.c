/* cli/out/zeros_report.c: counts and prints zeros. See cli/out/zeros_report.h.
 *
 * The table is written to stderr, because stdout has the result. */
#include "cli/out/zeros_report.h"
#include "engine/cpu/pool.h"
#include "engine/tensor.h"
#include <stdio.h>
#include <stdlib.h>

/* Worker 0 counts the inputs of ffn_down and ffn_down_exps. */
static void see_product(void *user, const struct engine_worker *worker,
                        const struct engine_product_inputs *inputs)
{
    struct cli_zeros *z = user;
    const struct engine_tensor *x = inputs->x;
    uint32_t layer;
    int end = 0;
    if (worker->ith != 0 || sscanf(inputs->w->name, "blk.%u.ffn_down%n", &layer, &end) != 1 ||
        end == 0 || layer >= z->n_layers)
        return;
    for (int64_t r = 0; r < engine_tensor_rows(x); r++) {
        const char *row = x->data + r % x->ne[1] * x->nb[1] + r / x->ne[1] % x->ne[2] * x->nb[2] +
                          r / x->ne[1] / x->ne[2] * x->nb[3];
        for (int64_t i = 0; i < x->ne[0]; i++)
            z->layer[layer].zeros += *(const float *)(row + i * x->nb[0]) == 0.0f;
    }
    z->layer[layer].all += (uint64_t)engine_tensor_elements(x);
}

bool cli_zeros_init(struct cli_zeros *z, uint32_t n_layers)
{
    *z = (struct cli_zeros){.observer = {see_product, z}, .n_layers = n_layers};
    z->layer = calloc(n_layers, sizeof *z->layer);
    return z->layer != NULL;
}

void cli_zeros_free(struct cli_zeros *z)
{
    free(z->layer);
}

static void print_share(const char *name, const struct cli_zeros_layer *l)
{
    fprintf(stderr, "| %-5s | %5.1f %% |\n", name, 100 * (double)l->zeros / (double)l->all);
}

void cli_zeros_print(const struct cli_zeros *z, const char *title, uint32_t n_tokens)
{
    struct cli_zeros_layer sum = {0, 0};
    char name[16];
    fprintf(stderr,
            "%s %u: zeros in the inputs of ffn_down\n| layer |   zeros |\n|------:|--------:|\n",
            title, n_tokens);
    for (uint32_t i = 0; i < z->n_layers; i++) {
        const struct cli_zeros_layer *l = &z->layer[i];
        sum.zeros += l->zeros;
        sum.all += l->all;
        snprintf(name, sizeof name, "%5u", i);
        if (l->all) print_share(name, l);
    }
    if (sum.all) print_share("  all", &sum);
}
