/* base/cgroup.h: the control groups of this process, whose limits a container sets. */
#pragma once

#include <stdbool.h>

enum { BASE_SYSTEM_PATH = 4096, BASE_SYSTEM_LINE = 512 };

/* Receives the folder of a group, without the root, in version 1 or 2. */
typedef void (*base_cgroup_visitor)(void *user, const char *root, const char *folder, int version);

/* Calls `visit` for each group of this process that may limit `controller` ("cpu", "memory"), with
 * all groups above it, in both versions. `root` is the path of a root directory, "" for the real
 * one, so that tests can simulate other machines. Inside a container the folders of the group's
 * path may not exist; then the mount itself, which is visited too, is the container's group.
 * Returns whether a visited folder exists; otherwise limits are unknown. */
bool base_cgroup_visit(const char *root, const char *controller, base_cgroup_visitor visit,
                       void *user);

/* Reads the first line of root + folder + name into text[BASE_SYSTEM_LINE]. */
bool base_system_line(const char *root, const char *folder, const char *name, char *text);
