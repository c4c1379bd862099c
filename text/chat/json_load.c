/* text/chat/json_load.c: jansson with a memory reserve. See text/chat/json_load.h. */
#include "text/chat/json_load.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 16,
    STEP = 256, /* bytes per read: the most that the scanner parses after a failure */
    /* The reserve, per byte of the text and in addition. A growing string becomes at most twice as
     * long as the input, a list or a hash table takes 8 bytes per byte of input, and the values in
     * STEP bytes take less than the rest. */
    SPARE_PER_BYTE = 12,
    SPARE = 1 << 16
};

/* Thread-local and global: jansson's allocator functions have no argument that could point to
 * it. */
static _Thread_local struct {
    char *spare; /* NULL: no text is being read */
    size_t used, room;
    bool failed;
} text_json_memory;

struct input {
    const char *text;
    size_t left;
};

static void *allocate(size_t size)
{
    void *p = malloc(size);
    if (p || !text_json_memory.spare) return p;
    text_json_memory.failed = true;
    if (size > text_json_memory.room - text_json_memory.used) return NULL;
    p = text_json_memory.spare + text_json_memory.used;
    const size_t left = text_json_memory.room - text_json_memory.used;
    const size_t whole = (size + ALIGN - 1) / ALIGN * ALIGN;
    text_json_memory.used += whole < left ? whole : left;
    return p;
}

static void release(void *p)
{
    const uintptr_t at = (uintptr_t)p, spare = (uintptr_t)text_json_memory.spare;
    if (!spare || at < spare || at >= spare + text_json_memory.room) free(p);
}

static size_t read_some(void *buffer, size_t size, void *user)
{
    struct input *in = user;
    size_t n = size < STEP ? size : STEP;
    if (text_json_memory.failed) return 0;
    if (n > in->left) n = in->left;
    memcpy(buffer, in->text, n);
    in->text += n;
    in->left -= n;
    return n;
}

json_t *text_json_load(const char *text, size_t size, size_t flags, json_error_t *error)
{
    struct input in = {text, size};
    const size_t room =
        size < (SIZE_MAX - SPARE) / SPARE_PER_BYTE ? SPARE + SPARE_PER_BYTE * size : SIZE_MAX;
    char *spare = malloc(room);
    if (!spare) {
        errno = ENOMEM;
        return NULL;
    }
    text_json_memory.spare = spare;
    text_json_memory.room = room;
    text_json_memory.used = 0;
    text_json_memory.failed = false;
    json_set_alloc_funcs(allocate, release); /* malloc and free while no text is being read */
    json_t *value = json_load_callback(read_some, &in, flags, error);
    const bool failed = text_json_memory.failed;
    if (failed) json_decref(value);
    text_json_memory.spare = NULL;
    free(spare);
    errno = failed ? ENOMEM : 0;
    return failed ? NULL : value;
}

static json_t *whole_or_none(json_t *copy, const json_t *value)
{
    if (copy && json_equal(copy, value)) return copy;
    json_decref(copy);
    errno = ENOMEM;
    return NULL;
}

json_t *text_json_copy(const json_t *value)
{
    return whole_or_none(json_copy((json_t *)(uintptr_t)value), value);
}

json_t *text_json_copy_deep(const json_t *value)
{
    return whole_or_none(json_deep_copy(value), value);
}
