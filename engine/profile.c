/* engine/profile.c: counts time and work per kind of node. See engine/profile.h. */
#include "engine/profile.h"
#include "base/clock.h"

/* The work of a node. An op without a rule (`work`) writes its result and reads at most as many
 * bytes of each source (of a table only some rows). An op that writes into a table writes as many
 * bytes as its first source has. */
static struct engine_work work_of(const struct engine_tensor *node)
{
    if (node->op->work) return node->op->work(node);
    const double result = (double)engine_tensor_bytes(node->view_of ? node->src[0] : node);
    struct engine_work work = {.bytes = result};
    for (int i = 0; i < ENGINE_MAX_SRC && node->src[i]; i++) {
        double bytes = (double)engine_tensor_bytes(node->src[i]);
        work.bytes += bytes < result ? bytes : result;
    }
    return work;
}

static struct engine_profile_row *row_of(struct engine_profile *p, const struct engine_tensor *node,
                                         const char *route)
{
    const struct engine_tensor *w = node->op->work ? node->src[1] : NULL;
    const struct quant_type *type = w ? w->type : NULL;
    const int64_t n = w ? node->ne[0] : 0, k = w ? w->ne[0] : 0;
    struct engine_profile_row *row = p->row;
    for (int i = 0; i < p->n_rows; i++, row++)
        if (row->op == node->op && row->route == route && row->type == type && row->n == n &&
            row->k == k)
            return row;
    if (p->n_rows == ENGINE_PROFILE_ROWS) return row - 1;
    *row = (struct engine_profile_row){
        .op = node->op, .name = node->op->name, .route = route, .type = type, .n = n, .k = k};
    p->n_rows++;
    return row;
}

static void charge(struct engine_profile *p, double now)
{
    if (p->now) p->now->seconds += now - p->since;
    p->seconds += now - p->since;
    p->since = now;
}

void engine_profile_start(struct engine_profile *p)
{
    p->runs++;
    p->now = NULL;
    p->since = base_seconds();
}

void engine_profile_step(struct engine_profile *p, const struct engine_tensor *node,
                         const char *route, bool barrier)
{
    charge(p, base_seconds());
    p->barriers += barrier;
    p->now = row_of(p, node, route);
    p->now->calls++;
    struct engine_work work = work_of(node);
    p->now->work.bytes += work.bytes;
    p->now->work.macs += work.macs;
}

void engine_profile_end(struct engine_profile *p)
{
    charge(p, base_seconds());
    p->now = NULL;
}

void engine_set_profile(struct engine *e, struct engine_profile *p)
{
    e->profile = p;
}
