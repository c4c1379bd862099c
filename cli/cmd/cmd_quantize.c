/* cli/cmd/cmd_quantize.c: `infer quantize`: converts a model's matrices to another type; `infer
 * merge-lora`: the same with adapters added to the decoded rows.
 *
 * quantize_plan.c determines the type of each tensor, quantize_target.c those of a target. All
 * threads decode and encode rows, a slab at a time, so memory does not grow with the model. Short
 * rows are converted several at a time, as one long row, because encoders work on up to 512
 * elements at once. */
#include "base/size.h"
#include "cli/cmd/lora_update.h"
#include "cli/cmd/quantize_error.h"
#include "cli/cmd/quantize_plan.h"
#include "cli/cmd/quantize_target.h"
#include "cli/imatrix.h"
#include "cli/model_copy.h"
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/cpu/cpu_device.h"
#include "gguf/gguf.h"
#include "quant/columns.h"
#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLAB_BYTES = 16 << 20, RUN_LEN = 1 << 14 };

struct quantize {
    const struct cli_values *values;
    struct gguf_file *in;
    struct gguf_writer *writer;
    struct engine_cpu *cpu;
    struct cli_quantize_plan plan;
    struct cli_imatrix imatrix;   /* --imatrix */
    bool merges;                  /* the command is merge-lora */
    struct cli_lora lora;         /* its adapters */
    struct gguf_tensor output;    /* a copy of the embeddings as output.weight; or no name */
    struct base_buffer path;      /* the model's file */
    const char *type;             /* the argument that is TYPE, or the target as text */
    char target[32];              /* the target as text; empty: none */
    uint64_t target_size;         /* --target-size */
    struct base_buffer named;     /* the output's path if no argument is one */
    const char *out;              /* NULL: --dry-run */
    struct base_buffer prefix;    /* --keep-split: prefix of the names of the parts */
    const struct quant_type **to; /* [tensors]: the new types, chosen before the data is written */
    double *error; /* [tensors]: relative errors of types chosen for a target, or -1 */
    struct cli_target_result result;
    struct cli_imatrix_names clamped; /* tensors with weights beyond the range of their type */
    float *row;                       /* [threads][2][longest row, RUN_LEN at least] */
    float *importance;                /* importance of a tensor, repeated for the rows of a run */
    uint64_t longest;
    char *slab; /* [SLAB_BYTES, or one row] */
    uint64_t slab_bytes;
    char *matrix, *columns; /* [matrix_bytes] of --columns: an encoded matrix and its copy */
    uint64_t matrix_bytes, matrix_at; /* the largest one; what of the current one is written */
};

struct quantize_job {
    const struct quantize *q;
    const struct quant_type *from, *to;
    const char *in;
    uint64_t in_row, out_row;   /* bytes */
    uint64_t len;               /* elements of a row, which here is a run of the tensor's rows */
    const float *importance;    /* [matrices][len]: importance for the tensor; NULL: none */
    uint64_t first, per_matrix; /* number of row 0 in the tensor; rows of a matrix */
    int64_t rows;
    const struct cli_lora_update *update; /* added to the rows of a run of one row */
    atomic_bool *broken;                  /* set if a row has NaN or infinity */
    atomic_bool *clamped; /* set if the type cannot represent a row's largest size */
};

/* The largest magnitude; infinity or NaN if there is one: bits of magnitudes are in their order. */
static float largest_of(const float *row, uint64_t n)
{
    uint32_t largest = 0;
    float size;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    memcpy(&size, &largest, sizeof size);
    return size;
}

static void encode_row(const struct quantize_job *j, uint64_t r, const float *row, void *out)
{
    const uint64_t matrix = (j->first + r) / j->per_matrix;
    quant_encode(&j->q->cpu->quant, j->to->id, (int64_t)j->len, row,
                 j->importance ? j->importance + matrix * j->len : NULL, out);
}

static void convert_rows(const struct engine_worker *w, void *user)
{
    const struct quantize_job *j = user;
    float *row = j->q->row + (uint64_t)w->ith * 2 * j->q->longest;
    void *room = row + j->q->longest;
    const struct quant_type *plain = quant_type_plain(j->from, j->len);
    for (int64_t r; (r = engine_pool_claim(w, 1)) < j->rows && !base_interrupted();) {
        const struct quant_kernel *kernel = j->q->cpu->quant.type;
        char *out = j->q->slab + (uint64_t)r * j->out_row;
        const char *in = j->in + (uint64_t)r * j->in_row;
        in = cli_quantize_decode_row(j->q->cpu, j->from, j->len, j->first + (uint64_t)r, in, room,
                                     row);
        cli_lora_add(j->update, &j->q->cpu->vec, j->first + (uint64_t)r, row);
        const float before = largest_of(row, j->len);
        float after = before;
        if (j->to) {
            if (j->to == plain && !j->update->n)
                memcpy(out, in, j->out_row);
            else
                encode_row(j, (uint64_t)r, row, out);
            kernel[j->to->id].decode(0, (int64_t)j->len, out, row); /* its range may be too small */
            after = largest_of(row, j->len);
        }
        if (!isfinite(before) || !isfinite(after)) atomic_store(j->broken, true);
        /* Scales of binary16 end at 65504. */
        if (before > 65504.0f && before > 2.0f * after) atomic_store(j->clamped, true);
    }
}

/* Returns the number of consecutive rows of a matrix that are converted as one. */
static uint64_t rows_of_run(const struct gguf_tensor *t, const struct quant_type *to)
{
    uint64_t n = 1;
    if (t->type->header_bytes || t->type->interleave || to->header_bytes) return 1;
    while (t->ne[1] % (2 * n) == 0 && t->ne[0] <= RUN_LEN / (2 * n)) n *= 2;
    return n;
}

/* Repeats the importance of each matrix `times` times. */
static bool repeat_importance(struct quantize *q, const struct cli_imatrix_entry *entry,
                              uint64_t len, uint64_t times, struct base_error *err)
{
    uint64_t bytes;
    float *all = base_mul(entry->count, times * sizeof *all, &bytes) ? malloc(bytes) : NULL;
    if (!all) return base_fail(err, BASE_NO_MEMORY, "not enough memory for an importance matrix");
    free(q->importance);
    q->importance = all;
    for (uint64_t at = 0; at < entry->count; at += len)
        for (uint64_t i = 0; i < times; i++, all += len)
            memcpy(all, entry->mean + at, len * sizeof *all);
    return true;
}

/* ---- Copies by columns (quant/columns.h) ---- */

static bool ends_with(struct gguf_str name, const char *end)
{
    const size_t n = strlen(end);
    return name.size >= n && !memcmp(name.data + name.size - n, end, n);
}

/* Returns whether tensor i of the input gets copies by columns of its matrices, *bytes bytes
 * together. */
static bool has_columns(const struct quantize *q, uint64_t i, uint64_t *bytes)
{
    const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
    return q->values->columns && t->ne[3] == 1 &&
           (ends_with(t->name, ".ffn_down.weight") || ends_with(t->name, ".ffn_down_exps.weight") ||
            ends_with(t->name, ".ffn_down_shexp.weight")) &&
           quant_columns_size(q->to[i], (int64_t)t->ne[0], (int64_t)t->ne[1], bytes) &&
           base_mul(*bytes, t->ne[2], bytes);
}

/* Appends the copies of tensor i, whose encoded rows are in q->matrix, to the file. */
static bool write_columns(struct quantize *q, uint64_t i, struct base_error *err)
{
    const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
    const int64_t row = quant_row_size(q->to[i], (int64_t)t->ne[0]), n_rows = (int64_t)t->ne[1];
    uint64_t bytes;
    if (!has_columns(q, i, &bytes)) return true;
    for (uint64_t e = 0, at = 0; e < t->ne[2]; e++, at += bytes / t->ne[2]) /* as large as rows */
        if (!quant_columns_make(q->to[i], (int64_t)t->ne[0], n_rows, q->matrix + at, row, 0, n_rows,
                                q->columns + at))
            return base_fail(err, BASE_FAILED, "%.*s: has weights that are not finite",
                             (int)t->name.size, t->name.data);
    return base_goes_on(err) && gguf_writer_data(q->writer, q->columns, bytes, err);
}

/* Announces the copy of tensor i, NAME.columns for NAME.weight. */
static bool announce_columns(struct quantize *q, uint64_t i, struct base_error *err)
{
    struct base_buffer name = BASE_BUFFER_INIT;
    const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
    uint64_t bytes;
    if (!has_columns(q, i, &bytes)) return true;
    base_buffer_add(&name, t->name.data, t->name.size - strlen("weight"));
    base_buffer_add_text(&name, "columns");
    const bool ok = cli_buffer_check(&name, err);
    if (ok)
        gguf_writer_tensor(q->writer, (struct gguf_str){name.data, name.size},
                           quant_type_by_id(QUANT_I8), 1, &bytes);
    base_buffer_free(&name);
    if (bytes > q->matrix_bytes) q->matrix_bytes = bytes;
    return ok;
}

/* Converts and writes a tensor; `to` NULL: copies it. NaN and infinity are errors, because they
 * make a model useless. */
static bool convert_with(struct quantize *q, const struct gguf_tensor *t,
                         const struct quant_type *to, const struct cli_lora_update *update,
                         struct base_error *err)
{
    atomic_bool broken = false, clamped = false;
    const uint64_t run = update->n ? 1 : rows_of_run(t, to ? to : t->type);
    struct quantize_job job = {.q = q,
                               .from = t->type,
                               .to = to,
                               .in = t->data,
                               .len = t->ne[0] * run,
                               .per_matrix = t->ne[1] / run,
                               .update = update,
                               .broken = &broken,
                               .clamped = &clamped};
    const struct cli_imatrix_entry *entry = cli_imatrix_find(&q->imatrix, t->name);
    if (to && entry) { /* choose_types has checked its size */
        if (!repeat_importance(q, entry, t->ne[0], run, err)) return false;
        job.importance = q->importance;
    }
    q->matrix_at = 0;
    uint64_t rows = job.per_matrix * t->ne[2] * t->ne[3]; /* the reader checked the product */
    if (!quant_row_bytes(t->type, job.len, &job.in_row) ||
        !quant_row_bytes(to ? to : t->type, job.len, &job.out_row))
        return base_fail(err, BASE_MODEL, "%.*s: its rows cannot be converted", (int)t->name.size,
                         t->name.data);
    const uint64_t most = q->slab_bytes / job.out_row;
    while (rows > 0) {
        job.rows = (int64_t)(rows < most ? rows : most);
        if (to || q->cpu->quant.type[t->type->id].decode)
            engine_pool_run(q->cpu->pool, convert_rows, &job);
        if (!base_goes_on(err)) return false; /* interrupted: some rows of the slab are missing */
        if (broken)
            return base_fail(err, BASE_FAILED, "%.*s: has weights that are not finite%s%s",
                             (int)t->name.size, t->name.data, to ? ", or would not be as " : "",
                             to ? to->name : "");
        const char *out = to ? q->slab : job.in;
        const uint64_t bytes = (uint64_t)job.rows * job.out_row;
        if (!gguf_writer_data(q->writer, out, bytes, err)) return false;
        if (q->matrix_at + bytes <= q->matrix_bytes) memcpy(q->matrix + q->matrix_at, out, bytes);
        q->matrix_at += bytes;
        job.in += (uint64_t)job.rows * job.in_row;
        job.first += (uint64_t)job.rows;
        cli_progress_add((uint64_t)job.rows * job.in_row);
        rows -= (uint64_t)job.rows;
    }
    if (clamped) cli_imatrix_names_add(&q->clamped, t->name);
    return true;
}

/* Converts the rows of a tensor, with the updates of the adapters if it is one of the model. */
static bool convert(struct quantize *q, const struct gguf_tensor *t, const struct quant_type *to,
                    struct base_error *err)
{
    struct cli_lora_update update = {0};
    bool ok = t == &q->output || cli_lora_read(&q->lora, t, &update, err);
    if (ok && update.n && !to) to = t->type;
    if (ok && update.n && !to->scalar.encode)
        ok = base_fail(err, BASE_USAGE, "%.*s: its type %s cannot be written: name another TYPE",
                       (int)t->name.size, t->name.data, to->name);
    ok = ok && convert_with(q, t, to, &update, err);
    cli_lora_update_free(&update);
    return ok;
}

/* ---- Before the data ---- */

static void copy_metadata(struct quantize *q)
{
    const bool copies = q->plan.mix && q->plan.mix->copies;
    const bool has_number = !*q->target && q->plan.file_type != CLI_FILE_TYPE_NONE;
    gguf_writer_copy_magic(q->writer, q->in);
    for (uint64_t i = 0; i < gguf_kv_count(q->in); i++) {
        const struct gguf_str key = gguf_kv_at(q->in, i)->key;
        /* No number stands for a mixture of our own and some types; readers then count the types.
         */
        if (!gguf_str_begins(key, "split.") &&
            (copies || has_number || !gguf_str_is(key, "general.file_type")))
            gguf_writer_copy_kv(q->writer, gguf_kv_at(q->in, i));
    }
    if (copies) return;
    if (has_number) gguf_writer_u32(q->writer, "general.file_type", q->plan.file_type);
    gguf_writer_u32(q->writer, "general.quantization_version", 2);
    if (!q->values->imatrix) return;
    const struct base_buffer *set = &q->imatrix.data_set;
    const char *file = q->values->imatrix;
    gguf_writer_str(q->writer, "quantize.imatrix.file", file, strlen(file));
    gguf_writer_str(q->writer, "quantize.imatrix.dataset", set->data ? set->data : "", set->size);
    gguf_writer_u32(q->writer, "quantize.imatrix.entries_count", (uint32_t)q->imatrix.n_entries);
    gguf_writer_u32(q->writer, "quantize.imatrix.chunks_count", q->imatrix.n_chunks);
}

static bool choose_types(struct quantize *q, struct base_error *err)
{
    const uint64_t count = gguf_tensor_count(q->in);
    q->to = calloc(count + 1, sizeof *q->to);
    if (!q->to) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of tensors");
    bool weighted = !q->values->imatrix;
    struct cli_imatrix_names without = {0};
    for (uint64_t i = 0; i < count; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        bool fell_back;
        const struct cli_imatrix_entry *entry = cli_imatrix_find(&q->imatrix, t->name);
        if (entry && entry->count != t->ne[0] * t->ne[2] * t->ne[3])
            return base_fail_at(err, BASE_USAGE, "--imatrix", -1,
                                "%.*s has %llu values there: a matrix of another model",
                                (int)t->name.size, t->name.data, (unsigned long long)entry->count);
        weighted |= entry != NULL;
        if (cli_quantize_is_copy(t)) continue;
        q->to[i] = cli_quantize_plan_type(&q->plan, i, &fell_back);
        if (!entry && q->to[i] != t->type && gguf_str_begins(t->name, "blk."))
            cli_imatrix_names_add(&without, t->name);
        if (fell_back && q->values->verbose)
            cli_note("%.*s: rows of %llu, so %s", (int)t->name.size, t->name.data,
                     (unsigned long long)t->ne[0], q->to[i]->name);
    }
    if (q->values->imatrix && weighted && without.count)
        cli_note("%s: no entry for %llu matrices, which are encoded without: %s",
                 q->values->imatrix, (unsigned long long)without.count, without.text);
    return weighted ||
           base_fail_at(err, BASE_USAGE, "--imatrix", -1,
                        "none of its tensors is in the model: a matrix of another model");
}

/* ---- A target ---- */

static bool start_cpu(struct quantize *q, struct base_error *err)
{
    struct engine_options o = engine_options_default();
    o.n_threads = (int)q->values->threads;
    q->cpu = engine_cpu_new(&o, err);
    return q->cpu != NULL;
}

/* Returns the bytes of the output that are not data of tensors; they do not depend on types. */
static bool head_size(struct quantize *q, uint64_t data, uint64_t *bytes, struct base_error *err)
{
    q->writer = gguf_writer_new(err);
    if (!q->writer) return false;
    copy_metadata(q);
    for (uint64_t i = 0; i < gguf_tensor_count(q->in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        if (!cli_quantize_is_copy(t))
            gguf_writer_tensor(q->writer, t->name, cli_quantize_own_type(t), t->n_dims, t->ne);
    }
    struct gguf_file *whole = gguf_writer_preview(q->writer, err);
    if (whole) *bytes = gguf_size(whole) - data;
    gguf_close(whole);
    gguf_writer_free(q->writer);
    q->writer = NULL;
    return whole != NULL;
}

static bool fail_target(const struct quantize *q, uint64_t head, double elements,
                        struct base_error *err)
{
    if (q->target_size)
        return base_fail_at(err, BASE_USAGE, "--target-size", -1,
                            "the smallest possible file has %llu bytes: %lluM",
                            (unsigned long long)(q->result.bytes + head),
                            (unsigned long long)((q->result.bytes + head - 1) / 1000000 + 1));
    return base_fail_at(err, BASE_USAGE, "--target-bpw", -1, "the least possible is %.3f",
                        ceil(8e3 * (double)q->result.bytes / elements) / 1e3);
}

/* Chooses the types that the plan leaves open. */
static bool choose_by_target(struct quantize *q, struct base_error *err)
{
    const struct cli_target target = {&q->plan, &q->imatrix, q->cpu, gguf_alignment(q->in)};
    const uint64_t count = gguf_tensor_count(q->in);
    double elements = 0;
    uint64_t data, head = 0;
    q->error = calloc(count + 1, sizeof *q->error);
    if (!q->error) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of tensors");
    for (uint64_t i = 0; i < count; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        q->error[i] = -1;
        if (!cli_quantize_is_copy(t))
            elements += (double)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
    }
    if (!cli_target_size(&target, NULL, &data))
        return base_fail(err, BASE_MODEL, "the tensors together are too large");
    if (q->target_size && !head_size(q, data, &head, err)) return false;
    const uint64_t all =
        q->target_size ? q->target_size : (uint64_t)((double)q->values->target_bpw * elements / 8);
    const uint64_t limit = all > head ? all - head : 0;
    return cli_target_apply(&target, limit, q->to, q->error, &q->result, err) &&
           ((q->result.bytes <= limit && head <= all) || fail_target(q, head, elements, err));
}

/* Without --keep-split the parts of a split model become one file. */
static void begin_parts(struct quantize *q, int count)
{
    while (q->values->keep_split && gguf_writer_part_count(q->writer) < count)
        gguf_writer_part(q->writer);
}

/* Returns the type of the output matrix that the embeddings were until now. */
static const struct quant_type *type_of_output(const struct quantize *q)
{
    return q->to[gguf_tensor_find(q->in, "token_embd.weight") - gguf_tensor_at(q->in, 0)];
}

static bool announce(struct quantize *q, struct base_error *err)
{
    q->slab_bytes = SLAB_BYTES;
    q->longest = RUN_LEN;
    for (uint64_t i = 0; i < gguf_tensor_count(q->in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        const struct quant_type *to = q->to[i];
        uint64_t bytes;
        if (!to) continue;
        begin_parts(q, t->part + 1);
        gguf_writer_tensor(q->writer, t->name, to, t->n_dims, t->ne);
        if (!announce_columns(q, i, err)) return false;
        if (t->ne[0] > q->longest) q->longest = t->ne[0];
        if (quant_row_bytes(to, t->ne[0], &bytes) && bytes > q->slab_bytes) q->slab_bytes = bytes;
    }
    if (q->output.name.size)
        gguf_writer_tensor(q->writer, q->output.name, type_of_output(q), q->output.n_dims,
                           q->output.ne);
    begin_parts(q, gguf_part_count(q->in));
    if (q->values->columns && q->matrix_bytes == 0)
        return base_fail_at(err, BASE_USAGE, "--columns", -1,
                            "no ffn_down becomes Q4_0, Q8_0 or F16 with a multiple of %d rows",
                            QUANT_COLUMNS_ROWS);
    q->matrix = malloc(q->matrix_bytes + 1);
    q->columns = malloc(q->matrix_bytes + 1);
    q->slab = malloc(q->slab_bytes);
    q->row = calloc(q->longest, 2 * sizeof *q->row * (size_t)engine_pool_threads(q->cpu->pool));
    if (q->slab && q->row && q->matrix && q->columns) return true;
    return base_fail(err, BASE_NO_MEMORY, "not enough memory to convert rows of %llu",
                     (unsigned long long)q->longest);
}

static bool is_type(const char *text)
{
    return cli_quantize_mix_find(text) || quant_type_by_name(text);
}

/* Reads the target, and its text for the output's name. */
static bool read_target(struct quantize *q, struct base_error *err)
{
    const char *size = q->values->target_size;
    const bool has_bits = q->values->target_bpw > 0;
    if (size && !cli_size_parse(size, "--target-size", &q->target_size, err)) return false;
    if (size) snprintf(q->target, sizeof q->target, "%s", size);
    if (has_bits) snprintf(q->target, sizeof q->target, "%gbpw", (double)q->values->target_bpw);
    return true;
}

/* Returns the length of a name without "-TYPE", "_TYPE" or ".TYPE" at its end. */
static size_t without_type(const char *name, size_t n)
{
    char type[32];
    for (size_t at = n; at-- > 1;) {
        if (n - at > sizeof type) break;
        if (!strchr("-_.", name[at])) continue;
        snprintf(type, sizeof type, "%.*s", (int)(n - at - 1), name + at + 1);
        if (is_type(type)) return at;
    }
    return n;
}

/* Makes the output's path: that of the input, with TYPE in place of its type. */
static bool name_output(struct quantize *q, struct base_error *err)
{
    static const char end[] = ".gguf", part[] = "-00001-of-00001.gguf";
    const char *path = q->path.data, *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    size_t n = strlen(path);
    if (n > sizeof part && memcmp(path + n - sizeof part + 7, "-of-", 4) == 0) n -= sizeof part - 1;
    if (n >= sizeof end && strcmp(path + n - sizeof end + 1, end) == 0) n -= sizeof end - 1;
    const size_t kept = folder + without_type(path + folder, n - folder);
    base_buffer_add(&q->named, path, kept);
    base_buffer_add(&q->named, kept < n ? path + kept : "-", 1);
    for (const char *c = q->type; *c; c++) {
        const char upper = (char)toupper((unsigned char)*c);
        base_buffer_add(&q->named, &upper, 1);
    }
    base_buffer_add_text(&q->named, end);
    if (!cli_buffer_check(&q->named, err)) return false;
    q->out = q->named.data;
    if (access(q->out, F_OK) != 0) return true;
    return base_fail_file(err, BASE_USAGE, q->out,
                          "exists: name the output to replace it (infer quantize IN OUT TYPE)");
}

/* Reads IN OUT [TYPE] of merge-lora. */
static bool read_merge_arguments(struct quantize *q, struct base_error *err)
{
    const struct cli_values *v = q->values;
    q->type = v->n_arguments > 2 ? v->argument[2] : "COPY";
    q->out = v->argument[1];
    if (!is_type(q->type))
        return base_fail(err, BASE_USAGE, "merge-lora: '%s' is not a type. Usage: %s", q->type,
                         cli_command_merge_lora.usage);
    return cli_model_path_of(v->argument[0], &q->path, err);
}

/* Returns the mix to which llama-quantize gives this number, or the text itself. */
static const char *type_of_number(const char *text)
{
    const struct cli_quantize_mix *mix;
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    for (size_t i = 0; *text && !*end && (mix = cli_quantize_mix_at(i)); i++)
        if (!mix->copies && mix->file_type == n) return mix->name;
    return text;
}

/* Reads IN [OUT], with a target. */
static bool read_target_arguments(struct quantize *q, struct base_error *err)
{
    const struct cli_values *v = q->values;
    for (size_t i = 1; i < v->n_arguments; i++)
        if (i == 2 || is_type(v->argument[i]))
            return base_fail(err, BASE_USAGE,
                             "quantize: a target chooses the types: no TYPE '%s' (write ./%s for a "
                             "file of that name)",
                             v->argument[i], v->argument[i]);
    q->type = q->target;
    if (!cli_model_path_of(v->argument[0], &q->path, err)) return false;
    if (v->dry_run) return true;
    q->out = v->argument[1];
    return v->n_arguments > 1 || name_output(q, err);
}

/* Finds TYPE, which is the last argument or, before a name, the one before it, and the output. */
static bool read_arguments(struct quantize *q, struct base_error *err)
{
    const struct cli_values *v = q->values;
    const size_t last = v->n_arguments - 1;
    if (!read_target(q, err)) return false;
    if (*q->target) return read_target_arguments(q, err);
    if (last == 0)
        return base_fail(err, BASE_USAGE, "quantize: missing argument. Usage: %s",
                         cli_command_quantize.usage);
    const size_t at = last == 2 && !is_type(v->argument[2]) && is_type(v->argument[1]) ? 1 : last;
    q->type = type_of_number(v->argument[at]);
    if (at < last && strspn(v->argument[last], "0123456789") == strlen(v->argument[last]))
        return base_fail(err, BASE_USAGE,
                         "quantize: '%s' is a number: of threads -t %s, and as a name ./%s",
                         v->argument[last], v->argument[last], v->argument[last]);
    if (last == 2 && is_type(v->argument[1]) && is_type(v->argument[2]))
        return base_fail(err, BASE_USAGE,
                         "quantize: '%s' and '%s' are both types; write ./%s for "
                         "a file of that name",
                         v->argument[1], v->argument[2], v->argument[1]);
    if (last == 1 && !is_type(q->type))
        return base_fail(err, BASE_USAGE, "quantize: '%s' is not a type. Usage: %s", q->type,
                         cli_command_quantize.usage);
    if (!cli_model_path_of(v->argument[0], &q->path, err)) return false;
    if (v->dry_run) return true;
    if (last == 1) return name_output(q, err);
    q->out = v->argument[at == last ? 1 : last];
    return true;
}

/* Opens the model and plans its types. */
static bool open_input(struct quantize *q, struct base_error *err)
{
    const struct cli_values *v = q->values;
    q->in = gguf_open(q->path.data, err);
    if (!q->in) base_error_set_file(err, q->path.data);
    if (!q->in) return false;
    if (gguf_kv_find(q->in, "imatrix.chunk_count"))
        return base_fail_file(err, BASE_MODEL, q->path.data,
                              "is an importance matrix, not a model: --imatrix takes it");
    if (q->merges && !cli_lora_open(&q->lora, v, q->in, err)) return false;
    if (cli_lora_unties(&q->lora)) {
        q->output = *gguf_tensor_find(q->in, "token_embd.weight");
        q->output.name = (struct gguf_str){"output.weight", 13};
    }
    if (v->imatrix && !cli_imatrix_read(&q->imatrix, v->imatrix, err)) return false;
    return cli_quantize_plan_make(&q->plan, q->in, v, *q->target ? NULL : q->type,
                                  v->imatrix != NULL, err) &&
           choose_types(q, err) && (!*q->target || start_cpu(q, err));
}

static bool open_output(struct quantize *q, struct base_error *err)
{
    const struct cli_values *v = q->values;
    const char *out = q->out;
    if (!q->cpu && !start_cpu(q, err)) return false;
    q->writer = gguf_writer_new(err);
    if (!q->writer) return false;
    copy_metadata(q);
    if (v->keep_split) {
        if (!cli_split_prefix(&q->prefix, out, err)) return false;
        out = q->prefix.data;
    }
    return announce(q, err) && cli_output_claim_model(q->writer, out, v, q->in, err) &&
           gguf_writer_begin(q->writer, out, err);
}

/* ---- The data ---- */

static bool write_tensors(struct quantize *q, struct base_error *err)
{
    const uint64_t count = gguf_tensor_count(q->in);
    bool ok = true;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++) bytes += gguf_tensor_at(q->in, i)->size;
    cli_progress_begin("quantizing", "bytes", bytes);
    for (uint64_t i = 0; ok && i < count; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        if (!q->to[i]) continue;
        ok = convert(q, t, q->to[i] == t->type ? NULL : q->to[i], err) && write_columns(q, i, err);
    }
    if (ok && q->output.name.size) {
        const struct quant_type *to = type_of_output(q);
        ok = convert(q, &q->output, to == q->output.type ? NULL : to, err);
    }
    cli_progress_end();
    if (ok && q->clamped.count)
        cli_note("weights too large for their type became smaller, tensors: %llu (%s)",
                 (unsigned long long)q->clamped.count, q->clamped.text);
    return ok && gguf_check_unchanged(q->in, err) && gguf_writer_end(q->writer, err);
}

/* ---- Dry run ---- */

/* Prints a line per tensor, with a target also its bits per weight and relative error; then the
 * sums. Sizes are those of tensors, without metadata. */
static bool print_plan(const struct quantize *q, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    uint64_t before = 0, after = 0, elements = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(q->in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(q->in, i);
        uint64_t row, bytes, copy;
        if (!q->to[i]) continue;
        if (!quant_row_bytes(q->to[i], t->ne[0], &row) ||
            !base_mul(row, t->ne[1] * t->ne[2] * t->ne[3], &bytes) ||
            !base_add(after, bytes, &after)) {
            return base_fail(err, BASE_MODEL, "%.*s: its rows cannot be converted",
                             (int)t->name.size, t->name.data);
        }
        before += t->size;
        const uint64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        elements += n;
        base_buffer_add_format(&text, "%-36.*s %-7s -> %-7s %12llu", (int)t->name.size,
                               t->name.data, t->type->name, q->to[i]->name,
                               (unsigned long long)bytes);
        if (q->error && q->error[i] >= 0)
            base_buffer_add_format(&text, " %7.4f %9.2e", 8.0 * (double)bytes / (double)n,
                                   q->error[i]);
        base_buffer_add_text(&text, "\n");
        if (has_columns(q, i, &copy)) after += copy;
    }
    const double bits = elements ? 8.0 / (double)elements : 0.0;
    base_buffer_add_format(&text,
                           "%llu bytes, %.2f bits per weight -> %llu bytes, %.2f bits per weight\n",
                           (unsigned long long)before, (double)before * bits,
                           (unsigned long long)after, (double)after * bits);
    if (q->error) base_buffer_add_format(&text, "sum of errors %.5f\n", q->result.error);
    return cli_write_buffer(&text, err);
}

static bool write_model(struct quantize *q, struct base_error *err)
{
    const struct cli_values *values = q->values;
    bool ok = open_output(q, err);
    if (ok && !values->no_sandbox)
        cli_sandbox_close(values->keep_split                          ? CLI_SANDBOX_FILES
                          : gguf_writer_output(q->writer)->unfinished ? CLI_SANDBOX_RENAME
                                                                      : 0);
    ok = ok && write_tensors(q, err);
    if (ok && values->verbose)
        cli_note("%s: %llu tensors written", q->out, (unsigned long long)gguf_tensor_count(q->in));
    return ok;
}

static bool run(const struct cli_values *values, bool merges, struct base_error *err)
{
    struct quantize q = {.values = values, .merges = merges};
    bool ok = merges ? read_merge_arguments(&q, err) : read_arguments(&q, err);
    if (ok && !values->no_sandbox) cli_sandbox_limit(q.out);
    ok = ok && open_input(&q, err);
    if (ok && values->dry_run && !values->no_sandbox) cli_sandbox_close(0);
    if (ok && *q.target) ok = choose_by_target(&q, err);
    ok = ok && (values->dry_run ? print_plan(&q, err) : write_model(&q, err));
    cli_quantize_plan_free(&q.plan);
    cli_imatrix_free(&q.imatrix);
    cli_lora_close(&q.lora);
    base_buffer_free(&q.prefix);
    base_buffer_free(&q.path);
    free(q.row);
    free(q.importance);
    free(q.slab);
    free(q.matrix);
    free(q.columns);
    free(q.to);
    free(q.error);
    if (q.writer) ok = cli_output_close(gguf_writer_output(q.writer), ok, err);
    gguf_writer_free(q.writer);
    if (ok && q.named.size) {
        base_buffer_add_text(&q.named, "\n");
        ok = cli_write_buffer(&q.named, err);
    }
    base_buffer_free(&q.named);
    engine_cpu_free(q.cpu);
    gguf_close(q.in);
    return ok;
}

static bool cmd_quantize(struct cli_values *values, struct base_error *err)
{
    return run(values, false, err);
}

static bool cmd_merge_lora(struct cli_values *values, struct base_error *err)
{
    return run(values, true, err);
}

const struct cli_command cli_command_quantize = {
    .name = "quantize",
    .usage = "infer quantize IN.gguf [OUT.gguf] TYPE|--target-size N [options]",
    .effect = "convert a model's weights to another type",
    .about = "Converts the matrices of a model to TYPE: a mix that uses more bits for\n"
             "sensitive tensors, with --pure one type throughout; COPY converts nothing.\n"
             "--target-size and --target-bpw choose each tensor's type by measured error.\n"
             "Vectors are unchanged. Where a type's block does not divide a row, the nearest\n"
             "that fits is used (-v). Without OUT.gguf: beside IN.gguf, the path is printed.",
    .min_arguments = 1,
    .max_arguments = 3,
    .takes = {"FILE", "FILE", "TYPE"},
    .run = cmd_quantize,
};

const struct cli_command cli_command_merge_lora = {
    .name = "merge-lora",
    .usage = "infer merge-lora IN.gguf OUT.gguf [TYPE] --lora FILE[:SCALE].. [options]",
    .effect = "write a model with adapters merged into its weights",
    .about = "Adds the adapters (--lora, in this order) to the weights of IN.gguf, as `infer run\n"
             "--lora` does beside them. TYPE is one of `infer quantize`; without it each tensor\n"
             "keeps its type, and those that no adapter changes keep their bytes.",
    .min_arguments = 2,
    .max_arguments = 3,
    .takes = {"FILE", "FILE", "TYPE"},
    .run = cmd_merge_lora,
};
