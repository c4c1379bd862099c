/* base/list.c: growable lists. See base/list.h. */
#include "base/list.h"
#include "base/size.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64 };

bool base_list_grow(void *list, size_t *room, size_t item_size)
{
    void *items;
    uint64_t bytes;
    const size_t more = *room ? *room : LEAST;
    if (!base_mul(*room + more, item_size, &bytes) || bytes > SIZE_MAX / 2) return false;
    memcpy(&items, list, sizeof items); /* pointers of any type have one representation */
    items = realloc(items, (size_t)bytes);
    if (!items) return false;
    memcpy(list, &items, sizeof items);
    *room += more;
    return true;
}
