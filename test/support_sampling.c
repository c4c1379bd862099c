/* test/support_sampling.c: the naive sampling chain, and random chains. See support_sampling.h. */
#include "test/support_sampling.h"
#include "test/support.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The vocabulary's text: the id in base 3 with the letters a, b, c ---- */

void support_token_text(void *context, int32_t id, struct base_buffer *out)
{
    (void)context;
    for (; id > 0; id /= 3) base_buffer_add(out, &"abc"[id % 3], 1);
}

const struct sample_text support_breakers[2] = {{"cb", 2}, {"baca", 4}};
const int32_t support_ends[2] = {2, 0};

static bool is_end(int32_t id)
{
    return id == support_ends[0] || id == support_ends[1];
}

/* ---- The chain ---- */

static int by_logit(const void *pa, const void *pb)
{
    const struct support_one *a = pa, *b = pb;
    if (a->x != b->x) return a->x > b->x ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_id(const void *pa, const void *pb)
{
    return ((const struct support_one *)pa)->id < ((const struct support_one *)pb)->id ? -1 : 1;
}

static int by_p(const void *pa, const void *pb) /* sorts in ascending order, equal ones by logit */
{
    const struct support_one *a = pa, *b = pb;
    if (a->p != b->p) return a->p < b->p ? -1 : 1;
    return by_logit(pa, pb);
}

static void softmax(struct support_chain *v)
{
    double total = 0;
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    for (uint32_t i = 0; i < v->n; i++) total += v->c[i].p = exp(v->c[i].x - v->c[0].x);
    for (uint32_t i = 0; i < v->n; i++) v->c[i].p /= total;
}

static double entropy(const struct support_chain *v)
{
    double h = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->c[i].p > 0) h -= v->c[i].p * log(v->c[i].p);
    return h;
}

static double clamp(double x)
{
    return x > (double)FLT_MAX ? (double)FLT_MAX : x < (double)-FLT_MAX ? (double)-FLT_MAX : x;
}

static int window(const struct support_chain *v, int32_t last_n)
{
    int n = v->n_history < SUPPORT_N_CTX ? v->n_history : SUPPORT_N_CTX;
    return last_n >= 0 && last_n < n ? last_n : n;
}

static void penalties(struct support_chain *v)
{
    const struct sample_options *o = v->o;
    const int n = window(v, o->repeat_last_n);
    for (uint32_t i = 0; i < v->n; i++) {
        struct support_one *c = &v->c[i];
        int count = 0;
        for (int k = v->n_history - n; k < v->n_history; k++) count += v->history[k] == c->id;
        if (count == 0) continue;
        c->x = c->x > 0 ? c->x / (double)o->repeat_penalty : c->x * (double)o->repeat_penalty;
        c->x = clamp(c->x - count * (double)o->frequency_penalty - (double)o->presence_penalty);
    }
}

static bool has_breaker(const char *text, size_t size)
{
    for (int i = 0; i < 2; i++)
        if (memmem(text, size, support_breakers[i].data, support_breakers[i].size)) return true;
    return false;
}

/* The number of tokens after the one in which the last breaker ends. */
static int after_breaker(const struct support_chain *v)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    size_t end[SUPPORT_MAX_HISTORY + 1] = {0}, last = 0;
    for (int i = 0; i < v->n_history; i++) {
        support_token_text(NULL, v->history[i], &text);
        end[i + 1] = text.size;
    }
    for (size_t i = 0; i < text.size; i++)
        for (int b = 0; b < 2; b++)
            if (i + support_breakers[b].size <= text.size && i + support_breakers[b].size > last &&
                memcmp(text.data + i, support_breakers[b].data, support_breakers[b].size) == 0)
                last = i + support_breakers[b].size;
    base_buffer_free(&text);
    int i = 0;
    while (last > 0 && i < v->n_history && end[i] < last) i++;
    return v->n_history - i;
}

static void dry(struct support_chain *v)
{
    const struct sample_options *o = v->o;
    const int n = window(v, o->dry_last_n), limit = after_breaker(v);
    const int32_t *h = v->history + v->n_history - n;
    for (uint32_t c = 0; c < v->n; c++) {
        int longest = 0;
        struct base_buffer text = BASE_BUFFER_INIT;
        support_token_text(NULL, v->c[c].id, &text);
        const bool breaks = text.size && has_breaker(text.data, text.size);
        base_buffer_free(&text);
        for (int j = 1; j < n && !breaks; j++) {
            if (h[j] != v->c[c].id) continue;
            int m = 0;
            while (m < j && m < limit && h[j - 1 - m] == h[n - 1 - m]) m++;
            longest = m > longest ? m : longest;
        }
        if (longest >= o->dry_allowed_length)
            v->c[c].x =
                clamp(v->c[c].x - (double)o->dry_multiplier *
                                      pow((double)o->dry_base, longest - o->dry_allowed_length));
    }
}

/* Keeps the first `keep` candidates; draws from more than 1024 go by id. */
static void keep_above(struct support_chain *v, uint32_t keep)
{
    if (keep <= 1024) v->cut = true;
    v->n = keep;
}

static void top_n_sigma(struct support_chain *v)
{
    double mean = 0, square = 0;
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    for (uint32_t i = 0; i < v->n; i++) mean += v->c[i].x / v->n;
    for (uint32_t i = 0; i < v->n; i++) square += (v->c[i].x - mean) * (v->c[i].x - mean) / v->n;
    double bar = v->c[0].x - (double)v->o->top_n_sigma * sqrt(square) * (1 + v->eps);
    uint32_t keep = 1;
    while (keep < v->n && v->c[keep].x >= bar) keep++;
    keep_above(v, keep);
}

static void top_k(struct support_chain *v)
{
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    if ((uint32_t)v->o->top_k < v->n) v->n = (uint32_t)v->o->top_k;
    if (v->o->top_k <= 1024) v->cut = true;
}

static void typical(struct support_chain *v)
{
    softmax(v);
    const double h = entropy(v) + v->eps, best = v->c[0].x, p0 = v->c[0].p;
    uint32_t keep = 0;
    double sum = 0;
    for (uint32_t i = 0; i < v->n; i++) /* -log p without underflow of tiny p */
        v->c[i].p = fabs(best - v->c[i].x - log(p0) - h);
    qsort(v->c, v->n, sizeof v->c[0], by_p);
    while (keep < v->n && sum <= (double)v->o->typical_p * (1 + v->eps))
        sum += p0 * exp(v->c[keep++].x - best);
    v->n = keep;
    v->cut = true;
}

static void top_p(struct support_chain *v)
{
    softmax(v);
    uint32_t keep = 0;
    double sum = 0;
    while (keep < v->n) {
        sum += v->c[keep++].p;
        if (sum >= (double)v->o->top_p * (1 + v->eps)) break;
    }
    v->n = keep;
    v->cut = true;
}

static void min_p(struct support_chain *v)
{
    softmax(v);
    uint32_t keep = 1;
    while (keep < v->n &&
           v->c[keep].x >= v->c[0].x + log((double)v->o->min_p * (1 - fabs(v->eps) + v->eps)))
        keep++;
    keep_above(v, keep);
}

static void xtc(struct support_chain *v, double u)
{
    if (u >= (double)v->o->xtc_probability) return;
    softmax(v);
    uint32_t n = 0;
    while (n < v->n && v->c[n].p >= (double)v->o->xtc_threshold * (1 + v->eps)) n++;
    if (n < 2) return;
    memmove(v->c, v->c + n - 1, (v->n - n + 1) * sizeof v->c[0]);
    v->n -= n - 1;
}

static void temperature(struct support_chain *v)
{
    double temp = (double)v->o->temp, range = (double)v->o->dynatemp_range;
    softmax(v);
    if (range > 0 && v->n > 1) {
        double low = temp > range ? temp - range : 0, share = entropy(v) / log(v->n);
        share = share > 1 ? 1 : share < 1e-12 ? 0 : share;
        temp = low + (temp + range - low) * pow(share, (double)v->o->dynatemp_exponent);
    }
    if (temp <= 0) {
        v->n = 1;
        v->cut = true;
    }
    for (uint32_t i = 0; temp > 0 && i < v->n; i++) v->c[i].x /= temp;
}

static void keep_infill(struct support_chain *v, double bar)
{
    uint32_t n = 0;
    double sum = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (is_end(v->c[i].id) || v->c[i].p >= bar) v->c[n++] = v->c[i];
    v->n = n;
    for (uint32_t i = 0; i < n; i++) sum += v->c[i].p;
    for (uint32_t i = 0; i < n; i++) v->c[i].p /= sum;
}

static bool begins(int32_t a, int32_t b)
{
    struct base_buffer x = BASE_BUFFER_INIT, y = BASE_BUFFER_INIT;
    if (!is_end(a)) support_token_text(NULL, a, &x);
    if (!is_end(b)) support_token_text(NULL, b, &y);
    bool yes = x.size > 0 && x.size <= y.size && memcmp(x.data, y.data, x.size) == 0;
    base_buffer_free(&x);
    base_buffer_free(&y);
    return yes;
}

static void infill(struct support_chain *v)
{
    softmax(v);
    double end_sum = 0;
    const struct support_one best = v->c[0];
    for (uint32_t i = 0; i < v->n; i++) end_sum += is_end(v->c[i].id) ? v->c[i].p : 0;
    v->cut = true;
    if (3 * end_sum * v->n > (1 - end_sum) * (1 + v->eps)) {
        keep_infill(v, 2);
        return;
    }
    for (uint32_t a = 0; a < v->n; a++)
        for (uint32_t b = 0; b < v->n; b++) {
            if (v->c[a].p < 0 || v->c[b].p < 0 || a == b || !begins(v->c[a].id, v->c[b].id))
                continue;
            uint32_t to = v->c[b].p > v->c[a].p ? b : a, from = to == a ? b : a;
            v->c[to].p += v->c[from].p;
            v->c[from].p = -1;
        }
    keep_infill(v, 0.2 * (1 + v->eps));
    uint32_t n_text = 0;
    for (uint32_t i = 0; i < v->n; i++) n_text += !is_end(v->c[i].id);
    if (n_text > 0) {
        keep_infill(v, 1.0 / (n_text + 1) * (1 + v->eps));
        if (v->n > 0) return;
    }
    v->n = 1;
    v->c[0] = best;
    for (int e = 1; e >= 0; e--)
        if ((uint32_t)support_ends[e] < v->n_vocab && v->logits[support_ends[e]] > -INFINITY)
            v->c[0] = (struct support_one){1, 1, support_ends[e]};
}

/* ---- The draws ---- */

/* Draws by the weights p, in the order of c. */
static int32_t walk_as_is(struct support_chain *v, double u)
{
    double sum = 0;
    uint32_t i = 0;
    for (; i + 1 < v->n; i++) {
        sum += v->c[i].p;
        if (sum > u) break;
    }
    v->chosen_p = v->c[i].p;
    return v->c[i].id;
}

static int32_t walk(struct support_chain *v, double u)
{
    softmax(v);
    if (!v->cut) qsort(v->c, v->n, sizeof v->c[0], by_id);
    return walk_as_is(v, u);
}

static int32_t mirostat_1(struct support_chain *v, double u)
{
    softmax(v);
    double tb = 0, tt = 0, n = v->n_vocab;
    for (uint32_t i = 0; i < 99 && i + 1 < v->n; i++) {
        double t = log((i + 2.0) / (i + 1.0));
        tb += t * (v->c[i].x - v->c[i + 1].x);
        tt += t * t;
    }
    double s = tb / tt, e = s - 1;
    double base = fabs(e) < 1e-9 ? pow(2, v->mu) / log(n) : e * pow(2, v->mu) / (1 - pow(n, -e));
    double k = pow(base, 1 / s) * (1 + v->eps);
    uint32_t keep = v->n < 2 || !(k >= 1) ? 1 : k < v->n ? (uint32_t)k : v->n;
    v->n = keep;
    if (v->n_vocab <= 1024 || !(k >= 1025)) v->cut = true;
    return walk(v, u);
}

static int32_t mirostat_2(struct support_chain *v, double u)
{
    softmax(v);
    uint32_t keep = 1;
    const double p0 = v->c[0].p;
    while (keep < v->n && (v->c[0].x - v->c[keep].x - log(p0)) / log(2) <= v->mu * (1 + v->eps))
        keep++;
    keep_above(v, keep);
    return walk(v, u);
}

static int32_t adaptive(struct support_chain *v, double u)
{
    softmax(v);
    double target = 2 * (double)v->o->adaptive_target - v->adaptive_sum / v->adaptive_weight;
    target = target < 0 ? 0 : target > 1 ? 1 : target;
    double *p = calloc(v->n_vocab, sizeof *p), total = 0;
    assert_non_null(p);
    if (!v->cut) qsort(v->c, v->n, sizeof v->c[0], by_id);
    for (uint32_t i = 0; i < v->n; i++) {
        double d = fabs(v->c[i].p - target) / 0.3;
        p[v->c[i].id] = v->c[i].p;
        total += v->c[i].p = exp(5 - 10 * d * d / (1 + d));
    }
    for (uint32_t i = 0; i < v->n; i++) v->c[i].p /= total;
    int32_t id = walk_as_is(v, u);
    v->chosen_p = p[id];
    free(p);
    return id;
}

const char *const support_stage_name[SUPPORT_STAGES] = {
    "penalties", "dry", "top_n_sigma", "top_k",  "typ_p",     "top_p",
    "min_p",     "xtc", "temperature", "infill", "adaptive_p"};
static void (*const apply[SUPPORT_STAGES])(struct support_chain *v) = {
    penalties, dry, top_n_sigma, top_k, typical, top_p, min_p, NULL, temperature, infill, NULL};

/* Whether the stage has an effect with these options. */
bool support_stage_acts(const struct sample_options *o, int stage)
{
    const bool on[SUPPORT_STAGES] = {
        true,
        o->dry_multiplier > 0,
        o->top_n_sigma > 0,
        o->top_k > 0,
        o->typical_p<1, o->top_p<1, o->min_p> 0, o->xtc_probability> 0 && o->xtc_threshold <= 0.5f,
        true,
        true,
        false};
    const bool steers = stage == 0 || stage == 1 || stage == 8;
    return on[stage] && (o->mirostat == 0 || steers);
}

/* One draw; u[0] is XTC's random number if it acts, the next one that of the draw. */
int32_t support_chain_next(struct support_chain *v, const int *order, int n_order, const double *u,
                           double u_shift)
{
    v->n = 0;
    v->cut = false;
    for (uint32_t id = 0; id < v->n_vocab; id++)
        if (v->logits[id] > -INFINITY)
            v->c[v->n++] = (struct support_one){clamp((double)v->logits[id]), 0, (int32_t)id};
    for (int i = 0; i < n_order; i++) {
        if (!support_stage_acts(v->o, order[i])) continue;
        if (order[i] == SUPPORT_XTC)
            xtc(v, *u++);
        else
            apply[order[i]](v);
    }
    const double draw = *u + u_shift;
    if (v->o->mirostat == 1) return mirostat_1(v, draw);
    if (v->o->mirostat == 2) return mirostat_2(v, draw);
    if (v->o->adaptive_target >= 0) return adaptive(v, draw);
    return walk(v, draw);
}

/* ---- Random logits, options and orders ---- */

float support_float_between(struct sample_random *r, float low, float high)
{
    return low + (high - low) * (float)sample_random_unit(r);
}

void support_fill_logits(struct sample_random *r, enum support_shape shape, uint32_t n,
                         float *logits)
{
    static const float odd[] = {NAN, -INFINITY, 3e38f, -3e38f, 0, -0.0f, 1e-40f, 3.4e38f};
    for (uint32_t i = 0; i < n; i++) {
        float x = support_float_between(r, -8, 8);
        if (shape == SUPPORT_SLOPED) x = x / 8 + 8 - 24 * (float)i / (float)n;
        if (shape == SUPPORT_STEPPED) x = x / 16 - (float)(i / 64 * 7 % 5 * 3); /* by blocks */
        if (shape == SUPPORT_PEAKED) x = x > 7.9f ? x + 6 : x;
        if (shape == SUPPORT_TIES) x = floorf(x / 4);
        if (shape == SUPPORT_HOLES && sample_random_u32(r) % 2)
            x = sample_random_u32(r) % 2 ? NAN : -INFINITY;
        if (shape == SUPPORT_EXTREME && sample_random_u32(r) % 2) x = SUPPORT_PICK(r, odd);
        logits[i] = x;
    }
    logits[sample_random_u32(r) % n] = 3.5f; /* at least one finite logit */
}

static bool chance(struct sample_random *r, uint32_t one_in)
{
    return sample_random_u32(r) % one_in == 0;
}

struct sample_options support_random_options(struct sample_random *r)
{
    static const float temps[] = {0, 0.3f, 0.8f, 1, 1, 2.5f};
    static const int32_t top_ks[] = {0, 0, 1, 3, 40, 900, 6000}, lasts[] = {-1, 0, 7, 64, 1000};
    static const float ps[] = {1, 1, 0.95f, 0.5f, 0.001f, 0}, min_ps[] = {0, 0, 0.05f, 0.4f, 1};
    static const float thresholds[] = {0, 0.02f, 0.1f, 0.5f, 0.6f};
    struct sample_options o = sample_options_default();
    o.temp = SUPPORT_PICK(r, temps);
    o.top_k = SUPPORT_PICK(r, top_ks);
    o.top_p = SUPPORT_PICK(r, ps);
    o.min_p = SUPPORT_PICK(r, min_ps);
    o.seed = sample_random_u32(r);
    if (chance(r, 3)) o.dynatemp_range = support_float_between(r, 0.1f, 1.5f);
    if (chance(r, 2)) o.dynatemp_exponent = support_float_between(r, 0, 3);
    if (chance(r, 3)) {
        o.repeat_penalty = support_float_between(r, 0.5f, 2);
        o.frequency_penalty = support_float_between(r, -1, 1);
        o.presence_penalty = support_float_between(r, -1, 1);
        o.repeat_last_n = SUPPORT_PICK(r, lasts);
    }
    if (chance(r, 3)) {
        o.dry_multiplier = support_float_between(r, 0.1f, 3);
        o.dry_base = support_float_between(r, 1, 3);
        o.dry_allowed_length = 1 + (int32_t)(sample_random_u32(r) % 3);
        o.dry_last_n = SUPPORT_PICK(r, lasts);
        o.dry_breaker = support_breakers;
        o.n_dry_breakers = 2;
    }
    o.token_bytes = support_token_text;
    if (chance(r, 4)) {
        o.mirostat = 1 + (int32_t)(sample_random_u32(r) % 2);
        o.mirostat_tau = support_float_between(r, 0.5f, 6);
        o.mirostat_eta = support_float_between(r, 0, 0.5f);
        return o;
    }
    if (chance(r, 4)) o.top_n_sigma = support_float_between(r, 0.1f, 4);
    if (chance(r, 4)) o.typical_p = SUPPORT_PICK(r, ps);
    if (chance(r, 4)) {
        o.xtc_probability = support_float_between(r, 0.2f, 1);
        o.xtc_threshold = SUPPORT_PICK(r, thresholds);
    }
    if (chance(r, 4)) {
        o.adaptive_target = support_float_between(r, 0, 1);
        o.adaptive_decay = support_float_between(r, 0, 0.99f);
    }
    return o;
}

/* A random order that the options allow, as a list and as text. Returns its length. */
int support_random_order(struct sample_random *r, const struct sample_options *o,
                         int order[SUPPORT_STAGES], char *text, size_t size)
{
    int n = 0, all[SUPPORT_STAGES];
    bool bounded = false;
    for (int i = 0; i < SUPPORT_STAGES; i++) all[i] = i;
    for (int i = SUPPORT_STAGES - 1; i > 0; i--) {
        int k = (int)(sample_random_u32(r) % (uint32_t)(i + 1)), moved = all[i];
        all[i] = all[k];
        all[k] = moved;
    }
    *text = '\0';
    for (int i = 0; i < SUPPORT_STAGES; i++) {
        const int stage = all[i];
        const bool plain = stage == SUPPORT_TOP_K || stage == 5 || stage == 6 || stage == 8 ||
                           stage == SUPPORT_INFILL;
        if (plain && chance(r, 4)) continue;
        if (stage == SUPPORT_INFILL && !bounded) continue;
        if (stage == SUPPORT_TOP_K && o->top_k > 0 && o->top_k <= 1000) bounded = true;
        order[n++] = stage;
        snprintf(text + strlen(text), size - strlen(text), "%s%s", n > 1 ? i % 2 ? ";" : "," : "",
                 support_stage_name[stage]);
    }
    return n;
}

/* Single rules that keep some thousand candidates, more than a list has, and adaptive-p. */
struct sample_options support_long_options(struct sample_random *r)
{
    static const float temps[] = {0.3f, 0.8f, 1, 2.5f};
    struct sample_options o = sample_options_default();
    o.seed = sample_random_u32(r);
    o.temp = SUPPORT_PICK(r, temps);
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.mirostat_tau = support_float_between(r, 4, 9);
    switch (sample_random_u32(r) % 6) {
    case 0:
        o.top_k = 1025 + (int32_t)(sample_random_u32(r) % 1500);
        break;
    case 1:
        o.min_p = support_float_between(r, 1e-7f, 1e-4f);
        break;
    case 2:
        o.top_n_sigma = support_float_between(r, 1, 4);
        break;
    case 3:
        o.mirostat = 1;
        break;
    case 4:
        o.mirostat = 2;
        break;
    default:
        o.adaptive_target = support_float_between(r, 0, 1);
    }
    return o;
}
