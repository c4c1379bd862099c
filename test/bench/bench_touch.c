/* test/bench/bench_touch.c: the cost of mapping the pages of a model file.
 *
 * bench_touch MODEL: opens the file, reads a byte of each page of its tensors with one thread, and
 * closes it. Prints milliseconds, faults, and how much of the file Linux maps in huge pages
 * (docs/performance.md). Run it twice: the first run may read from disk. */
#include "gguf/gguf.h"
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static long faults(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* MiB in huge pages of all files that this process maps. */
static double huge_mib(void)
{
    char line[512];
    unsigned long kib, sum = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "FilePmdMapped: %lu kB", &kib) == 1) sum += kib;
    if (maps) fclose(maps);
    return (double)sum / 1024;
}

int main(int argc, char **argv)
{
    enum { PAGE = 4096 };
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = argc == 2 ? gguf_open(argv[1], &err) : NULL;
    if (!file) {
        fprintf(stderr, "bench_touch: %s\n", argc == 2 ? err.text : "takes a model's path");
        return 1;
    }
    const double mib = (double)gguf_size(file) / 0x1p20;
    const long faults_before = faults();
    const double start = milliseconds();
    unsigned sum = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        const volatile unsigned char *data = t->data;
        for (uint64_t at = 0; at < t->size; at += PAGE) sum += data[at];
    }
    const double touched = milliseconds();
    const long taken = faults() - faults_before;
    const double huge = huge_mib(), closing = milliseconds();
    gguf_close(file);
    printf("touched in %.2f ms and %ld faults, closed in %.2f ms; %.0f of %.0f MiB in huge pages "
           "(sum %u)\n",
           touched - start, taken, milliseconds() - closing, huge, mib, sum);
    return 0;
}
