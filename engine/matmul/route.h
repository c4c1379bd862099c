/* engine/matmul/route.h: how a product is done: the routes, and the facts that decide. See route.c
 * for the table. Private to matmul and its tests. */
#ifndef ENGINE_MATMUL_ROUTE_H
#define ENGINE_MATMUL_ROUTE_H

#include "engine/engine.h"
#include "engine/isa/tile.h"

struct engine_matmul;

enum engine_route {
    ENGINE_ROUTE_BLAS,
    ENGINE_ROUTE_GEMV_STRIDED,
    ENGINE_ROUTE_GEMV,
    ENGINE_ROUTE_PACKED,
    ENGINE_ROUTE_ROWS,
    ENGINE_ROUTE_PANELS_K,
    ENGINE_ROUTE_PANELS,
    ENGINE_ROUTE_COUNT
};

/* What holds for all weights and gemms of a node. */
struct engine_route_facts {
    int64_t max_columns;            /* that a gemm can have */
    bool gated;                     /* two weights and the fused gate-up (GLU) epilogue */
    bool blas;                      /* OpenBLAS may have it */
    bool adjacent_rows, dual_512;   /* the processor's: struct cpu_prefetch, struct quant_kernels */
    const struct engine_tile *tile; /* the level's */
};
struct engine_route_facts engine_route_facts(const struct engine *e, const struct engine_matmul *p);

/* The route of a weight whose type takes activations of that form, by `columns` columns. */
enum engine_route engine_route_of(const struct engine_route_facts *f,
                                  const struct quant_act_form *act, int64_t columns);
const char *engine_route_name(enum engine_route route); /* as the profile prints it */

/* What the layout of scratch must know of it, before any run: no gemm leaves gemv; panels of
 * super-blocks go by K-blocks. */
bool engine_route_gemv_only(int64_t max_columns);
bool engine_route_k_blocks(int64_t max_columns, bool dual_512);

#endif
