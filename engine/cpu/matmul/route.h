/* engine/cpu/matmul/route.h: how a product is computed: the routes, and the facts that determine
 * the route. See route.c for the table. Private to matmul and its tests. */
#pragma once

#include "engine/cpu/isa/tile.h"
#include "engine/engine.h"

struct engine_matmul;

enum engine_route {
    ENGINE_ROUTE_BLAS,
    ENGINE_ROUTE_ACTIVE,
    ENGINE_ROUTE_GEMV_STRIDED,
    ENGINE_ROUTE_GEMV,
    ENGINE_ROUTE_PACKED,
    ENGINE_ROUTE_ROWS,
    ENGINE_ROUTE_PANELS_K,
    ENGINE_ROUTE_PANELS,
    ENGINE_ROUTE_COUNT
};

/* The facts that are common to all weights and gemms of a node. */
struct engine_route_facts {
    int64_t max_columns;            /* maximum of all gemms */
    bool gated;                     /* two weights and the fused gate-up (GLU) epilogue */
    bool active;                    /* some results are known to be zero */
    bool blas;                      /* OpenBLAS may compute it */
    bool adjacent_rows, dual_512;   /* the processor's: struct cpu_prefetch, struct quant_kernels */
    const struct engine_tile *tile; /* of the product */
};
struct engine_route_facts engine_route_facts(const struct engine_cpu *e,
                                             const struct engine_matmul *p);

/* The route of a weight for activations of form `act` and `columns` columns; `few` is the type's
 * few_columns (struct quant_kernel). */
enum engine_route engine_route_of(const struct engine_route_facts *f,
                                  const struct quant_act_form *act, int few, int64_t columns);
const char *engine_route_name(enum engine_route route); /* the name that the profile prints */

/* For the layout of scratch, before any run: whether all gemms are on gemv routes, and whether
 * panels and columns of a layout are divided into K-blocks. */
bool engine_route_gemv_only(int64_t max_columns);
bool engine_route_k_blocks(enum quant_layout layout, int64_t max_columns, bool dual_512);
