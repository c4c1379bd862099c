/* engine/cpu/cpu_device.h: the processor as a device: kernel tables of its level, thread pool,
 * OpenBLAS.
 *
 * Part of each engine (struct engine, `cpu`); jobs on files, which have no graph, open it alone. */
#pragma once

#include "engine/cpu/isa/vec.h"
#include "engine/cpu/pool.h"
#include "engine/engine.h"
#include "quant/quant.h"

struct engine_cpu {
    struct quant_kernels quant; /* quant.level: the level in use */
    struct engine_vec vec;
    struct engine_pool *pool;
    struct engine_blas *blas; /* NULL unless use_blas */
};

/* Fills the tables and starts the pool; the caller frees the result by engine_cpu_free. BASE_USAGE
 * when use_blas is set and OpenBLAS cannot be loaded. */
struct engine_cpu *engine_cpu_new(const struct engine_options *options, struct base_error *err);
void engine_cpu_free(struct engine_cpu *cpu); /* may be NULL */

/* For rows of struct engine_backend: open and close the processor of an engine. */
bool engine_cpu_open(struct engine *e, struct base_error *err);
void engine_cpu_close(struct engine *e);
