/* cli/cmd/imatrix_statistics.c: figures of an importance matrix. See
 * cli/cmd/imatrix_statistics.h. */
#include "cli/cmd/imatrix_statistics.h"
#include "cli/imatrix.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include <math.h>
#include <stdlib.h>

struct figures {
    struct gguf_str name;
    uint64_t count;
    double sum, mean, deviation, least, largest, evenness;
};

static struct figures measure(const struct cli_imatrix_entry *e)
{
    struct figures f = {.name = e->name, .count = e->count, .least = INFINITY};
    double squares = 0, entropy = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        f.sum += (double)e->mean[i];
        f.least = fmin(f.least, (double)e->mean[i]);
        f.largest = fmax(f.largest, (double)e->mean[i]);
    }
    f.mean = f.sum / (double)e->count;
    for (uint64_t i = 0; i < e->count; i++) {
        const double d = (double)e->mean[i] - f.mean, share = (double)e->mean[i] / f.sum;
        squares += d * d;
        if (share > 0) entropy -= share * log(share);
    }
    f.deviation = sqrt(squares / (double)e->count);
    f.evenness = e->count > 1 ? entropy / log((double)e->count) : 1;
    return f;
}

static int by_sum(const void *a, const void *b)
{
    const double x = ((const struct figures *)a)->sum, y = ((const struct figures *)b)->sum;
    return (x < y) - (x > y);
}

static void add_text(const struct figures *f, struct base_buffer *out)
{
    base_buffer_add_format(out, "%12.4g %10.4g %10.4g %10.4g %10.4g %8.3f %8llu  ", f->sum, f->mean,
                           f->deviation, f->least, f->largest, f->evenness,
                           (unsigned long long)f->count);
    cli_show(out, f->name.data, f->name.size, false);
    base_buffer_add_text(out, "\n");
}

static void add_json(const struct figures *f, bool first, struct base_buffer *out)
{
    base_buffer_add_text(out, first ? "{" : ",\n{");
    base_buffer_add_member(out, "name", f->name.data, f->name.size);
    base_buffer_add_format(out,
                           ",\"count\":%llu,\"sum\":%.7g,\"mean\":%.7g,\"deviation\":%.7g,"
                           "\"least\":%.7g,\"largest\":%.7g,\"evenness\":%.4f}",
                           (unsigned long long)f->count, f->sum, f->mean, f->deviation, f->least,
                           f->largest, f->evenness);
}

static bool print(const struct figures *f, uint64_t n, bool json, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    base_buffer_add_text(&out, json ? "["
                                    : "         sum       mean  deviation      least    largest "
                                      "evenness   inputs  matrix\n");
    for (uint64_t i = 0; i < n; i++)
        if (json)
            add_json(&f[i], i == 0, &out);
        else
            add_text(&f[i], &out);
    if (json) base_buffer_add_text(&out, "]\n");
    return cli_write_buffer(&out, err);
}

bool cli_imatrix_statistics(const struct cli_values *values, struct base_error *err)
{
    struct cli_imatrix m;
    struct figures *f = NULL;
    uint64_t n = 0;
    bool ok = cli_imatrix_read(&m, values->statistics, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(0);
    if (ok && !(f = calloc(m.n_entries, sizeof *f)))
        ok = base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of matrices");
    for (uint64_t i = 0; ok && i < m.n_entries; i++)
        if (m.entry[i].count > 0) f[n++] = measure(&m.entry[i]);
    if (ok) qsort(f, n, sizeof *f, by_sum);
    ok = ok && print(f, n, values->json, err);
    free(f);
    cli_imatrix_free(&m);
    return ok;
}
