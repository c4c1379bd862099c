/* cli/out/profile_report.c: prints the time of a measurement by kind of node (`infer bench
 * --profile`).
 *
 * The table is written to stderr, because stdout has the result. */
#include "cli/out/profile_report.h"
#include <stdio.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
    double x = (*(const struct engine_profile_row *const *)a)->seconds;
    double y = (*(const struct engine_profile_row *const *)b)->seconds;
    return (x < y) - (x > y);
}

static void print_row(const struct engine_profile_row *row, const struct engine_profile *p,
                      double n_tokens)
{
    char name[80];
    if (row->type)
        snprintf(name, sizeof name, "%s %s [%lld][%lld]", row->name, row->type->name,
                 (long long)row->n, (long long)row->k);
    else
        snprintf(name, sizeof name, "%s", row->name);
    fprintf(stderr, "| %-34s | %-12s | %7.1f | %10.2f | %5.1f %% | %6.1f | %6.1f |\n", name,
            row->route ? row->route : "", (double)row->calls / n_tokens,
            1e6 * row->seconds / n_tokens, 100 * row->seconds / p->seconds,
            row->work.bytes / row->seconds / 1e9, row->work.macs / row->seconds / 1e9);
}

void cli_profile_print(const char *title, const struct engine_profile *p, uint32_t n_tokens)
{
    const struct engine_profile_row *row[ENGINE_PROFILE_ROWS];
    const double n = n_tokens;
    for (int i = 0; i < p->n_rows; i++) row[i] = &p->row[i];
    qsort(row, (size_t)p->n_rows, sizeof(*row), by_time);
    fprintf(stderr,
            "%s %u: %.1f us in graphs, %.1f barriers between nodes, per token\n"
            "| nodes                              | route        |   calls |         us |   share "
            "|   GB/s | "
            "GMAC/s |\n"
            "|------------------------------------|--------------|--------:|-----------:|--------:|"
            "-------:|"
            "-------:|\n",
            title, n_tokens, 1e6 * p->seconds / n, (double)p->barriers / n);
    for (int i = 0; i < p->n_rows; i++) print_row(row[i], p, n);
}
