/* test/support_graph.h: tests one op or graph: sources in every memory layout with guard bytes
 * around them, run with several numbers of threads and instruction-set levels, and on a GPU; the
 * results must have the same bits. */
#pragma once

#include "engine/graph.h"
#include "engine/place.h"
#include "test/support_random.h"

/* The memory layout of a source. */
enum support_form {
    SUPPORT_PLAIN,
    SUPPORT_COLS,       /* columns of wider rows */
    SUPPORT_SWAPPED,    /* dimensions 1 and 2 swapped in memory */
    SUPPORT_TRANSPOSED, /* dimensions 0 and 1 swapped in memory: no contiguous rows */
    SUPPORT_FORM_COUNT
};

enum { SUPPORT_MAX_LEAVES = 16, SUPPORT_MAX_IN = 8 };

struct support_leaf {
    struct engine_tensor tensor;
    char *memory;                /* guard bytes, data, guard bytes */
    size_t bytes;                /* of the data */
    struct engine_buffer buffer; /* of a copy in another place, where the tensor is */
};

struct support_rig {
    struct engine_graph *g;
    struct engine *engine;
    uint64_t seed;
    struct support_leaf leaf[SUPPORT_MAX_LEAVES];
    int n_leaves;
    struct engine_tensor *in[SUPPORT_MAX_IN]; /* the sources that the reference reads */
};

/* The engines of every check: different numbers of threads and levels. */
enum { SUPPORT_ENGINES = 5 };
struct engine *const *support_engines(void);
int support_engines_free(void **state); /* frees them: group teardown */

/* An engine with a GPU, and its place: the GPU of the environment variable INFER_TEST_GPU, or the
 * fake one that the program is linked with (test/fake_cuda.h); NULL: neither. */
struct engine *support_gpu(const struct engine_place **place);

/* A view of shape ne[4] of a leaf with random values (I32: zeros). */
struct engine_tensor *support_source(struct support_rig *rig, enum quant_id type, const int64_t *ne,
                                     enum support_form form);
/* An I32 leaf [n1][n0] with the given values. */
struct engine_tensor *support_ids(struct support_rig *rig, int64_t n0, int64_t n1,
                                  const int32_t *ids);

void support_rig_init(struct support_rig *rig, struct engine *engine, uint64_t seed);
/* After engine_graph_set_place and the builders: moves all leaves to the place, too. */
void support_rig_move(struct support_rig *rig, const struct engine_place *place);
void support_rig_free(struct support_rig *rig); /* also checks the guard bytes */

/* Element (i0, i1, i2, i3) of a tensor of any type; indexes are modulo the dimensions. */
double support_at(const struct engine_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);

/* Appends the op under test and returns its result; stores the sources for the reference in
 * rig->in. */
typedef struct engine_tensor *(*support_build)(struct support_rig *rig, const void *arg);
/* The expected value of element (i[0], ..., i[3]) of the result. */
typedef double (*support_want)(const struct support_rig *rig, const struct engine_tensor *result,
                               const void *arg, const int64_t *i);

/* Builds and runs on all engines, and on a GPU if that has the ops. Results must have the same bits
 * on all (on the GPU, except the payload of NaN), and be within `bar` (normalized mean squared
 * error; 0: equal as floats) of the reference. */
void support_check_op(const char *label, support_build build, support_want want, const void *arg,
                      double bar);
/* Builds and runs on one processor and on a GPU, which must have the ops and give the same bits;
 * does nothing without a GPU. */
void support_check_gpu(const char *label, support_build build, const void *arg);
