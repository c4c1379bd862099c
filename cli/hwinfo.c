/* cli/hwinfo.c: reads /proc and /sys. See cli/hwinfo.h. */
#include "cli/hwinfo.h"
#include "base/os.h"
#include "engine/cpu/threads.h"
#include "engine/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 8192 };

static const char *const known_features[] = {
    "avx2",     "fma",      "f16c",        "avx512f",    "avx512bw",
    "avx512dq", "avx512vl", "avx512_vnni", "avx512vbmi", "avx512_bf16",
    "avx_vnni", "amx_int8", "asimd",       "asimddp",    "i8mm",
};
_Static_assert(sizeof known_features / sizeof *known_features <= CLI_FEATURE_MAX, "room");

/* Reads the first line of a file, without its end; "" if there is none. */
static void read_line(const char *path, char *out, size_t size)
{
    *out = '\0';
    FILE *file = fopen(path, "re");
    if (!file) return;
    if (!fgets(out, (int)size, file)) *out = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(file);
}

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

static void read_cpu(struct cli_machine *m)
{
    char features[LINE_SIZE];
    m->features_known = base_os_cpu_text(m->cpu, sizeof m->cpu, features, sizeof features);
    for (size_t i = 0; i < sizeof known_features / sizeof *known_features; i++)
        if (has_word(features, known_features[i])) m->feature[m->n_features++] = known_features[i];
}

/* Reads the word in brackets, as in "always [madvise] never". */
static void read_huge_pages(struct cli_machine *m)
{
    char line[128];
    read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    const char *from = strchr(line, '[');
    if (from)
        snprintf(m->huge_pages, sizeof m->huge_pages, "%.*s", (int)strcspn(from + 1, "]"),
                 from + 1);
}

void cli_machine_read(struct cli_machine *m)
{
    struct engine_cpus allowed;
    *m = (struct cli_machine){.load = -1};
    engine_cpus_allowed(&allowed);
    m->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->allowed = engine_cpus_count(&allowed);
    m->cores = engine_threads_cores("", &allowed);
    m->quota = engine_threads_quota("");
    m->threads = engine_threads_default();
    read_cpu(m);
    base_memory_read("", &m->memory);
    read_huge_pages(m);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", m->governor,
              sizeof m->governor);
    if (getloadavg(&m->load, 1) != 1) m->load = -1;
}

bool cli_machine_has(const struct cli_machine *m, const char *feature)
{
    for (int i = 0; i < m->n_features; i++)
        if (strcmp(m->feature[i], feature) == 0) return true;
    return false;
}
