/* engine/cpu/cpu_plan.c: what the CPU adds to a plan: rows of ops, scratch, which steps only worker
 * 0 runs, and barriers. See engine/cpu/cpu_plan.h. */
#include "engine/cpu/cpu_plan.h"
#include "engine/cpu/cpu_op.h"
#include "engine/cpu/matmul/matmul.h"
#include "engine/graph_internal.h"
#include "engine/ops.h"

/* A row-split node of at most this many elements, or multiply-adds, costs less than a barrier. */
enum { ALONE_ELEMENTS = 8192 };

const void *engine_cpu_row(const struct engine_tensor *node)
{
    return engine_cpu_op_of(node->op);
}

/* Products with one or two columns are not fused: gemv reads weights in file order, and fusing
 * gains little. OpenBLAS does not compute gates. */
bool engine_cpu_fuses_gate(const struct engine *engine, const struct engine_tensor *fused)
{
    const bool by_blas = engine->options.use_blas && fused->op == &engine_op_mul_mat_glu &&
                         engine_tensor_is(fused->src[1], QUANT_F32);
    return engine_tensor_rows(fused) > ENGINE_MATMUL_GEMV_COLS && !by_blas;
}

bool engine_cpu_measure(struct engine_plan *plan, const struct engine_segment *segment,
                        const struct engine *engine, struct base_error *err)
{
    const int n_threads = engine_pool_threads(engine->cpu->pool);
    struct engine_plan_memory *m = &plan->memory[segment->place->index];
    for (int s = segment->first_step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_cpu_op *row = plan->steps[s].row;
        const struct engine_tensor *t = plan->steps[s].node;
        const int64_t bytes = row->scratch ? row->scratch(t, n_threads) : 0;
        if (bytes < 0) return base_fail_at(err, BASE_NO_MEMORY, t->name, -1, "scratch too large");
        if ((uint64_t)bytes > m->scratch_bytes) m->scratch_bytes = (uint64_t)bytes;
    }
    return true;
}

static bool overlap(const struct engine_tensor *a, const struct engine_tensor *b)
{
    return a && b && a->data < b->data + engine_tensor_bytes(b) &&
           b->data < a->data + engine_tensor_bytes(a);
}

/* Whether two steps must not run at the same time on different workers. */
static bool steps_conflict(const struct engine_step *x, const struct engine_step *y)
{
    const struct engine_tensor *a = x->node, *b = y->node;
    const struct engine_cpu_op *row_a = x->row, *row_b = y->row;
    bool own_a = row_a->split == ENGINE_SPLIT_OWN, own_b = row_b->split == ENGINE_SPLIT_OWN;
    /* Ops with ENGINE_SPLIT_OWN use the common chunk counter and the whole scratch; other ops use
     * only buffers of their worker (op_rows.c). */
    if (own_a && own_b) return true;
    if ((own_a || own_b) && row_a->scratch && row_b->scratch) return true;
    if (overlap(a, b) || overlap(engine_updated(a), engine_updated(b))) return true;
    if (overlap(engine_updated(a), b) || overlap(a, engine_updated(b))) return true;
    for (int k = 0; k < ENGINE_MAX_SRC; k++)
        if (overlap(a, b->src[k]) || overlap(b, a->src[k]) ||
            overlap(engine_updated(a), b->src[k]) || overlap(engine_updated(b), a->src[k]))
            return true;
    return false;
}

static bool runs_alone(const struct engine_step *step)
{
    const struct engine_cpu_op *row = step->row;
    const struct engine_tensor *t = step->node;
    if (row->split != ENGINE_SPLIT_ROWS) return row->split == ENGINE_SPLIT_ONE;
    const struct engine_tensor *table = engine_updated(t);
    if (table && table->ne[0] * table->ne[1] * table->ne[2] > ALONE_ELEMENTS) return false;
    if (t->op->work && t->op->work(t).macs > ALONE_ELEMENTS) return false;
    /* An op that writes into a table processes as many rows as its source has, not the whole
     * table. */
    return engine_tensor_elements(t->view_of ? t->src[0] : t) <= ALONE_ELEMENTS;
}

/* A barrier precedes a step that conflicts with one that may still be running. Consecutive steps
 * that only worker 0 runs need none. */
void engine_cpu_prepare(struct engine_plan *plan, struct engine_segment *segment)
{
    int since = segment->first_step; /* the first step after the last barrier */
    const struct engine_tensor *chosen = NULL;
    for (int s = since; s < segment->first_step + segment->n_steps; s++) {
        struct engine_step *step = &plan->steps[s];
        step->alone = runs_alone(step);
        for (int k = since; k < s && !step->barrier; k++)
            if (!(step->alone && plan->steps[k].alone))
                step->barrier = steps_conflict(step, &plan->steps[k]);
        if (step->barrier) {
            since = s;
            step->chosen = chosen;
            chosen = NULL;
        }
        if (step->node->op == &engine_op_choose_experts) chosen = step->node;
    }
}
