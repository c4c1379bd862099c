/* cli/user_folder.c: the user's folders. See cli/user_folder.h. */
#include "cli/user_folder.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

bool cli_user_path(const char *variable, const char *usual, const char *name,
                   struct base_buffer *path)
{
    const char *folder = getenv(variable), *home = getenv("HOME");
    if (folder && *folder == '/')
        base_buffer_add_format(path, "%s/infer/%s", folder, name);
    else if (home && *home)
        base_buffer_add_format(path, "%s/%s/infer/%s", home, usual, name);
    else
        return false;
    return true;
}

bool cli_user_make_folder(char *path, mode_t mode)
{
    bool ok = true;
    for (char *at = path + 1; *path && ok; at++) {
        const char was = *at;
        if (was != '/' && was != '\0') continue;
        *at = '\0';
        ok = mkdir(path, mode) == 0 || errno == EEXIST;
        *at = was;
        if (was == '\0') break;
    }
    return ok;
}

bool cli_user_owns(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}
