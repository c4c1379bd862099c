/* quant/encode/vector_fit.c: the search for scales and entries; see quant/encode/vector_fit.h.
 *
 * d of the row is first that with which the largest of the sub-blocks' scales is representable.
 * Each sub-block gets the best of several scales near its root mean square, with the entries found
 * for it; then d is the best one for all scales and entries, by least squares. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/encode/vector_lanes.inc"

FIT_INLINE void widen(const int8_t *value, lanes *out)
{
    for (int l = 0; l < WIDTH; l++) (*out)[l] = value[l];
}

VECTOR_SEARCH(quant_vector_search_scalar)

/* ---- Books ---- */

enum { MAX_VECTOR = 8, ALL_VALUES = 256, ZERO = 128 };

/* The level of each value, and the ends of the levels: as many values of vectors in each. */
static void divide_values(struct quant_vectors *book, uint8_t level[ALL_VALUES])
{
    int count[ALL_VALUES] = {0}, sum = 0;
    int8_t v[MAX_VECTOR];
    for (int e = 0; e < book->n; e++) {
        book->vector(e, v);
        for (int i = 0; i < book->len; i++) count[v[i] + ZERO]++;
    }
    for (int l = 0; l < book->n_levels; l++) book->low[l] = ALL_VALUES;
    for (int i = 0; i < ALL_VALUES; i++) {
        if (!count[i]) continue;
        const int l = (int)((int64_t)sum * book->n_levels / (book->n * book->len));
        level[i] = (uint8_t)l;
        if ((float)(i - ZERO) < book->low[l]) book->low[l] = (float)(i - ZERO);
        book->high[l] = (float)(i - ZERO);
        sum += count[i];
    }
}

static int cell_of(const struct quant_vectors *book, const uint8_t level[ALL_VALUES],
                   const int8_t *v)
{
    int half[2] = {0};
    for (int i = book->len - 1; i >= 0; i--) {
        int *to = &half[i >= book->len / 2];
        *to = *to * book->n_levels + level[v[i] + ZERO];
    }
    return half[0] * book->n_halves + half[1];
}

void quant_vectors_fill(struct quant_vectors *book)
{
    uint32_t next[VECTOR_HALVES * VECTOR_HALVES];
    uint8_t level[ALL_VALUES] = {0};
    int8_t v[MAX_VECTOR];
    const int cells = book->n_halves * book->n_halves, stride = book->n + VECTOR_PADDING;
    divide_values(book, level);
    for (int e = 0; e < book->n; e++) {
        book->vector(e, v);
        book->first[cell_of(book, level, v) + 1]++;
    }
    for (int c = 0; c < cells; c++) {
        book->first[c + 1] += book->first[c];
        next[c] = book->first[c];
    }
    for (int e = 0; e < stride; e++) { /* the padding repeats a vector */
        const int entry = e < book->n ? e : 0;
        book->vector(entry, v);
        const uint32_t at = e < book->n ? next[cell_of(book, level, v)]++ : (uint32_t)e;
        book->entry[at] = (uint16_t)entry;
        for (int i = 0; i < book->len; i++) book->value[i * stride + (int)at] = v[i];
    }
}

/* ---- Sub-blocks ---- */

enum { SUB_LEN = FIT_LEN / VECTOR_SUBS };

/* A super-block: elements (magnitudes, if the form has them) and weights. */
struct elements {
    float x[FIT_LEN], w[FIT_LEN];
    float unit; /* of the weights */
};

/* Multiplies weights, of `tempered` forms their powers of 0.75, by sqrt(mean square + x^2). */
static void weigh_by_root(struct elements *e, bool tempered)
{
    float lane[QUANT_FIT_LANES] = {0};
    for (int i = 0; i < FIT_LEN; i++) lane[i % QUANT_FIT_LANES] += e->x[i] * e->x[i];
    const float square = quant_fit_sum(lane) / (float)FIT_LEN;
    for (int i = 0; i < FIT_LEN; i++) {
        if (tempered) e->w[i] = sqrtf(e->w[i] * sqrtf(e->w[i]));
        e->w[i] *= sqrtf(square + e->x[i] * e->x[i]);
    }
}

static bool prepare_elements(const struct quant_vector_form *form, const float *in,
                             const float *importance, struct elements *e, uint8_t *sign)
{
    if (!quant_fit_prepare(FIT_LEN, in, importance, form->by_size, e->x, e->w)) return false;
    if (form->by_root && importance) weigh_by_root(e, form->tempered);
    e->unit = importance ? 0.0f : 1.0f;
    for (int i = 0; importance && i < FIT_LEN; i++)
        if (importance[i] > e->unit && importance[i] < INFINITY) e->unit = importance[i];
    for (int i = 0; form->magnitudes && i < FIT_LEN; i++) {
        if (e->x[i] < 0.0f) sign[i % 32] |= (uint8_t)(1 << i / 32);
        e->x[i] = fabsf(e->x[i]);
    }
    return true;
}

static int scale_at(const struct quant_vector_form *form, int number)
{
    return form->scales ? form->scales[number] : form->first_scale + number;
}

/* The number of the scale nearest to `exact` with its sign; 0 has either. -1: none. */
static int nearest_scale(const struct quant_vector_form *form, float exact)
{
    int nearest = -1;
    float least = INFINITY;
    for (int i = 0; i < form->n_scales; i++) {
        const float scale = (float)scale_at(form, i), far = fabsf(scale - exact);
        if (scale * exact < 0.0f || !(far < least)) continue;
        least = far;
        nearest = i;
    }
    return nearest;
}

/* Scales are tried in a range at least this wide. d is such that this part of the largest scale of
 * a row is representable: smaller ones then are denser. */
#define MIN_RANGE 1.8f
#define PART      0.75f

/* The scales between which those of sub-block s are tried. */
struct scale_range {
    float low, high;
};

static struct scale_range find_range(const struct quant_vector_form *form, const struct elements *e,
                                     int s)
{
    float wxx = 0.0f, w = 0.0f, largest = 0.0f;
    for (int i = s * SUB_LEN; i < (s + 1) * SUB_LEN; i++) {
        wxx += e->w[i] * (e->x[i] * e->x[i]);
        w += e->w[i];
        if (fabsf(e->x[i]) > largest) largest = fabsf(e->x[i]);
    }
    const float low = sqrtf(wxx / w) / form->low, high = largest / form->high;
    return (struct scale_range){low, high > low * MIN_RANGE ? high : low * MIN_RANGE};
}

/* The choice for a sub-block. */
struct vector_choice {
    float error;
    int scale, book;
    uint16_t entry[SUB_LEN / 2];
};

/* Replaces *best by the entries found for a scale if these are better. */
static void try_scale(const struct quant_search *search, const struct quant_vector_form *form,
                      const struct elements *e, int s, float d, int number, int book_number,
                      struct vector_choice *best)
{
    const struct quant_vectors *const book = form->book[book_number];
    struct vector_choice c = {.scale = number, .book = book_number};
    const float scale = d * (float)scale_at(form, number), inverse = quant_fit_inverse(scale);
    const float square = scale * scale;
    for (int g = 0; inverse != 0.0f && g < SUB_LEN / book->len; g++) {
        const int first = s * SUB_LEN + g * book->len;
        float x[MAX_VECTOR], limit = INFINITY;
        for (int i = 0; i < book->len; i++) x[i] = e->x[first + i] * inverse;
        if (best->error < INFINITY) limit = (best->error - c.error) * quant_fit_inverse(square);
        c.error += square * search->vector(book, x, e->w + first, limit, &c.entry[g]);
        if (!(c.error < best->error)) return;
    }
    for (int i = s * SUB_LEN; inverse == 0.0f && i < (s + 1) * SUB_LEN; i++)
        c.error += e->w[i] * (e->x[i] * e->x[i]);
    if (c.error < best->error) *best = c;
}

/* Adds the sums whose quotient is the best d. */
static void add_sums(const struct quant_vector_form *form, const struct elements *e, int s,
                     const struct vector_choice *c, float *up, float *down)
{
    const struct quant_vectors *const book = form->book[c->book];
    float xv = 0.0f, vv = 0.0f;
    int8_t v[MAX_VECTOR];
    for (int i = 0; i < SUB_LEN; i++) {
        if (i % book->len == 0) book->vector(c->entry[i / book->len], v);
        const float value = (float)(v[i % book->len] * scale_at(form, c->scale));
        xv += e->w[s * SUB_LEN + i] * e->x[s * SUB_LEN + i] * value;
        vv += e->w[s * SUB_LEN + i] * value * value;
    }
    *up += e->unit * xv;
    *down += e->unit * vv;
}

/* Tries the scale that is the best one for the entries of *best, as long as these get better. */
static void refine(const struct quant_search *search, const struct quant_vector_form *form,
                   const struct elements *e, int s, float d, struct vector_choice *best)
{
    for (int round = 0; round < 3; round++) {
        float up = 0.0f, down = 0.0f;
        add_sums(form, e, s, best, &up, &down);
        const float ratio = up * quant_fit_inverse(down) * quant_fit_inverse(d);
        const int number = nearest_scale(form, ratio * (float)scale_at(form, best->scale));
        if (number < 0 || number == best->scale) return;
        try_scale(search, form, e, s, d, number, best->book, best);
        if (best->scale != number) return;
    }
}

static void choose(const struct quant_search *search, const struct quant_vector_form *form,
                   const struct elements *e, int s, float d, struct vector_choice *best)
{
    const struct scale_range range = find_range(form, e, s);
    const float inverse = quant_fit_inverse(d);
    const float step = (range.high - range.low) / (float)(form->n_trials - 1);
    *best = (struct vector_choice){.error = INFINITY, .scale = nearest_scale(form, 0.0f)};
    for (int book = 0; book < 2 && form->book[book]; book++)
        for (int sign = 1; sign >= -1; sign -= 2) {
            int last = -1;
            for (int i = 0; i < form->n_trials; i++) {
                const float exact = (range.low + (float)i * step) * inverse * (float)sign;
                const int number = nearest_scale(form, exact);
                if (number >= 0 && number != last)
                    try_scale(search, form, e, s, d, number, book, best);
                last = number;
            }
        }
    refine(search, form, e, s, d, best);
}

/* ---- Rows ---- */

static float round_d(const struct quant_vector_form *form, float d)
{
    return form->header_bytes == 2 ? quant_f16_to_f32(quant_fit_half(d)) : d;
}

static void put_d(const struct quant_vector_form *form, float d, void *row)
{
    const uint16_t half = d == d ? quant_fit_half(d) : FIT_NAN;
    memcpy(row, form->header_bytes == 2 ? (const void *)&half : &d, form->header_bytes);
}

/* NaN if an element is not finite. */
static float first_d(const struct quant_vector_form *form, int64_t k, const float *in,
                     const float *importance)
{
    float largest = 0.0f;
    struct elements e;
    struct quant_vector_fit fit = {0};
    for (int64_t b = 0; b < k; b += FIT_LEN) {
        if (!prepare_elements(form, in + b, importance ? importance + b : NULL, &e, fit.sign))
            return NAN;
        for (int s = 0; s < VECTOR_SUBS; s++) {
            const float scale = find_range(form, &e, s).high;
            if (scale > largest) largest = scale;
        }
    }
    return PART * largest / (float)scale_at(form, form->n_scales - 1);
}

void quant_vector_encode(const struct quant_search *search, const struct quant_vector_form *form,
                         int64_t k, const float *in, const float *importance, void *row)
{
    char *out = (char *)row + form->header_bytes;
    float d = first_d(form, k, in, importance), up = 0.0f, down = 0.0f;
    memset(out, 0, (size_t)(k / FIT_LEN) * form->block_bytes);
    put_d(form, d, row);
    if (d != d) return;
    d = round_d(form, d);
    for (int i = 0; i < 2 && form->book[i]; i++)
        pthread_once(&form->book[i]->once, form->book[i]->fill);
    for (int64_t b = 0; b < k; b += FIT_LEN, out += form->block_bytes) {
        struct elements e;
        struct quant_vector_fit fit = {0};
        prepare_elements(form, in + b, importance ? importance + b : NULL, &e, fit.sign);
        for (int s = 0; s < VECTOR_SUBS; s++) {
            const int groups = SUB_LEN / form->book[0]->len;
            struct vector_choice c;
            choose(search, form, &e, s, d, &c);
            add_sums(form, &e, s, &c, &up, &down);
            fit.scale[s] = (uint8_t)c.scale;
            fit.book[s] = (uint8_t)c.book;
            memcpy(fit.entry + s * groups, c.entry, (size_t)groups * sizeof *c.entry);
        }
        form->pack(&fit, out);
    }
    if (down > 0.0f && up > 0.0f) put_d(form, up / down, row);
}
