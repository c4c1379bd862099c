/* base/cgroup.c: control groups by /proc and /sys. See base/cgroup.h. */
#include "base/cgroup.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool base_system_line(const char *root, const char *folder, const char *name, char *text)
{
    char path[BASE_SYSTEM_PATH];
    if (snprintf(path, sizeof path, "%s%s%s", root, folder, name) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool ok = fgets(text, BASE_SYSTEM_LINE, file) != NULL;
    fclose(file);
    if (ok) text[strcspn(text, "\n")] = '\0';
    return ok;
}

struct visit {
    const char *root;
    base_cgroup_visitor visitor;
    void *user;
    bool found;
};

/* Visits mount + group and every group above it. */
static void visit_chain(struct visit *v, const char *mount, const char *group, int version)
{
    char folder[BASE_SYSTEM_PATH], path[BASE_SYSTEM_PATH];
    if (strstr(group, "..")) group = "/";
    const int size = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (size >= (int)sizeof folder) return;
    for (size_t n = (size_t)size, end = strlen(mount);;) {
        folder[n] = '\0';
        if (snprintf(path, sizeof path, "%s%s", v->root, folder) < (int)sizeof path)
            v->found |= access(path, F_OK) == 0;
        v->visitor(v->user, v->root, folder, version);
        if (n <= end) return;
        while (folder[--n] != '/') {
        }
    }
}

/* True when `name` is one of the comma-separated words of list. */
static bool list_has(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = list; *p;) {
        const size_t word = strcspn(p, ",");
        if (word == len && strncmp(p, name, len) == 0) return true;
        p += word + (p[word] == ',');
    }
    return false;
}

bool base_cgroup_visit(const char *root, const char *controller, base_cgroup_visitor visitor,
                       void *user)
{
    struct visit v = {root, visitor, user, false};
    char path[BASE_SYSTEM_PATH], line[BASE_SYSTEM_PATH], mount[BASE_SYSTEM_PATH + 32];
    snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "re");
    if (!file) {
        visit_chain(&v, "/sys/fs/cgroup", "", 2);
        visit_chain(&v, mount, "", 1);
    }
    while (file && fgets(line, sizeof line, file)) {
        /* "ID:CONTROLLERS:/GROUP", with ID 0 and no controllers for version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *group++ = '\0';
        ++list;
        if (*list == '\0') {
            visit_chain(&v, "/sys/fs/cgroup", group, 2);
        } else if (list_has(list, controller)) {
            visit_chain(&v, mount, group, 1);
            snprintf(path, sizeof path, "/sys/fs/cgroup/%s", list);
            visit_chain(&v, path, group, 1);
        }
    }
    if (file) fclose(file);
    return v.found;
}
