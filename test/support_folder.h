/* test/support_folder.h: a temporary folder for a test program's files, and small helpers on GGUF
 * files in it. */
#pragma once

#include "gguf/gguf.h"

/* Group set-up and teardown: create and remove the folder. */
int support_folder_make(void **state);
int support_folder_remove(void **state);

const char *support_folder_path(const char *name, char out[128]);
int support_folder_count(void); /* the number of its files */

void support_write_file(const char *path, const void *bytes, size_t size);
struct gguf_file *support_open_gguf(const char *path); /* fails the test on an error */
struct gguf_str support_str(const char *text);
void support_assert_str(struct gguf_str s, const char *text);
