/* test/support_twin.h: the F32 twin of a model (every tensor decoded), in a temporary file. */
#pragma once

#include "base/error.h"

/* Writes the twin of the model at `path` to a new temporary file and its name to out[512]; the
 * caller unlinks it. */
bool support_twin_write(const char *path, char out[512], struct base_error *err);
