/* base/keep.c: memory that is freed together. See base/keep.h. */
#include "base/keep.h"
#include "base/size.h"
#include <stdlib.h>
#include <string.h>

struct base_keep_block {
    struct base_keep_block *before;
    _Alignas(max_align_t) char bytes[];
};

void *base_keep_take(struct base_keep *k, size_t size, struct base_error *err)
{
    uint64_t all;
    struct base_keep_block *b =
        base_add(size, sizeof *b, &all) && all <= SIZE_MAX ? calloc(1, (size_t)all) : NULL;
    if (!b) return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory"));
    b->before = k->latest;
    k->latest = b;
    return b->bytes;
}

const char *base_keep_text(struct base_keep *k, const char *text, size_t size,
                           struct base_error *err)
{
    char *copy = base_keep_take(k, size < SIZE_MAX ? size + 1 : SIZE_MAX, err);
    if (copy && size) memcpy(copy, text, size);
    return copy;
}

void base_keep_free(struct base_keep *k)
{
    for (struct base_keep_block *b = k->latest, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    k->latest = NULL;
}

bool base_texts_add(struct base_texts *list, const char *text, struct base_keep *k,
                    struct base_error *err)
{
    if ((list->count & (list->count - 1)) == 0) { /* full: the room is a power of two */
        const size_t room = list->count ? 2 * list->count : 1;
        const char **more = base_keep_take(k, room * sizeof *more, err);
        if (!more) return false;
        if (list->count) memcpy(more, list->item, list->count * sizeof *more);
        list->item = more;
    }
    list->item[list->count++] = text;
    return true;
}
