/* engine/gpu/device/gpu_recurrent.c: device code: ops that carry a state from token to token. The
 * order of operations is that of engine/cpu/op/op_recurrent.c.
 *
 * Tokens follow each other. A row of a state, whose output is a sum over its elements, has sixteen
 * lanes, each of which reads and writes elements of its own; a column of wkv6's state, or a channel
 * of ssm_conv, has a thread. */
#include "engine/gpu/device/gpu_element.h"

/* A span with tokens out of range removed. */
struct token_span {
    int64_t first, count, from, to;
    bool has_slots;
};

static struct token_span span_of(const struct engine_gpu_recurrent *p, int64_t s, int64_t n_tokens)
{
    const int32_t *v = (const int32_t *)(const void *)(p->spans.data + s * p->spans.nb[1]);
    const int64_t n_slots = p->table.ne[3];
    struct token_span span = {v[0], v[1], v[2], v[3], false};
    if (span.first < 0 || span.first > n_tokens || span.count < 0) span.first = span.count = 0;
    if (span.count > n_tokens - span.first) span.count = n_tokens - span.first;
    span.has_slots = span.from >= 0 && span.from < n_slots && span.to >= 0 && span.to < n_slots;
    return span;
}

/* A row of a source, whose index wraps around. */
struct source_row {
    const char *at;
    int64_t step;
};

static struct source_row row_of(const struct engine_gpu_tensor *t, int64_t i1, int64_t i2)
{
    return (struct source_row){t->data + i1 % t->ne[1] * t->nb[1] + i2 % t->ne[2] * t->nb[2],
                               t->nb[0]};
}

static float element(struct source_row row, int64_t i)
{
    return *(const float *)(const void *)(row.at + i * row.step);
}

/* ---- Rows of states ---- */

/* Lane l has the elements l, l + 16 .. of a row of n. */
struct state_row {
    const struct engine_gpu_recurrent *p;
    int64_t t, h, row, n;
    float *s;
};

#define EACH_ELEMENT(u, i) for (int64_t i = gpu_lane() % 16; i < (u)->n; i += 16)

/* Updates the row at a token, and returns its output; all lanes call it. */
typedef float step_of(const struct state_row *u);

/* s * decay of an element: `one` decay for all of them, or one for each. */
static float decayed(bool one, float s, float decay)
{
    return one ? fmaf(s, decay, 0.0f) : s * decay;
}

/* Runs the tokens of a row of a head of a span; like: the source with the shape of the outputs. The
 * lanes of a warp may have two spans, of which the shorter one waits. */
static inline void run_rows(const struct engine_gpu_recurrent *p,
                            const struct engine_gpu_tensor *like, step_of *step)
{
    const int64_t rows = p->table.ne[1], heads = like->ne[1], unit = gpu_half_of_grid();
    const bool is_in = unit < rows * heads * p->spans.ne[1];
    const struct token_span span = span_of(p, is_in ? unit / rows / heads : 0, like->ne[2]);
    struct state_row u = {.p = p, .h = unit / rows % heads, .row = unit % rows};
    float *const table = (float *)(void *)p->table.data;
    const int64_t n = p->table.ne[0], slot = p->table.ne[2] * rows, row = u.h * rows + u.row;
    const int32_t count = is_in ? (int32_t)span.count : 0;
    const int32_t other = (int32_t)gpu_shuffle_xor((uint32_t)count, 16);
    if (is_in && span.has_slots) {
        u.n = n;
        u.s = table + (span.to * slot + row) * n;
        EACH_ELEMENT(&u, i) u.s[i] = table[(span.from * slot + row) * n + i];
    }
    for (int64_t i = 0; i < (count > other ? count : other); i++) {
        const bool has_token = i < count;
        u.t = has_token ? span.first + i : 0;
        if (!has_token) u.n = 0;
        const float out = step(&u);
        if (has_token && gpu_lane() % 16 == 0)
            ((float *)(void *)p->out.data)[(u.t * heads + u.h) * like->ne[0] + u.row] =
                span.has_slots ? out : v_of_bits(0x7fc00000);
    }
}

static float dot(const struct state_row *u, struct source_row x)
{
    float sum = 0.0f;
    EACH_ELEMENT(u, i) sum = fmaf(element(x, i), u->s[i], sum);
    return gpu_sum_tree(sum);
}

static float ssm_scan_step(const struct state_row *u)
{
    const struct engine_gpu_tensor *src = u->p->source;
    const int64_t group = u->h / (u->p->table.ne[2] / src[3].ne[1]);
    const float d = v_softplus(element(row_of(&src[1], u->t, 0), u->h));
    const float xd = element(row_of(&src[0], u->h, u->t), u->row) * d;
    const struct source_row a = row_of(&src[2], u->h, 0), b = row_of(&src[3], group, u->t);
    const bool one = src[2].ne[0] == 1;
    EACH_ELEMENT(u, i)
    {
        const float decay = v_exp(fmaf(element(a, one ? 0 : i), d, 0.0f));
        u->s[i] = fmaf(element(b, i), xd, decayed(one, u->s[i], decay));
    }
    return dot(u, row_of(&src[4], group, u->t));
}

GPU_KERNEL(engine_gpu_ssm_scan, engine_gpu_recurrent)
{
    run_rows(&p, &p.source[0], ssm_scan_step);
}

static float wkv7_step(const struct state_row *u)
{
    const struct engine_gpu_tensor *src = u->p->source;
    const struct source_row decay = row_of(&src[1], u->h, u->t), k = row_of(&src[2], u->h, u->t),
                            b = row_of(&src[5], u->h, u->t);
    const float v = element(row_of(&src[3], u->h, u->t), u->row);
    const float sum = dot(u, row_of(&src[4], u->h, u->t));
    EACH_ELEMENT(u, i)
    {
        const float s = fmaf(element(k, i), v, u->s[i] * element(decay, i));
        u->s[i] = fmaf(element(b, i), sum, s);
    }
    return dot(u, row_of(&src[0], u->h, u->t));
}

GPU_KERNEL(engine_gpu_wkv7, engine_gpu_recurrent)
{
    run_rows(&p, &p.source[0], wkv7_step);
}

static float gated_delta_step(const struct state_row *u)
{
    const struct engine_gpu_tensor *src = u->p->source;
    const int64_t head = u->h % src[0].ne[1];
    const struct source_row k = row_of(&src[1], head, u->t), gate = row_of(&src[3], u->h, u->t);
    const bool one = src[3].ne[0] == 1;
    EACH_ELEMENT(u, i) u->s[i] = decayed(one, u->s[i], v_exp(element(gate, one ? 0 : i)));
    const float v = element(row_of(&src[2], u->h, u->t), u->row);
    const float delta = (v - dot(u, k)) * element(row_of(&src[4], u->h, u->t), 0);
    EACH_ELEMENT(u, i) u->s[i] = fmaf(element(k, i), delta, u->s[i]);
    return dot(u, row_of(&src[0], head, u->t)) * (1.0f / sqrtf((float)src[0].ne[0]));
}

GPU_KERNEL(engine_gpu_gated_delta, engine_gpu_recurrent)
{
    run_rows(&p, &p.source[2], gated_delta_step);
}

/* ---- wkv6: a thread for each column of a head's state ---- */

/* The dot of bonus * k with r; all lanes call it. */
static float bonus_of(const struct engine_gpu_recurrent *p, int64_t h, int64_t t)
{
    const struct source_row k = row_of(&p->source[0], h, t), r = row_of(&p->source[2], h, t),
                            bonus = row_of(&p->source[3], h, 0);
    float sum = 0.0f;
    for (int64_t i = gpu_lane() % 16; i < p->table.ne[0]; i += 16)
        sum = fmaf(element(bonus, i) * element(k, i), element(r, i), sum);
    return gpu_sum_tree(sum);
}

/* The output of a column at a token, without the bonus. */
static float wkv6_column(const struct engine_gpu_recurrent *p, int64_t h, int64_t t, int64_t column,
                         float *state)
{
    const int64_t n = p->table.ne[0];
    const struct source_row k = row_of(&p->source[0], h, t), r = row_of(&p->source[2], h, t),
                            decay = row_of(&p->source[4], h, t);
    const float v = element(row_of(&p->source[1], h, t), column);
    float out = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        float *s = state + i * n + column;
        out = fmaf(*s, element(r, i), out);
        *s = fmaf(v, element(k, i), fmaf(*s, element(decay, i), 0.0f));
    }
    return out;
}

/* A warp has 32 columns of one head of one span. */
GPU_KERNEL(engine_gpu_wkv6, engine_gpu_recurrent)
{
    const int64_t n = p.table.ne[0], heads = p.table.ne[2], warps = (n + GPU_WARP - 1) / GPU_WARP;
    const int64_t warp = gpu_warp_of_grid(), h = warp / warps % heads;
    const int64_t column = warp % warps * GPU_WARP + gpu_lane();
    if (warp >= warps * heads * p.spans.ne[1]) return;
    const struct token_span span = span_of(&p, warp / warps / heads, p.source[0].ne[2]);
    float *const table = (float *)(void *)p.table.data;
    float *const state = table + (span.to * heads + h) * n * n;
    for (int64_t i = 0; span.has_slots && column < n && i < n; i++)
        state[i * n + column] = table[((span.from * heads + h) * n + i) * n + column];
    for (int64_t t = span.first; t < span.first + span.count; t++) {
        const float bonus = bonus_of(&p, h, t);
        if (column >= n) continue;
        float *out = (float *)(void *)p.out.data + (t * heads + h) * n + column;
        *out = v_of_bits(0x7fc00000);
        if (span.has_slots)
            *out = fmaf(element(row_of(&p.source[1], h, t), column), bonus,
                        wkv6_column(&p, h, t, column, state));
    }
}

/* ---- ssm_conv: a thread for each channel of a span ---- */

/* Input i of a channel: of one of the tokens before the span, or of a token of it. */
static float conv_input(const struct engine_gpu_recurrent *p, const struct token_span *span,
                        int64_t channel, int64_t i)
{
    const int64_t kept = p->table.ne[1];
    const float *past = (const float *)(const void *)p->table.data;
    if (i < kept) return past[(span->from * kept + i) * p->table.ne[0] + channel];
    return element(row_of(&p->source[0], span->first + i - kept, 0), channel);
}

GPU_KERNEL(engine_gpu_ssm_conv, engine_gpu_recurrent)
{
    const int64_t channels = p.table.ne[0], kept = p.table.ne[1], n = gpu_thread_of_grid();
    const int64_t channel = n % channels;
    if (n >= channels * p.spans.ne[1]) return;
    const struct token_span span = span_of(&p, n / channels, p.out.ne[1]);
    float *out = (float *)(void *)p.out.data + span.first * channels + channel;
    float *after = (float *)(void *)p.table.data + span.to * kept * channels + channel;
    for (int64_t t = 0; t < span.count; t++) {
        float sum = span.has_slots ? 0.0f : v_of_bits(0x7fc00000);
        const int64_t from = t + p.ahead, left = kept + span.count - from;
        for (int64_t k = 0; span.has_slots && k < p.source[1].ne[1] && k < left; k++)
            sum = fmaf(conv_input(&p, &span, channel, from + k),
                       element(row_of(&p.source[1], k, 0), channel), sum);
        out[t * channels] = sum;
    }
    for (int64_t i = 0; span.has_slots && i < kept; i++)
        after[i * channels] = conv_input(&p, &span, channel, span.count + i);
}
