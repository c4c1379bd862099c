/* base/list.h: growable lists: an array, the number of its items, and the number it has memory for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns whether `list` (a pointer to items) has memory for one more than `count` items: if
 * `room` (a size_t) is too small, both grow. Without memory nothing changes. */
#define BASE_LIST_ROOM(list, count, room)                                                          \
    ((count) < (room) || base_list_grow(&(list), &(room), sizeof *(list)))

/* Doubles the list that the pointer at `list` points to. */
bool base_list_grow(void *list, size_t *room, size_t item_size);
