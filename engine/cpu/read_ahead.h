/* engine/cpu/read_ahead.h: weights of chosen experts that are read from the disk before the
 * products that multiply them, for mixtures larger than the memory.
 *
 * Without it a product waits for each page that it touches first, and the system reads megabytes
 * around it. With engine_set_read_ahead the processor requests exactly the chosen experts, of all
 * products of the layer, as soon as the router's choice is known; the system reads them while the
 * first product runs, and nothing around them. Where tokens choose most experts, as those of a
 * prompt do, the system's own reading of whole weights in order is faster, and stays on. No result
 * depends on it. Private to engine/cpu. */
#pragma once

#include "engine/plan.h"

struct engine_worker;

/* Receives the bytes of one chosen expert in one weight. */
typedef void (*engine_read_ahead_visit)(void *user, const char *first, uint64_t bytes);

/* Visits the chosen experts' bytes of all products after step `step` that use ids [T][U], which are
 * complete, in the order of the products: each expert once, ids without an expert not at all.
 * Worker ith of nth visits its share of the experts. */
void engine_read_ahead_chosen(const struct engine_plan *plan, const struct engine_segment *segment,
                              int step, const struct engine_tensor *ids, int ith, int nth,
                              engine_read_ahead_visit visit, void *user);

/* Whether requests are faster than the system's reading around each page: fewer than 3/4 of
 * n_expert experts are among the ids. */
bool engine_read_ahead_pays(const struct engine_tensor *ids, int64_t n_expert);

/* Where it pays, requests these bytes from the system, without waiting for them. */
void engine_read_ahead(const struct engine_plan *plan, const struct engine_segment *segment,
                       int step, const struct engine_tensor *ids,
                       const struct engine_worker *worker);
