/* engine/graph.c: the graph object: creating, planning, running and freeing it.
 *
 * The memory of the tensors that builders append is one arena, whose size is fixed when the graph
 * is made. Appending is in graph_build.c, memory layout and order in plan.c, fusing in simplify.c.
 */
#include "engine/graph.h"
#include "engine/graph_internal.h"
#include <stdlib.h>
#include <string.h>

/* ---- Creating and freeing ---- */

struct engine_graph *engine_graph_new(struct engine *engine, int max_tensors,
                                      struct base_error *err)
{
    struct engine_graph *g = NULL;
    if (max_tensors < 1)
        return base_null(base_fail(err, BASE_FAILED, "a graph needs room for at least one tensor"));
    g = calloc(1, sizeof *g);
    if (!g) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a graph"));
    g->engine = engine;
    g->max_tensors = engine_plan_tensors(max_tensors, engine->n_places);
    g->err = BASE_ERROR_INIT;
    const uint64_t tensor_bytes = (uint64_t)g->max_tensors * sizeof(struct engine_tensor);
    const uint64_t user_bytes = (uint64_t)g->max_tensors * sizeof(int); /* engine/simplify.c */
    g->arena = base_arena_new(tensor_bytes + user_bytes + 2 * BASE_ARENA_PIECE_OVERHEAD +
                                  engine_plan_arena_bytes(g->max_tensors, engine->n_places),
                              err);
    if (!g->arena) goto fail;
    g->tensors = base_arena_take(g->arena, tensor_bytes, 64, err);
    if (!g->tensors) goto fail;
    return g;
fail:
    engine_graph_free(g);
    return NULL;
}

void engine_graph_free(struct engine_graph *g)
{
    if (!g) return;
    engine_plan_free(&g->plan);
    base_arena_free(g->arena);
    free(g);
}

void engine_graph_set_place(struct engine_graph *g, const struct engine_place *place)
{
    g->place = place;
}

/* ---- Plan and run ---- */

bool engine_graph_plan(struct engine_graph *g, bool simplify, struct base_error *err)
{
    if (!g->err.code && g->planned) engine_graph_fail(g, "graph: planned twice");
    if (g->err.code) {
        if (err && !err->code) *err = g->err;
        return false;
    }
    g->planned = true;
    if (simplify && !engine_graph_simplify(g, err)) return false;
    return engine_plan_make(g, err);
}

bool engine_graph_run(struct engine_graph *g, struct base_error *err)
{
    if (!g->plan.made) return base_fail(err, BASE_FAILED, "graph: run before its plan");
    return engine_plan_run(&g->plan, g->engine, err);
}

int64_t engine_graph_bytes(const struct engine_graph *g)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ENGINE_PLACES_MAX; i++)
        bytes += g->plan.memory[i].buffer_bytes + g->plan.memory[i].scratch_bytes;
    return (int64_t)bytes;
}

int engine_graph_nodes(const struct engine_graph *g)
{
    return g->plan.n_steps;
}

struct engine_tensor *engine_graph_find(struct engine_graph *g, const char *name)
{
    for (int i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    return NULL;
}
