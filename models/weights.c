/* models/weights.c: binds tensors by name and shape. See models/weights.h. */
#include "models/weights.h"
#include "base/interrupt.h"
#include "base/os.h"
#include "base/size.h"
#include "quant/columns.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_ALIGN = 64, HUGE_PAGE = 2 << 20, MOST = 4 };

/* The form in which a tensor is bound: as in the file, as F32, as transposed F32, as F32 without
 * dimensions of 1, or as in the file, I32 or I64. */
enum form { AS_IT_IS, AS_FLOATS, AS_TAPS, AS_SLICES, AS_IDS, AS_LONGS };

static enum form form_of(enum model_tensor_kind kind)
{
    switch (kind) {
    case MODEL_TAPS:
        return AS_TAPS;
    case MODEL_SLICES:
        return AS_SLICES;
    case MODEL_IDS:
        return AS_IDS;
    case MODEL_LONGS:
        return AS_LONGS;
    case MODEL_VECTOR:
    case MODEL_BIAS:
    case MODEL_SCALE:
    case MODEL_NORM:
        return AS_FLOATS;
    default:
        return AS_IT_IS;
    }
}

static bool is_ids(enum form form)
{
    return form == AS_IDS || form == AS_LONGS;
}

static bool is_floats(enum form form)
{
    return form != AS_IT_IS && !is_ids(form);
}

struct binder {
    struct model_weights *w;
    const struct model_params *p;
    const struct gguf_file *file;
    bool *used; /* [tensors of the file]: a row names this tensor */
    struct base_error *err;
    const struct engine_place *place; /* of the row's tensors */
};

/* Converts a vector to F32 when the model is opened: the graph's vector arithmetic is in F32. */
static float *widen(struct binder *b, const struct gguf_tensor *t, const char *name)
{
    const uint64_t rows = t->ne[1] * t->ne[2] * t->ne[3], n = t->ne[0] * rows;
    const char *row = t->data;
    float *values = malloc(n * sizeof *values);
    if (!values)
        return base_null(base_fail_at(b->err, BASE_NO_MEMORY, name, -1, "no memory for %llu values",
                                      (unsigned long long)n));
    for (uint64_t r = 0; r < rows; r++, row += quant_row_size(t->type, (int64_t)t->ne[0]))
        t->type->scalar.decode(0, (int64_t)t->ne[0], row, values + r * t->ne[0]);
    b->w->copies[b->w->n_copies++] = values;
    return values;
}

/* Separates the rows of an interleaved type. Of a plan only their bytes are counted. */
static const void *separate(struct binder *b, const struct gguf_tensor *t, const char *name)
{
    const struct quant_type *plain = quant_type_plain(t->type, t->ne[0]);
    const uint64_t rows = t->ne[1] * t->ne[2], group = t->type->interleave;
    uint64_t bytes, total, huge = 0;
    char *data = NULL;
    if (quant_row_bytes(plain, t->ne[0], &bytes) && base_mul(bytes, rows, &total) &&
        base_add(b->w->separated_bytes, total, &b->w->separated_bytes)) {
        if (b->w->plans_rows) return t->data;
        const uint64_t align = total < HUGE_PAGE ? COPY_ALIGN : HUGE_PAGE;
        huge = total / HUGE_PAGE * HUGE_PAGE;
        if (base_align_up(total, align, &total)) data = aligned_alloc(align, total);
    }
    if (!data)
        return base_null(base_fail_at(b->err, BASE_NO_MEMORY, name, -1, "no memory for its rows"));
    b->w->copies[b->w->n_copies++] = data;
    if (huge > 0) base_os_huge_pages(data, huge); /* each token reads all rows */
    for (uint64_t r = 0; r < rows && base_goes_on(b->err); r++)
        quant_row_separate(t->type, plain, 0, (int64_t)t->ne[0],
                           (const char *)t->data + r / group * group * (t->size / rows),
                           (int)(r % group), data + r * bytes);
    return base_goes_on(b->err) ? data : NULL;
}

/* Transposes the taps of a convolution, F32 [channels][K], to [K][channels]. */
static float *turn(struct binder *b, const float *taps, int64_t n_taps, int64_t channels,
                   const char *name)
{
    float *values = malloc((size_t)(n_taps * channels) * sizeof *values);
    if (!values)
        return base_null(base_fail_at(b->err, BASE_NO_MEMORY, name, -1, "no memory for %lld values",
                                      (long long)(n_taps * channels)));
    b->w->copies[b->w->n_copies++] = values;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < n_taps; k++) values[k * channels + c] = taps[c * n_taps + k];
    return values;
}

/* Returns the dimension of ne[n] after *i that is not 1, and sets *i past it; 1 if there is
 * none. */
static int64_t next_dim(const int64_t *ne, int n, int *i)
{
    while (*i < n && ne[*i] == 1) ++*i;
    return *i < n ? ne[(*i)++] : 1;
}

/* Whether the shapes are equal except for dimensions of 1: files have [H] and [H][1], for
 * example. */
static bool same_shape(const struct gguf_tensor *t, const int64_t ne[3])
{
    const int64_t file[4] = {(int64_t)t->ne[0], (int64_t)t->ne[1], (int64_t)t->ne[2],
                             (int64_t)t->ne[3]};
    int i = 0, k = 0;
    for (int d = 0; d < 4; d++)
        if (next_dim(file, 4, &i) != next_dim(ne, 3, &k)) return false;
    return true;
}

static bool check_shape(struct binder *b, const struct gguf_tensor *t, const char *name,
                        const int64_t ne[3], enum form form)
{
    if (!same_shape(t, ne))
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "shape [%llu][%llu][%llu], expected [%lld][%lld][%lld]",
                            (unsigned long long)t->ne[2], (unsigned long long)t->ne[1],
                            (unsigned long long)t->ne[0], (long long)ne[2], (long long)ne[1],
                            (long long)ne[0]);
    const struct quant_type *ids = quant_type_by_id(form == AS_LONGS ? QUANT_I64 : QUANT_I32);
    const bool computes = t->type->act || quant_type_plain(t->type, t->ne[0]);
    if (is_ids(form) ? t->type != ids : !computes)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "tensors of type %s are not supported in computations", t->type->name);
    return true;
}

void model_tensor_name(const struct model_params *p, const char *prefix, const char *row,
                       const char *part, char name[MODEL_TENSOR_NAME])
{
    char usual[MODEL_TENSOR_NAME];
    const char *here = usual;
    snprintf(usual, sizeof usual, "%s.%s", row, part);
    const struct model_alias *alias = p->arch->alias;
    for (int i = 0; i < MODEL_MAX_ALIASES && alias[i].usual; i++)
        if (strcmp(alias[i].usual, usual) == 0) here = alias[i].here;
    snprintf(name, MODEL_TENSOR_NAME, "%s%s", prefix, here);
}

static bool mark_used(struct binder *b, const struct gguf_tensor *t, const char *name)
{
    bool *used = &b->used[t - gguf_tensor_at(b->file, 0)];
    if (*used)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "two parts of the model would share this tensor");
    return *used = true;
}

/* Writes the name of a tensor in the file: the architecture's alias, or the usual name if the file
 * has only that. */
static void tensor_name(const struct binder *b, const char *prefix, const char *row,
                        const char *part, char name[MODEL_TENSOR_NAME])
{
    char usual[MODEL_TENSOR_NAME];
    model_tensor_name(b->p, prefix, row, part, name);
    snprintf(usual, sizeof usual, "%s%s.%s", prefix, row, part);
    if (name[strlen(prefix)] && !gguf_tensor_find(b->file, name) &&
        gguf_tensor_find(b->file, usual))
        memcpy(name, usual, sizeof usual);
}

/* Returns where the tensors of a row lie. An encoder before a decoder is in place 0. */
static const struct engine_place *place_of(const struct binder *b,
                                           const struct model_tensor_row *row, const char *prefix)
{
    uint32_t layer;
    const char *own = b->p->arch->prefix ? b->p->arch->prefix : "";
    const size_t n = strlen(own);
    if (row->kind == MODEL_STACK && b->p->experts_here) return NULL;
    if (row->end != MODEL_NO_END) return row->end == MODEL_OUTPUT ? b->p->ends.place : NULL;
    const bool is_in_layer =
        strncmp(prefix, own, n) == 0 && sscanf(prefix + n, "blk.%u.", &layer) == 1;
    return is_in_layer ? b->p->layer[layer].place : NULL;
}

/* Returns the next free tensor. engine_tensor_init zeroes it, so its place follows in upload(). */
static struct engine_tensor *new_tensor(struct binder *b)
{
    b->w->place[b->w->n_tensors] = b->place;
    return &b->w->tensors[b->w->n_tensors];
}

/* Binds one tensor of the shape [ne2][ne1][ne0]. *out remains NULL if the file does not have it. */
static bool bind(struct binder *b, const char *name, const int64_t ne[3], enum form form,
                 struct engine_tensor **out)
{
    const struct gguf_tensor *t = gguf_tensor_find(b->file, name);
    if (!base_goes_on(b->err)) return false;
    if (!t) return true;
    if (!check_shape(b, t, name, ne, form)) return false;
    if (!mark_used(b, t, name)) return false;
    const struct quant_type *type = t->type;
    const void *data = t->data;
    if (is_floats(form) && !type->act)
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "a vector of type %s is not supported", type->name);
    if (!type->act && !is_ids(form)) {
        type = quant_type_plain(type, t->ne[0]);
        data = separate(b, t, name);
        if (!data) return false;
    }
    if (is_floats(form) && type->id != QUANT_F32) {
        type = quant_type_by_id(QUANT_F32);
        data = widen(b, t, name);
        if (!data) return false;
    }
    const int64_t turned[3] = {ne[1] * ne[2], ne[0], 1};
    if (form == AS_TAPS) {
        data = turn(b, data, ne[0], ne[1] * ne[2], name);
        if (!data) return false;
        ne = turned;
    }
    struct engine_tensor *tensor = new_tensor(b);
    /* The mapped file is read-only: the engine writes only to leaves that are inputs. */
    if (!engine_tensor_init(tensor, type, 3, ne, (void *)data, name, b->err)) return false;
    b->w->n_tensors++;
    *out = tensor;
    return true;
}

/* ---- Experts as separate tensors, in old files ---- */

/* Finds expert e of a stack and writes its name to `name`: "ffn_up.E" for the stack
 * "ffn_up_exps". */
static const struct gguf_tensor *find_expert(const struct binder *b, const char *prefix,
                                             const char *stack, int64_t e,
                                             char name[MODEL_TENSOR_NAME])
{
    static const char end[] = "_exps";
    const size_t n = strlen(stack), n_end = sizeof end - 1;
    if (n <= n_end || strcmp(stack + n - n_end, end) != 0) return NULL;
    snprintf(name, MODEL_TENSOR_NAME, "%s%.*s.%lld.weight", prefix, (int)(n - n_end), stack,
             (long long)e);
    return gguf_tensor_find(b->file, name);
}

/* Checks all experts of a stack [ne2][ne1][ne0]. *distance: bytes from one expert to the next; 0 if
 * the distances differ. */
static bool check_experts(struct binder *b, const char *prefix, const char *stack,
                          const int64_t ne[3], int64_t *distance)
{
    char name[MODEL_TENSOR_NAME];
    const struct gguf_tensor *first = find_expert(b, prefix, stack, 0, name);
    bool even = true;
    *distance = (int64_t)first->size;
    for (int64_t e = 0; e < ne[2]; e++) {
        const struct gguf_tensor *t = find_expert(b, prefix, stack, e, name);
        if (!base_goes_on(b->err)) return false;
        if (!t) return base_fail_at(b->err, BASE_MODEL, name, -1, "missing tensor");
        if (!check_shape(b, t, name, (int64_t[]){ne[0], ne[1], 1}, AS_IT_IS) ||
            !mark_used(b, t, name))
            return false;
        if (!t->type->act)
            return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                                "experts of type %s are not supported in separate tensors",
                                t->type->name);
        if (t->type != first->type)
            return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                                "type %s, but the first expert's is %s", t->type->name,
                                first->type->name);
        const int64_t at = (int64_t)((uintptr_t)t->data - (uintptr_t)first->data);
        if (e == 1) *distance = at;
        even = even && at == e * *distance;
    }
    if (!even || *distance < (int64_t)first->size) *distance = 0;
    return true;
}

/* Copies the n experts into one array. */
static void *copy_experts(struct binder *b, const char *prefix, const char *stack, int64_t n)
{
    char name[MODEL_TENSOR_NAME];
    const size_t size = (size_t)find_expert(b, prefix, stack, 0, name)->size;
    uint64_t total;
    char *data = NULL;
    if (base_mul(size, (uint64_t)n, &total) && base_align_up(total, COPY_ALIGN, &total))
        data = aligned_alloc(COPY_ALIGN, total);
    if (!data)
        return base_null(base_fail_at(b->err, BASE_NO_MEMORY, name, -1,
                                      "no memory for %lld experts", (long long)n));
    b->w->copies[b->w->n_copies++] = data;
    for (int64_t e = 0; e < n; e++)
        memcpy(data + (size_t)e * size, find_expert(b, prefix, stack, e, name)->data, size);
    return data;
}

/* Binds a stack [ne2][ne1][ne0] of separate experts: in place if they are at equal distances in the
 * file, otherwise as a copy. *out remains NULL if the file does not have them. */
static bool bind_experts(struct binder *b, const char *prefix, const char *stack,
                         const int64_t ne[3], struct engine_tensor **out)
{
    char name[MODEL_TENSOR_NAME];
    const struct gguf_tensor *first = find_expert(b, prefix, stack, 0, name);
    int64_t distance;
    if (!first) return true;
    if (!check_experts(b, prefix, stack, ne, &distance)) return false;
    void *data = distance ? (void *)first->data : copy_experts(b, prefix, stack, ne[2]);
    struct engine_tensor *tensor = new_tensor(b);
    if (!data || !engine_tensor_init(tensor, first->type, 3, ne, data, name, b->err)) return false;
    if (distance) {
        tensor->nb[2] = distance;
        tensor->nb[3] = distance * ne[2];
    }
    b->w->n_tensors++;
    *out = tensor;
    return true;
}

/* ---- Copies by columns ---- */

/* Returns copies by columns of w's matrices, of `bytes` bytes each and `all` together, or NULL:
 * without an error if a weight is not finite. */
static void *make_columns(struct binder *b, const struct engine_tensor *w, uint64_t bytes,
                          uint64_t all)
{
    uint64_t size;
    char *data = base_align_up(all, COPY_ALIGN, &size) ? aligned_alloc(COPY_ALIGN, size) : NULL;
    if (!data)
        return base_null(
            base_fail_at(b->err, BASE_NO_MEMORY, w->name, -1, "no memory for its copy by columns"));
    b->w->copies[b->w->n_copies++] = data;
    for (int64_t e = 0; e < w->ne[2]; e++)
        for (int64_t r = 0; r < w->ne[1]; r += QUANT_COLUMNS_ROWS)
            if (!base_goes_on(b->err) ||
                !quant_columns_make(w->type, w->ne[0], w->ne[1], w->data + e * w->nb[2], w->nb[1],
                                    r, QUANT_COLUMNS_ROWS, data + (uint64_t)e * bytes))
                return NULL;
    return data;
}

/* Whether `columns` has the copies of w's matrices, by samples of each. */
static bool columns_fit(const struct engine_tensor *w, const char *columns, uint64_t bytes)
{
    for (int64_t e = 0; e < w->ne[2]; e++)
        if (!quant_columns_check(w->type, w->ne[0], w->ne[1], w->data + e * w->nb[2], w->nb[1],
                                 columns + (uint64_t)e * bytes))
            return false;
    return true;
}

/* Binds the copies by columns of the weight of a row, if the file has them, or makes them. *out
 * remains NULL if the inputs are not known to have zeros: the copies would not be used. */
static bool bind_columns(struct binder *b, const struct model_tensor_row *row, const char *prefix,
                         bool zeros, const struct engine_tensor *w, struct engine_tensor **out)
{
    char name[MODEL_TENSOR_NAME];
    uint64_t bytes = 0, all = 0;
    const bool has_form = quant_columns_size(w->type, w->ne[0], w->ne[1], &bytes) &&
                          base_mul(bytes, (uint64_t)w->ne[2], &all) && all <= INT64_MAX;
    tensor_name(b, prefix, row->name, "columns", name);
    const struct gguf_tensor *t = gguf_tensor_find(b->file, name);
    const void *data = t ? t->data : NULL;
    if (t && (!has_form || t->type != quant_type_by_id(QUANT_I8) || t->size != all ||
              !columns_fit(w, data, bytes)))
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "not the copy by columns of %s: infer quantize makes a new one",
                            w->name);
    if (t && !mark_used(b, t, name)) return false;
    if (!zeros || (b->place && b->place->index > 0)) return true;
    if (!t && b->p->makes_columns && has_form) data = make_columns(b, w, bytes, all);
    if (!t && has_form && (data || b->p->plans_columns)) b->w->column_bytes += all;
    if (!data) return base_goes_on(b->err);
    struct engine_tensor *tensor = new_tensor(b);
    if (!engine_tensor_init(tensor, quant_type_by_id(QUANT_I8), 2,
                            (int64_t[]){(int64_t)bytes, w->ne[2]}, (void *)data, name, b->err))
        return false;
    b->w->n_tensors++;
    *out = tensor;
    return true;
}

/* ---- Linears in two places ---- */

enum { STAGE_BYTES = 1 << 18, SHARE_ROWS = 32 };

/* Copies n rows of w, whose numbers are in row[], to `to`, adjacent. */
static void gather(const struct engine_tensor *w, const uint32_t *row, uint64_t n, char *to)
{
    const size_t bytes = (size_t)w->nb[1];
    for (uint64_t i = 0; i < n; i++)
        memcpy(to + i * bytes, w->data + (int64_t)row[i] * w->nb[1], bytes);
}

/* Copies the cold rows of w, in this machine's memory, so that they are adjacent. NULL with an
 * error, and without one if the copy is only planned. */
static char *copy_rows(struct binder *b, const struct engine_tensor *w, const uint32_t *row,
                       uint64_t n)
{
    uint64_t bytes = n * (uint64_t)w->nb[1], size; /* less than the file has */
    b->w->row_bytes += bytes;
    if (b->w->plans_rows) return NULL;
    char *data = base_align_up(bytes, COPY_ALIGN, &size) ? aligned_alloc(COPY_ALIGN, size) : NULL;
    if (!data)
        return base_null(
            base_fail_at(b->err, BASE_NO_MEMORY, w->name, -1, "no memory for its cold rows"));
    b->w->copies[b->w->n_copies++] = data;
    gather(w, row, n, data);
    return base_goes_on(b->err) ? data : NULL;
}

/* Makes part i of a linear: n rows of w from `first` on, or those of row[]. Hot rows are copied to
 * their place by upload(). */
static bool bind_part(struct binder *b, struct engine_tensor *w, int i, uint32_t first, uint32_t n,
                      const uint32_t *row, const struct engine_place *place,
                      struct model_parts *parts)
{
    struct engine_tensor *t = &b->w->tensors[b->w->n_tensors];
    char *data = w->data + (row ? 0 : (int64_t)first * w->nb[1]);
    parts->n[i] = n;
    if (n == 0) return true;
    if (row && i == 1 && !(data = copy_rows(b, w, row, n))) {
        if (!b->w->plans_rows) return false;
        data = w->data;
    }
    if (!engine_tensor_init(t, w->type, 2, (int64_t[]){w->ne[0], n}, data, w->name, b->err))
        return false;
    if (row && i == 0) {
        b->w->rows[b->w->n_tensors] = row;
        b->w->of[b->w->n_tensors] = w;
    }
    b->w->place[b->w->n_tensors++] = i == 0 ? place : NULL;
    parts->weight[i] = t;
    return true;
}

/* Makes the order of a layer's rows (struct model_layer). */
static bool bind_order(struct binder *b, struct model_layer *l)
{
    const struct model_hot *hot = l->hot;
    int32_t *at = malloc(hot->n * sizeof *at);
    struct engine_tensor *t = &b->w->tensors[b->w->n_tensors];
    if (!at) return base_fail(b->err, BASE_NO_MEMORY, "no memory for the order of rows");
    b->w->copies[b->w->n_copies++] = at;
    for (uint32_t i = 0; i < hot->n; i++) at[hot->row[i]] = (int32_t)i;
    if (!engine_tensor_init(t, quant_type_by_id(QUANT_I32), 1, (int64_t[]){hot->n}, at, "order",
                            b->err))
        return false;
    b->w->place[b->w->n_tensors++] = NULL;
    l->order = t;
    return true;
}

/* Divides a linear of a layer, whose weight w is in place 0. */
static bool bind_parts(struct binder *b, const struct model_tensor_row *row, struct model_layer *l,
                       struct engine_tensor *w, struct model_parts *parts)
{
    const struct model_hot *hot = l->hot;
    const uint32_t n = (uint32_t)w->ne[1];
    parts->divided = true;
    if (row->cut == MODEL_CUT_NONE) return true;
    if (row->cut == MODEL_CUT_HOT && n != hot->n)
        return base_fail(b->err, BASE_USAGE, "%s has %u rows, but %u activations were counted",
                         w->name, n, hot->n);
    if (row->cut == MODEL_CUT_HOT && !l->order && !bind_order(b, l)) return false;
    if (row->cut == MODEL_CUT_HOT)
        return bind_part(b, w, 0, 0, hot->n_hot, hot->row, l->place, parts) &&
               bind_part(b, w, 1, 0, n - hot->n_hot, hot->row + hot->n_hot, NULL, parts);
    const uint64_t share = (uint64_t)n * hot->n_hot / hot->n / SHARE_ROWS * SHARE_ROWS;
    const uint32_t n_there = hot->n_hot == hot->n ? n : (uint32_t)share;
    return bind_part(b, w, 0, 0, n_there, NULL, l->place, parts) &&
           bind_part(b, w, 1, n_there, n - n_there, NULL, NULL, parts);
}

/* Returns the layer of a row that is to be divided; NULL: the row is not. */
static struct model_layer *divided(const struct binder *b, const struct model_tensor_row *row,
                                   const char *prefix, const char *self)
{
    uint32_t layer;
    const struct model_parts *parts = (const void *)(self + row->parts - 1);
    if (!row->parts || !parts->can || sscanf(prefix, "blk.%u.", &layer) != 1) return NULL;
    return b->p->layer[layer].hot ? &b->p->layer[layer] : NULL;
}

static bool is_required(const struct model_tensor_row *row, const char *self)
{
    const struct model_linear *other = row->unless ? (const void *)(self + row->unless - 1) : NULL;
    return row->need == MODEL_REQUIRED && !(other && other->weight);
}

/* Counts the bias and the scale of a row as unused. */
static void ignore_bias_and_scale(struct binder *b, const struct model_tensor_row *row,
                                  const char *prefix)
{
    static const char *const part[] = {"bias", "scale"};
    for (int i = 0; i < 2; i++) {
        char name[MODEL_TENSOR_NAME];
        tensor_name(b, prefix, row->name, part[i], name);
        const struct gguf_tensor *t = gguf_tensor_find(b->file, name);
        if (!t) continue;
        b->used[t - gguf_tensor_at(b->file, 0)] = true;
        b->w->n_unused[MODEL_UNUSED_OTHER]++;
    }
}

/* Checks a table of experts' ids. */
static bool check_expert_ids(const struct binder *b, const struct engine_tensor *t)
{
    const int32_t *id = (const void *)t->data;
    const int64_t n = t->ne[0] * t->ne[1];
    for (int64_t i = 0; i < n; i++)
        if (id[i] < 0 || (uint32_t)id[i] >= b->p->n_expert)
            return base_fail_at(b->err, BASE_MODEL, t->name, -1,
                                "value %lld is %d, no id of %u experts", (long long)i, (int)id[i],
                                b->p->n_expert);
    return true;
}

/* Binds the scales of a layer's linear that have the numbers of the layer's runs. */
static bool bind_scales_by_run(struct binder *b, const struct model_tensor_row *row, uint32_t layer,
                               struct model_linear *l)
{
    char prefix[32], name[MODEL_TENSOR_NAME];
    l->of_run = calloc(b->p->n_run, sizeof *l->of_run);
    if (!l->of_run) return base_fail(b->err, BASE_NO_MEMORY, "no memory for scales");
    b->w->copies[b->w->n_copies++] = l->of_run;
    for (uint32_t i = 0; i < b->p->n_run; i++) {
        if (model_run_layer(b->p, i) != layer) continue;
        snprintf(prefix, sizeof prefix, "blk.%u.", i);
        tensor_name(b, prefix, row->name, "scale", name);
        if (!bind(b, name, (int64_t[]){1, 1, 1}, AS_FLOATS, &l->of_run[i])) return false;
    }
    return true;
}

/* Binds the scale of a linear, or its scales. */
static bool bind_scale(struct binder *b, const struct model_tensor_row *row, const char *prefix,
                       int64_t depth, struct model_linear *l)
{
    uint32_t layer;
    char name[MODEL_TENSOR_NAME];
    if (b->p->scales_by_run && sscanf(prefix, "blk.%u.", &layer) == 1)
        return bind_scales_by_run(b, row, layer, l);
    tensor_name(b, prefix, row->name, "scale", name);
    return bind(b, name, (int64_t[]){depth, 1, 1}, AS_FLOATS, &l->scale);
}

/* Binds the tensor of a row; `prefix` is "" or "blk.N.". */
static bool bind_row(void *user, const struct model_tensor_row *row, const char *prefix, void *self)
{
    struct binder *b = user;
    void *field = (char *)self + row->field - 1;
    const int64_t inputs = model_row_size(self, row->inputs);
    const int64_t outputs = model_row_size(self, row->outputs);
    const int64_t depth = model_row_size(self, row->depth);
    const bool transposed = row->kind == MODEL_TRANSPOSED;
    const int64_t ne[3] = {transposed ? outputs : inputs, transposed ? inputs : outputs, depth};
    const bool is_pointer = row->kind < MODEL_NORM;
    const enum form form = form_of(row->kind);
    const bool is_vector = is_floats(form);
    char name[MODEL_TENSOR_NAME];
    struct model_linear found = {.transposed = transposed};
    struct model_layer *cut = divided(b, row, prefix, self);
    b->place = cut ? NULL : place_of(b, row, prefix);
    tensor_name(b, prefix, row->name,
                row->kind == MODEL_BIAS    ? "bias"
                : row->kind == MODEL_SCALE ? "scale"
                                           : "weight",
                name);
    if (!bind(b, name, ne, form, &found.weight)) return false;
    if (!found.weight && row->kind == MODEL_STACK &&
        !bind_experts(b, prefix, row->name, ne, &found.weight))
        return false;
    if (!found.weight && is_required(row, self))
        return base_fail_at(b->err, BASE_MODEL, name, -1, "missing tensor");
    if (row->kind == MODEL_IDS && found.weight && !check_expert_ids(b, found.weight)) return false;
    if (is_pointer) {
        *(struct engine_tensor **)field = found.weight;
        return true;
    }
    if (row->zeros && found.weight &&
        !bind_columns(b, row, prefix, model_row_size(self, row->zeros) > 0, found.weight,
                      &found.columns))
        return false;
    if (cut && found.weight &&
        !bind_parts(b, row, cut, found.weight, (void *)((char *)self + row->parts - 1)))
        return false;
    if (row->kind == MODEL_BARE) {
        ignore_bias_and_scale(b, row, prefix);
        *(struct model_linear *)field = found;
        return true;
    }
    b->place = place_of(b, row, prefix);
    const int64_t bias[3] = {is_vector ? inputs : outputs, is_vector ? outputs : depth, 1};
    tensor_name(b, prefix, row->name, "bias", name);
    if (!bind(b, name, bias, AS_FLOATS, &found.bias)) return false;
    if (row->kind == MODEL_NORM) {
        *(struct model_norm *)field = (struct model_norm){found.weight, found.bias};
        return true;
    }
    if (!bind_scale(b, row, prefix, depth, &found)) return false;
    *(struct model_linear *)field = found;
    return true;
}

/* ---- Tensors without a row ---- */

/* Returns whether the architecture's aliases mark the tensor as ignored. */
static bool is_left_out(const struct model_params *p, struct gguf_str name)
{
    const struct model_alias *alias = p->arch->alias;
    for (int a = 0; a < MODEL_MAX_ALIASES && alias[a].usual; a++)
        if (!*alias[a].here && gguf_str_is(name, alias[a].usual)) return true;
    return false;
}

/* Returns whether the tensor belongs to a dense network that layers with a router ignore. */
static bool is_plain_network(const struct model_params *p, struct gguf_str name)
{
    return p->arch->experts.by_tensor &&
           (gguf_str_begins(name, "ffn_gate.") || gguf_str_begins(name, "ffn_up.") ||
            gguf_str_begins(name, "ffn_down."));
}

/* Returns the purpose of a layer's tensor that no row names: prediction of later tokens (the layers
 * after the others), images, ignored by the architecture, or MODEL_USED. */
static enum model_unused use_in_layer(const struct model_params *p, struct gguf_str name)
{
    uint32_t layer = 0;
    size_t i = 4; /* "blk." */
    for (; i < name.size && name.data[i] >= '0' && name.data[i] <= '9' && layer < UINT16_MAX; i++)
        layer = layer * 10 + (uint32_t)(name.data[i] - '0');
    if (i == name.size || name.data[i] != '.') return MODEL_USED;
    const struct gguf_str rest = {name.data + i + 1, name.size - i - 1};
    if (is_left_out(p, rest) || is_plain_network(p, rest)) return MODEL_UNUSED_OTHER;
    if (p->scales_by_run && layer < p->n_run && gguf_str_ends(rest, ".scale"))
        return MODEL_UNUSED_OTHER; /* of a product without scales */
    if (layer >= p->n_layer && layer < p->n_layer + p->n_draft_layer) return MODEL_UNUSED_DRAFTS;
    return gguf_str_begins(rest, "vis_") ? MODEL_UNUSED_IMAGES : MODEL_USED;
}

/* Returns the purpose of a tensor that no row names; MODEL_USED if the text would be another
 * without it. Input scales are ignored: they are for engines that quantize activations to 4
 * bits. */
static enum model_unused use_of(const struct model_params *p, struct gguf_str name)
{
    static const struct {
        const char *start;
        enum model_unused use;
    } starts[] = {{"cls.", MODEL_UNUSED_HEADS},     {"dense_2.", MODEL_UNUSED_HEADS},
                  {"dense_3.", MODEL_UNUSED_HEADS}, {"v.", MODEL_UNUSED_IMAGES},
                  {"mm.", MODEL_UNUSED_IMAGES},     {"a.", MODEL_UNUSED_AUDIO},
                  {"mm.a.", MODEL_UNUSED_AUDIO},    {"mtp.", MODEL_UNUSED_DRAFTS}};
    enum model_unused use = gguf_str_ends(name, ".input_scale") ? MODEL_UNUSED_OTHER : MODEL_USED;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (gguf_str_begins(name, starts[i].start)) use = starts[i].use;
    if (is_left_out(p, name)) use = MODEL_UNUSED_OTHER;
    return use == MODEL_USED && gguf_str_begins(name, "blk.") ? use_in_layer(p, name) : use;
}

static bool check_left_over(struct binder *b)
{
    const uint64_t n = gguf_tensor_count(b->file);
    for (uint64_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(b->file, i);
        if (b->used[i]) continue;
        const enum model_unused use = use_of(b->p, t->name);
        b->w->n_unused[use]++;
        if (use != MODEL_USED) continue;
        char name[ENGINE_NAME_SIZE * 2];
        snprintf(name, sizeof name, "%.*s", t->name.size < 90 ? (int)t->name.size : 90,
                 t->name.data);
        return base_fail_at(b->err, BASE_MODEL, name, (int64_t)t->offset,
                            "architecture %s has no such tensor here: the model is not supported",
                            b->p->name);
    }
    return true;
}

/* ---- Weights of other places ---- */

/* Copies the hot rows of tensor i, of which the file's are not read again, to `at` in a place. */
static bool upload_rows(const struct model_weights *w, uint32_t i, const struct engine_place *place,
                        char *at, struct base_error *err)
{
    const struct engine_tensor *of = w->of[i];
    const uint64_t bytes = (uint64_t)of->nb[1], n = (uint64_t)w->tensors[i].ne[1];
    const uint64_t step = bytes < STAGE_BYTES ? STAGE_BYTES / bytes : 1;
    char *stage = malloc(step * bytes);
    if (!stage) return base_fail(err, BASE_NO_MEMORY, "no memory to copy rows");
    for (uint64_t r = 0; r < n && base_goes_on(err); r += step) {
        const uint64_t some = n - r < step ? n - r : step;
        gather(of, w->rows[i] + r, some, stage);
        engine_place_write(place, at + r * bytes, stage, some * bytes);
    }
    free(stage);
    return base_goes_on(err);
}

/* Copies the weights of one place that is not this machine's memory into a buffer of the place. */
static bool upload(struct model_weights *w, struct engine *e, const struct engine_place *place,
                   struct base_error *err)
{
    struct engine_buffer *buffer = &w->buffers[place->index];
    uint64_t total = 0, n = 0, bytes;
    for (uint32_t i = 0; i < w->n_tensors; i++)
        if (w->place[i] == place &&
            (!base_align_up((uint64_t)engine_tensor_bytes(&w->tensors[i]), COPY_ALIGN, &bytes) ||
             !base_add(total, bytes, &total)))
            return base_fail(err, BASE_NO_MEMORY, "the weights of a place are too large");
    if (total == 0) return true;
    if (!engine_buffer_new(place, ENGINE_BUFFER_WEIGHTS, total, buffer, err)) return false;
    struct engine_upload *uploads = calloc(w->n_tensors, sizeof *uploads);
    bool ok = uploads || base_fail(err, BASE_NO_MEMORY, "no memory to copy weights");
    char *at = buffer->base;
    for (uint32_t i = 0; ok && i < w->n_tensors; i++) {
        struct engine_tensor *t = &w->tensors[i];
        if (w->place[i] != place) continue;
        bytes = (uint64_t)engine_tensor_bytes(t);
        w->placed_bytes += bytes;
        if (!w->rows[i])
            uploads[n++] = (struct engine_upload){at, t->data, bytes};
        else
            ok = w->plans_rows || upload_rows(w, i, place, at, err);
        t->data = at;
        t->place = place;
        at += (bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;
    }
    ok = ok && engine_place_upload(e, place, uploads, n, err);
    free(uploads);
    return ok;
}

/* Returns the tensor that the embeddings and the output share, in a place. */
static struct engine_tensor *share(struct model_weights *w, const struct engine_tensor *t,
                                   const struct engine_place *place)
{
    const uint32_t i = (uint32_t)(t - w->tensors);
    if (w->place[i] == place) return &w->tensors[i];
    w->tensors[w->n_tensors] = *t;
    w->place[w->n_tensors] = place;
    w->placed_bytes -= (uint64_t)engine_tensor_bytes(t); /* place 0 reads it too */
    return &w->tensors[w->n_tensors++];
}

bool model_weights_bind(struct model_weights *w, struct model_params *p,
                        const struct gguf_file *file, struct engine *e, struct base_error *err)
{
    const size_t n = gguf_tensor_count(file);
    struct binder b = {w, p, file, calloc(n, sizeof *b.used), err, NULL};
    *w = (struct model_weights){.plans_rows = p->plans_rows};
    /* For each tensor of the file: itself, its two parts or its copy by columns, and for several of
     * a layer an order of rows. */
    w->tensors = calloc(n, MOST * sizeof *w->tensors);
    w->place = calloc(n, MOST * sizeof *w->place);
    w->copies = calloc(n, MOST * sizeof *w->copies);
    w->rows = calloc(n, MOST * sizeof *w->rows);
    w->of = calloc(n, MOST * sizeof *w->of);
    bool done = w->tensors && w->place && w->copies && w->rows && w->of && b.used;
    done = done ? model_rows_visit(p, bind_row, &b) && check_left_over(&b)
                : base_fail(err, BASE_NO_MEMORY, "no memory for the tensor table");
    /* A file has at least one of the two: read_vocab has checked it. A drafter may lack them. */
    const bool shares = done && !p->arch->drafter;
    const bool ties = shares || (done && p->drafter.block && p->ends.token_embd);
    if (ties && !p->ends.output.weight)
        p->ends.output.weight = share(w, p->ends.token_embd, p->ends.place);
    if (shares && !p->ends.token_embd) p->ends.token_embd = share(w, p->ends.output.weight, NULL);
    for (int i = 1; done && i < e->n_places; i++) done = upload(w, e, &e->place[i], err);
    free(b.used);
    if (!done) model_weights_free(w);
    return done;
}

void model_weights_free(struct model_weights *w)
{
    for (uint32_t i = 0; i < w->n_copies; i++) free(w->copies[i]);
    for (int i = 0; i < ENGINE_PLACES_MAX; i++) engine_buffer_free(&w->buffers[i]);
    free(w->copies);
    free(w->place);
    free(w->rows);
    free(w->of);
    free(w->tensors);
    *w = (struct model_weights){0};
}
