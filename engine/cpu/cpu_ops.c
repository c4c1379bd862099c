/* engine/cpu/cpu_ops.c: the CPU's table of ops. See engine/cpu/cpu_op.h. */
#include "engine/cpu/cpu_op.h"
#include "engine/ops.h"
#include <stddef.h>

#define DECLARE(name) extern const struct engine_cpu_op engine_cpu_op_##name;
ENGINE_RUN_OPS(DECLARE)

#define ADDRESS(name) &engine_cpu_op_##name,
static const struct engine_cpu_op *const rows[] = {ENGINE_RUN_OPS(ADDRESS)};

const struct engine_cpu_op *engine_cpu_op_of(const struct engine_op *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->op == op) return rows[i];
    return NULL;
}
