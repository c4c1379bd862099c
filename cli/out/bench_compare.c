/* cli/out/bench_compare.c: compares the results of `infer bench` with those of a file.
 *
 * A row of the file is the same test if all fields are equal. A field in which the file has one
 * value, and the table one other, is what was changed between the two: it may differ. */
#include "cli/out/bench.h"
#include "cli/system.h"
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cli_bench_saved {
    json_t *rows;                   /* a list of objects */
    json_t **match;                 /* [rows of the table]: borrowed, or NULL */
    bool changed[CLI_BENCH_FIELDS]; /* the field may differ */
};

/* ---- Reading ---- */

/* Reads a field of CSV (RFC 4180), up to and with the comma or line end after it. */
static const char *read_field(const char *at, struct base_buffer *out, bool *ends)
{
    const bool quoted = *at == '"';
    base_buffer_clear(out);
    if (quoted) at++;
    for (; *at; at++) {
        if (quoted && *at == '"' && *++at != '"') break;
        if (!quoted && (*at == ',' || *at == '\r' || *at == '\n')) break;
        base_buffer_add(out, at, 1);
    }
    *ends = *at != ',';
    if (*at == '\r') at++;
    return *at ? at + 1 : at;
}

/* Returns the value of a field: a number, a list of numbers separated by spaces, or a text. */
static json_t *value_of(const char *text, bool is_list)
{
    json_t *list = is_list ? json_array() : NULL;
    char *end = NULL;
    double x = 0;
    for (const char *at = text; *at; at = end + (*end == ' ')) {
        x = strtod(at, &end);
        if (end == at || (*end && *end != ' ')) break;
        if (list) json_array_append_new(list, json_real(x));
        if (!*end && !list) return json_real(x);
    }
    return list ? list : json_string(text);
}

/* Makes an object of each line but the first, which has the names of the members. */
static json_t *read_csv(const char *text)
{
    json_t *names = json_array(), *rows = json_array();
    BASE_LOCAL_BUFFER field = BASE_BUFFER_INIT;
    for (bool first = true; *text; first = false) {
        json_t *row = json_object();
        bool ends = false;
        for (size_t i = 0; !ends; i++) {
            text = read_field(text, &field, &ends);
            const char *data = field.size ? field.data : "";
            const char *name = json_string_value(json_array_get(names, i));
            if (first)
                json_array_append_new(names, json_string(data));
            else if (name)
                json_object_set_new(row, name, value_of(data, strcmp(name, "samples") == 0));
        }
        if (first)
            json_decref(row);
        else
            json_array_append_new(rows, row);
    }
    json_decref(names);
    return rows;
}

/* Returns the list of rows of one object, or of an object in each line. */
static json_t *read_json(const struct base_buffer *text)
{
    json_t *whole = json_loadb(text->data, text->size, 0, NULL), *rows;
    const json_t *results = json_object_get(whole, "results");
    if (results) {
        rows = json_incref((json_t *)results);
    } else {
        rows = json_array();
        for (const char *at = text->data; *at;) {
            const size_t size = strcspn(at, "\n");
            json_t *row = json_loadb(at, size, 0, NULL);
            if (row) json_array_append_new(rows, row);
            at += size + (at[size] == '\n');
        }
    }
    json_decref(whole);
    return rows;
}

/* ---- Finding rows ---- */

static void add_saved_field(const json_t *row, enum cli_bench_field f, struct base_buffer *out)
{
    const json_t *value = json_object_get(row, cli_bench_field_name[f]);
    if (json_is_string(value))
        base_buffer_add_text(out, json_string_value(value));
    else if (json_is_number(value) || f == CLI_BENCH_GPU) /* older files: no GPU */
        base_buffer_add_format(out, "%.0f", json_number_value(value));
}

static bool is_field(const json_t *saved, const struct cli_bench_row *row, enum cli_bench_field f)
{
    BASE_LOCAL_BUFFER a = BASE_BUFFER_INIT, b = BASE_BUFFER_INIT;
    add_saved_field(saved, f, &a);
    cli_bench_add_field(row, f, &b);
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool saved_varies(const json_t *rows, enum cli_bench_field f)
{
    const json_t *first = json_object_get(json_array_get(rows, 0), cli_bench_field_name[f]), *row;
    size_t i;
    json_array_foreach(
        rows, i,
        row) if (!json_equal(first, json_object_get(row, cli_bench_field_name[f]))) return true;
    return false;
}

static json_t *find(const struct cli_bench_saved *saved, const struct cli_bench_row *r)
{
    size_t i;
    json_t *row;
    json_array_foreach(saved->rows, i, row)
    {
        bool same = json_is_number(json_object_get(row, "tokens_per_second"));
        for (int f = 0; same && f < CLI_BENCH_FIELDS; f++)
            same = saved->changed[f] || is_field(row, r, (enum cli_bench_field)f);
        if (same) return row;
    }
    return NULL;
}

static bool match(struct cli_bench_saved *saved, const struct cli_bench_table *t,
                  struct base_error *err)
{
    size_t n = 0;
    for (int f = 0; f < CLI_BENCH_TEST; f++)
        saved->changed[f] =
            !saved_varies(saved->rows, (enum cli_bench_field)f) &&
            !cli_bench_varies(t, (enum cli_bench_field)f) &&
            !is_field(json_array_get(saved->rows, 0), &t->row[0], (enum cli_bench_field)f);
    for (size_t i = 0; i < t->n; i++) {
        saved->match[i] = find(saved, &t->row[i]);
        n += saved->match[i] != NULL;
    }
    return n > 0 ||
           base_fail(err, BASE_USAGE,
                     "has none of these tests (with the same options): nothing to compare");
}

bool cli_bench_saved_read(struct cli_bench_saved **out, const char *path,
                          const struct cli_bench_table *t, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct cli_bench_saved *saved = *out = calloc(1, sizeof *saved);
    if (saved) saved->match = calloc(t->n, sizeof *saved->match);
    bool ok = (saved && saved->match) || base_fail(err, BASE_NO_MEMORY, "not enough memory");
    ok = ok && cli_source_read(path, &text, err) && cli_buffer_check(&text, err);
    if (ok) {
        const char *at = text.size ? text.data : "";
        while (isspace((unsigned char)*at)) at++;
        saved->rows = *at == '{' ? read_json(&text) : read_csv(at);
        ok = json_object_get(json_array_get(saved->rows, 0), "tokens_per_second") != NULL;
        if (!ok) base_fail(err, BASE_USAGE, "has no results of `infer bench --format json` or csv");
        ok = ok && match(saved, t, err);
        if (!ok) base_error_set_file(err, path);
    }
    return ok;
}

void cli_bench_saved_free(struct cli_bench_saved *saved)
{
    if (!saved) return;
    json_decref(saved->rows);
    free(saved->match);
    free(saved);
}

/* ---- Ratios ---- */

/* Without samples (a file of another program) the lowest, the median and the highest are three. */
static size_t samples_of(const json_t *row, double **out)
{
    static const char *const three[] = {"lowest", "tokens_per_second", "highest"};
    const json_t *list = json_object_get(row, "samples");
    const size_t count = json_array_size(list) ? json_array_size(list) : 3;
    size_t n = 0;
    *out = calloc(count, sizeof **out);
    for (size_t i = 0; *out && i < count; i++) {
        const double x = json_number_value(json_array_size(list) ? json_array_get(list, i)
                                                                 : json_object_get(row, three[i]));
        if (isfinite(x) && x > 0) (*out)[n++] = x;
    }
    if (*out) cli_bench_sort(*out, n);
    return n;
}

static double drift(const json_t *saved, const char *name, double now)
{
    const double before = json_number_value(json_object_get(saved, name));
    return before > 0 && now > 0 ? now / before : 1;
}

/* Returns by how much the limit of a row is higher now: the machine's part of the ratio. */
static double drift_of(const json_t *saved, const struct cli_bench_row *r)
{
    return r->of_int8 > r->of_bandwidth ? drift(saved, "int8_macs_per_second", r->int8)
                                        : drift(saved, "bandwidth_bytes_per_second", r->bandwidth);
}

/* Widens the interval by the ratio that remains without the machine's part: the scatter within runs
 * does not show how a machine changes from run to run. */
static void widen(struct cli_bench_ratio *r, double machine)
{
    r->low = fmin(r->low, r->low / machine);
    r->high = fmax(r->high, r->high / machine);
}

bool cli_bench_compare(const struct cli_bench_saved *saved, struct cli_bench_table *t, size_t i,
                       struct base_error *err)
{
    struct cli_bench_row *r = &t->row[i];
    double *before;
    if (!saved->match[i]) return true;
    const size_t n = samples_of(saved->match[i], &before);
    const bool ok = before ? cli_bench_ratio_of(before, n, r->sample, r->n_samples, &r->ratio, err)
                           : base_fail(err, BASE_NO_MEMORY, "not enough memory to compare");
    free(before);
    if (ok && r->ratio.known) widen(&r->ratio, drift_of(saved->match[i], r));
    return ok;
}

/* Appends what differs between the file and the table, a line each. */
static void add_changes(const struct cli_bench_saved *saved, const struct cli_bench_table *t,
                        struct base_buffer *out)
{
    const json_t *first = json_array_get(saved->rows, 0);
    const char *version = json_string_value(json_object_get(first, "version"));
    base_buffer_add_format(out, "\nratio to the file (version %s)\n",
                           version ? version : "unknown");
    for (int f = 0; f < CLI_BENCH_TEST; f++) {
        if (!saved->changed[f]) continue;
        base_buffer_add_format(out, "%s: ", cli_bench_field_name[f]);
        add_saved_field(first, (enum cli_bench_field)f, out);
        base_buffer_add_text(out, " -> ");
        cli_bench_add_field(&t->row[0], (enum cli_bench_field)f, out);
        base_buffer_add_text(out, "\n");
    }
}

static void add_ratio(const struct cli_bench_table *t, const struct cli_bench_row *r,
                      struct base_buffer *out)
{
    const struct cli_bench_ratio *x = &r->ratio;
    const char *verdict = !x->known     ? "not there"
                          : x->low > 1  ? "faster"
                          : x->high < 1 ? "slower"
                                        : "within noise";
    cli_bench_add_cells(t, r, out);
    if (x->known)
        base_buffer_add_format(out, "| %7.1f | %5.3f | %4.2f-%4.2f |", x->before, x->ratio, x->low,
                               x->high);
    else
        base_buffer_add_text(out, "|       - |     - |         - |");
    base_buffer_add_format(out, " %-12s |\n", verdict);
}

void cli_bench_add_ratios(const struct cli_bench_saved *saved, const struct cli_bench_table *t,
                          struct base_buffer *out)
{
    add_changes(saved, t, out);
    base_buffer_add_text(
        out, "95 % interval: scatter within both runs, drift of the machine's limit between\n\n");
    cli_bench_add_head(t, "|  before | ratio |  interval |              |\n",
                       "|--------:|------:|----------:|--------------|\n", out);
    for (size_t i = 0; i < t->n; i++) add_ratio(t, &t->row[i], out);
    for (size_t i = t->n; i-- > 0;) {
        const struct cli_bench_row *r = &t->row[i];
        const json_t *row = saved->match[i];
        if (!row) continue;
        base_buffer_add_format(out, "\nthe machine's limits now: reading %.2fx, int8 %.2fx\n",
                               drift(row, "bandwidth_bytes_per_second", r->bandwidth),
                               drift(row, "int8_macs_per_second", r->int8));
        return;
    }
}
