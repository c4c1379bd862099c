/* test/support_product.h: random weights and columns with the products of the specification
 * (quant_type.dot on scalar activations), and helpers to run products. All functions fail the
 * running test on an error. */
#pragma once

#include "test/support.h"

#include "engine/graph.h"

enum {
    PRODUCT_MAX_ROWS = 40,
    PRODUCT_MAX_COLS = 64,
    PRODUCT_MAX_K = 768,
    PRODUCT_MAX_ROW_BYTES = PRODUCT_MAX_K * 4
};

/* One weight matrix, some columns, and their products; zeroed before the first product_fill. */
struct product_bench {
    const struct quant_type *type;
    int64_t k;
    bool raw;
    uint64_t seed;
    uint64_t row_bytes;
    char w[PRODUCT_MAX_ROWS * PRODUCT_MAX_ROW_BYTES];
    float x[PRODUCT_MAX_COLS][PRODUCT_MAX_K];
    float want[PRODUCT_MAX_COLS][PRODUCT_MAX_ROWS];
};

float product_random(uint64_t *state); /* from -1 to 1 */

/* Fills `b` with weights encoded from floats or (raw) arbitrary bytes, which have extreme codes and
 * scales. Does nothing if the last call for `b` had the same arguments, because computing the
 * products takes longer than most tests of them. */
void product_fill(struct product_bench *b, const struct quant_type *type, int64_t k, bool raw,
                  uint64_t seed);

/* Scalar activations of one column, valid until the next call. */
struct quant_act product_act(const struct quant_act_form *form, int64_t k, const float *x);

struct engine *product_engine(enum cpu_level level, int n_threads); /* with default options */
struct engine_tensor product_leaf(enum quant_id type, int n_dims, const int64_t *ne, void *data);
struct engine_graph *product_graph(struct engine *e);

/* Makes `out`, unless NULL, an output, plans (simplified, or by `simplify`) and runs. */
void product_run(struct engine_graph *g, struct engine_tensor *out);
void product_plan_and_run(struct engine_graph *g, struct engine_tensor *out, bool simplify);

const float *product_row(const struct engine_tensor *t, int64_t i1, int64_t i2, int64_t i3);
bool product_same(float a, float b); /* the same bits, or both NaN */

/* Checks that the first n results of a column are the specified ones. */
void product_check(const struct product_bench *b, const struct engine *e, const float *got,
                   int64_t column, int64_t n);

/* Lengths of short rows: edges of tiles and blocks. */
int64_t product_short_k(const struct quant_type *type, int i);

/* Gives an engine the policies of support_family_at(turn), for graphs that are planned later. */
void product_adapt(struct engine *e, int turn);

/* Calls check for every type with arithmetic, level, number of threads (at most 4) and family
 * (support_level.h). `round` chooses the data: the engines of a type get each of PRODUCT_ROUNDS in
 * turn, and checks of the same type and round are consecutive. */
enum { PRODUCT_ROUNDS = 7 };
void product_for_all(void (*check)(const struct quant_type *, struct engine *, int round),
                     const int *threads, int n_threads);
