/* test/support_model.c: see test/support_model.h. */
#include "test/support_model.h"
#include "test/support_row.h"

#include "base/buffer.h"
#include "base/utf8.h"
#include "models/arch/arch.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random numbers ---- */

uint32_t support_random_u32(struct support_random *r)
{
    uint64_t old = r->state;
    r->state = old * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

struct support_random support_random_new(uint64_t seed)
{
    struct support_random r = {.state = 0};
    support_random_u32(&r);
    r.state += seed;
    support_random_u32(&r);
    return r;
}

float support_random_normal(struct support_random *r)
{
    uint32_t a = support_random_u32(r), b = support_random_u32(r);
    int32_t sum = (int32_t)((a >> 16) + (a & 0xffff) + (b >> 16) + (b & 0xffff)) - 2 * 65535;
    return (float)sum * (1.7320508f / 65536.0f); /* variance of the sum: 4 / 12 of 65536^2 */
}

/* ---- Options ---- */

/* What the table says of an architecture: a new row has a random model without a change here,
 * unless its features bring tensors of their own. */
static struct model_arch arch_of(const char *name)
{
    const char *spelled;
    const struct model_arch *row = model_arch_find((struct gguf_str){name, strlen(name)}, &spelled);
    return row ? *row : (struct model_arch){0};
}

struct support_model support_model_default(const char *arch)
{
    const struct model_arch row = arch_of(arch);
    const bool windowed = row.attn.window.rule == MODEL_WINDOW_PERIOD;
    return (struct support_model){
        .arch = arch,
        .seed = 1,
        .n_layer = windowed ? row.attn.window.period + 1 : 2,
        .n_embd = 64,
        .n_head = 4,
        .n_head_kv = 2,
        .head_dim = 16,
        .n_ff = 128,
        .n_vocab = 300,
        .n_ctx = 256,
        .window = windowed ? 8 : 0,
        .type = quant_type_by_id(QUANT_F32),
        .tied = row.ends.embd_scale == MODEL_EMBD_SQRT,
        .biases = strcmp(arch, "qwen2") == 0,
    };
}

/* ---- Vocabularies ---- */

struct token_list {
    struct base_buffer text;
    uint64_t *start; /* [n_vocab + 1], into text */
    struct gguf_str *piece;
    float *score;
    int32_t *kind;
    uint32_t count, room;
};

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6 };

static void add_token(struct token_list *list, const char *text, size_t size, int kind)
{
    if (list->count < list->room) {
        list->start[list->count] = list->text.size;
        list->kind[list->count] = kind;
        list->score[list->count] = kind == NORMAL ? -(float)list->count : 0.0f;
        base_buffer_add(&list->text, text, size);
    }
    list->count++; /* counted beyond the room too, so that the caller sees what was wanted */
}

static void add_word(struct token_list *list, const char *text, int kind)
{
    add_token(list, text, strlen(text), kind);
}

/* GPT-2 writes bytes as printable characters: those that are not go to U+0100 and up. */
static void add_byte_letters(struct token_list *list)
{
    int32_t moved = 256;
    for (int32_t byte = 0; byte < 256; byte++) {
        bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        char utf8[4];
        size_t size = base_utf8_encode(printable ? byte : moved++, utf8);
        add_token(list, utf8, size, NORMAL);
    }
}

/* U+0120 stands for a space in GPT-2's alphabet. */
static const char *const merges[] = {"t h",  "i n",        "e r",         "a n",
                                     "th e", "\xc4\xa0 a", "\xc4\xa0 the"};
enum { MERGES = sizeof merges / sizeof *merges };

static uint32_t add_bpe(struct token_list *list)
{
    add_byte_letters(list);
    for (int i = 0; i < MERGES; i++) {
        char joined[16];
        const char *space = strchr(merges[i], ' ');
        snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        add_word(list, joined, NORMAL);
    }
    uint32_t first_control = list->count;
    add_word(list, "<|endoftext|>", CONTROL);
    add_word(list, "<|im_start|>", CONTROL);
    add_word(list, "<|im_end|>", CONTROL);
    return first_control;
}

static void add_spm(struct token_list *list)
{
    static const char *const words[] = {"\xe2\x96\x81", "th", "the", "\xe2\x96\x81the", "in"};
    char text[8];
    add_word(list, "<unk>", UNKNOWN);
    add_word(list, "<s>", CONTROL);
    add_word(list, "</s>", CONTROL);
    for (int byte = 0; byte < 256; byte++) {
        snprintf(text, sizeof text, "<0x%02X>", byte);
        add_word(list, text, BYTE);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(list, words[i], NORMAL);
    for (char c = 'a'; c <= 'z'; c++) add_token(list, &c, 1, NORMAL);
    for (char c = 'A'; c <= 'Z'; c++) add_token(list, &c, 1, NORMAL);
}

static void write_token_ids(struct gguf_writer *w, uint32_t bos, uint32_t eos)
{
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", bos);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", eos);
    gguf_writer_u32(w, "tokenizer.ggml.padding_token_id", bos);
}

static void write_bpe_keys(struct gguf_writer *w, uint32_t first_control)
{
    struct gguf_str items[MERGES];
    for (int i = 0; i < MERGES; i++) {
        items[i] = (struct gguf_str){.data = merges[i], .size = strlen(merges[i])};
    }
    gguf_writer_str(w, "tokenizer.ggml.model", "gpt2", 4);
    gguf_writer_str(w, "tokenizer.ggml.pre", "gpt-2", 5);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", items, MERGES);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    write_token_ids(w, first_control, first_control + 2);
}

static void write_spm_keys(struct gguf_writer *w, const struct token_list *list)
{
    gguf_writer_str(w, "tokenizer.ggml.model", "llama", 5);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, list->score, list->room);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    write_token_ids(w, 1, 2);
}

static bool fill_tokens(struct token_list *list, const struct support_model *m,
                        struct gguf_writer *w, struct base_error *err)
{
    bool bpe = m->tokens == SUPPORT_TOKENS_BPE;
    uint32_t first_control = 0;
    if (bpe) {
        first_control = add_bpe(list);
    } else {
        add_spm(list);
    }
    if (list->count > list->room) {
        return base_fail(err, BASE_USAGE, "this vocabulary needs %u tokens at least", list->count);
    }
    while (list->count < list->room) {
        char text[32];
        snprintf(text, sizeof text, "<unused%u>", list->count);
        add_word(list, text, UNUSED);
    }
    list->start[list->count] = list->text.size;
    for (uint32_t i = 0; i < list->count; i++) {
        list->piece[i] = (struct gguf_str){.data = list->text.data + list->start[i],
                                           .size = list->start[i + 1] - list->start[i]};
    }
    if (list->text.failed) return base_fail(err, BASE_NO_MEMORY, "no memory for the vocabulary");
    gguf_writer_str_array(w, "tokenizer.ggml.tokens", list->piece, list->count);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, list->kind, list->count);
    if (bpe) {
        write_bpe_keys(w, first_control);
    } else {
        write_spm_keys(w, list);
    }
    return true;
}

static bool write_tokens(const struct support_model *m, struct gguf_writer *w,
                         struct base_error *err)
{
    if (m->tokens == SUPPORT_TOKENS_NONE) {
        gguf_writer_str(w, "tokenizer.ggml.model", "no_vocab", 8);
        return true;
    }
    struct token_list list = {.text = BASE_BUFFER_INIT, .room = m->n_vocab};
    list.start = calloc(m->n_vocab + (size_t)1, sizeof *list.start);
    list.piece = calloc(m->n_vocab, sizeof *list.piece);
    list.score = calloc(m->n_vocab, sizeof *list.score);
    list.kind = calloc(m->n_vocab, sizeof *list.kind);
    bool done = list.start && list.piece && list.score && list.kind;
    done = done ? fill_tokens(&list, m, w, err)
                : base_fail(err, BASE_NO_MEMORY, "no memory for the vocabulary");
    free(list.start);
    free(list.piece);
    free(list.score);
    free(list.kind);
    base_buffer_free(&list.text);
    return done;
}

/* ---- Metadata ---- */

static void write_u32(struct gguf_writer *w, const char *arch, const char *key, uint32_t value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", arch, key);
    gguf_writer_u32(w, full, value);
}

static void write_f32(struct gguf_writer *w, const char *arch, const char *key, float value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", arch, key);
    gguf_writer_f32(w, full, value);
}

static void write_numbers(const struct support_model *m, struct gguf_writer *w)
{
    const char *arch = m->arch;
    gguf_writer_str(w, "general.architecture", arch, strlen(arch));
    gguf_writer_str(w, "general.name", "random", 6);
    gguf_writer_u32(w, "general.quantization_version", 2);
    write_u32(w, arch, "context_length", m->n_ctx);
    write_u32(w, arch, "embedding_length", m->n_embd);
    write_u32(w, arch, "block_count", m->n_layer);
    write_u32(w, arch, "feed_forward_length", m->n_ff);
    write_u32(w, arch, "vocab_size", m->n_vocab);
    write_u32(w, arch, "attention.head_count", m->n_head);
    write_u32(w, arch, "attention.head_count_kv", m->n_head_kv);
    write_u32(w, arch, "attention.key_length", m->head_dim);
    write_u32(w, arch, "attention.value_length", m->head_dim);
    write_f32(w, arch, "attention.layer_norm_rms_epsilon", 1e-5f);
    write_u32(w, arch, "rope.dimension_count", m->head_dim);
    write_f32(w, arch, "rope.freq_base", 500000.0f);
    if (m->window) write_u32(w, arch, "attention.sliding_window", m->window);
    if (m->n_expert) {
        write_u32(w, arch, "expert_count", m->n_expert);
        write_u32(w, arch, "expert_used_count", m->n_expert_used);
    }
}

/* ---- Tensors ---- */

enum content { MATRIX, NORM, BIAS };

struct planned {
    char name[64];
    const struct quant_type *type;
    enum content content;
    uint32_t n_dims;
    uint64_t ne[3];
};

struct plan {
    struct planned *tensor;
    size_t count; /* room is made beforehand: 3 and 18 per layer */
};

enum { GLOBAL_TENSORS = 3, LAYER_TENSORS = 18 };

static void plan_add(struct plan *plan, int layer, const char *name, enum content content,
                     const struct quant_type *type, uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    struct planned *t = &plan->tensor[plan->count++];
    *t = (struct planned){.type = type, .content = content, .ne = {ne0, ne1, ne2}};
    t->n_dims = ne2 ? 3 : ne1 ? 2 : 1;
    if (content != MATRIX) t->type = quant_type_by_id(QUANT_F32);
    if (layer < 0) {
        snprintf(t->name, sizeof t->name, "%s", name);
    } else {
        snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
    }
}

/* The layers whose attn_v and ffn_down llama.cpp stores finer in its "_M" mixes: the first and last
 * eighth and every third between. */
static bool is_finer_layer(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static void plan_attention(struct plan *plan, const struct support_model *m, int i,
                           const struct quant_type *finer)
{
    const uint64_t embd = m->n_embd;
    const uint64_t q = (uint64_t)m->n_head * m->head_dim, kv = (uint64_t)m->n_head_kv * m->head_dim;
    const struct model_arch arch = arch_of(m->arch);
    plan_add(plan, i, "attn_norm.weight", NORM, NULL, embd, 0, 0);
    if (m->fused_qkv) {
        plan_add(plan, i, "attn_qkv.weight", MATRIX, m->type, embd, q + 2 * kv, 0);
        if (m->biases) plan_add(plan, i, "attn_qkv.bias", BIAS, NULL, q + 2 * kv, 0, 0);
    } else {
        plan_add(plan, i, "attn_q.weight", MATRIX, m->type, embd, q, 0);
        plan_add(plan, i, "attn_k.weight", MATRIX, m->type, embd, kv, 0);
        plan_add(plan, i, "attn_v.weight", MATRIX, finer, embd, kv, 0);
        if (m->biases) {
            plan_add(plan, i, "attn_q.bias", BIAS, NULL, q, 0, 0);
            plan_add(plan, i, "attn_k.bias", BIAS, NULL, kv, 0, 0);
            plan_add(plan, i, "attn_v.bias", BIAS, NULL, kv, 0, 0);
        }
    }
    if (arch.attn.qk_norm == MODEL_QK_NORM_HEAD) {
        plan_add(plan, i, "attn_q_norm.weight", NORM, NULL, m->head_dim, 0, 0);
        plan_add(plan, i, "attn_k_norm.weight", NORM, NULL, m->head_dim, 0, 0);
    }
    plan_add(plan, i, "attn_output.weight", MATRIX, m->type, q, embd, 0);
    if (arch.residual == MODEL_SANDWICH)
        plan_add(plan, i, "post_attention_norm.weight", NORM, NULL, embd, 0, 0);
}

static void plan_ffn(struct plan *plan, const struct support_model *m, int i,
                     const struct quant_type *finer)
{
    const uint64_t embd = m->n_embd, ff = m->n_ff, experts = m->n_expert;
    plan_add(plan, i, "ffn_norm.weight", NORM, NULL, embd, 0, 0);
    if (experts) {
        plan_add(plan, i, "ffn_gate_inp.weight", MATRIX, quant_type_by_id(QUANT_F32), embd, experts,
                 0);
        plan_add(plan, i, "ffn_gate_exps.weight", MATRIX, m->type, embd, ff, experts);
        plan_add(plan, i, "ffn_up_exps.weight", MATRIX, m->type, embd, ff, experts);
        plan_add(plan, i, "ffn_down_exps.weight", MATRIX, finer, ff, embd, experts);
    } else {
        plan_add(plan, i, "ffn_gate.weight", MATRIX, m->type, embd, ff, 0);
        plan_add(plan, i, "ffn_up.weight", MATRIX, m->type, embd, ff, 0);
        plan_add(plan, i, "ffn_down.weight", MATRIX, finer, ff, embd, 0);
    }
    if (arch_of(m->arch).residual == MODEL_SANDWICH) {
        plan_add(plan, i, "post_ffw_norm.weight", NORM, NULL, embd, 0, 0);
    }
}

static void plan_model(struct plan *plan, const struct support_model *m)
{
    const struct quant_type *finer = m->finer ? m->finer : m->type;
    plan_add(plan, -1, "token_embd.weight", MATRIX, m->tied ? finer : m->type, m->n_embd,
             m->n_vocab, 0);
    plan_add(plan, -1, "output_norm.weight", NORM, NULL, m->n_embd, 0, 0);
    if (!m->tied) plan_add(plan, -1, "output.weight", MATRIX, finer, m->n_embd, m->n_vocab, 0);
    for (uint32_t i = 0; i < m->n_layer; i++) {
        const struct quant_type *here = is_finer_layer(i, m->n_layer) ? finer : m->type;
        plan_attention(plan, m, (int)i, here);
        plan_ffn(plan, m, (int)i, here);
    }
}

/* One row of random values; matrices keep the size of what they multiply. */
static void fill_row(const struct planned *t, struct support_random *r, float *row)
{
    const float scale = t->content == MATRIX ? 1.0f / sqrtf((float)t->ne[0]) : 0.1f;
    const float mean = t->content == NORM ? 1.0f : 0.0f;
    for (uint64_t i = 0; i < t->ne[0]; i++) row[i] = mean + scale * support_random_normal(r);
}

/* Rows are written as they are made, or, after the first `distinct`, drawn from those. */
static bool write_rows(struct gguf_writer *w, const struct planned *t, uint64_t distinct,
                       struct support_random *random, float *values, unsigned char *pool,
                       struct base_error *err)
{
    uint64_t rows = (t->ne[1] ? t->ne[1] : 1) * (t->ne[2] ? t->ne[2] : 1);
    const uint64_t row_bytes = (uint64_t)quant_row_size(t->type, (int64_t)t->ne[0]);
    for (uint64_t i = 0; i < rows; i++) {
        unsigned char *row = pool;
        if (distinct && i >= distinct) {
            row += support_random_u32(random) % distinct * row_bytes;
        } else {
            row += distinct ? i * row_bytes : 0;
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
    struct support_random random = support_random_new(seed);
    float *values = malloc(t->ne[0] * sizeof *values);
    unsigned char *pool = calloc(distinct ? distinct : 1, row_bytes);
    bool done = values && pool ? write_rows(w, t, distinct, &random, values, pool, err)
                               : base_fail(err, BASE_NO_MEMORY, "no memory for rows of weights");
    free(values);
    free(pool);
    return done;
}

static bool write_model(const struct support_model *m, struct gguf_writer *w, struct plan *plan,
                        const char *path, struct base_error *err)
{
    plan_model(plan, m);
    write_numbers(m, w);
    if (!write_tokens(m, w, err)) return false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned *t = &plan->tensor[i];
        struct gguf_str name = {.data = t->name, .size = strlen(t->name)};
        if (!t->type->act) {
            return base_fail_at(err, BASE_USAGE, t->name, -1, "%s cannot be written",
                                t->type->name);
        }
        gguf_writer_tensor(w, name, t->type, t->n_dims, t->ne);
    }
    if (!gguf_writer_begin(w, path, err)) return false;
    for (size_t i = 0; i < plan->count; i++) {
        uint64_t seed = m->seed + i * UINT64_C(0x9e3779b97f4a7c15);
        if (!write_tensor(w, &plan->tensor[i], m->distinct_rows, seed, err)) return false;
    }
    return gguf_writer_end(w, err);
}

bool support_model_write(const struct support_model *m, const char *path, struct base_error *err)
{
    struct plan plan = {0};
    if (!m->type || m->n_layer == 0 || m->n_head == 0 || m->n_head_kv == 0 ||
        m->n_head % m->n_head_kv || m->head_dim % 2 || m->n_expert < m->n_expert_used) {
        return base_fail(err, BASE_USAGE, "these options make no model");
    }
    struct gguf_writer *w = gguf_writer_new(err);
    plan.tensor = calloc(GLOBAL_TENSORS + (size_t)LAYER_TENSORS * m->n_layer, sizeof *plan.tensor);
    if (w && !plan.tensor) base_fail(err, BASE_NO_MEMORY, "no memory for the list of tensors");
    bool done = w && plan.tensor && write_model(m, w, &plan, path, err);
    gguf_writer_free(w);
    free(plan.tensor);
    return done;
}
