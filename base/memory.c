/* base/memory.c: memory of the machine and of the control groups. See base/memory.h. */
#include "base/memory.h"
#include "base/cgroup.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *root, const char *folder, const char *name, uint64_t *out)
{
    char text[BASE_SYSTEM_LINE], *end;
    if (!base_system_line(root, folder, name, text)) return false;
    *out = strtoull(text, &end, 10);
    return end != text && *end == '\0'; /* "max" is no number */
}

/* Returns the bytes of a group's page cache, which the kernel reclaims before it ends a process. */
static uint64_t page_cache(const char *root, const char *folder, const char *prefix)
{
    static const char *const names[] = {"inactive_file", "active_file"};
    char path[BASE_SYSTEM_PATH], line[BASE_SYSTEM_LINE], name[64];
    uint64_t sum = 0;
    if (snprintf(path, sizeof path, "%s%s/memory.stat", root, folder) >= (int)sizeof path) return 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const size_t n = (size_t)snprintf(name, sizeof name, "%s%s ", prefix, names[i]);
            if (strncmp(line, name, n) == 0) sum += strtoull(line + n, NULL, 10);
        }
    }
    if (file) fclose(file);
    return sum;
}

/* In version 1 a number near the maximum means "no limit". */
static void take_limit(struct base_memory *m, uint64_t limit, uint64_t used)
{
    if (limit >= 1ull << 60) return;
    const uint64_t left = used < limit ? limit - used : 0;
    if (limit < m->limit) m->limit = limit;
    if (left < m->left) m->left = left;
}

static void visit_group(void *user, const char *root, const char *folder, int version)
{
    static const struct {
        int version;
        const char *limit, *use, *prefix; /* of names in memory.stat */
    } files[] = {
        {2, "/memory.max", "/memory.current", ""},
        {2, "/memory.high", "/memory.current", ""},
        {1, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"},
    };
    struct base_memory *m = user;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint64_t limit, used = 0;
        if (files[i].version != version || !read_number(root, folder, files[i].limit, &limit))
            continue;
        read_number(root, folder, files[i].use, &used);
        const uint64_t cache = page_cache(root, folder, files[i].prefix);
        take_limit(m, limit, used > cache ? used - cache : 0);
    }
}

static struct base_memory kept_memory;

void base_memory_read(const char *root, struct base_memory *m)
{
    *m = (struct base_memory){.limit = UINT64_MAX, .left = UINT64_MAX};
    m->known = base_os_memory(root, &m->total, &m->free);
    m->limits_known = base_cgroup_visit(root, "memory", visit_group, m);
    if (!*root && !m->known && kept_memory.known) *m = kept_memory;
}

void base_memory_keep(void)
{
    base_memory_read("", &kept_memory);
}

bool base_memory_room(const struct base_memory *m, uint64_t *bytes)
{
    if (!m->known && m->left == UINT64_MAX) return false;
    *bytes = m->known && m->free < m->left ? m->free : m->left;
    return true;
}

uint64_t base_memory_half(uint64_t standard)
{
    struct base_memory m;
    uint64_t room;
    base_memory_read("", &m);
    return base_memory_room(&m, &room) && room / 2 < standard ? room / 2 : standard;
}
