/* engine/cpu/isa/vec_levels.h: the entries that each level replaces in the table. Private to
 * vec*.c. */
#ifndef ENGINE_ISA_VEC_LEVELS_H
#define ENGINE_ISA_VEC_LEVELS_H

#include "engine/cpu/isa/vec.h"

void engine_vec_fill_scalar(struct engine_vec *vec); /* every entry */
void engine_vec_fill_avx2(struct engine_vec *vec);   /* x86-64 only */
void engine_vec_fill_avx512(struct engine_vec *vec); /* x86-64 only */

#endif
