/* test/support_model.c: see test/support_model.h. */
#include "test/support_model.h"
#include "test/support_gguf.h"
#include "test/support_row.h"

#include "models/params.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Random numbers ---- */

struct sample_random support_model_random(uint64_t seed)
{
    struct sample_random r = {.step = UINT64_C(1442695040888963407)};
    sample_random_u32(&r);
    r.state += seed;
    sample_random_u32(&r);
    return r;
}

/* Mean 0, standard deviation 1, nearly normal: the sum of four uniform numbers; exact on any
 * machine. */
static float random_normal(struct sample_random *r)
{
    uint32_t a = sample_random_u32(r), b = sample_random_u32(r);
    int32_t sum = (int32_t)((a >> 16) + (a & 0xffff) + (b >> 16) + (b & 0xffff)) - 2 * 65535;
    return (float)sum * (1.7320508f / 65536.0f); /* variance of the sum: 4 / 12 of 65536^2 */
}

/* ---- Options ---- */

struct support_model support_model_of(const struct support_fixture *f)
{
    struct support_model m = {
        .arch = f->arch,
        .seed = 1,
        .n_layer = f->n_layer ? f->n_layer : 2,
        .n_embd = f->n_embd ? f->n_embd : 64,
        .n_head = f->n_head ? f->n_head : 4,
        .n_head_kv = f->n_head_kv ? f->n_head_kv : 2,
        .head_dim = 16,
        .n_ff = 128,
        .n_vocab = f->n_vocab ? f->n_vocab : 300,
        .n_ctx = 256,
        .window = f->window,
        .n_expert = f->n_expert,
        .n_expert_used = f->n_expert_used,
        .type = quant_type_by_id(QUANT_F32),
        .tied = f->tied,
        .with = f->with,
        .keys = f->keys,
    };
    return m;
}

struct support_model support_model_default(const char *arch)
{
    for (const struct support_fixture *f = support_fixtures; f->name; f++)
        if (strcmp(f->arch, arch) == 0 || strcmp(f->name, arch) == 0) return support_model_of(f);
    for (const struct support_fixture *f = support_drafters; f->name; f++)
        if (strcmp(f->name, arch) == 0) return support_model_of(f);
    return support_model_of(&(struct support_fixture){.name = arch, .arch = arch});
}

static bool is_drafter(const struct support_model *m)
{
    const char *stored;
    return model_arch_find_drafter((struct gguf_str){m->arch, strlen(m->arch)}, &stored);
}

/* Whether `word` is one of the words of `list`. */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '=' || at[n] == '\0'))
            return true;
    return false;
}

/* ---- Metadata ---- */

static void write_u32(const struct support_model *m, struct gguf_writer *w, const char *key,
                      uint32_t value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", m->arch, key);
    if (!has_word(m->keys, key)) gguf_writer_u32(w, full, value);
}

static void write_f32(const struct support_model *m, struct gguf_writer *w, const char *key,
                      float value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", m->arch, key);
    if (!has_word(m->keys, key)) gguf_writer_f32(w, full, value);
}

/* Writes one KEY=VALUE of m->keys: true or false, a number with a point, numbers separated by
 * commas (integers if none has a point; of 64 bits if the last one ends in 'u'), an integer,
 * otherwise a text. */
static void write_key(const struct support_model *m, struct gguf_writer *w, const char *key,
                      const char *value)
{
    enum { MAX_ITEMS = 128 };
    char full[96], *end;
    int32_t item[MAX_ITEMS];
    float number[MAX_ITEMS];
    uint64_t wide[MAX_ITEMS], n = 0;
    if (*key == '!')
        snprintf(full, sizeof full, "%s", key + 1);
    else
        snprintf(full, sizeof full, "%s.%s", m->arch, key);
    const bool is_true = strcmp(value, "true") == 0;
    if (is_true || strcmp(value, "false") == 0) {
        gguf_writer_bool(w, full, is_true);
    } else if (strchr(value, ',') && strchr(value, '.')) {
        for (end = (char *)value; n < MAX_ITEMS && *end; end += *end == ',')
            number[n++] = strtof(end, &end);
        gguf_writer_array(w, full, GGUF_F32, number, n);
    } else if (strchr(value, ',') && value[strlen(value) - 1] == 'u') {
        for (end = (char *)value; n < MAX_ITEMS && *end != 'u'; end += *end == ',')
            wide[n++] = strtoull(end, &end, 10);
        gguf_writer_array(w, full, GGUF_U64, wide, n);
    } else if (strchr(value, ',')) {
        for (end = (char *)value; n < MAX_ITEMS && *end; end += *end == ',')
            item[n++] = (int32_t)strtol(end, &end, 10);
        gguf_writer_array(w, full, GGUF_I32, item, n);
    } else if (strtof(value, &end), *end) {
        gguf_writer_str(w, full, value, strlen(value));
    } else if (strchr(value, '.') || strchr(value, 'e')) {
        gguf_writer_f32(w, full, strtof(value, NULL));
    } else {
        gguf_writer_u32(w, full, (uint32_t)strtoul(value, NULL, 10));
    }
}

static void write_keys(const struct support_model *m, struct gguf_writer *w)
{
    gguf_writer_str(w, "general.architecture", m->arch, strlen(m->arch));
    gguf_writer_str(w, "general.name", "random", 6);
    gguf_writer_u32(w, "general.quantization_version", 2);
    write_u32(m, w, "context_length", m->n_ctx);
    write_u32(m, w, "embedding_length", m->n_embd);
    write_u32(m, w, "block_count", m->n_layer);
    write_u32(m, w, "feed_forward_length", m->n_ff);
    write_u32(m, w, "vocab_size", m->n_vocab);
    write_u32(m, w, "attention.head_count", m->n_head);
    write_u32(m, w, "attention.head_count_kv", m->n_head_kv);
    write_u32(m, w, "attention.key_length", m->head_dim);
    write_u32(m, w, "attention.value_length", m->head_dim);
    write_f32(m, w, "attention.layer_norm_rms_epsilon", 1e-5f);
    write_f32(m, w, "attention.layer_norm_epsilon", 1e-5f);
    write_u32(m, w, "rope.dimension_count", m->head_dim);
    write_f32(m, w, "rope.freq_base", 500000.0f);
    if (m->window) write_u32(m, w, "attention.sliding_window", m->window);
    if (m->n_expert) {
        write_u32(m, w, "expert_count", m->n_expert);
        write_u32(m, w, "expert_used_count", m->n_expert_used);
    }
    char list[2048], *rest = list, *word;
    snprintf(list, sizeof list, "%s", m->keys ? m->keys : "");
    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = '\0';
        write_key(m, w, word, value);
    }
}

/* ---- Tensors: those of the rows of models/, for a model with these keys ---- */

enum content { MATRIX, NORM, BIAS, DECAY, IDS, LONGS };

struct planned {
    char name[MODEL_TENSOR_NAME];
    char values[MODEL_TENSOR_NAME]; /* the name that seeds its values, */
    uint64_t skipped;               /* after this many rows */
    size_t index;                   /* in the plan */
    uint64_t part; /* stack in the file: 1 + expert if experts are stored one by one */
    const struct quant_type *type;
    enum content content;
    float shift; /* of the values */
    uint32_t n_dims;
    uint64_t ne[4];
};

struct plan {
    const struct support_model *m;
    const struct model_params *p;
    struct planned *tensor;
    size_t count, room;
    bool failed; /* no memory */
};

/* The layers whose attn_v and ffn_down have the finer type in llama.cpp's "_M" mixes: the first and
 * last eighth and every third between. */
static bool is_finer_layer(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static const struct quant_type *type_of(const struct support_model *m, const char *row,
                                        const char *prefix, uint64_t ne0)
{
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    unsigned layer = 0;
    const bool in_layer = sscanf(prefix, "blk.%u.", &layer) == 1;
    const bool coarse =
        in_layer ? (strncmp(row, "attn_v", 6) != 0 && strncmp(row, "ffn_down", 8) != 0) ||
                       !is_finer_layer(layer, m->n_layer)
                 : strcmp(row, "token_embd") == 0 && !m->tied;
    const bool expert = m->expert_type && strncmp(row, "ffn_", 4) == 0 && strstr(row, "_exps");
    const struct quant_type *type = expert                ? m->expert_type
                                    : m->finer && !coarse ? m->finer
                                                          : m->type;
    const bool small = strncmp(row, "ffn_gate_inp", 12) == 0 || ne0 % type->block_len;
    return small ? f32 : type;
}

/* Returns the number of NAME.bias=NUMBER in a list of words, for one layer PREFIX (NAME.bias) or
 * for all; 0 if it is not there. */
static float shift_of(const char *list, const char *prefix, const char *name)
{
    char word[80];
    for (int all = 0; all < 2; all++) {
        const int n = snprintf(word, sizeof word, "%s%s.bias=", all ? "" : prefix, name);
        for (const char *at = list; at && (at = strstr(at, word)); at += n)
            if (at == list || at[-1] == ' ') return strtof(at + n, NULL);
    }
    return 0.0f;
}

static void plan_add(struct plan *plan, const struct model_tensor_row *row, const char *prefix,
                     const char *part, enum content content, const uint64_t ne[3])
{
    if (plan->count == plan->room) {
        plan->room = plan->room * 2 + 64;
        struct planned *more = realloc(plan->tensor, plan->room * sizeof *more);
        plan->failed = !more;
        if (!more) return;
        plan->tensor = more;
    }
    struct planned *t = &plan->tensor[plan->count++];
    *t = (struct planned){.content = content, .index = plan->count, .ne = {ne[0], ne[1], ne[2], 1}};
    t->n_dims = ne[2] > 1 ? 3 : ne[1] > 1 || content == MATRIX || content == IDS ? 2 : 1;
    t->type = content == MATRIX ? type_of(plan->m, row->name, prefix, ne[0])
                                : quant_type_by_id(content == IDS     ? QUANT_I32
                                                   : content == LONGS ? QUANT_I64
                                                                      : QUANT_F32);
    model_tensor_name(plan->p, prefix, row->name, part, t->name);
    if (strcmp(t->name, prefix) == 0) /* a tensor of files that the model ignores */
        snprintf(t->name, sizeof t->name, "%s%s.%s", prefix, row->name, part);
    memcpy(t->values, t->name, sizeof t->values);
    if (content == BIAS) t->shift = shift_of(plan->m->shift, prefix, row->name);
    if (content == LONGS) t->shift = (float)plan->m->n_vocab;
    if (content == IDS) { /* different experts for each token id */
        t->ne[1] = plan->m->n_vocab;
        t->shift = (float)plan->m->n_expert;
    }
}

/* Replaces the last planned stack by one tensor for each expert. */
static void plan_one_by_one(struct plan *plan, const struct model_tensor_row *row,
                            const char *prefix)
{
    const struct planned stack = plan->tensor[--plan->count];
    for (uint64_t e = 0; e < stack.ne[2] && !plan->failed; e++) {
        plan_add(plan, row, prefix, "weight", MATRIX,
                 (const uint64_t[3]){stack.ne[0], stack.ne[1], 1});
        if (plan->failed) return;
        struct planned *t = &plan->tensor[plan->count - 1];
        snprintf(t->name, sizeof t->name, "%s%.*s.%u.weight", prefix,
                 (int)(strlen(row->name) - strlen("_exps")), row->name, (unsigned)e);
        t->skipped = e * stack.ne[1];
        t->part = e + 1;
    }
}

/* Whether the options include an optional tensor. */
static bool is_chosen(const struct support_model *m, const char *name)
{
    static const char biases[] = "attn_q.bias attn_k.bias attn_v.bias attn_qkv.bias";
    return has_word(m->with, name) || (strcmp(name, "token_embd.weight") == 0 && !is_drafter(m)) ||
           (m->fused_qkv && strcmp(name, "attn_qkv.weight") == 0) ||
           (m->biases && has_word(biases, name)) ||
           (!m->tied && !is_drafter(m) && strcmp(name, "output.weight") == 0);
}

/* Plans the scale of a row, or that of each run of its layer. */
static void plan_scale(struct plan *plan, const struct model_tensor_row *row, const char *prefix,
                       uint64_t depth)
{
    const struct model_params *p = plan->p;
    unsigned layer = 0;
    const bool by_run = p->scales_by_run && sscanf(prefix, "blk.%u.", &layer) == 1;
    for (uint32_t i = 0; i < (by_run ? p->n_run : 1) && !plan->failed; i++) {
        char of_run[32];
        if (by_run && model_run_layer(p, i) != layer) continue;
        snprintf(of_run, sizeof of_run, "blk.%u.", (unsigned)i);
        plan_add(plan, row, by_run ? of_run : prefix, "scale", NORM,
                 (const uint64_t[3]){depth, 1, 1});
    }
}

/* A visitor of rows: plans the row's tensors. */
static bool plan_row(void *user, const struct model_tensor_row *row, const char *prefix, void *self)
{
    struct plan *plan = user;
    struct model_linear *other = row->unless ? (void *)((char *)self + row->unless - 1) : NULL;
    const uint64_t depth = model_row_size(self, row->depth);
    const bool transposed = row->kind == MODEL_TRANSPOSED;
    const uint64_t ne[3] = {model_row_size(self, transposed ? row->outputs : row->inputs),
                            model_row_size(self, transposed ? row->inputs : row->outputs), depth};
    const bool is_scale = row->kind == MODEL_SCALE;
    const bool is_slices = row->kind == MODEL_SLICES;
    const bool is_vector = is_scale || is_slices || row->kind == MODEL_VECTOR ||
                           row->kind == MODEL_TAPS || row->kind == MODEL_BIAS ||
                           row->kind == MODEL_NORM;
    const char *part = row->kind == MODEL_BIAS ? "bias" : is_scale ? "scale" : "weight";
    char name[64];
    snprintf(name, sizeof name, "%s.%s", row->name, part);
    if (!is_chosen(plan->m, name) &&
        (row->need == MODEL_OPTIONAL || (other && other->weight != NULL)))
        return true;
    const bool decays = strcmp(row->name, "ssm_a") == 0;
    plan_add(plan, row, prefix, part,
             decays                     ? DECAY
             : row->kind == MODEL_BIAS  ? BIAS
             : row->kind == MODEL_IDS   ? IDS
             : row->kind == MODEL_LONGS ? LONGS
             : is_vector                ? NORM
                                        : MATRIX,
             ne);
    if (is_slices && !plan->failed) {
        struct planned *t = &plan->tensor[plan->count - 1];
        t->n_dims = 4;
        t->ne[3] = t->ne[1];
        t->ne[1] = 1;
    }
    if (row->kind == MODEL_STACK && plan->m->experts != SUPPORT_STACKED && !plan->failed)
        plan_one_by_one(plan, row, prefix);
    /* Marks the weight as present, for rows that are required only without it; nothing reads the
     * tensor. */
    static struct engine_tensor there;
    if (is_slices) *(struct engine_tensor **)((char *)self + row->field - 1) = &there;
    if (row->kind != MODEL_NORM && (is_vector || row->kind == MODEL_MATRIX ||
                                    row->kind == MODEL_IDS || row->kind == MODEL_LONGS))
        return !plan->failed;
    if (row->kind != MODEL_NORM)
        ((struct model_linear *)((char *)self + row->field - 1))->weight = &there;
    snprintf(name, sizeof name, "%s.bias", row->name);
    if (is_chosen(plan->m, name))
        plan_add(plan, row, prefix, "bias", BIAS,
                 is_vector ? ne : (const uint64_t[3]){ne[transposed ? 0 : 1], depth, 1});
    snprintf(name, sizeof name, "%s.scale", row->name);
    if (is_chosen(plan->m, name)) plan_scale(plan, row, prefix, depth);
    return !plan->failed;
}

static bool plan_beside(struct plan *plan)
{
    static const struct model_tensor_row row = {.name = ""};
    char list[2048], *rest = list, *word;
    snprintf(list, sizeof list, "%s", plan->m->beside ? plan->m->beside : "");
    while (!plan->failed && (word = strsep(&rest, " "))) {
        if (!*word) continue;
        const size_t before = plan->count;
        plan_add(plan, &row, "", "", NORM, (const uint64_t[3]){8, 1, 1});
        if (plan->count > before)
            snprintf(plan->tensor[before].name, sizeof plan->tensor[before].name, "%s", word);
    }
    return !plan->failed;
}

enum { MAX_WORDS = 2048 };

/* Adds to a plan's file the tensors of m->with that name a layer or a number of rows:
 * "blk.0.ffn_up.weight" with one row, "token_types.weight=2" with two. Returns their number of
 * rows. */
static uint64_t add_placeholders(const struct support_model *m, struct gguf_writer *w,
                                 char names[MAX_WORDS])
{
    uint64_t total = 0;
    char *rest = names, *word;
    snprintf(names, MAX_WORDS, "%s", m->with ? m->with : "");
    while ((word = strsep(&rest, " "))) {
        char *rows = strchr(word, '=');
        if (strncmp(word, "blk.", 4) != 0 && !rows) continue;
        if (rows) *rows++ = '\0';
        const uint64_t n = rows ? strtoull(rows, NULL, 10) : 1;
        gguf_writer_tensor(w, (struct gguf_str){word, strlen(word)}, quant_type_by_id(QUANT_F32), 2,
                           (uint64_t[]){m->n_embd, n});
        total += n;
    }
    return total;
}

/* Writes a file with the model's keys and these tensors: an embedding of one row, one more for each
 * layer, and the tensors of a layer that the options name. Then reads its model parameters, whose
 * rows define the tensors of the model. */
static bool plan_model(struct plan *plan, const char *path, struct base_error *err)
{
    const struct support_model *m = plan->m;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    struct gguf_writer *w = gguf_writer_new(err);
    float *row = calloc(m->n_embd, sizeof *row);
    struct model_params p = {0};
    char names[MAX_WORDS];
    uint64_t rows = m->n_layer + 1;
    bool done = w && row;
    /* Layers with this tensor have a plain network in addition to experts. */
    const bool plain = has_word(m->with, "ffn_up.weight");
    if (done) write_keys(m, w);
    for (uint32_t i = 0; done && i <= m->n_layer; i++) {
        char name[32];
        snprintf(name, sizeof name,
                 !i      ? "token_embd.weight"
                 : plain ? "blk.%u.ffn_up.weight"
                         : "layer.%u",
                 plain ? i - 1 : i);
        gguf_writer_tensor(w, (struct gguf_str){name, strlen(name)}, f32, 2,
                           (uint64_t[]){m->n_embd, 1});
    }
    if (done) rows += add_placeholders(m, w, names);
    done = done && gguf_writer_begin(w, path, err);
    for (uint64_t i = 0; done && i < rows; i++)
        done = gguf_writer_data(w, row, m->n_embd * sizeof *row, err);
    done = done && gguf_writer_end(w, err);
    struct gguf_file *file = done ? gguf_open(path, err) : NULL;
    if (done) unlink(path);
    done = file && (is_drafter(m) ? model_params_read_drafter(&p, file, err)
                                  : model_params_read(&p, file, err));
    if (done) {
        p.n_vocab = p.ends.n_vocab = p.mtp.n_vocab = m->n_vocab;
        if (p.ends.n_output && !is_drafter(m)) p.ends.n_output = m->n_vocab;
        plan->p = &p;
        done = (model_rows_visit(&p, plan_row, plan) && plan_beside(plan)) ||
               base_fail(err, BASE_NO_MEMORY, "no memory for the list of tensors");
        model_params_free(&p);
    }
    gguf_close(file);
    gguf_writer_free(w);
    free(row);
    return done;
}

/* One row of random values; products with matrices preserve magnitudes. */
static void fill_row(const struct planned *t, struct sample_random *r, float *row)
{
    const float scale = t->content == MATRIX ? 1.0f / sqrtf((float)t->ne[0]) : 0.1f;
    const float mean = t->content == NORM ? 1.0f : t->content == DECAY ? -1.0f : t->shift;
    for (uint64_t i = 0; i < t->ne[0]; i++) row[i] = mean + scale * random_normal(r);
}

/* One row of different ids below t->shift. */
static void fill_ids(const struct planned *t, struct sample_random *r, int32_t *row)
{
    const uint32_t first = sample_random_u32(r);
    for (uint32_t i = 0; i < t->ne[0]; i++)
        row[i] = (int32_t)((first % 1024 + i) % (uint32_t)t->shift);
}

/* A row of ascending ids below t->shift. */
static void fill_longs(const struct planned *t, int64_t *row)
{
    const int64_t step = (int64_t)t->shift / (int64_t)t->ne[0];
    for (uint64_t i = 0; i < t->ne[0]; i++) row[i] = (int64_t)i * step + (step > 1);
}

/* Writes new rows, or, after the first `distinct`, random ones of these. */
static bool write_rows(struct gguf_writer *w, const struct planned *t, uint64_t distinct,
                       struct sample_random *random, float *values, unsigned char *pool,
                       struct base_error *err)
{
    uint64_t rows = (t->ne[1] ? t->ne[1] : 1) * (t->ne[2] ? t->ne[2] : 1) * t->ne[3];
    const uint64_t row_bytes = (uint64_t)quant_row_size(t->type, (int64_t)t->ne[0]);
    for (uint64_t i = 0; i < t->skipped; i++) fill_row(t, random, values);
    for (uint64_t i = 0; i < rows; i++) {
        unsigned char *row = pool;
        if (distinct && i >= distinct) {
            row += sample_random_u32(random) % distinct * row_bytes;
        } else {
            row += distinct ? i * row_bytes : 0;
            if (t->content == IDS || t->content == LONGS) {
                if (t->content == IDS)
                    fill_ids(t, random, (int32_t *)(void *)row);
                else
                    fill_longs(t, (int64_t *)(void *)row);
                if (!gguf_writer_data(w, row, row_bytes, err)) return false;
                continue;
            }
            fill_row(t, random, values);
            support_row_make(t->type, (int64_t)t->ne[0], values, row);
        }
        if (!gguf_writer_data(w, row, row_bytes, err)) return false;
    }
    return true;
}

static bool write_tensor(struct gguf_writer *w, const struct planned *t, uint64_t distinct,
                         uint64_t seed, struct base_error *err)
{
    uint64_t row_bytes;
    if (!quant_row_bytes(t->type, t->ne[0], &row_bytes)) {
        return base_fail_at(err, BASE_USAGE, t->name, -1, "rows are not whole blocks of %s",
                            t->type->name);
    }
    struct sample_random random = support_model_random(seed);
    float *values = malloc(t->ne[0] * sizeof *values);
    unsigned char *pool = calloc(distinct ? distinct : 1, row_bytes);
    bool done = values && pool ? write_rows(w, t, distinct, &random, values, pool, err)
                               : base_fail(err, BASE_NO_MEMORY, "no memory for rows of weights");
    free(values);
    free(pool);
    return done;
}

/* FNV-1a (Fowler, Noll, Vo): a tensor's values depend on its name and the seed. */
static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

/* Expert 0 of each stack, then expert 1 of each. */
static int by_part(const void *a, const void *b)
{
    const struct planned *p = a, *q = b;
    if (p->part != q->part) return p->part < q->part ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static const struct planned *planned_at(const struct plan *plan, size_t i)
{
    return &plan->tensor[plan->m->experts == SUPPORT_REVERSED ? plan->count - 1 - i : i];
}

static bool write_model(const struct support_model *m, struct gguf_writer *w,
                        const struct plan *plan, const char *path, struct base_error *err)
{
    qsort(plan->tensor, plan->count, sizeof *plan->tensor, by_part);
    write_keys(m, w);
    if (!support_model_write_tokens(m, w, err)) return false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned *t = planned_at(plan, i);
        struct gguf_str name = {.data = t->name, .size = strlen(t->name)};
        if (!t->type->act && t->content != IDS && t->content != LONGS) {
            return base_fail_at(err, BASE_USAGE, t->name, -1, "%s cannot be written",
                                t->type->name);
        }
        gguf_writer_tensor(w, name, t->type, t->n_dims, t->ne);
    }
    if (!gguf_writer_begin(w, path, err)) return false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned *t = planned_at(plan, i);
        if (!write_tensor(w, t, m->distinct_rows, m->seed + hash_of(t->values), err)) return false;
    }
    return gguf_writer_end(w, err);
}

bool support_model_write(const struct support_model *m, const char *path, struct base_error *err)
{
    struct plan plan = {.m = m};
    if (!m->type || m->n_layer == 0 || m->n_head == 0 || m->n_head_kv == 0 ||
        m->n_head % m->n_head_kv || m->head_dim % 2 || m->n_expert < m->n_expert_used) {
        return base_fail(err, BASE_USAGE, "these options make no model");
    }
    struct gguf_writer *w = gguf_writer_new(err);
    bool done = w && plan_model(&plan, path, err) && write_model(m, w, &plan, path, err);
    gguf_writer_free(w);
    free(plan.tensor);
    return done;
}
