/* cli/cmd/quantize_error.c: errors of types in tensors. See cli/cmd/quantize_error.h.
 *
 * A trial is a unit of work: its sums are computed by one thread, in the order of the rows. */
#include "cli/cmd/quantize_error.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "cli/progress.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a tensor that are measured; of rows that are encoded as one. */
enum { SAMPLE = 1 << 18, RUN_LEN = 1 << 13 };

const char *cli_quantize_decode_row(const struct engine_cpu *cpu, const struct quant_type *type,
                                    uint64_t len, uint64_t r, const char *in, void *room,
                                    float *out)
{
    const struct quant_type *plain = quant_type_plain(type, len);
    if (plain) {
        const uint64_t in_group = r % type->interleave;
        const uint64_t row_bytes = (uint64_t)quant_row_size(type, (int64_t)len);
        quant_row_separate(type, plain, 0, (int64_t)len, in - in_group * row_bytes, (int)in_group,
                           room);
        in = room;
    }
    cpu->quant.type[(plain ? plain : type)->id].decode(0, (int64_t)len, in, out);
    return in;
}

struct measuring {
    const struct engine_cpu *cpu;
    struct cli_quantize_trial *trial;
    int64_t n;
    uint64_t longest; /* elements of a run */
    float *room;      /* [threads][4][longest] */
};

/* The arrays of a run of rows: weights, their importance, the row of the file or of the type, and
 * the weights after it. */
struct row_arrays {
    float *in, *importance, *out;
    void *bytes;
};

/* The sums of the error of a tensor. */
struct error_sums {
    double error, whole;
};

static void add_run(const struct engine_cpu *cpu, const struct cli_quantize_trial *trial,
                    const struct row_arrays *run, uint64_t len, struct error_sums *sums)
{
    const float *importance = trial->importance ? run->importance : NULL;
    quant_encode(&cpu->quant, trial->type->id, (int64_t)len, run->in, importance, run->bytes);
    cpu->quant.type[trial->type->id].decode(0, (int64_t)len, run->bytes, run->out);
    for (uint64_t i = 0; i < len; i++) {
        const double weight = importance ? sqrt((double)importance[i]) : 1.0, in = run->in[i];
        const double off = in - (double)run->out[i];
        sums->error += weight * off * off;
        sums->whole += weight * in * in;
    }
}

static void measure(const struct measuring *m, struct cli_quantize_trial *trial,
                    const struct row_arrays *run)
{
    const struct gguf_tensor *t = trial->tensor;
    const uint64_t len = t->ne[0], rows = t->ne[1] * t->ne[2] * t->ne[3];
    const uint64_t row_bytes = (uint64_t)quant_row_size(t->type, (int64_t)len);
    const uint64_t most = SAMPLE / len ? SAMPLE / len : 1, n = rows < most ? rows : most;
    struct error_sums sums = {0};
    uint64_t in_run = 0;
    for (uint64_t i = 0; i < n && !base_interrupted(); i++) {
        const uint64_t r = (2 * i + 1) * rows / (2 * n);
        cli_quantize_decode_row(m->cpu, t->type, len, r, (const char *)t->data + r * row_bytes,
                                run->bytes, run->in + in_run * len);
        if (trial->importance)
            memcpy(run->importance + in_run * len, trial->importance->mean + r / t->ne[1] * len,
                   len * sizeof(float));
        if (++in_run < RUN_LEN / len && i + 1 < n) continue;
        add_run(m->cpu, trial, run, in_run * len, &sums);
        in_run = 0;
    }
    trial->error = isfinite(sums.error) ? sums.whole > 0 ? sums.error / sums.whole : 0 : INFINITY;
}

static void measure_all(const struct engine_worker *w, void *user)
{
    const struct measuring *m = user;
    float *room = m->room + (uint64_t)w->ith * 4 * m->longest;
    const struct row_arrays run = {room, room + m->longest, room + 2 * m->longest,
                                   room + 3 * m->longest};
    for (int64_t i; (i = engine_pool_claim(w, 1)) < m->n && !base_interrupted();) {
        measure(m, &m->trial[i], &run);
        cli_progress_add(1);
    }
}

bool cli_quantize_measure(const struct engine_cpu *cpu, struct cli_quantize_trial *trial, size_t n,
                          struct base_error *err)
{
    struct measuring m = {.cpu = cpu, .trial = trial, .n = (int64_t)n, .longest = RUN_LEN};
    for (size_t i = 0; i < n; i++)
        if (trial[i].tensor->ne[0] > m.longest) m.longest = trial[i].tensor->ne[0];
    m.room = calloc(m.longest, 4 * sizeof *m.room * (size_t)engine_pool_threads(cpu->pool));
    if (!m.room) return base_fail(err, BASE_NO_MEMORY, "not enough memory to measure types");
    cli_progress_begin("measuring", "types", n);
    engine_pool_run(cpu->pool, measure_all, &m);
    cli_progress_end();
    free(m.room);
    return base_goes_on(err);
}
