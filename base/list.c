/* base/list.c: growable lists. See base/list.h. */
#include "base/list.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64 };

bool base_list_grow(void *list, size_t *room, size_t item_size)
{
    void *items;
    const size_t more = *room ? *room : LEAST;
    memcpy(&items, list, sizeof items); /* pointers of any type have one representation */
    items = reallocarray(items, *room + more, item_size);
    if (!items) return false;
    memcpy(list, &items, sizeof items);
    *room += more;
    return true;
}
