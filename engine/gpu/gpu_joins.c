/* engine/gpu/gpu_joins.c: see engine/gpu/gpu_joins.h. A kernel's blocks run in any order, so what a
 * node writes must not be where another block reads what an earlier node does: the plan uses the
 * memory of tensors again that no later step reads. */
#include "engine/gpu/gpu_joins.h"
#include "engine/gpu/gpu_arguments.h"
#include "engine/gpu/gpu_product.h"
#include "engine/ops.h"

/* Bytes from the first to the last element. */
static int64_t extent(const struct engine_tensor *t)
{
    int64_t bytes = t->nb[0];
    for (int d = 0; d < ENGINE_DIMS; d++) bytes += (t->ne[d] - 1) * t->nb[d];
    return bytes;
}

static bool overlaps(const struct engine_tensor *a, const struct engine_tensor *b)
{
    return a && b && a->data < b->data + extent(b) && b->data < a->data + extent(a);
}

/* add, then the norm of it: a block has a row, which it reads before it writes its norm. */
static int join_add_norm(struct engine_gpu *gpu, const struct engine_step *steps, int n,
                         char *scratch)
{
    const struct engine_tensor *add = steps[0].node, *norm = n > 1 ? steps[1].node : NULL;
    if (!norm || add->op != &engine_op_add || norm->src[0] != add ||
        (norm->op != &engine_op_norm && norm->op != &engine_op_rms_norm &&
         norm->op != &engine_op_l2_norm) ||
        norm->ne[0] < ENGINE_GPU_LONG_ROW)
        return 0;
    if (engine_tensor_rows(norm) > 1 &&
        (overlaps(norm, add->src[0]) || overlaps(norm, add->src[1])))
        return 0;
    engine_gpu_follow(gpu, steps + 2, n - 2);
    engine_gpu_start_norm(gpu, norm, add, scratch);
    return 2;
}

/* ---- Chains of ops on rows ---- */

/* Ops in the order in which a chain may have them. */
enum link { NONE, SUM, NORM, ROTATION, STORING };

static enum link link_of(const struct engine_tensor *node)
{
    const struct engine_tensor *x = node->src[0];
    if (!x) return NONE;
    const bool is_headed = node->ne[3] == 1 && x->ne[0] <= ENGINE_GPU_CHAIN_SIZE;
    if (node->op == &engine_op_set_kv_q16 && is_headed) return STORING;
    if (!engine_gpu_has_floats(node) || !engine_tensor_contiguous(node)) return NONE;
    if (node->op == &engine_op_add && engine_tensor_same_shape(node, x) && node->ne[2] == 1 &&
        node->ne[3] == 1 && engine_tensor_contiguous(node->src[1]) &&
        engine_tensor_elements(node->src[1]) == node->ne[0])
        return SUM;
    for (int i = 1; i < 3; i++)
        if (node->src[i] && node->op != &engine_op_rope &&
            (!engine_tensor_contiguous(node->src[i]) ||
             engine_tensor_elements(node->src[i]) != node->ne[0]))
            return NONE;
    if ((node->op == &engine_op_rms_norm || node->op == &engine_op_norm) && is_headed) return NORM;
    return node->op == &engine_op_rope && is_headed ? ROTATION : NONE;
}

struct chains {
    struct engine_gpu_chains arguments;
    int n;
    struct {
        const struct engine_tensor *result; /* the last */
        enum link link;
    } last[ENGINE_GPU_CHAINS];
};

/* The heads, tokens, and their strides in x of a node of a link. A sum has one head. */
struct heads {
    int64_t d, n_heads, n_tokens, head_bytes, token_bytes;
};

static struct heads heads_of(const struct engine_tensor *node, enum link link)
{
    const struct engine_tensor *x = node->src[0];
    const int head = link == STORING ? 2 : 1, token = link == STORING ? 1 : 2;
    if (link == SUM) return (struct heads){x->ne[0], 1, x->ne[1], 0, x->nb[1]};
    return (struct heads){x->ne[0], x->ne[head], x->ne[token], x->nb[head], x->nb[token]};
}

/* Whether a node's source is the last result of chain c, row by row. */
static bool follows(const struct chains *s, int c, const struct engine_tensor *node, enum link link,
                    const struct heads *h)
{
    const struct engine_gpu_chain *chain = &s->arguments.chain[c];
    const int64_t row = chain->n_heads * chain->d;
    return link > s->last[c].link && node->src[0]->data == s->last[c].result->data &&
           h->d * h->n_heads == row &&
           h->n_tokens * h->n_heads * h->d == chain->n_rows * chain->d &&
           (s->last[c].link == SUM || chain->d == h->d) &&
           (h->n_heads == 1 || h->head_bytes == h->d * 4) &&
           (h->n_tokens == 1 || h->token_bytes == row * 4);
}

/* The chain that a node continues or begins; ENGINE_GPU_CHAINS: none. */
static int chain_of(const struct chains *s, const struct engine_tensor *node, enum link link,
                    const struct heads *h)
{
    int c = 0;
    while (c < s->n && !follows(s, c, node, link, h)) c++;
    return c;
}

/* Whether a node, of chain c, may run beside the nodes before it, which are those of steps. Rows of
 * its own chain precede it; others do not. */
static bool is_free(const struct chains *s, const struct engine_step *steps, int n, int c)
{
    const struct engine_tensor *node = steps[n].node, *before = c < s->n ? s->last[c].result : NULL;
    for (int i = 0; i < n; i++) {
        const struct engine_tensor *other = steps[i].node;
        if (overlaps(node, other)) return false;
        for (int k = 0; k < ENGINE_MAX_SRC; k++) {
            if (overlaps(node, other->src[k])) return false;
            if (other != before && overlaps(node->src[k], other)) return false;
            if (other == before && k > 0 && overlaps(node->src[k], other)) return false;
        }
    }
    return true;
}

static void set_link(struct engine_gpu_chain *c, const struct engine_tensor *node, enum link link)
{
    const struct engine_tensor *second = node->src[1], *third = node->src[2];
    float *out = (float *)(void *)node->data;
    if (link == SUM) {
        c->sum = out;
        c->bias = (const float *)(const void *)second->data;
    } else if (link == NORM) {
        const struct engine_gpu_norm norm = engine_gpu_norm_of(node);
        c->normed = out;
        c->kind = norm.kind;
        c->eps = norm.eps;
        c->weight = (const float *)(const void *)norm.weight.data;
        c->norm_bias = (const float *)(const void *)norm.bias.data;
    } else if (link == ROTATION) {
        c->rotated = out;
        c->table = second->data;
        c->n_rot = second->ne[0];
        c->table_bytes = second->nb[1];
        c->normal = node->params.rope.kind == ENGINE_ROPE_NORMAL;
    } else {
        const struct engine_gpu_set_kv store = engine_gpu_set_kv_of(node);
        c->cache = store.cache.data;
        c->cache_bytes = store.cache.nb[2];
        c->group_bytes = store.cache.nb[1];
        c->n_slots = store.cache.ne[1] * ENGINE_KV_Q16_GROUP;
        c->slots = (const int32_t *)(const void *)third->data;
        c->values = store.values;
        c->bfloat = store.bfloat;
    }
}

/* Adds the node of the last of n + 1 steps to a chain, if it can be computed beside the others. */
static bool add_node(struct chains *s, const struct engine_step *steps, int n)
{
    const struct engine_tensor *node = steps[n].node;
    const enum link link = link_of(node);
    if (link == NONE || node->src[0]->nb[0] != 4) return false;
    const struct heads h = heads_of(node, link);
    const int c = chain_of(s, node, link, &h);
    if (c == ENGINE_GPU_CHAINS || !is_free(s, steps, n, c)) return false;
    struct engine_gpu_chain *chain = &s->arguments.chain[c];
    const bool is_new = c == s->n;
    if (is_new) {
        *chain = (struct engine_gpu_chain){
            .x = node->src[0]->data, .head_bytes = h.head_bytes, .token_bytes = h.token_bytes};
        s->n++;
    }
    if (is_new || s->last[c].link == SUM) { /* a sum has the heads of what follows it */
        if (!is_new) chain->head_bytes = h.d * (int64_t)sizeof(float);
        chain->d = h.d;
        chain->n_heads = h.n_heads;
        chain->n_rows = h.n_heads * h.n_tokens;
    }
    s->last[c].result = node;
    s->last[c].link = link;
    set_link(chain, node, link);
    return true;
}

/* Divides the rows of a chain that is only a sum. */
static bool has_rows(struct engine_gpu_chain *c)
{
    enum { ELEMENTS = 64 };
    if (c->d <= ENGINE_GPU_CHAIN_SIZE) return true;
    if (c->d % ELEMENTS) return false;
    c->n_heads = c->d / ELEMENTS;
    c->n_rows *= c->n_heads;
    c->d = ELEMENTS;
    c->head_bytes = ELEMENTS * 4;
    return true;
}

static int join_chains(struct engine_gpu *gpu, const struct engine_step *steps, int n)
{
    struct chains s = {.n = 0};
    uint32_t rows = 0;
    int done = 0;
    while (done < n && add_node(&s, steps, done)) done++;
    if (done < 2) return 0;
    for (int c = 0; c < s.n; c++) {
        if (!has_rows(&s.arguments.chain[c])) return 0;
        rows += (uint32_t)s.arguments.chain[c].n_rows;
    }
    struct engine_gpu_grid grid = {rows, 1, 32, 2 * ENGINE_GPU_CHAIN_SIZE * sizeof(float)};
    engine_gpu_follow(gpu, steps + done, n - done);
    s.arguments.ahead = engine_gpu_load_ahead(gpu, &grid);
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_CHAINS], &grid, &s.arguments);
    return done;
}

int engine_gpu_join(struct engine_gpu *gpu, const struct engine_step *steps, int n, char *scratch)
{
    const int done = join_add_norm(gpu, steps, n, scratch);
    return done ? done : join_chains(gpu, steps, n);
}
