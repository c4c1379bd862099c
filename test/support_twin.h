/* test/support_twin.h: a model's F32 twin (every tensor decoded), in a temporary file. */
#ifndef TEST_SUPPORT_TWIN_H
#define TEST_SUPPORT_TWIN_H

#include "base/error.h"

/* Writes the twin of the model at `path` to a new temporary file, whose name it puts into
 * out[512]; the caller unlinks it. */
bool support_twin_write(const char *path, char out[512], struct base_error *err);

#endif
