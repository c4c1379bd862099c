/* engine/cpu/op/op_recurrent.c: ops that carry a state from token to token: ssm_conv, ssm_scan,
 * wkv6, wkv7, gated_delta. engine/graph_recurrent.h has their definitions, this file the order of
 * operations.
 *
 * A unit of work is some state rows of one head of one span with all its tokens in order, so the
 * division among workers changes no bits. Its rows are copied from one slot of the table to the
 * other and updated there, while they are in the L1 cache. Rows are computed by the primitives of
 * engine/cpu/isa/vec.h (dot: lanes); every other operation is rounded once; fmaf(a, b, c) = a b +
 * c:
 *
 *     ssm_conv     from +0, ascending k: acc = fmaf(x[t + ahead + k], w[k], acc), without those past
 *                  the span
 *
 *     ssm_scan     d = softplus(dt)
 *                  state = state * exp(d * a); with one a per head fmaf(state, exp(d * a), 0)
 *                  state = fmaf(b, x * d, state)
 *                  out = dot(state, c)
 *
 *     wkv6         from +0, ascending i: out = fmaf(state_i, r_i, out)
 *                                        state_i = fmaf(state_i, decay_i, 0)
 *                                        state_i = fmaf(v, k_i, state_i)
 *                  finally out = fmaf(v, dot(bonus * k, r), out)
 *
 *     wkv7         sum = dot(a, state_i)
 *                  state_i = state_i * decay
 *                  state_i = fmaf(k, v_i, state_i)
 *                  state_i = fmaf(b, sum, state_i)
 *                  out_i = dot(state_i, r)
 *
 *     gated_delta  state_i = state_i * exp(gate); with one gate fmaf(state_i, exp(gate), 0)
 *                  delta = (v_i - dot(state_i, k)) * beta
 *                  state_i = fmaf(k, delta, state_i)
 *                  out_i = dot(state_i, q) * (1 / sqrt(DK)) */
#include "engine/cpu/op/op_rows.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

/* ---- Spans ---- */

struct sequence_span {
    int64_t first, count; /* tokens, in range */
    int64_t from, to;     /* slots */
    bool has_slots;       /* both slots are in range */
};

/* Span s, with tokens out of range removed. */
static struct sequence_span span_at(const struct engine_tensor *spans, int64_t s, int64_t n_tokens,
                                    int64_t n_slots)
{
    int32_t v[ENGINE_SPAN_NUMBERS];
    memcpy(v, spans->data + s * spans->nb[1], sizeof v);
    struct sequence_span span = {v[ENGINE_SPAN_FIRST], v[ENGINE_SPAN_COUNT], v[ENGINE_SPAN_FROM],
                                 v[ENGINE_SPAN_TO], false};
    if (span.first < 0 || span.first > n_tokens || span.count < 0) span.first = span.count = 0;
    span.count = engine_min(span.count, n_tokens - span.first);
    span.has_slots = span.from >= 0 && span.from < n_slots && span.to >= 0 && span.to < n_slots;
    return span;
}

enum { STEP_HEADS = 16 };

/* A unit of work (state rows of one head of one span) at one token. */
struct scan_unit {
    const struct engine_task *task;
    const struct engine_vec *vec;
    struct engine_tensor *dst;
    int64_t buffer;      /* floats per buffer */
    int64_t h, t;        /* head, token */
    int64_t row, n_rows; /* rows of the head's state */
    float *state;        /* the unit's rows in the slot that is written */
    float *out;          /* their outputs at this token */
    float *temp;         /* a buffer for the op */
    struct {             /* of ssm_scan: softplus(dt) of the heads from `first` on at token t */
        int64_t first, t;
        float d[STEP_HEADS];
    } steps;
};

/* Rows of a unit, for states with an output per row: few enough to stay in the L1 cache between
 * tokens. */
enum { UNIT_ROWS = 32 };

enum { BUFFER_TEMP = 8, BUFFERS = 9 }; /* one per source, at most 8, and one more */

/* The length of a buffer: that of the longest row of all sources. */
static int64_t buffer_floats(const struct engine_tensor *dst)
{
    int64_t n = 0;
    for (int k = 0; k < ENGINE_MAX_SRC; k++)
        if (dst->src[k]) n = engine_max(n, dst->src[k]->ne[0]);
    return n;
}

static int64_t buffers_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, BUFFERS, buffer_floats(dst));
}

static struct scan_unit unit_new(const struct engine_task *task, struct engine_tensor *dst)
{
    const int64_t buffer = buffer_floats(dst);
    return (struct scan_unit){.task = task,
                              .vec = &task->cpu->vec,
                              .dst = dst,
                              .buffer = buffer,
                              .steps.t = -1,
                              .temp = engine_scratch_buffer(task, buffer, BUFFER_TEMP)};
}

/* Row (i1, i2) of source k, decoded to the source's buffer if necessary. */
static const float *row_of(const struct scan_unit *u, int k, int64_t i1, int64_t i2)
{
    const struct engine_tensor *t = u->dst->src[k];
    const struct engine_piece at = {.i1 = i1, .i2 = i2, .n = t->ne[0]};
    return engine_piece_load(u->task->cpu, t, &at, engine_scratch_buffer(u->task, u->buffer, k));
}

/* The unit's row of a source with one row per head and token. */
static const float *head_row(const struct scan_unit *u, int k)
{
    return row_of(u, k, u->h, u->t);
}

/* Copies the unit's rows of the table, of n_heads heads, from one slot to the other. */
static void state_start(struct scan_unit *u, struct engine_tensor *table,
                        const struct sequence_span *span, int64_t n_heads)
{
    const int64_t n = table->ne[0], slot = table->ne[2] * table->ne[1];
    const int64_t row = u->h * table->ne[1] + u->row;
    float *data = (float *)(void *)table->data;
    u->state = data + (span->to * slot + row) * n;
    if (span->from != span->to)
        memcpy(u->state, data + (span->from * slot + row) * n,
               (size_t)(n_heads * u->n_rows * n) * sizeof(float));
}

/* Runs `step` on each token of each unit. `like`: the source with the shape of the outputs; `table`
 * and `spans`: sources. Outputs of a span with a slot out of range are NaN. A unit has several
 * heads if each has one row. */
static void run_units(const struct engine_task *task, struct engine_tensor *dst, int like,
                      int table, int spans, int64_t unit_rows, void (*step)(struct scan_unit *u))
{
    struct scan_unit u = unit_new(task, dst);
    const struct engine_tensor *x = dst->src[like];
    const int64_t dim = x->ne[0], heads = x->ne[1], slots = dst->src[table]->ne[3];
    const int64_t rows = dst->src[table]->ne[1], per_head = (rows + unit_rows - 1) / unit_rows;
    const int64_t together = rows == 1 ? STEP_HEADS : 1, groups = (heads + together - 1) / together;
    int64_t first;
    const int64_t last = engine_task_rows(task, per_head * groups * dst->src[spans]->ne[1], &first);
    for (int64_t unit = first; unit < last; unit++) {
        u.row = unit % per_head * unit_rows;
        u.n_rows = engine_min(unit_rows, rows - u.row);
        u.h = unit / per_head % groups * together;
        const int64_t h = u.h, n_heads = engine_min(together, heads - h);
        const struct sequence_span span =
            span_at(dst->src[spans], unit / per_head / groups, x->ne[2], slots);
        if (span.has_slots) state_start(&u, dst->src[table], &span, n_heads);
        float *state = u.state;
        for (u.t = span.first; u.t < span.first + span.count; u.t++)
            for (u.h = h; u.h < h + n_heads; u.h++) {
                u.state = state + (u.h - h) * dst->src[table]->ne[0];
                u.out = (float *)(void *)dst->data + (u.t * heads + u.h) * dim + u.row;
                if (span.has_slots) step(&u);
                for (int64_t i = 0; !span.has_slots && i < u.n_rows; i++) u.out[i] = NAN;
            }
    }
}

/* ---- ssm_conv ---- */

/* Channels of a unit: few enough for all its rows to stay in the L1 cache between tokens. */
enum { UNIT_CHANNELS = 256, CONV_BUFFERS = 2 };

static int64_t ssm_conv_scratch(const struct engine_tensor *dst, int n_threads)
{
    (void)dst;
    return engine_scratch_bytes(n_threads, CONV_BUFFERS, UNIT_CHANNELS);
}

/* Some channels of one span. */
struct conv_unit {
    const struct engine_task *task;
    const struct engine_tensor *table, *x, *taps;
    struct sequence_span span;
    int64_t first, n;    /* channels */
    float *past, *after; /* the K - 1 rows of x->ne[0] channels in the slots */
};

/* The unit's channels of input i: one of the K - 1 tokens before the span (i < K - 1) or a token of
 * the span. */
static const float *conv_input(const struct conv_unit *u, int64_t i)
{
    const int64_t kept = u->table->ne[1];
    if (i < kept) return u->past + i * u->table->ne[0];
    const struct engine_piece at = {.i1 = u->span.first + i - kept, .first = u->first, .n = u->n};
    return engine_piece_load(u->task->cpu, u->x, &at,
                             engine_scratch_buffer(u->task, UNIT_CHANNELS, 0));
}

/* Computes the token of the span whose first tap is that of input `from`. */
static void conv_token(const struct conv_unit *u, int64_t from, float *out)
{
    const int64_t taps_left = u->table->ne[1] + u->span.count - from;
    memset(out, 0, (size_t)u->n * sizeof *out);
    for (int64_t k = 0; k < engine_min(u->taps->ne[1], taps_left); k++) {
        const struct engine_piece tap = {.i1 = k, .first = u->first, .n = u->n};
        const float *taps = engine_piece_load(u->task->cpu, u->taps, &tap,
                                              engine_scratch_buffer(u->task, UNIT_CHANNELS, 1));
        u->task->cpu->vec.mul_add(u->n, conv_input(u, from + k), taps, out);
    }
}

static void ssm_conv_run(const struct engine_task *task, struct engine_tensor *dst)
{
    struct engine_tensor *table = dst->src[ENGINE_CONV_TABLE];
    const int64_t channels = table->ne[0], kept = table->ne[1], tokens = dst->ne[1];
    const int64_t per_span = (channels + UNIT_CHANNELS - 1) / UNIT_CHANNELS;
    float *data = (float *)(void *)table->data;
    struct conv_unit u = {.task = task,
                          .table = table,
                          .x = dst->src[ENGINE_CONV_X],
                          .taps = dst->src[ENGINE_CONV_TAPS]};
    int64_t first;
    const int64_t last =
        engine_task_rows(task, per_span * dst->src[ENGINE_CONV_SPANS]->ne[1], &first);
    for (int64_t unit = first; unit < last; unit++) {
        u.span = span_at(dst->src[ENGINE_CONV_SPANS], unit / per_span, tokens, table->ne[3]);
        u.first = unit % per_span * UNIT_CHANNELS;
        u.n = engine_min(UNIT_CHANNELS, channels - u.first);
        float *out = (float *)(void *)dst->data + u.span.first * channels + u.first;
        if (!u.span.has_slots) {
            for (int64_t i = 0; i < u.span.count * u.n; i++)
                out[i / u.n * channels + i % u.n] = NAN;
            continue;
        }
        u.past = data + u.span.from * kept * channels + u.first;
        u.after = data + u.span.to * kept * channels + u.first;
        for (int64_t t = 0; t < u.span.count; t++)
            conv_token(&u, t + dst->params.conv_ahead, out + t * channels);
        for (int64_t i = 0; i < kept; i++)
            memmove(u.after + i * channels, conv_input(&u, u.span.count + i),
                    (size_t)u.n * sizeof(float));
    }
}

ENGINE_CPU_ROWS_OP(ssm_conv, ssm_conv_scratch, ssm_conv_run);

/* ---- ssm_scan ---- */

/* Defines the row of an op from NAME_step; LIKE: the source with the output's shape; ROWS: of a
 * unit. */
#define UNITS_OP(NAME, SOURCES, LIKE, ROWS)                                                        \
    static void NAME##_run(const struct engine_task *task, struct engine_tensor *dst)              \
    {                                                                                              \
        run_units(task, dst, ENGINE_##SOURCES##_##LIKE, ENGINE_##SOURCES##_TABLE,                  \
                  ENGINE_##SOURCES##_SPANS, ROWS, NAME##_step);                                    \
    }                                                                                              \
    ENGINE_CPU_ROWS_OP(NAME, buffers_scratch, NAME##_run);

/* Returns softplus(dt) of the unit's head. Heads follow each other, so it is computed for several
 * at once, which takes as long as one. */
static float scan_step_size(struct scan_unit *u)
{
    const int64_t first = u->h - u->h % STEP_HEADS;
    if (u->steps.t != u->t || u->steps.first != first) {
        const int64_t left = u->dst->src[ENGINE_SCAN_TABLE]->ne[2] - first;
        u->vec->unary[ENGINE_SOFTPLUS](left < STEP_HEADS ? left : STEP_HEADS,
                                       row_of(u, ENGINE_SCAN_DT, u->t, 0) + first, u->steps.d);
        u->steps.first = first;
        u->steps.t = u->t;
    }
    return u->steps.d[u->h - first];
}

static void ssm_scan_step(struct scan_unit *u)
{
    const struct engine_tensor *table = u->dst->src[ENGINE_SCAN_TABLE];
    const int64_t n_a = u->dst->src[ENGINE_SCAN_A]->ne[0];
    const int64_t group = u->h / (table->ne[2] / u->dst->src[ENGINE_SCAN_B]->ne[1]);
    const float d = scan_step_size(u);
    u->vec->scale(n_a, row_of(u, ENGINE_SCAN_A, u->h, 0), d, 0.0f, u->temp);
    u->vec->unary[ENGINE_EXP](n_a, u->temp, u->temp);
    const struct engine_vec_scan scan = {.n_rows = u->n_rows,
                                         .n = table->ne[0],
                                         .n_decay = n_a,
                                         .decay = u->temp,
                                         .b = row_of(u, ENGINE_SCAN_B, group, u->t),
                                         .c = row_of(u, ENGINE_SCAN_C, group, u->t),
                                         .x = head_row(u, ENGINE_SCAN_X) + u->row,
                                         .d = d,
                                         .s = u->state,
                                         .out = u->out};
    u->vec->scan(&scan);
}

UNITS_OP(ssm_scan, SCAN, X, UNIT_ROWS)

/* ---- wkv6 ---- */

static void wkv6_step(struct scan_unit *u)
{
    const struct engine_vec *vec = u->vec;
    const int64_t dim = u->dst->src[ENGINE_WKV6_K]->ne[0];
    const float *k = head_row(u, ENGINE_WKV6_K), *v = head_row(u, ENGINE_WKV6_V),
                *r = head_row(u, ENGINE_WKV6_R);
    const float *decay = head_row(u, ENGINE_WKV6_DECAY),
                *bonus = row_of(u, ENGINE_WKV6_BONUS, u->h, 0);
    memset(u->out, 0, (size_t)dim * sizeof(float));
    for (int64_t i = 0; i < dim; i++) {
        float *row = u->state + i * dim;
        vec->mad(dim, row, r[i], u->out);
        vec->scale(dim, row, decay[i], 0.0f, row);
        vec->mad(dim, v, k[i], row);
    }
    vec->mul(dim, bonus, k, u->temp);
    vec->mad(dim, v, vec->dot(dim, u->temp, r), u->out);
}

/* Each output is a sum over all rows. */
UNITS_OP(wkv6, WKV6, K, dst->src[ENGINE_WKV6_TABLE]->ne[1])

/* ---- wkv7 ---- */

static void wkv7_step(struct scan_unit *u)
{
    const struct engine_vec *vec = u->vec;
    const int64_t dim = u->dst->src[ENGINE_WKV7_R]->ne[0];
    const float *in[ENGINE_WKV7_TABLE];
    for (int i = ENGINE_WKV7_R; i <= ENGINE_WKV7_B; i++) in[i] = head_row(u, i);
    for (int64_t i = 0; i < u->n_rows; i++) {
        float *row = u->state + i * dim;
        const float sum = vec->dot(dim, in[ENGINE_WKV7_A], row);
        vec->mul(dim, row, in[ENGINE_WKV7_DECAY], row);
        vec->mad(dim, in[ENGINE_WKV7_K], in[ENGINE_WKV7_V][u->row + i], row);
        vec->mad(dim, in[ENGINE_WKV7_B], sum, row);
        u->out[i] = vec->dot(dim, row, in[ENGINE_WKV7_R]);
    }
}

UNITS_OP(wkv7, WKV7, R, UNIT_ROWS)

/* ---- gated_delta ---- */

static void gated_delta_step(struct scan_unit *u)
{
    const struct engine_tensor *q = u->dst->src[ENGINE_DELTA_Q];
    const int64_t n_gate = u->dst->src[ENGINE_DELTA_GATE]->ne[0], head_k = u->h % q->ne[1];
    u->vec->unary[ENGINE_EXP](n_gate, head_row(u, ENGINE_DELTA_GATE), u->temp);
    const struct engine_vec_delta delta = {.n_rows = u->n_rows,
                                           .n = q->ne[0],
                                           .n_decay = n_gate,
                                           .decay = u->temp,
                                           .k = row_of(u, ENGINE_DELTA_K, head_k, u->t),
                                           .q = row_of(u, ENGINE_DELTA_Q, head_k, u->t),
                                           .v = head_row(u, ENGINE_DELTA_V) + u->row,
                                           .beta = head_row(u, ENGINE_DELTA_BETA)[0],
                                           .scale = 1.0f / sqrtf((float)q->ne[0]),
                                           .s = u->state,
                                           .out = u->out};
    u->vec->delta(&delta);
}

UNITS_OP(gated_delta, DELTA, V, UNIT_ROWS)
