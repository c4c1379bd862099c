/* engine/plan.c: plans a built graph, once: steps and offsets.
 *
 * Determines which nodes run and in which order, and the layout of the buffer; the device prepares
 * and runs the plan (engine/backend.h).
 *
 * Order: nodes run in the order in which they were built. The sources of a builder exist before it
 * is called, so sources always precede users, and a node that writes into a tensor precedes nodes
 * that were built later to read it. Nodes that no output depends on are removed. A node that writes
 * into the memory of a leaf is always kept, because later runs read what it writes.
 *
 * Layout: a tensor occupies memory from the step that computes it to the last step that uses it or
 * a view of it, inputs and outputs for the whole run. Free memory is a list of holes; the smallest
 * hole that fits is used. */
#include "engine/plan.h"
#include "base/size.h"
#include "engine/graph_internal.h"
#include <limits.h>

enum { PLAN_ALIGN = 64 };

struct hole {
    uint64_t offset, size;
};

struct life { /* lifetime of a tensor with separate memory in the buffer */
    uint64_t offset, size;
    int last_use; /* last step that uses it; INT_MAX: the whole run */
    bool placed;  /* currently has memory */
    bool needed;  /* an output depends on the tensor */
};

struct planner {
    struct engine_graph *g;
    struct engine_plan *plan;
    struct life *life;  /* [n_tensors] */
    struct hole *holes; /* [n_holes], sorted by offset, never adjacent */
    int n_holes;
    uint64_t end; /* size of the buffer so far */
};

/* Sizes of the arrays that engine_plan_make allocates from the arena, for n tensors. */
static uint64_t steps_bytes(int n)
{
    return (uint64_t)n * sizeof(struct engine_step);
}

static uint64_t life_bytes(int n)
{
    return (uint64_t)n * sizeof(struct life);
}

static uint64_t holes_bytes(int n)
{
    return ((uint64_t)n + 1) * sizeof(struct hole);
}

uint64_t engine_plan_arena_bytes(int max_tensors)
{
    return steps_bytes(max_tensors) + life_bytes(max_tensors) + holes_bytes(max_tensors) +
           3 * BASE_ARENA_PIECE_OVERHEAD;
}

/* ---- Which nodes run ---- */

/* The lifetime of the tensor whose memory t uses, or NULL if that is not in the buffer. */
static struct life *life_of(struct planner *p, struct engine_tensor *t)
{
    int i = engine_graph_index(p->g, engine_tensor_root(t));
    return i < 0 ? NULL : &p->life[i];
}

/* Marks t and the tensor whose memory it uses as needed: every earlier node that writes there is
 * then needed, too. */
static void mark(struct planner *p, struct engine_tensor *t)
{
    int i = engine_graph_index(p->g, t), root = engine_graph_index(p->g, engine_tensor_root(t));
    if (i >= 0) p->life[i].needed = true;
    if (root >= 0) p->life[root].needed = true;
}

/* Whether t must run because of what it writes: an updated source, the memory of a leaf, or the
 * memory of a tensor that is needed. */
static bool writes_needed(struct planner *p, struct engine_tensor *t)
{
    if (engine_updated(t)) return true;
    if (!t->view_of || t->op->is_view) return false;
    return !t->view_of->op || life_of(p, t)->needed;
}

static void mark_needed(struct planner *p)
{
    for (int i = p->g->n_tensors - 1; i >= 0; i--) {
        struct engine_tensor *t = &p->g->tensors[i];
        if (t->is_output || writes_needed(p, t)) mark(p, t);
        if (!p->life[i].needed) continue;
        for (int s = 0; s < ENGINE_MAX_SRC; s++)
            if (t->src[s]) mark(p, t->src[s]);
    }
}

static bool lay_steps(struct planner *p, struct base_error *err)
{
    for (int i = 0; i < p->g->n_tensors; i++) {
        struct engine_tensor *t = &p->g->tensors[i];
        if (!p->life[i].needed || !t->op || t->op->is_view) continue;
        const void *row = p->plan->backend->row(t);
        if (!row)
            return base_fail_at(err, BASE_FAILED, t->name, -1, "%s is not an op of backend %s",
                                t->op->name, p->plan->backend->name);
        p->plan->steps[p->plan->n_steps++] = (struct engine_step){.node = t, .row = row};
    }
    return true;
}

static void mark_uses(struct planner *p)
{
    for (int s = 0; s < p->plan->n_steps; s++) {
        struct engine_tensor *t = p->plan->steps[s].node;
        struct life *life = life_of(p, t);
        if (life) life->last_use = s;
        for (int k = 0; k < ENGINE_MAX_SRC; k++) {
            life = t->src[k] ? life_of(p, t->src[k]) : NULL;
            if (life) life->last_use = s;
        }
    }
    for (int i = 0; i < p->g->n_tensors; i++) {
        struct engine_tensor *t = &p->g->tensors[i];
        struct life *life = life_of(p, t);
        if (life && (t->is_output || !t->op)) life->last_use = INT_MAX;
    }
}

/* ---- Offsets ---- */

/* Allocates `size` bytes from the smallest hole that fits, or at the end of the buffer. */
static bool hole_alloc(struct planner *p, uint64_t size, uint64_t *offset)
{
    int best = -1;
    for (int h = 0; h < p->n_holes; h++)
        if (p->holes[h].size >= size && (best < 0 || p->holes[h].size < p->holes[best].size))
            best = h;
    if (best >= 0) {
        *offset = p->holes[best].offset;
        p->holes[best].offset += size;
        p->holes[best].size -= size;
        if (p->holes[best].size == 0) {
            p->n_holes--;
            for (int h = best; h < p->n_holes; h++) p->holes[h] = p->holes[h + 1];
        }
        return true;
    }
    /* Grows the buffer, from the hole at its end if there is one. */
    if (p->n_holes > 0 && p->holes[p->n_holes - 1].offset + p->holes[p->n_holes - 1].size == p->end)
        p->end = p->holes[--p->n_holes].offset;
    *offset = p->end;
    return base_add(p->end, size, &p->end);
}

/* Adds free memory to the list of holes and joins it with adjacent ones. */
static void hole_free(struct planner *p, uint64_t offset, uint64_t size)
{
    int at = 0;
    while (at < p->n_holes && p->holes[at].offset < offset) at++;
    bool joins_left = at > 0 && p->holes[at - 1].offset + p->holes[at - 1].size == offset;
    bool joins_right = at < p->n_holes && offset + size == p->holes[at].offset;
    if (joins_left) {
        p->holes[at - 1].size += size;
        if (!joins_right) return;
        p->holes[at - 1].size += p->holes[at].size;
        p->n_holes--;
        for (int h = at; h < p->n_holes; h++) p->holes[h] = p->holes[h + 1];
    } else if (joins_right) {
        p->holes[at].offset = offset;
        p->holes[at].size += size;
    } else {
        for (int h = p->n_holes++; h > at; h--) p->holes[h] = p->holes[h - 1];
        p->holes[at] = (struct hole){offset, size};
    }
}

/* True if the node of step s may overwrite src[0]: no later step reads that memory, and the op
 * reads each element before it writes it. */
static bool can_overwrite(struct planner *p, const struct engine_tensor *t, int s)
{
    struct engine_tensor *a = t->src[0];
    if (!t->op->in_place || !a) return false;
    struct engine_tensor *root = engine_tensor_root(a);
    struct life *life = life_of(p, a);
    if (!life || life->last_use != s) return false;
    if (a->type != t->type || !engine_tensor_contiguous(a) ||
        engine_tensor_bytes(a) != engine_tensor_bytes(t) ||
        engine_tensor_bytes(root) != engine_tensor_bytes(t))
        return false;
    for (int k = 1; k < ENGINE_MAX_SRC; k++)
        if (t->src[k] && engine_tensor_root(t->src[k]) == root) return false;
    return true;
}

static bool place(struct planner *p, struct engine_tensor *t)
{
    struct life *life = life_of(p, t);
    life->placed = true;
    return base_align_up((uint64_t)engine_tensor_bytes(t), PLAN_ALIGN, &life->size) &&
           hole_alloc(p, life->size, &life->offset);
}

static void release_after(struct planner *p, struct engine_tensor *t, int s)
{
    struct life *life = life_of(p, t);
    if (!life || !life->placed || life->last_use != s) return;
    life->placed = false;
    hole_free(p, life->offset, life->size);
}

static bool lay_memory(struct planner *p)
{
    for (int i = 0; i < p->g->n_tensors; i++)
        if (!p->g->tensors[i].op && !place(p, &p->g->tensors[i])) return false;
    for (int s = 0; s < p->plan->n_steps; s++) {
        struct engine_tensor *t = p->plan->steps[s].node;
        if (!t->view_of && can_overwrite(p, t, s)) {
            struct life *old = life_of(p, t->src[0]), *life = life_of(p, t);
            life->offset = old->offset;
            life->size = old->size;
            life->placed = true;
            old->placed = false;
        } else if (!t->view_of && !place(p, t)) {
            return false;
        }
        for (int k = 0; k < ENGINE_MAX_SRC; k++)
            if (t->src[k]) release_after(p, t->src[k], s);
        release_after(p, t, s);
    }
    return true;
}

/* ---- The buffer ---- */

static bool allocate(struct planner *p, struct base_error *err)
{
    struct engine_plan *plan = p->plan;
    plan->buffer_bytes = p->end;
    if (!plan->backend->measure(plan, p->g->engine, err)) return false;
    /* Kernels may read up to 64 bytes past the end of the last tensor and of the scratch. */
    uint64_t bytes;
    if (!base_align_up(plan->scratch_bytes, PLAN_ALIGN, &plan->scratch_bytes) ||
        !base_add(plan->scratch_bytes, PLAN_ALIGN, &plan->scratch_bytes) ||
        !base_add(plan->buffer_bytes, plan->scratch_bytes, &bytes) || bytes > INT64_MAX)
        return base_fail(err, BASE_NO_MEMORY, "the graph's memory does not fit 64-bit sizes");
    if (!plan->backend->buffer_new(bytes, &plan->buffer, err)) return false;
    plan->scratch = (char *)plan->buffer.base + plan->buffer_bytes;
    return true;
}

static bool leaf_has_data(const struct engine_tensor *t, struct base_error *err)
{
    return t->data ||
           base_fail_at(err, BASE_FAILED, t->name, -1, "a source of the graph has no data");
}

static bool set_data(struct planner *p, struct base_error *err)
{
    for (int i = 0; i < p->g->n_tensors; i++) {
        struct engine_tensor *t = &p->g->tensors[i];
        bool in_buffer = !t->op || (p->life[i].needed && !t->view_of);
        if (in_buffer) t->data = (char *)p->plan->buffer.base + p->life[i].offset;
        if (!t->op || !p->life[i].needed) continue;
        for (int k = 0; k < ENGINE_MAX_SRC; k++)
            if (t->src[k] && !t->src[k]->op && !leaf_has_data(t->src[k], err)) return false;
        if (t->view_of) t->data = t->view_of->data + t->view_offset;
    }
    return true;
}

/* ---- Entry ---- */

bool engine_plan_make(struct engine_graph *g, struct base_error *err)
{
    struct engine_plan *plan = &g->plan;
    struct planner p = {.g = g, .plan = plan};
    plan->steps = base_arena_take(g->arena, steps_bytes(g->max_tensors), PLAN_ALIGN, err);
    p.life = base_arena_take(g->arena, life_bytes(g->max_tensors), PLAN_ALIGN, err);
    p.holes = base_arena_take(g->arena, holes_bytes(g->max_tensors), PLAN_ALIGN, err);
    if (!plan->steps || !p.life || !p.holes) return false;
    plan->backend = g->engine->options.plan_only ? &engine_backend_plan : &engine_backend_cpu;
    mark_needed(&p);
    if (!lay_steps(&p, err)) return false;
    mark_uses(&p);
    if (!lay_memory(&p))
        return base_fail(err, BASE_NO_MEMORY, "the graph's memory does not fit 64-bit sizes");
    if (!allocate(&p, err) || !set_data(&p, err)) return false;
    plan->backend->prepare(plan);
    return true;
}

void engine_plan_free(struct engine_plan *plan)
{
    if (plan->backend) plan->backend->buffer_free(&plan->buffer);
}
