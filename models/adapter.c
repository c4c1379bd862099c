/* models/adapter.c: opens adapters and control vectors. See models/adapter.h. The products are in
 * models/block/product.c. */
#include "base/interrupt.h"
#include "base/size.h"
#include "models/internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANEL = ENGINE_LOW_RANK_PANEL,
    MAX_RANK = 1 << 14,
    ALIGN = 64,
    NAME_ROOM = MODEL_TENSOR_NAME + 16
};

struct opener {
    struct model *m;
    struct model_adapter *adapter;
    const struct gguf_file *file;
    bool *known; /* [tensors of the file] */
    struct base_error *err;
};

/* ---- Factors ---- */

static bool fail_tensor(struct opener *o, const struct gguf_tensor *t, const char *why)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%.*s",
             t->name.size < NAME_ROOM ? (int)t->name.size : NAME_ROOM - 1, t->name.data);
    return base_fail_at(o->err, BASE_MODEL, name, (int64_t)t->offset, "%s", why);
}

/* Fails for a factor whose shape is not that of the model's tensor w. */
static bool fail_shape(struct opener *o, const struct gguf_tensor *t, const struct engine_tensor *w)
{
    char why[200];
    snprintf(why, sizeof why,
             "shape [%llu][%llu][%llu] does not fit the model's tensor [%lld][%lld][%lld]: the "
             "adapter is of another model",
             (unsigned long long)t->ne[2], (unsigned long long)t->ne[1],
             (unsigned long long)t->ne[0], (long long)w->ne[2], (long long)w->ne[1],
             (long long)w->ne[0]);
    return fail_tensor(o, t, why);
}

/* Checks the factors of w: [r][inputs] and [outputs][r] for each expert, or [rows][r] and
 * [columns][r] of a table. */
static bool check_factors(struct opener *o, const struct engine_tensor *w, bool is_table,
                          const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    const uint64_t inputs = (uint64_t)w->ne[0], outputs = (uint64_t)w->ne[1];
    const uint64_t depth = (uint64_t)w->ne[2], rank = b->ne[0];
    const bool a_fits = is_table ? a->ne[1] == outputs : a->ne[0] == inputs;
    const bool b_fits = b->ne[1] == (is_table ? inputs : outputs);
    if (!a_fits || a->ne[2] != depth || a->ne[3] != 1) return fail_shape(o, a, w);
    if (!b_fits || b->ne[2] != depth || b->ne[3] != 1) return fail_shape(o, b, w);
    if (rank != a->ne[is_table ? 0 : 1])
        return fail_tensor(o, b, "the ranks of the two factors differ");
    if (rank > MAX_RANK) return fail_tensor(o, b, "the rank is too large");
    if (!a->type->act) return fail_tensor(o, a, "its type is not supported in computations");
    return b->type->act || fail_tensor(o, b, "its type is not supported in computations");
}

/* Writes a row of r elements of `size` bytes to lane i of panels [..][r][PANEL]. */
static void write_row(const char *row, int64_t r, int64_t i, size_t size, char *panels)
{
    char *to = panels + (i / PANEL * r * PANEL + i % PANEL) * (int64_t)size;
    const uint16_t *halves = (const uint16_t *)(const void *)row;
    const uint32_t *words = (const uint32_t *)(const void *)row;
    for (int64_t j = 0; size == sizeof *halves && j < r; j++)
        memcpy(to + j * PANEL * (int64_t)sizeof *halves, halves + j, sizeof *halves);
    for (int64_t j = 0; size == sizeof *words && j < r; j++)
        memcpy(to + j * PANEL * (int64_t)sizeof *words, words + j, sizeof *words);
}

/* The type of B in panels: the file's if it is F16, BF16 or F32, otherwise F32. */
static const struct quant_type *panel_type(const struct gguf_tensor *b)
{
    const size_t size = b->type->block_len == 1 ? b->type->block_bytes : 0;
    return size == 2 || size == 4 ? b->type : quant_type_by_id(QUANT_F32);
}

static void fill_panels(const struct gguf_tensor *b, const struct quant_type *type, float *row,
                        char *data)
{
    const int64_t r = (int64_t)b->ne[0], n = (int64_t)b->ne[1], depth = (int64_t)b->ne[2];
    const int64_t row_bytes = (int64_t)(b->size / (b->ne[1] * b->ne[2]));
    const int64_t matrix = (n + PANEL - 1) / PANEL * PANEL * r * type->block_bytes;
    const char *rows = b->data;
    for (int64_t x = 0; x < depth; x++, data += matrix)
        for (int64_t i = 0; i < n; i++, rows += row_bytes) {
            const bool as_it_is = type == b->type;
            if (!as_it_is) b->type->scalar.decode(0, r, rows, row);
            write_row(as_it_is ? rows : (const char *)row, r, i, type->block_bytes, data);
        }
}

/* Describes part->b, which has no data yet. */
static bool init_panels(struct opener *o, struct model_adapter_part *part,
                        const struct gguf_tensor *b)
{
    const int64_t ne[] = {PANEL, (int64_t)b->ne[0], (int64_t)(b->ne[1] + PANEL - 1) / PANEL,
                          (int64_t)b->ne[2]};
    part->second = b;
    return engine_tensor_init(&part->b, panel_type(b), 4, ne, NULL, "lora_b", o->err);
}

/* Whether the graph looks up rows of w. */
static bool is_table(const struct model_params *p, const struct engine_tensor *w)
{
    return (w == p->ends.token_embd && strcmp(w->name, "output.weight") != 0) ||
           w == p->ends.per_layer_embd || w == p->ends.positions || w == p->ends.ngram_embd;
}

/* Whether w is the table in the place of the output, which multiplies it: an adapter of the table
 * has no effect there. */
static bool is_second_table(const struct model_params *p, const struct engine_tensor *w)
{
    return w == p->ends.output.weight && w != p->ends.token_embd &&
           strcmp(w->name, p->ends.token_embd->name) == 0 && strcmp(w->name, "output.weight") != 0;
}

/* Opens the factors of the model's tensor number i, if the file has them. */
static bool open_part(struct opener *o, uint32_t i)
{
    const struct engine_tensor *w = &o->m->weights.tensors[i];
    if (is_second_table(&o->m->params, w)) return true;
    struct model_adapter_part *part = &o->adapter->part[i];
    const struct gguf_tensor *factor[2], *first = gguf_tensor_at(o->file, 0);
    char name[NAME_ROOM];
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "%s.lora_%c", w->name, "ab"[k]);
        factor[k] = gguf_tensor_find(o->file, name);
        if (factor[k]) o->known[factor[k] - first] = true;
    }
    if (!factor[0] && !factor[1]) return true;
    if (!factor[0] || !factor[1])
        return fail_tensor(o, factor[0] ? factor[0] : factor[1],
                           "the other one of the two factors is missing");
    part->is_table = is_table(&o->m->params, w);
    if (!check_factors(o, w, part->is_table, factor[0], factor[1])) return false;
    const int64_t ne[] = {(int64_t)factor[0]->ne[0], (int64_t)factor[0]->ne[1],
                          (int64_t)factor[0]->ne[2]};
    part->exists = true;
    const float alpha = o->adapter->facts.alpha;
    part->factor = alpha != 0.0f ? alpha / (float)factor[1]->ne[0] : 1.0f;
    o->adapter->facts.n_matrices++;
    return engine_tensor_init(&part->a, factor[0]->type, 3, ne, (void *)factor[0]->data, w->name,
                              o->err) &&
           init_panels(o, part, factor[1]);
}

static bool ends_with(struct gguf_str name, const char *end)
{
    const size_t n = strlen(end);
    return name.size >= n && memcmp(name.data + name.size - n, end, n) == 0;
}

/* Tensors that replace a norm's weights have no effect in the reference implementation either: some
 * converters write them without a use. */
static bool check_others(struct opener *o)
{
    for (uint64_t i = 0; i < gguf_tensor_count(o->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(o->file, i);
        if (o->known[i]) continue;
        if (ends_with(t->name, "_norm.weight")) {
            o->adapter->facts.n_norms++;
            continue;
        }
        const bool factor = ends_with(t->name, ".lora_a") || ends_with(t->name, ".lora_b");
        return fail_tensor(o, t,
                           factor ? "the model has no tensor of this name: the adapter is of "
                                    "another model"
                                  : "not one of the two factors of an adapter's matrix");
    }
    return o->adapter->facts.n_matrices > 0 ||
           base_fail(o->err, BASE_MODEL, "the adapter has no tensors");
}

static bool open_parts(struct opener *o)
{
    const uint32_t n = o->m->weights.n_tensors;
    o->adapter->part = calloc(n, sizeof *o->adapter->part);
    o->known = calloc(gguf_tensor_count(o->file) + 1, sizeof *o->known);
    bool ok = o->adapter->part && o->known;
    if (!ok) base_fail(o->err, BASE_NO_MEMORY, "no memory for an adapter");
    for (uint32_t i = 0; ok && i < n; i++) ok = base_goes_on(o->err) && open_part(o, i);
    ok = ok && check_others(o);
    free(o->known);
    return ok;
}

/* ---- Placing ---- */

/* Writes part->b to the address in a place. */
static bool write_panels(const struct opener *o, const struct model_adapter_part *part,
                         const struct engine_place *place, char *at)
{
    const uint64_t bytes = (uint64_t)engine_tensor_bytes(&part->b);
    float *row = malloc(part->second->ne[0] * sizeof *row);
    char *panels = calloc(bytes, 1);
    if (row && panels) {
        fill_panels(part->second, part->b.type, row, panels);
        engine_place_write(place, at, panels, bytes);
    }
    free(row);
    free(panels);
    return (row && panels) || base_fail(o->err, BASE_NO_MEMORY, "no memory for an adapter");
}

/* Returns factor k of the model's tensors, two for each, if its weight is in the place. */
static struct engine_tensor *factor_in(const struct opener *o, uint32_t k,
                                       const struct engine_place *place)
{
    struct model_adapter_part *part = &o->adapter->part[k / 2];
    const bool is_there =
        part->exists && engine_tensor_place(&o->m->weights.tensors[k / 2]) == place->index;
    return !is_there ? NULL : k % 2 ? &part->b : &part->a;
}

/* Writes factor k to an address of the place: the first as it is, the second in panels. */
static bool write_factor(const struct opener *o, uint32_t k, const struct engine_place *place,
                         char *at)
{
    const struct model_adapter_part *part = &o->adapter->part[k / 2];
    if (k % 2) return write_panels(o, part, place, at);
    engine_place_write(place, at, part->a.data, (uint64_t)engine_tensor_bytes(&part->a));
    return true;
}

/* Copies the factors of weights in a place to it, in the order of the weights: one piece of memory
 * is read faster than the mapped file and a piece for each factor (docs/adapters.md). */
static bool place_in(const struct opener *o, const struct engine_place *place)
{
    const uint32_t n = 2 * o->m->weights.n_tensors;
    const bool writes = place->index > 0 || !o->m->engine->options.plan_only;
    struct engine_buffer *buffer = &o->adapter->buffers[place->index];
    uint64_t total = 0, bytes;
    for (uint32_t k = 0; k < n; k++) {
        const struct engine_tensor *t = factor_in(o, k, place);
        if (t && (!base_align_up((uint64_t)engine_tensor_bytes(t), ALIGN, &bytes) ||
                  !base_add(total, bytes, &total)))
            return base_fail(o->err, BASE_NO_MEMORY, "an adapter is too large");
    }
    if (total == 0) return true;
    if (!engine_buffer_new(place, ENGINE_BUFFER_WEIGHTS, total, buffer, o->err)) return false;
    char *at = buffer->base;
    for (uint32_t k = 0; k < n && base_goes_on(o->err); k++) {
        struct engine_tensor *t = factor_in(o, k, place);
        if (!t) continue;
        bytes = (uint64_t)engine_tensor_bytes(t);
        if (writes && !write_factor(o, k, place, at)) return false;
        t->data = at;
        t->place = place;
        at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    return base_goes_on(o->err);
}

static bool place_parts(const struct opener *o)
{
    const struct engine *e = o->m->engine;
    for (int i = 0; i < e->n_places; i++)
        if (!place_in(o, &e->place[i])) return false;
    return true;
}

/* ---- Keys ---- */

/* Reads a text that must have the given value. */
static bool check_text(struct opener *o, const char *key, const char *value, const char *why)
{
    struct gguf_str text = {"", 0};
    if (!gguf_get_str(o->file, key, &text, o->err)) return false;
    if (text.size == strlen(value) && memcmp(text.data, value, text.size) == 0) return true;
    return base_fail_at(o->err, BASE_MODEL, key, -1, "\"%.*s\", not \"%s\": %s",
                        text.size < 64 ? (int)text.size : 64, text.data, value, why);
}

static bool read_invocation(struct opener *o)
{
    const char *key = "adapter.alora.invocation_tokens";
    const struct gguf_kv *kv = gguf_kv_find(o->file, key);
    struct model_adapter *a = o->adapter;
    if (!kv) return true;
    if (kv->kind != GGUF_ARRAY || !gguf_kind_is_integer(kv->item) || kv->count == 0)
        return base_fail_at(o->err, BASE_MODEL, key, (int64_t)kv->offset,
                            "not an array of token ids");
    a->invocation = calloc(kv->count, sizeof *a->invocation);
    if (!a->invocation) return base_fail(o->err, BASE_NO_MEMORY, "no memory for an adapter");
    for (uint64_t i = 0; i < kv->count; i++) {
        const int64_t id = gguf_array_int(kv, i);
        if (id < 0 || id >= o->m->params.n_vocab)
            return base_fail_at(o->err, BASE_MODEL, key, (int64_t)kv->offset,
                                "id %lld is outside the vocabulary of %u", (long long)id,
                                o->m->params.n_vocab);
        a->invocation[i] = (int32_t)id;
    }
    a->facts.invocation = a->invocation;
    a->facts.n_invocation = kv->count;
    return true;
}

static bool read_keys(struct opener *o)
{
    struct model_adapter_facts *f = &o->adapter->facts;
    return check_text(o, "general.type", "adapter", "the file is no adapter") &&
           check_text(o, "adapter.type", "lora", "the kind of adapter is not supported") &&
           check_text(o, "general.architecture", o->m->params.name,
                      "the adapter is of another model") &&
           gguf_get_f32(o->file, "adapter.lora.alpha", &f->alpha, o->err) &&
           gguf_get_str(o->file, "adapter.lora.task_name", &f->task, o->err) &&
           gguf_get_str(o->file, "adapter.lora.prompt_prefix", &f->prefix, o->err) &&
           read_invocation(o);
}

static void free_adapter(struct model_adapter *a)
{
    for (int i = 0; i < ENGINE_PLACES_MAX; i++) engine_buffer_free(&a->buffers[i]);
    free(a->part);
    free(a->invocation);
    *a = (struct model_adapter){0};
}

bool model_adapter_add(struct model *m, const struct gguf_file *file, float scale,
                       struct base_error *err)
{
    struct model_adapter_set *set = &m->adapters;
    struct opener o = {.m = m, .file = file, .err = err};
    if (set->count == MODEL_ADAPTERS_MAX)
        return base_fail(err, BASE_USAGE, "more than %d adapters", MODEL_ADAPTERS_MAX);
    set->tensors = m->weights.tensors;
    set->n_tensors = m->weights.n_tensors;
    o.adapter = &set->item[set->count];
    *o.adapter = (struct model_adapter){.file = file, .facts = {.scale = scale}};
    if (read_keys(&o) && open_parts(&o) && place_parts(&o)) {
        set->count++;
        return true;
    }
    base_error_set_file(err, gguf_path(file));
    free_adapter(o.adapter);
    return false;
}

uint32_t model_adapter_count(const struct model *m)
{
    return m->adapters.count;
}

const struct model_adapter_facts *model_adapter_facts(const struct model *m, uint32_t i)
{
    return &m->adapters.item[i].facts;
}

/* ---- Use in graphs ---- */

struct model_adapter_part *model_adapter_part_of(const struct model_adapter_set *set, uint32_t i,
                                                 const struct engine_tensor *weight, bool is_table)
{
    if (weight && weight->view_of) weight = weight->view_of;
    const uintptr_t at = (uintptr_t)weight - (uintptr_t)set->tensors;
    if (at >= set->n_tensors * sizeof *weight) return NULL; /* not a tensor of the file */
    struct model_adapter_part *part = &set->item[i].part[at / sizeof *weight];
    return part->exists && part->is_table == is_table ? part : NULL;
}

bool model_adapters_check(const struct model_adapter_set *set, struct base_error *err)
{
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t k = 0; k < set->n_tensors; k++) {
            if (!set->item[i].part[k].refused) continue;
            base_fail_at(err, BASE_MODEL, set->tensors[k].name, -1,
                         "adapters of this tensor are not supported");
            base_error_set_file(err, gguf_path(set->item[i].file));
            return false;
        }
    return true;
}

void model_adapters_free(struct model_adapter_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) free_adapter(&set->item[i]);
    for (int i = 0; i < ENGINE_PLACES_MAX; i++) engine_buffer_free(&set->placed[i]);
    free(set->directions);
    free(set->direction);
    *set = (struct model_adapter_set){0};
}

/* ---- Control vectors ---- */

/* Returns the number in "direction.N"; UINT32_MAX if the name has another form. */
static uint32_t direction_of(struct gguf_str name)
{
    static const char start[] = "direction.";
    const size_t n = sizeof start - 1;
    uint32_t layer = 0;
    if (name.size <= n || memcmp(name.data, start, n) != 0) return UINT32_MAX;
    for (uint64_t i = n; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9' || layer > MODEL_MAX_LAYERS) return UINT32_MAX;
        layer = layer * 10 + (uint32_t)(name.data[i] - '0');
    }
    return layer;
}

static bool allocate_directions(struct model_adapter_set *set, const struct model_params *p,
                                struct base_error *err)
{
    if (set->direction) return true;
    set->direction = calloc(p->n_layer, sizeof *set->direction);
    set->directions = calloc((size_t)p->n_layer * p->n_embd, sizeof *set->directions);
    return (set->direction && set->directions) ||
           base_fail(err, BASE_NO_MEMORY, "no memory for control vectors");
}

/* Adds strength * t to the direction of its layer. */
static bool add_direction(struct model *m, const struct gguf_tensor *t, uint32_t layer,
                          float strength, struct base_error *err)
{
    struct model_adapter_set *set = &m->adapters;
    const int64_t n = m->params.n_embd;
    float *to = set->directions + (size_t)layer * m->params.n_embd;
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, (const char *)t->data + i * (int64_t)sizeof x, sizeof x);
        to[i] += strength * x;
    }
    return engine_tensor_init(&set->direction[layer], t->type, 1, &n, to, "direction", err);
}

static bool steer(struct model *m, const struct gguf_file *file, float strength, uint32_t first,
                  uint32_t last, struct base_error *err)
{
    struct opener o = {.m = m, .file = file, .err = err};
    uint32_t found = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        const uint32_t layer = direction_of(t->name);
        if (layer == UINT32_MAX || layer == 0)
            return fail_tensor(&o, t, "not \"direction.N\" for a layer N from 1 on");
        if (layer >= m->params.n_layer)
            return fail_tensor(&o, t, "the model has no layer of this number");
        if (t->type->id != QUANT_F32 || t->ne[0] != m->params.n_embd || t->size / 4 != t->ne[0])
            return fail_tensor(&o, t, "not F32 of the length of the model's embeddings");
        found++;
        if (layer >= first && layer <= last && !add_direction(m, t, layer, strength, err))
            return false;
    }
    return found > 0 || base_fail(err, BASE_MODEL, "the file has no control vector");
}

/* Copies the directions of layers in other places to these. */
static bool upload_directions(struct model *m, struct base_error *err)
{
    struct model_adapter_set *set = &m->adapters;
    const uint64_t row = (uint64_t)m->params.n_embd * sizeof(float);
    for (uint32_t i = 0; i < m->params.n_layer; i++) {
        const struct engine_place *place = m->params.layer[i].place;
        struct engine_tensor *t = &set->direction[i];
        if (!place || place->index == 0 || !t->data) continue;
        struct engine_buffer *placed = &set->placed[place->index];
        if (!placed->base &&
            !engine_buffer_new(place, ENGINE_BUFFER_WEIGHTS, row * m->params.n_layer, placed, err))
            return false;
        t->place = place;
        t->data = placed->base + i * row;
        engine_place_write(place, t->data, set->directions + (size_t)i * m->params.n_embd, row);
    }
    return true;
}

bool model_steer(struct model *m, const struct gguf_file *file, float strength, uint32_t first,
                 uint32_t last, struct base_error *err)
{
    if (allocate_directions(&m->adapters, &m->params, err) &&
        steer(m, file, strength, first, last, err) && upload_directions(m, err))
        return true;
    base_error_set_file(err, gguf_path(file));
    return false;
}

/* ---- Adaptations ---- */

/* Returns the last place of what[k] in ids[n]; n if it does not occur. */
static size_t find_last(const int32_t *ids, size_t n, const int32_t *what, size_t k)
{
    for (size_t at = n; at-- > 0;)
        if (n - at >= k && memcmp(ids + at, what, k * sizeof *ids) == 0) return at;
    return n;
}

void model_adaptation_make(const struct model *m, const float *scales, const int32_t *ids, size_t n,
                           struct model_adaptation *a)
{
    *a = (struct model_adaptation){0};
    for (uint32_t i = 0; i < m->adapters.count; i++) {
        const struct model_adapter_facts *f = &m->adapters.item[i].facts;
        a->scale[i] = scales ? scales[i] : f->scale;
        if (f->n_invocation == 0 || a->scale[i] == 0.0f) continue;
        const size_t at = find_last(ids, n, f->invocation, f->n_invocation);
        if (at == n) a->scale[i] = 0.0f;
        a->from[i] = at < n ? (uint32_t)at : 0;
    }
}

uint32_t model_adaptation_common(const struct model *m, const struct model_adaptation *a,
                                 const struct model_adaptation *b)
{
    uint32_t n = UINT32_MAX;
    for (uint32_t i = 0; i < m->adapters.count; i++) {
        const bool acts_a = a->scale[i] != 0.0f, acts_b = b->scale[i] != 0.0f;
        if (a->scale[i] == b->scale[i] && (!acts_a || a->from[i] == b->from[i])) continue;
        if (acts_a && a->from[i] < n) n = a->from[i];
        if (acts_b && b->from[i] < n) n = b->from[i];
    }
    return n;
}
