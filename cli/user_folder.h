/* cli/user_folder.h: the user's folders of models, caches and histories. */
#pragma once

#include "base/buffer.h"
#include <sys/stat.h>

/* Appends the path of a folder: $VARIABLE/infer/NAME, or $HOME/USUAL/infer/NAME if the variable is
 * no absolute path. Returns false if neither is set. */
bool cli_user_path(const char *variable, const char *usual, const char *name,
                   struct base_buffer *path);
/* Creates a folder and its parents if they are missing. Returns false with errno. */
bool cli_user_make_folder(char *path, mode_t mode);
/* Returns whether a file or folder is this user's, and others cannot write to it. */
bool cli_user_owns(const struct stat *st);
