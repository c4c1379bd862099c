/* test/test_samplers.c: every stage of the sampling chain, in any order, against a naive
 * implementation: full sorts, libm, doubles, the definitions word for word. Then what the options
 * may be, that the order is honoured, and the distributions that are drawn. */
#include "sample/sample.h"
#include "test/support.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 262144, MAX_HISTORY = 300, N_CTX = 256 };

#define PICK(r, list) (list)[sample_random_u32(r) % (sizeof(list) / sizeof(list)[0])]

/* ---- The vocabulary's text: the id in base 3 with the letters a, b, c ---- */

static void token_text(void *context, int32_t id, struct base_buffer *out)
{
    (void)context;
    for (; id > 0; id /= 3) base_buffer_add(out, &"abc"[id % 3], 1);
}

static const struct sample_text breakers[] = {{"cb", 2}, {"baca", 4}};
static const int32_t ends[] = {2, 0};

static bool is_end(int32_t id)
{
    return id == ends[0] || id == ends[1];
}

/* ---- The naive chain ---- */

struct one {
    double x, p; /* logit; work of the stages */
    int32_t id;
};

struct naive {
    const struct sample_options *o;
    uint32_t n_vocab;
    int32_t history[MAX_HISTORY];
    int n_history;
    double mu, adaptive_sum, adaptive_weight, chosen_p;

    struct one *c;
    uint32_t n;
    bool cut;
    double eps; /* what thresholds are off by: tells what is too close to call */
    const float *logits;
};

static int by_logit(const void *pa, const void *pb)
{
    const struct one *a = pa, *b = pb;
    if (a->x != b->x) return a->x > b->x ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_id(const void *pa, const void *pb)
{
    return ((const struct one *)pa)->id < ((const struct one *)pb)->id ? -1 : 1;
}

static int by_p(const void *pa, const void *pb) /* ascending; equal ones by logit */
{
    const struct one *a = pa, *b = pb;
    if (a->p != b->p) return a->p < b->p ? -1 : 1;
    return by_logit(pa, pb);
}

static void softmax(struct naive *v)
{
    double total = 0;
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    for (uint32_t i = 0; i < v->n; i++) total += v->c[i].p = exp(v->c[i].x - v->c[0].x);
    for (uint32_t i = 0; i < v->n; i++) v->c[i].p /= total;
}

static double entropy(const struct naive *v)
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

static int window(const struct naive *v, int32_t last_n)
{
    int n = v->n_history < N_CTX ? v->n_history : N_CTX;
    return last_n >= 0 && last_n < n ? last_n : n;
}

static void penalties(struct naive *v)
{
    const struct sample_options *o = v->o;
    const int n = window(v, o->repeat_last_n);
    for (uint32_t i = 0; i < v->n; i++) {
        struct one *c = &v->c[i];
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
        if (memmem(text, size, breakers[i].data, breakers[i].size)) return true;
    return false;
}

/* How many tokens stand after the one in which the last breaker ends. */
static int after_breaker(const struct naive *v)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    size_t end[MAX_HISTORY + 1] = {0}, last = 0;
    for (int i = 0; i < v->n_history; i++) {
        token_text(NULL, v->history[i], &text);
        end[i + 1] = text.size;
    }
    for (size_t i = 0; i < text.size; i++)
        for (int b = 0; b < 2; b++)
            if (i + breakers[b].size <= text.size && i + breakers[b].size > last &&
                memcmp(text.data + i, breakers[b].data, breakers[b].size) == 0)
                last = i + breakers[b].size;
    base_buffer_free(&text);
    int i = 0;
    while (last > 0 && i < v->n_history && end[i] < last) i++;
    return v->n_history - i;
}

static void dry(struct naive *v)
{
    const struct sample_options *o = v->o;
    const int n = window(v, o->dry_last_n), limit = after_breaker(v);
    const int32_t *h = v->history + v->n_history - n;
    for (uint32_t c = 0; c < v->n; c++) {
        int longest = 0;
        struct base_buffer text = BASE_BUFFER_INIT;
        token_text(NULL, v->c[c].id, &text);
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

static void top_n_sigma(struct naive *v)
{
    double mean = 0, square = 0;
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    for (uint32_t i = 0; i < v->n; i++) mean += v->c[i].x / v->n;
    for (uint32_t i = 0; i < v->n; i++) square += (v->c[i].x - mean) * (v->c[i].x - mean) / v->n;
    double bar = v->c[0].x - (double)v->o->top_n_sigma * sqrt(square) * (1 + v->eps);
    uint32_t keep = 1;
    while (keep < v->n && v->c[keep].x >= bar) keep++;
    v->n = keep;
    v->cut = true;
}

static void top_k(struct naive *v)
{
    qsort(v->c, v->n, sizeof v->c[0], by_logit);
    if ((uint32_t)v->o->top_k < v->n) v->n = (uint32_t)v->o->top_k;
    v->cut = true;
}

static void typical(struct naive *v)
{
    softmax(v);
    const double h = entropy(v) + v->eps, best = v->c[0].x, p0 = v->c[0].p;
    uint32_t keep = 0;
    double sum = 0;
    for (uint32_t i = 0; i < v->n; i++) /* -log p without the loss of tiny ones */
        v->c[i].p = fabs(best - v->c[i].x - log(p0) - h);
    qsort(v->c, v->n, sizeof v->c[0], by_p);
    while (keep < v->n && sum <= (double)v->o->typical_p * (1 + v->eps))
        sum += p0 * exp(v->c[keep++].x - best);
    v->n = keep;
    v->cut = true;
}

static void top_p(struct naive *v)
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

static void min_p(struct naive *v)
{
    softmax(v);
    uint32_t keep = 1;
    while (keep < v->n &&
           v->c[keep].x >= v->c[0].x + log((double)v->o->min_p * (1 - fabs(v->eps) + v->eps)))
        keep++;
    v->n = keep;
    v->cut = true;
}

static void xtc(struct naive *v, double u)
{
    if (u >= (double)v->o->xtc_probability) return;
    softmax(v);
    uint32_t n = 0;
    while (n < v->n && v->c[n].p >= (double)v->o->xtc_threshold * (1 + v->eps)) n++;
    if (n < 2) return;
    memmove(v->c, v->c + n - 1, (v->n - n + 1) * sizeof v->c[0]);
    v->n -= n - 1;
}

static void temperature(struct naive *v)
{
    double temp = (double)v->o->temp, range = (double)v->o->dynatemp_range;
    softmax(v);
    if (range > 0 && v->n > 1) {
        double low = temp > range ? temp - range : 0, share = entropy(v) / log(v->n);
        share = share > 1 ? 1 : share < 0 ? 0 : share;
        temp = low + (temp + range - low) * pow(share, (double)v->o->dynatemp_exponent);
    }
    if (temp <= 0) {
        v->n = 1;
        v->cut = true;
    }
    for (uint32_t i = 0; temp > 0 && i < v->n; i++) v->c[i].x /= temp;
}

static void keep_infill(struct naive *v, double bar)
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
    if (!is_end(a)) token_text(NULL, a, &x);
    if (!is_end(b)) token_text(NULL, b, &y);
    bool yes = x.size > 0 && x.size <= y.size && memcmp(x.data, y.data, x.size) == 0;
    base_buffer_free(&x);
    base_buffer_free(&y);
    return yes;
}

static void infill(struct naive *v)
{
    softmax(v);
    double end_sum = 0;
    const struct one best = v->c[0];
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
        if ((uint32_t)ends[e] < v->n_vocab && v->logits[ends[e]] > -INFINITY)
            v->c[0] = (struct one){1, 1, ends[e]};
}

/* ---- The naive draws ---- */

/* By the shares p, in the order of c. */
static int32_t walk_as_is(struct naive *v, double u)
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

static int32_t walk(struct naive *v, double u)
{
    softmax(v);
    if (!v->cut) qsort(v->c, v->n, sizeof v->c[0], by_id);
    return walk_as_is(v, u);
}

static int32_t mirostat_1(struct naive *v, double u)
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
    v->cut = true;
    return walk(v, u);
}

static int32_t mirostat_2(struct naive *v, double u)
{
    softmax(v);
    uint32_t keep = 1;
    const double p0 = v->c[0].p;
    while (keep < v->n && (v->c[0].x - v->c[keep].x - log(p0)) / log(2) <= v->mu * (1 + v->eps))
        keep++;
    v->n = keep;
    v->cut = true;
    return walk(v, u);
}

static int32_t adaptive(struct naive *v, double u)
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

static const struct {
    const char *name;
    void (*apply)(struct naive *v);
} naive_stages[] = {{"penalties", penalties}, {"dry", dry},        {"top_n_sigma", top_n_sigma},
                    {"top_k", top_k},         {"typ_p", typical},  {"top_p", top_p},
                    {"min_p", min_p},         {"xtc", NULL},       {"temperature", temperature},
                    {"infill", infill},       {"adaptive_p", NULL}};
enum {
    N_STAGES = sizeof naive_stages / sizeof naive_stages[0],
    XTC = 7,
    INFILL = 9,
    ADAPTIVE = 10
};

/* Whether the options leave the stage something to do. */
static bool has_work(const struct sample_options *o, int stage)
{
    const bool on[N_STAGES] = {true,
                               o->dry_multiplier > 0,
                               o->top_n_sigma > 0,
                               o->top_k > 0,
                               o->typical_p<1, o->top_p<1, o->min_p> 0, o->xtc_probability> 0 &&
                                   o->xtc_threshold <= 0.5f,
                               true,
                               true,
                               false};
    const bool steers = stage == 0 || stage == 1 || stage == 8;
    return on[stage] && (o->mirostat == 0 || steers);
}

/* One call; u[0] is XTC's random number if it acts, the next one the draw's. */
static int32_t naive_next(struct naive *v, const int *order, int n_order, const double *u,
                          double u_shift)
{
    v->n = 0;
    v->cut = false;
    for (uint32_t id = 0; id < v->n_vocab; id++)
        if (v->logits[id] > -INFINITY)
            v->c[v->n++] = (struct one){clamp((double)v->logits[id]), 0, (int32_t)id};
    for (int i = 0; i < n_order; i++) {
        if (!has_work(v->o, order[i])) continue;
        if (order[i] == XTC)
            xtc(v, *u++);
        else
            naive_stages[order[i]].apply(v);
    }
    const double draw = *u + u_shift;
    if (v->o->mirostat == 1) return mirostat_1(v, draw);
    if (v->o->mirostat == 2) return mirostat_2(v, draw);
    if (v->o->adaptive_target >= 0) return adaptive(v, draw);
    return walk(v, draw);
}

/* ---- Random logits, options and orders ---- */

static float random_float(struct sample_random *r, float low, float high)
{
    return low + (high - low) * (float)sample_random_unit(r);
}

enum shape { SMOOTH, PEAKED, TIES, HOLES, EXTREME, SHAPE_COUNT };

static void fill(struct sample_random *r, enum shape shape, uint32_t n, float *logits)
{
    static const float odd[] = {NAN, -INFINITY, 3e38f, -3e38f, 0, -0.0f, 1e-40f, 3.4e38f};
    for (uint32_t i = 0; i < n; i++) {
        float x = random_float(r, -8, 8);
        if (shape == PEAKED) x = x > 7.9f ? x + 6 : x;
        if (shape == TIES) x = floorf(x / 4);
        if (shape == HOLES && sample_random_u32(r) % 2)
            x = sample_random_u32(r) % 2 ? NAN : -INFINITY;
        if (shape == EXTREME && sample_random_u32(r) % 2) x = PICK(r, odd);
        logits[i] = x;
    }
    logits[sample_random_u32(r) % n] = 3.5f; /* one number at least */
}

static bool chance(struct sample_random *r, uint32_t one_in)
{
    return sample_random_u32(r) % one_in == 0;
}

static struct sample_options random_options(struct sample_random *r)
{
    static const float temps[] = {0, 0.3f, 0.8f, 1, 1, 2.5f};
    static const int32_t top_ks[] = {0, 0, 1, 3, 40, 900}, lasts[] = {-1, 0, 7, 64, 1000};
    static const float ps[] = {1, 1, 0.95f, 0.5f, 0.001f, 0}, min_ps[] = {0, 0, 0.05f, 0.4f, 1};
    static const float thresholds[] = {0, 0.02f, 0.1f, 0.5f, 0.6f};
    struct sample_options o = sample_options_default();
    o.temp = PICK(r, temps);
    o.top_k = PICK(r, top_ks);
    o.top_p = PICK(r, ps);
    o.min_p = PICK(r, min_ps);
    o.seed = sample_random_u32(r);
    if (chance(r, 3)) o.dynatemp_range = random_float(r, 0.1f, 1.5f);
    if (chance(r, 2)) o.dynatemp_exponent = random_float(r, 0, 3);
    if (chance(r, 3)) {
        o.repeat_penalty = random_float(r, 0.5f, 2);
        o.frequency_penalty = random_float(r, -1, 1);
        o.presence_penalty = random_float(r, -1, 1);
        o.repeat_last_n = PICK(r, lasts);
    }
    if (chance(r, 3)) {
        o.dry_multiplier = random_float(r, 0.1f, 3);
        o.dry_base = random_float(r, 1, 3);
        o.dry_allowed_length = 1 + (int32_t)(sample_random_u32(r) % 3);
        o.dry_last_n = PICK(r, lasts);
        o.dry_breaker = breakers;
        o.n_dry_breakers = 2;
    }
    o.token_bytes = token_text;
    if (chance(r, 4)) {
        o.mirostat = 1 + (int32_t)(sample_random_u32(r) % 2);
        o.mirostat_tau = random_float(r, 0.5f, 6);
        o.mirostat_eta = random_float(r, 0, 0.5f);
        return o;
    }
    if (chance(r, 4)) o.top_n_sigma = random_float(r, 0.1f, 4);
    if (chance(r, 4)) o.typical_p = PICK(r, ps);
    if (chance(r, 4)) {
        o.xtc_probability = random_float(r, 0.2f, 1);
        o.xtc_threshold = PICK(r, thresholds);
    }
    if (chance(r, 4)) {
        o.adaptive_target = random_float(r, 0, 1);
        o.adaptive_decay = random_float(r, 0, 0.99f);
    }
    return o;
}

/* An order that the options allow, as a list and as text. Returns how many. */
static int random_order(struct sample_random *r, const struct sample_options *o,
                        int order[N_STAGES], char *text, size_t size)
{
    int n = 0, all[N_STAGES];
    bool bounded = false;
    for (int i = 0; i < N_STAGES; i++) all[i] = i;
    for (int i = N_STAGES - 1; i > 0; i--) {
        int k = (int)(sample_random_u32(r) % (uint32_t)(i + 1)), moved = all[i];
        all[i] = all[k];
        all[k] = moved;
    }
    *text = '\0';
    for (int i = 0; i < N_STAGES; i++) {
        const int stage = all[i];
        const bool plain = stage == 3 || stage == 5 || stage == 6 || stage == 8 || stage == INFILL;
        if (plain && chance(r, 4)) continue;
        if (stage == INFILL && !bounded) continue;
        if (stage == 3 && o->top_k > 0) bounded = true;
        order[n++] = stage;
        snprintf(text + strlen(text), size - strlen(text), "%s%s", n > 1 ? i % 2 ? ";" : "," : "",
                 naive_stages[stage].name);
    }
    return n;
}

/* ---- The comparison ---- */

struct trial {
    struct sample_options o;
    int order[N_STAGES], n_order;
    char text[200];
    uint32_t n_vocab;
    bool default_order;
};

/* What the naive chain may say when numbers are too close to call; -2: the id is not among it. */
static bool expected(struct naive *v, const struct trial *t, const double *u, int32_t id)
{
    static const double shifts[] = {0, 3e-6, -3e-6};
    for (int i = 0; i < 9; i++) {
        v->eps = shifts[i / 3];
        if (naive_next(v, t->order, t->n_order, u, shifts[i % 3]) == id) return true;
    }
    v->eps = 0;
    return false;
}

static void compare(struct sample_random *r, struct trial *t, enum shape shape, float *logits,
                    struct one *room)
{
    struct base_error err = BASE_ERROR_INIT;
    static int32_t few_ends[2];
    int n_ends = 0;
    for (int i = 0; i < 2; i++)
        if ((uint32_t)ends[i] < t->n_vocab) few_ends[n_ends++] = ends[i];
    t->o.samplers = t->default_order ? NULL : t->text;
    t->o.end_id = few_ends;
    t->o.n_ends = (size_t)n_ends;
    struct sampler *s = sample_new(&t->o, t->n_vocab, N_CTX, &err);
    if (!s) fail_msg("%s: %s (%s)", err.item, err.text, t->text);
    struct naive v = {.o = &t->o,
                      .n_vocab = t->n_vocab,
                      .c = room,
                      .mu = 2 * (double)t->o.mirostat_tau,
                      .adaptive_weight = 1 / (1 - (double)t->o.adaptive_decay)};
    v.adaptive_sum = (double)t->o.adaptive_target * v.adaptive_weight;
    struct sample_random twin;
    sample_random_seed(&twin, t->o.seed);
    const uint32_t n_words = t->n_vocab < 6 ? t->n_vocab : 6; /* few, so that they repeat */
    for (int i = (int)(sample_random_u32(r) % (MAX_HISTORY - 10)); i > 0; i--) {
        v.history[v.n_history++] = (int32_t)(sample_random_u32(r) % n_words);
        sample_accept(s, v.history[v.n_history - 1]);
    }
    bool draws_xtc = false;
    for (int i = 0; i < t->n_order; i++)
        draws_xtc = draws_xtc || (t->order[i] == XTC && has_work(&t->o, XTC));
    for (int call = 0; call < 3; call++) {
        double u[2] = {0};
        fill(r, shape, t->n_vocab, logits);
        for (int i = 0; i <= draws_xtc; i++) u[i] = sample_random_unit(&twin);
        v.logits = logits;
        const int32_t id = sample_next(s, logits, &err);
        if (!expected(&v, t, u, id))
            fail_msg("%s of %u, shape %d, temp %g+-%g, mirostat %d, adaptive %g: got %d, naive %d",
                     t->text, t->n_vocab, (int)shape, (double)t->o.temp,
                     (double)t->o.dynatemp_range, (int)t->o.mirostat, (double)t->o.adaptive_target,
                     (int)id, (int)naive_next(&v, t->order, t->n_order, u, 0));
        v.mu -= (double)t->o.mirostat_eta * (-log2(v.chosen_p) - (double)t->o.mirostat_tau);
        v.adaptive_sum = v.chosen_p + (double)t->o.adaptive_decay * v.adaptive_sum;
        v.adaptive_weight = 1 + (double)t->o.adaptive_decay * v.adaptive_weight;
        v.history[v.n_history++] = id;
        sample_accept(s, id);
    }
    sample_free(s);
}

static void run_trials(uint64_t seed, int n_trials, const uint32_t *sizes, uint32_t n_sizes)
{
    static const int standard[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    float *logits = malloc(LARGE * sizeof *logits);
    struct one *room = malloc(LARGE * sizeof *room);
    assert_true(logits && room);
    struct sample_random r;
    sample_random_seed(&r, seed);
    for (int i = 0; i < n_trials; i++) {
        struct trial t = {.o = random_options(&r),
                          .n_vocab = sizes[sample_random_u32(&r) % n_sizes]};
        enum shape shape = (enum shape)(i % SHAPE_COUNT);
        t.default_order = chance(&r, 3);
        t.n_order = random_order(&r, &t.o, t.order, t.text, sizeof t.text);
        if (t.default_order || shape == EXTREME) {
            memcpy(t.order, standard, sizeof standard);
            t.n_order = 9;
            t.default_order = true;
            strcpy(t.text, "the default");
        }
        compare(&r, &t, shape, logits, room);
    }
    free(logits);
    free(room);
}

static void every_chain_equals_the_naive_one(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 63, 64, 65, 1000};
    run_trials(5, getenv("INFER_TEST_QUICK") ? 1000 : 6000, sizes, 7);
}

static void large_vocabularies_too(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {LARGE, LARGE - 1, 50257};
    run_trials(6, getenv("INFER_TEST_QUICK") ? 4 : 30, sizes, 3);
}

/* ---- Options ---- */

static struct sampler *make(const struct sample_options *o, uint32_t n_vocab)
{
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = sample_new(o, n_vocab, 64, &err);
    if (!s) fail_msg("%s: %s", err.item, err.text);
    return s;
}

static void refuse(const struct sample_options *o, const char *item)
{
    struct base_error err = BASE_ERROR_INIT;
    assert_null(sample_new(o, 100, 64, &err));
    assert_int_equal(err.code, BASE_USAGE);
    assert_string_equal(err.item, item);
}

static void ranges_are_checked(void **state)
{
    (void)state;
    struct sample_options o;
    static const struct {
        size_t at;
        const char *item;
        float low, high; /* still allowed; infinity: no limit worth a test */
    } cases[] = {
#define CASE(member, item, low, high) {offsetof(struct sample_options, member), item, low, high}
        CASE(temp, "--temp", 0, INFINITY),
        CASE(dynatemp_range, "--dynatemp-range", 0, INFINITY),
        CASE(dynatemp_exponent, "--dynatemp-exp", 0, 1000),
        CASE(top_p, "--top-p", 0, 1),
        CASE(min_p, "--min-p", 0, 1),
        CASE(typical_p, "--typical", 0, 1),
        CASE(top_n_sigma, "--top-n-sigma", -1, INFINITY),
        CASE(xtc_probability, "--xtc-probability", 0, 1),
        CASE(xtc_threshold, "--xtc-threshold", 0, 1),
        CASE(dry_multiplier, "--dry-multiplier", 0, INFINITY),
        CASE(dry_base, "--dry-base", 1, INFINITY),
        CASE(mirostat_tau, "--mirostat-ent", 0, 1000),
        CASE(mirostat_eta, "--mirostat-lr", 0, 1000),
        CASE(adaptive_target, "--adaptive-target", -1, 1),
        CASE(adaptive_decay, "--adaptive-decay", 0, 0.99f),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const float good[2] = {cases[i].low, cases[i].high < INFINITY ? cases[i].high : 5};
        const float bad[4] = {nextafterf(cases[i].low, -INFINITY),
                              cases[i].high < INFINITY ? nextafterf(cases[i].high, INFINITY) : NAN,
                              NAN, -INFINITY};
        for (int k = 0; k < 2; k++) {
            o = sample_options_default();
            *(float *)((char *)&o + cases[i].at) = good[k];
            sample_free(make(&o, 100));
        }
        for (int k = 0; k < 4; k++) {
            o = sample_options_default();
            *(float *)((char *)&o + cases[i].at) = bad[k];
            refuse(&o, cases[i].item);
        }
    }
    o = sample_options_default();
    o.mirostat = 3;
    refuse(&o, "--mirostat");
    o = sample_options_default();
    o.dry_allowed_length = 0;
    refuse(&o, "--dry-allowed-length");
    o = sample_options_default();
    o.dry_last_n = -2;
    refuse(&o, "--dry-penalty-last-n");
    o = sample_options_default();
    o.dry_breaker = &(struct sample_text){"", 0};
    o.n_dry_breakers = 1;
    refuse(&o, "--dry-sequence-breaker");
}

static void names_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {
        "top_k", "Top-K;TEMP", "topk,minp;nucleus,typ",
        " penalties ; dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
        "top_k;infill;adaptive-p"};
    static const char *const bad[] = {"",           "top_k;",          "best",   "top_k;;min_p",
                                      "top_",       "top_kk",          "infill", "infill;top_k",
                                      "top_k;topk", "temp;temperature"};
    struct sample_options o = sample_options_default();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        o.samplers = good[i];
        sample_free(make(&o, 100));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o.samplers = bad[i];
        refuse(&o, "--samplers");
    }
    o.samplers = "top_k;frobnicate";
    struct base_error err = BASE_ERROR_INIT;
    assert_false(sample_options_check(&o, &err));
    assert_non_null(strstr(err.text, "'frobnicate'"));
}

static void options_that_could_not_act_are_refused(void **state)
{
    (void)state;
    struct sample_options o = sample_options_default();
    o.samplers = "top_k;temperature";
    sample_free(make(&o, 100));
    o.xtc_probability = 0.5f;
    refuse(&o, "--samplers");
    o = sample_options_default();
    o.mirostat = 2;
    sample_free(make(&o, 100)); /* the usual top-k and the like give way */
    o.typical_p = 0.9f;
    refuse(&o, "--mirostat");
    o = sample_options_default();
    o.bias = &(struct sample_bias){100, 1};
    o.n_biases = 1;
    refuse(&o, "--logit-bias");
    o.bias = &(struct sample_bias){5, NAN};
    refuse(&o, "--logit-bias");
    o.bias = &(struct sample_bias){5, INFINITY};
    refuse(&o, "--logit-bias");
}

static void biases_move_and_forbid(void **state)
{
    (void)state;
    static const struct sample_bias bias[] = {{1, -INFINITY}, {3, 2}, {3, 2.5f}, {4, 100}};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.temp = 0;
    o.bias = bias;
    o.n_biases = 4;
    struct sampler *s = make(&o, 5);
    const float logits[5] = {5, 9, 1, 1, -INFINITY}; /* no bias makes the impossible possible */
    assert_int_equal(sample_next(s, logits, &err), 3);
    sample_restrict(s, &(const uint64_t){1 << 1 | 1 << 2});
    assert_int_equal(sample_next(s, logits, &err), 2);
    sample_restrict(s, &(const uint64_t){1 << 1});
    assert_int_equal(sample_next(s, logits, &err), -1);
    assert_string_equal(err.item, "constraint");
    sample_free(s);
}

/* Two candidates are left whose order decides whether the repeated best one is among them. */
static void the_order_is_honoured(void **state)
{
    (void)state;
    const float logits[4] = {10, 9, 8, 7};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.top_k = 2;
    o.repeat_penalty = 10;
    bool seen[2][4] = {{false}};
    for (int run = 0; run < 2; run++) {
        o.samplers = run == 0 ? "penalties;top_k" : "top_k;penalties";
        o.seed = 4;
        struct sampler *s = make(&o, 4);
        sample_accept(s, 0);
        for (int i = 0; i < 20000; i++) seen[run][sample_next(s, logits, &err)] = true;
        sample_free(s);
    }
    assert_true(!seen[0][0] && seen[0][1] && seen[0][2] && !seen[0][3]);
    assert_true(seen[1][0] && seen[1][1] && !seen[1][2] && !seen[1][3]);
}

/* A token repeats what a breaker has cut off from it: no penalty; without the breaker there is. */
static void breakers_end_repetitions(void **state)
{
    (void)state;
    static const int32_t text[] = {1,  4, 7,
                                   30, 1, 4}; /* a, aa, ... ; 30: baca has breakers in it */
    const float logits[40] = {[7] = 10, [5] = 9};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer of_1 = BASE_BUFFER_INIT;
    token_text(NULL, 1, &of_1);
    o.temp = 0;
    o.token_bytes = token_text;
    o.dry_multiplier = 5;
    for (int run = 0; run < 2; run++) {
        const struct sample_text breaker = {of_1.data, of_1.size};
        o.dry_breaker = &breaker; /* token 1 is one: the tokens after it are too few to count */
        o.n_dry_breakers = (size_t)run;
        struct sampler *s = make(&o, 40);
        for (int i = 0; i < 6; i++) sample_accept(s, text[i]);
        assert_int_equal(sample_next(s, logits, &err), run == 0 ? 5 : 7);
        sample_free(s);
    }
    base_buffer_free(&of_1);
}

/* ---- Distributions ---- */

/* Pearson's chi-square of DRAWS draws; a fixed seed, so this holds or does not. With 15 degrees of
 * freedom 99.99 % of good generators stay below 44.3. */
static double chi_square(const struct sample_options *o, const float *logits, int n,
                         const double *p)
{
    enum { DRAWS = 100000 };
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = make(o, (uint32_t)n);
    int count[64] = {0};
    double chi = 0;
    for (int i = 0; i < DRAWS; i++) count[sample_next(s, logits, &err)]++;
    for (int i = 0; i < n; i++) {
        if (p[i] <= 0) assert_int_equal(count[i], 0);
        if (p[i] > 0) chi += pow(count[i] - DRAWS * p[i], 2) / (DRAWS * p[i]);
    }
    sample_free(s);
    return chi;
}

static void draws_follow_the_distribution(void **state)
{
    (void)state;
    enum { N = 16 };
    float logits[N];
    double p[N], total = 0;
    for (int i = 0; i < N; i++) logits[i] = (float)((i * 7) % N) / 4;
    struct sample_options o = sample_options_default();
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.temp = 1.3f;
    for (int i = 0; i < N; i++) total += p[i] = exp((double)logits[i] / (double)o.temp);
    for (int i = 0; i < N; i++) p[i] /= total;
    for (int cut = 0; cut < 2; cut++) { /* by id, by rank */
        o.top_k = cut ? N : 0;
        for (o.seed = 1; o.seed < 4; o.seed++) assert_true(chi_square(&o, logits, N, p) < 44.3);
    }
    /* XTC drops what is likelier than the threshold, save the last of it, four times in five. */
    o.xtc_probability = 0.8f;
    o.xtc_threshold = 0.05f;
    o.samplers = "temperature;xtc";
    int last = -1;
    double left = 1, mixed[N];
    for (int i = 0; i < N; i++)
        if (p[i] >= 0.05 && (last < 0 || p[i] < p[last])) last = i;
    for (int i = 0; i < N; i++)
        if (p[i] > p[last]) left -= p[i];
    for (int i = 0; i < N; i++) mixed[i] = 0.2 * p[i] + (p[i] > p[last] ? 0 : 0.8 * p[i] / left);
    for (o.seed = 1; o.seed < 4; o.seed++) assert_true(chi_square(&o, logits, N, mixed) < 44.3);
}

/* Mirostat's purpose: the mean surprise of what is drawn comes close to tau. */
static void mirostat_reaches_its_target(void **state)
{
    (void)state;
    enum { N = 5000, STEPS = 4000 };
    float *logits = malloc(N * sizeof *logits);
    assert_non_null(logits);
    double total = 0;
    for (int i = 0; i < N; i++) {
        logits[i] = (float)(-1.1 * log(i + 1.0));
        total += exp((double)logits[i]);
    }
    for (int version = 1; version < 3; version++) {
        struct sample_options o = sample_options_default();
        struct base_error err = BASE_ERROR_INIT;
        o.temp = 1;
        o.mirostat = version;
        o.mirostat_tau = 3;
        struct sampler *s = make(&o, N);
        double surprise = 0;
        for (int i = 0; i < STEPS; i++) {
            const int32_t id = sample_next(s, logits, &err);
            surprise -= ((double)logits[id] - log(total)) / log(2) / STEPS;
        }
        /* mirostat measures in the cut distribution: less than in the whole */
        assert_true(surprise > 3 && surprise < 5.5);
        sample_free(s);
    }
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chain_equals_the_naive_one),
        cmocka_unit_test(large_vocabularies_too),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(options_that_could_not_act_are_refused),
        cmocka_unit_test(biases_move_and_forbid),
        cmocka_unit_test(the_order_is_honoured),
        cmocka_unit_test(breakers_end_repetitions),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(mirostat_reaches_its_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
