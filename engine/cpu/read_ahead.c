/* engine/cpu/read_ahead.c: requests the weights of chosen experts. See engine/cpu/read_ahead.h. */
#include "engine/cpu/read_ahead.h"
#include "base/os.h"
#include "engine/cpu/pool.h"
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    /* Bytes of a call. With long ones fewer requests fill the disk's queue, and a call waits while
     * it is full. The system shortens a call to the device's longest request or to its own
     * read-ahead, whichever is longer: 128 KB by default. */
    LONG = 1 << 20,
    SHORT = 128 << 10
};

static bool is_product(const struct engine_tensor *node)
{
    return node->op == &engine_op_mul_mat_id || node->op == &engine_op_mul_mat_id_glu ||
           node->op == &engine_op_mul_mat_id_active || node->op == &engine_op_mul_mat_id_columns;
}

static bool is_chosen(const struct engine_tensor *ids, int64_t expert)
{
    for (int64_t t = 0; t < ids->ne[1]; t++)
        for (int64_t u = 0; u < ids->ne[0]; u++) {
            int32_t id;
            memcpy(&id, ids->data + t * ids->nb[1] + u * ids->nb[0], sizeof id);
            if (id == expert) return true;
        }
    return false;
}

bool engine_read_ahead_pays(const struct engine_tensor *ids, int64_t n_expert)
{
    int64_t count = 0;
    for (int64_t e = 0; e < n_expert; e++) count += is_chosen(ids, e);
    return count * 4 < n_expert * 3;
}

static void visit_weight(const struct engine_tensor *w, const struct engine_tensor *ids, int ith,
                         int nth, engine_read_ahead_visit visit, void *user)
{
    for (int64_t e = ith; w && e < w->ne[2]; e += nth)
        if (is_chosen(ids, e)) visit(user, w->data + e * w->nb[2], (uint64_t)w->nb[2]);
}

void engine_read_ahead_chosen(const struct engine_plan *plan, const struct engine_segment *segment,
                              int step, const struct engine_tensor *ids, int ith, int nth,
                              engine_read_ahead_visit visit, void *user)
{
    for (int s = step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_tensor *node = plan->steps[s].node;
        if (node->src[2] != ids || !is_product(node)) continue;
        const struct engine_product p = engine_product_of(node);
        visit_weight(p.w[0], ids, ith, nth, visit, user);
        visit_weight(p.up, ids, ith, nth, visit, user);
    }
}

/* Fails where memory does not come from a file. */
static void request_by(uintptr_t at, uintptr_t end, uintptr_t each)
{
    for (; at < end; at += each)
        (void)madvise((void *)at, end - at < each ? end - at : each, MADV_WILLNEED);
}

static void request(void *user, const char *first, uint64_t bytes)
{
    (void)user;
    const uintptr_t at = (uintptr_t)first & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)first + bytes;
    request_by(at, end, LONG);
    request_by(at, end, SHORT); /* what was shortened */
}

static void advise(const struct engine_tensor *w, bool random)
{
    const uintptr_t mask = ~(uintptr_t)(PAGE - 1), data = w ? (uintptr_t)w->data : 0;
    const uintptr_t from = (data + PAGE - 1) & mask;
    const uintptr_t to = w ? (data + (uintptr_t)(w->ne[2] * w->nb[2])) & mask : 0;
    if (from < to) base_os_map_random((void *)from, to - from, random);
}

void engine_read_ahead(const struct engine_plan *plan, const struct engine_segment *segment,
                       int step, const struct engine_tensor *ids,
                       const struct engine_worker *worker)
{
    bool pays = false;
    for (int s = step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_tensor *node = plan->steps[s].node;
        if (node->src[2] != ids || !is_product(node)) continue;
        const struct engine_product p = engine_product_of(node);
        pays = engine_read_ahead_pays(ids, p.w[0]->ne[2]);
        if (worker->ith > 0) break;
        advise(p.w[0], pays);
        advise(p.up, pays);
    }
    if (pays)
        engine_read_ahead_chosen(plan, segment, step, ids, worker->ith, worker->nth, request, NULL);
}
