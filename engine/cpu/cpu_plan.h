/* engine/cpu/cpu_plan.h: the functions of struct engine_backend that prepare a plan for the
 * processor, and its form of cached keys and values. Private to engine/. */
#pragma once

#include "engine/plan.h"

const void *engine_cpu_row(const struct engine_tensor *node);
bool engine_cpu_fuses_gate(const struct engine *engine, const struct engine_tensor *fused);
bool engine_cpu_measure(struct engine_plan *plan, const struct engine_segment *segment,
                        const struct engine *engine, struct base_error *err);
void engine_cpu_prepare(struct engine_plan *plan, struct engine_segment *segment);
bool engine_cpu_run(const struct engine_plan *plan, const struct engine_segment *segment,
                    const struct engine *engine, struct base_error *err);
/* engine/cpu/op/op_kv_q16.c */
struct engine_kv_form engine_cpu_kv_form(enum engine_kv_q16 what, const struct quant_type *type,
                                         uint32_t size);
void engine_cpu_kv_copy(const struct engine_place *place, const struct engine_kv_form *form,
                        char *to, uint32_t to_row, const char *from, uint32_t from_row);
