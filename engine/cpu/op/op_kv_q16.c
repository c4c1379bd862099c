/* engine/cpu/op/op_kv_q16.c: stores rows in an int16-quantized KV cache (engine/graph.h). */
#include "engine/cpu/cpu_plan.h"
#include "engine/cpu/isa/attn.h"
#include "engine/cpu/op/op_rows.h"
#include "engine/graph.h"
#include "engine/ops.h"
#include <string.h>

_Static_assert((int)ENGINE_KV_Q16_GROUP == (int)ENGINE_ATTN_GROUP, "the groups of attention");
_Static_assert((int)ENGINE_KV_Q16_ALIGN == (int)ENGINE_ATTN_SUB, "the sub-blocks of attention");

/* A cache of a 16-bit type stores the int16-quantized form that the attention kernels multiply. */
struct engine_kv_form engine_cpu_kv_form(enum engine_kv_q16 what, const struct quant_type *type,
                                         uint32_t size)
{
    struct engine_kv_form form = {
        .what = what, .size = size, .rows = 1, .type = type, .elements = size};
    if (type->block_len == 1 && type->block_bytes == 2) {
        form.is_coded = true;
        form.rows = ENGINE_KV_Q16_GROUP;
        form.type = quant_type_by_id(QUANT_I8);
        form.elements = what == ENGINE_KV_Q16_KEYS ? engine_attn_key_bytes(size)
                                                   : engine_attn_value_bytes(size);
    }
    return form;
}

void engine_cpu_kv_copy(const struct engine_place *place, const struct engine_kv_form *form,
                        char *to, uint32_t to_row, const char *from, uint32_t from_row)
{
    (void)place;
    if (!form->is_coded)
        memcpy(to, from, (size_t)form->bytes);
    else if (form->what == ENGINE_KV_Q16_KEYS)
        engine_attn_key_copy(form->size, from, from_row, to, to_row);
    else
        engine_attn_value_copy(form->size, from, from_row, to, to_row);
}

enum { BUFFER_ROW, BUFFER_ROUNDED, BUFFER_CODES, BUFFERS };

static int64_t set_kv_q16_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, BUFFERS, dst->src[0]->ne[0] + 1);
}

/* Stores one row of x in its slot. */
static void set_row(const struct engine_task *task, struct engine_tensor *dst, int64_t slot,
                    struct engine_piece at)
{
    const struct quant_type *as = quant_type_by_id(dst->params.set_kv_q16.as);
    const struct engine_tensor *x = dst->src[0];
    const int64_t d = x->ne[0];
    float *rounded = engine_scratch_buffer(task, d + 1, BUFFER_ROUNDED);
    int16_t *codes = (int16_t *)(void *)engine_scratch_buffer(task, d + 1, BUFFER_CODES);
    const float *row =
        engine_piece_load(task->cpu, x, &at, engine_scratch_buffer(task, d + 1, BUFFER_ROW));
    char *group = dst->data + slot / ENGINE_ATTN_GROUP * dst->nb[1] + at.i2 * dst->nb[2];
    quant_encode(&task->cpu->quant, as->id, d, row, NULL, codes);
    task->cpu->quant.type[as->id].decode(0, d, codes, rounded);
    const struct engine_attn *attn = engine_attn_table(task->cpu->quant.level);
    if (dst->params.set_kv_q16.what == ENGINE_KV_Q16_KEYS) {
        const float scale = attn->row(d, rounded, ENGINE_ATTN_KEY, codes);
        engine_attn_key_put(d, codes, scale, group, slot % ENGINE_ATTN_GROUP);
    } else {
        const float scale = attn->row(d, rounded, ENGINE_ATTN_VALUE, codes);
        engine_attn_value_put(d, codes, scale, group, slot % ENGINE_ATTN_GROUP);
    }
}

/* Prefetches all cache lines of the groups of a slot. A row has elements in each line of its group,
 * and the lines may have been evicted since the last row was stored; stores without prefetches
 * would wait for one line after the other. */
static void prefetch_groups(const struct engine_tensor *dst, int64_t slot)
{
    for (int64_t head = 0; head < dst->ne[2]; head++) {
        const char *group = dst->data + slot / ENGINE_ATTN_GROUP * dst->nb[1] + head * dst->nb[2];
        for (int64_t i = 0; i < dst->ne[0]; i += 64) __builtin_prefetch(group + i, 1);
    }
}

/* A worker stores consecutive tokens, whose rows it most likely has computed. */
static void set_kv_q16_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *x = dst->src[0], *slots = dst->src[2];
    const int64_t n_slots = dst->ne[1] * ENGINE_ATTN_GROUP;
    int64_t group = -1;
    for (int64_t t, last = engine_task_rows(task, x->ne[1], &t); t < last; t++) {
        const int32_t slot = *(const int32_t *)(const void *)(slots->data + t * slots->nb[0]);
        if (slot < 0 || slot >= n_slots) continue;
        if (slot / ENGINE_ATTN_GROUP != group) prefetch_groups(dst, slot);
        group = slot / ENGINE_ATTN_GROUP;
        for (int64_t head = 0; head < x->ne[2]; head++)
            set_row(task, dst, slot, engine_row_at(x, head * x->ne[1] + t));
    }
}

ENGINE_CPU_ROWS_OP(set_kv_q16, set_kv_q16_scratch, set_kv_q16_run);
