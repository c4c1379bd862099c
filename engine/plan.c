/* engine/plan.c: plans a built graph, once: steps, segments, copies between places, and offsets.
 *
 * Determines which nodes run and in which order, and the layout of the buffers; the devices prepare
 * and run the segments (engine/backend.h).
 *
 * Order: nodes run in the order in which they were built. The sources of a builder exist before it
 * is called, so sources always precede users, and a node that writes into a tensor precedes nodes
 * that were built later to read it. Nodes that no output depends on are removed. A node that writes
 * into the memory of a leaf is always kept, because later runs read what it writes.
 *
 * Segments: consecutive steps of one place. A source in another place is copied before the segment
 * of its first reader, once for all readers until its memory is written again; outputs are copied
 * to place 0 at the end. A copy to place 0 waits for a device, so its reader begins a segment, and
 * the steps before it run while the device works. With one place there is one segment and no copy.
 *
 *     place 0    ids  embedding            .copy.            logits of the output product
 *                          |copy              ^
 *     place 1              v                  |copy
 *                       layer 0 .. layer n - 1
 *
 * Layout: a tensor occupies memory of its place from the step that computes it to the last step
 * that uses it or a view of it, inputs and outputs for the whole run. Free memory is a list of
 * holes; the smallest hole that fits is used. */
#include "engine/plan.h"
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include <limits.h>
#include <string.h>

enum { PLAN_ALIGN = 64 };

struct hole {
    uint64_t offset, size;
};

struct lifetime { /* lifetime of a tensor with separate memory in the buffer */
    uint64_t offset, size;
    int last_use; /* last step that uses it; INT_MAX: the whole run */
    bool placed;  /* currently has memory */
    bool needed;  /* an output depends on the tensor */
};

/* The free memory of a place. */
struct free_memory {
    struct hole *holes; /* [n_holes], sorted by offset, never adjacent */
    int n_holes;
    uint64_t end; /* size of the buffer so far */
};

struct planner {
    struct engine_graph *g;
    struct engine_plan *plan;
    struct lifetime *life; /* [n_tensors] */
    struct free_memory room[ENGINE_PLACES_MAX];
    struct engine_tensor **copied; /* [n_copied]: copies whose source has not changed since */
    int n_copied;
};

int engine_plan_tensors(int max_tensors, int n_places)
{
    return n_places > 1 && max_tensors <= INT_MAX / 4 ? 4 * max_tensors : max_tensors;
}

/* Takes an array for n elements of the plan. */
static void *take(struct planner *p, uint64_t n, uint64_t size, struct base_error *err)
{
    return base_arena_take(p->g->arena, n * size, PLAN_ALIGN, err);
}

uint64_t engine_plan_arena_bytes(int max_tensors, int n_places)
{
    const uint64_t n = (uint64_t)max_tensors, places = (uint64_t)n_places;
    const uint64_t copies = places > 1 ? n * (sizeof(struct engine_copy) + sizeof(void *)) : 0;
    const uint64_t segments = places > 1 ? n + 1 : 1;
    return n * (sizeof(struct engine_step) + sizeof(struct lifetime)) +
           places * (n + 1) * sizeof(struct hole) + copies +
           segments * sizeof(struct engine_segment) + (5 + places) * BASE_ARENA_PIECE_OVERHEAD;
}

static bool take_arrays(struct planner *p, struct base_error *err)
{
    struct engine_plan *plan = p->plan;
    const uint64_t n = (uint64_t)p->g->max_tensors;
    const int n_places = p->g->engine->n_places;
    plan->steps = take(p, n, sizeof *plan->steps, err);
    plan->segments = take(p, n_places > 1 ? n + 1 : 1, sizeof *plan->segments, err);
    p->life = take(p, n, sizeof *p->life, err);
    bool ok = plan->steps && plan->segments && p->life;
    for (int i = 0; ok && i < n_places; i++) {
        p->room[i].holes = take(p, n + 1, sizeof *p->room[i].holes, err);
        ok = p->room[i].holes != NULL;
    }
    if (!ok || n_places == 1) return ok;
    plan->copies = take(p, n, sizeof *plan->copies, err);
    p->copied = take(p, n, sizeof(void *), err);
    return plan->copies && p->copied;
}

/* ---- Which nodes run ---- */

/* The lifetime of the tensor whose memory t uses, or NULL if that is not in the buffer. */
static struct lifetime *life_of(struct planner *p, struct engine_tensor *t)
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

/* ---- Segments and copies ---- */

static const struct engine_place *place_at(const struct planner *p, int index)
{
    return &p->g->engine->place[index];
}

/* Adds a tensor to the graph; NULL: BASE_FAILED. */
static struct engine_tensor *add_tensor(struct planner *p, const struct engine_tensor *like,
                                        int place, struct base_error *err)
{
    struct engine_graph *g = p->g;
    if (g->n_tensors == g->max_tensors)
        return base_null(base_fail(err, BASE_FAILED, "graph: too many copies between places"));
    struct engine_tensor *t = &g->tensors[g->n_tensors];
    p->life[g->n_tensors++] = (struct lifetime){.needed = true};
    *t = *like;
    t->place = place_at(p, place);
    t->is_output = false;
    memset(t->src, 0, sizeof t->src);
    return t;
}

/* Returns the copy of a root tensor in a place, from which it differs; a new copy belongs to the
 * last segment. */
static struct engine_tensor *copy_root(struct planner *p, struct engine_tensor *root, int place,
                                       struct base_error *err)
{
    struct engine_plan *plan = p->plan;
    for (int i = 0; i < p->n_copied; i++)
        if (p->copied[i]->src[0] == root && engine_tensor_place(p->copied[i]) == place)
            return p->copied[i];
    struct engine_tensor *from = root;
    if (place != 0 && engine_tensor_place(root) != 0 && !(from = copy_root(p, root, 0, err)))
        return NULL;
    struct engine_tensor *to = add_tensor(p, root, place, err);
    if (!to) return NULL;
    to->op = &engine_op_copy; /* by the copies of a segment, not by a step */
    to->src[0] = root;
    p->copied[p->n_copied++] = to;
    plan->copies[plan->n_copies++] = (struct engine_copy){from, to};
    plan->segments[plan->n_segments - 1].n_copies++;
    return to;
}

/* Returns t, or a view of its copy, in the place of the last segment. */
static struct engine_tensor *bring(struct planner *p, struct engine_tensor *t,
                                   struct base_error *err)
{
    const int place = p->plan->segments[p->plan->n_segments - 1].place->index;
    struct engine_tensor *root = engine_tensor_root(t);
    if (engine_tensor_place(root) == place) return t;
    struct engine_tensor *copy = copy_root(p, root, place, err);
    if (!copy || root == t) return copy;
    struct engine_tensor *view = add_tensor(p, t, place, err);
    if (view) view->view_of = copy;
    return view;
}

/* Later readers of what t writes need new copies. */
static void forget_copies(struct planner *p, struct engine_tensor *t)
{
    const struct engine_tensor *root = engine_tensor_root(t), *updated = engine_updated(t);
    for (int i = p->n_copied; i-- > 0;)
        if (p->copied[i]->src[0] == root || p->copied[i]->src[0] == updated)
            p->copied[i] = p->copied[--p->n_copied];
}

static void begin_segment(struct planner *p, int place)
{
    struct engine_plan *plan = p->plan;
    plan->segments[plan->n_segments++] = (struct engine_segment){
        .place = place_at(p, place), .first_step = plan->n_steps, .first_copy = plan->n_copies};
}

/* Whether a node of place 0 reads what another device computes and no segment has copied yet. */
static bool waits(const struct planner *p, const struct engine_tensor *t)
{
    bool missing = false;
    for (int k = 0; k < ENGINE_MAX_SRC && engine_tensor_place(t) == 0; k++) {
        const struct engine_tensor *root = t->src[k] ? engine_tensor_root(t->src[k]) : NULL;
        bool found = !root || engine_tensor_place(root) == 0 || !root->op;
        for (int i = 0; !found && i < p->n_copied; i++)
            found = p->copied[i]->src[0] == root && engine_tensor_place(p->copied[i]) == 0;
        missing |= !found;
    }
    return missing;
}

static bool add_step(struct planner *p, struct engine_tensor *t, struct base_error *err)
{
    struct engine_plan *plan = p->plan;
    const int place = engine_tensor_place(t);
    if (plan->n_segments == 0 || plan->segments[plan->n_segments - 1].place->index != place ||
        waits(p, t))
        begin_segment(p, place);
    const struct engine_backend *backend = place_at(p, place)->backend;
    if (engine_updated(t) && engine_tensor_place(engine_updated(t)) != place)
        return base_fail_at(err, BASE_FAILED, t->name, -1, "%s updates a tensor of another place",
                            t->op->name);
    for (int k = 0; k < ENGINE_MAX_SRC; k++)
        if (t->src[k] && !(t->src[k] = bring(p, t->src[k], err))) return false;
    const void *row = backend->row(t);
    if (!row)
        return base_fail_at(err, BASE_USAGE, t->name, -1, "no code on a %s for this %s",
                            backend->name, t->op->name);
    plan->segments[plan->n_segments - 1].n_steps++;
    plan->steps[plan->n_steps++] = (struct engine_step){.node = t, .row = row};
    forget_copies(p, t);
    return true;
}

/* Copies outputs of other places to place 0. An output in the memory of a leaf stays there. */
static bool bring_outputs(struct planner *p, int n_tensors, struct base_error *err)
{
    for (int i = 0; i < n_tensors; i++) {
        struct engine_tensor *t = &p->g->tensors[i], *root = engine_tensor_root(t);
        if (!t->is_output || engine_tensor_place(t) == 0 || !root->op) continue;
        if (p->plan->segments[p->plan->n_segments - 1].place->index != 0) begin_segment(p, 0);
        if (!(t->copy = bring(p, t, err))) return false;
        t->copy->is_output = engine_tensor_root(t->copy)->is_output = true;
    }
    return true;
}

static bool lay_steps(struct planner *p, struct base_error *err)
{
    const int n = p->g->n_tensors;
    for (int i = 0; i < n; i++) {
        struct engine_tensor *t = &p->g->tensors[i];
        if (p->life[i].needed && t->op && !t->op->is_view && !add_step(p, t, err)) return false;
    }
    return p->plan->n_segments == 0 || bring_outputs(p, n, err);
}

static void use(struct planner *p, struct engine_tensor *t, int step)
{
    struct lifetime *life = life_of(p, t);
    if (life && life->last_use < step) life->last_use = step;
}

static void mark_uses(struct planner *p)
{
    const struct engine_plan *plan = p->plan;
    for (int s = 0; s < plan->n_steps; s++) {
        struct engine_tensor *t = plan->steps[s].node;
        use(p, t, s);
        for (int k = 0; k < ENGINE_MAX_SRC; k++)
            if (t->src[k]) use(p, t->src[k], s);
    }
    for (int i = 0; i < plan->n_segments; i++)
        for (int c = 0; c < plan->segments[i].n_copies; c++) {
            const struct engine_copy *copy = &plan->copies[plan->segments[i].first_copy + c];
            use(p, copy->from, plan->segments[i].first_step);
            use(p, copy->to, plan->segments[i].first_step);
        }
    for (int i = 0; i < p->g->n_tensors; i++) {
        struct engine_tensor *t = &p->g->tensors[i];
        if (t->is_output || !t->op) use(p, t, INT_MAX);
    }
}

/* ---- Offsets ---- */

/* Allocates `size` bytes from the smallest hole that fits, or at the end of the buffer. */
static bool hole_alloc(struct free_memory *r, uint64_t size, uint64_t *offset)
{
    int best = -1;
    for (int h = 0; h < r->n_holes; h++)
        if (r->holes[h].size >= size && (best < 0 || r->holes[h].size < r->holes[best].size))
            best = h;
    if (best >= 0) {
        *offset = r->holes[best].offset;
        r->holes[best].offset += size;
        r->holes[best].size -= size;
        if (r->holes[best].size == 0) {
            r->n_holes--;
            for (int h = best; h < r->n_holes; h++) r->holes[h] = r->holes[h + 1];
        }
        return true;
    }
    /* Grows the buffer, from the hole at its end if there is one. */
    if (r->n_holes > 0 && r->holes[r->n_holes - 1].offset + r->holes[r->n_holes - 1].size == r->end)
        r->end = r->holes[--r->n_holes].offset;
    *offset = r->end;
    return base_add(r->end, size, &r->end);
}

/* Adds free memory to the list of holes and joins it with adjacent ones. */
static void hole_free(struct free_memory *r, uint64_t offset, uint64_t size)
{
    int at = 0;
    while (at < r->n_holes && r->holes[at].offset < offset) at++;
    bool joins_left = at > 0 && r->holes[at - 1].offset + r->holes[at - 1].size == offset;
    bool joins_right = at < r->n_holes && offset + size == r->holes[at].offset;
    if (joins_left) {
        r->holes[at - 1].size += size;
        if (!joins_right) return;
        r->holes[at - 1].size += r->holes[at].size;
        r->n_holes--;
        for (int h = at; h < r->n_holes; h++) r->holes[h] = r->holes[h + 1];
    } else if (joins_right) {
        r->holes[at].offset = offset;
        r->holes[at].size += size;
    } else {
        for (int h = r->n_holes++; h > at; h--) r->holes[h] = r->holes[h - 1];
        r->holes[at] = (struct hole){offset, size};
    }
}

/* True if the node of step s may overwrite src[0]: no later step reads that memory, and the op
 * reads each element before it writes it. */
static bool can_overwrite(struct planner *p, const struct engine_tensor *t, int s)
{
    struct engine_tensor *a = t->src[0];
    if (!t->op->in_place || !a) return false;
    struct engine_tensor *root = engine_tensor_root(a);
    struct lifetime *life = life_of(p, a);
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
    struct lifetime *life = life_of(p, t);
    life->placed = true;
    return base_align_up((uint64_t)engine_tensor_bytes(t), PLAN_ALIGN, &life->size) &&
           hole_alloc(&p->room[engine_tensor_place(t)], life->size, &life->offset);
}

static void release_after(struct planner *p, struct engine_tensor *t, int s)
{
    struct lifetime *life = life_of(p, t);
    if (!life || !life->placed || life->last_use != s) return;
    life->placed = false;
    hole_free(&p->room[engine_tensor_place(t)], life->offset, life->size);
}

/* Gives memory to the copies before a segment, and frees the memory of sources that only they
 * read. */
static bool lay_copies(struct planner *p, const struct engine_segment *segment)
{
    const struct engine_copy *copies = p->plan->copies + segment->first_copy;
    for (int c = 0; c < segment->n_copies; c++)
        if (!place(p, copies[c].to)) return false;
    for (int c = 0; c < segment->n_copies; c++)
        if (engine_tensor_place(copies[c].from) != segment->place->index)
            release_after(p, copies[c].from, segment->first_step);
    return true;
}

static bool lay_step(struct planner *p, int s)
{
    struct engine_tensor *t = p->plan->steps[s].node;
    if (!t->view_of && can_overwrite(p, t, s)) {
        struct lifetime *old = life_of(p, t->src[0]), *life = life_of(p, t);
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
    return true;
}

static bool lay_memory(struct planner *p)
{
    const struct engine_plan *plan = p->plan;
    for (int i = 0; i < p->g->n_tensors; i++)
        if (!p->g->tensors[i].op && !place(p, &p->g->tensors[i])) return false;
    for (int i = 0; i < plan->n_segments; i++) {
        const struct engine_segment *segment = &plan->segments[i];
        if (!lay_copies(p, segment)) return false;
        for (int s = 0; s < segment->n_steps; s++)
            if (!lay_step(p, segment->first_step + s)) return false;
    }
    return true;
}

/* ---- The buffers ---- */

static bool allocate(struct planner *p, int place, struct base_error *err)
{
    struct engine_plan_memory *m = &p->plan->memory[place];
    m->buffer_bytes = p->room[place].end;
    if (m->buffer_bytes == 0 && m->scratch_bytes == 0 && place > 0) return true;
    /* Kernels may read up to 64 bytes past the end of the last tensor and of the scratch. */
    uint64_t bytes;
    if (!base_align_up(m->scratch_bytes, PLAN_ALIGN, &m->scratch_bytes) ||
        !base_add(m->scratch_bytes, PLAN_ALIGN, &m->scratch_bytes) ||
        !base_add(m->buffer_bytes, m->scratch_bytes, &bytes) || bytes > INT64_MAX)
        return base_fail(err, BASE_NO_MEMORY, "the graph's memory does not fit 64-bit sizes");
    if (!engine_buffer_new(place_at(p, place), ENGINE_BUFFER_GRAPH, bytes, &m->buffer, err))
        return false;
    m->scratch = m->buffer.base + m->buffer_bytes;
    return true;
}

static bool allocate_all(struct planner *p, struct base_error *err)
{
    struct engine_plan *plan = p->plan;
    const struct engine *engine = p->g->engine;
    for (int i = 0; i < plan->n_segments; i++) {
        const struct engine_segment *segment = &plan->segments[i];
        if (!segment->place->backend->measure(plan, segment, engine, err)) return false;
    }
    for (int i = 0; i < engine->n_places; i++)
        if (!allocate(p, i, err)) return false;
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
        const struct engine_plan_memory *m = &p->plan->memory[engine_tensor_place(t)];
        bool in_buffer = !t->op || (p->life[i].needed && !t->view_of);
        if (in_buffer) t->data = m->buffer.base + p->life[i].offset;
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
    if (!take_arrays(&p, err)) return false;
    mark_needed(&p);
    if (!lay_steps(&p, err)) return false;
    mark_uses(&p);
    if (!lay_memory(&p))
        return base_fail(err, BASE_NO_MEMORY, "the graph's memory does not fit 64-bit sizes");
    if (!allocate_all(&p, err) || !set_data(&p, err)) return false;
    for (int i = 0; i < plan->n_segments; i++)
        plan->segments[i].place->backend->prepare(plan, &plan->segments[i]);
    return plan->made = true;
}

static void run_copy(const struct engine_copy *copy)
{
    const uint64_t bytes = (uint64_t)engine_tensor_bytes(copy->to);
    if (engine_tensor_place(copy->to) == 0)
        engine_place_read(copy->from->place, copy->to->data, copy->from->data, bytes);
    else
        engine_place_write(copy->to->place, copy->to->data, copy->from->data, bytes);
}

bool engine_plan_run(const struct engine_plan *plan, const struct engine *engine,
                     struct base_error *err)
{
    for (int i = 0; i < plan->n_segments; i++) {
        const struct engine_segment *segment = &plan->segments[i];
        for (int c = 0; c < segment->n_copies; c++)
            run_copy(&plan->copies[segment->first_copy + c]);
        if (!segment->place->backend->run(plan, segment, engine, err)) return false;
    }
    for (int i = 1; i < engine->n_places; i++) {
        const struct engine_place *place = &engine->place[i];
        if (place->backend->wait && !place->backend->wait(place, err)) return false;
    }
    return true;
}

void engine_plan_free(struct engine_plan *plan)
{
    for (int i = 0; plan->made && i < plan->n_segments; i++) {
        const struct engine_backend *backend = plan->segments[i].place->backend;
        if (backend->forget) backend->forget(&plan->segments[i]);
    }
    for (int i = 0; i < ENGINE_PLACES_MAX; i++) engine_buffer_free(&plan->memory[i].buffer);
}
