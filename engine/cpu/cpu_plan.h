/* engine/cpu/cpu_plan.h: the functions of struct engine_backend that prepare a plan for the CPU.
 * Private to engine/. */
#ifndef ENGINE_CPU_PLAN_H
#define ENGINE_CPU_PLAN_H

#include "engine/plan.h"

const void *engine_cpu_row(const struct engine_tensor *node);
bool engine_cpu_measure(struct engine_plan *plan, const struct engine *engine,
                        struct base_error *err);
void engine_cpu_prepare(struct engine_plan *plan);

#endif
