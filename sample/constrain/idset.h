/* sample/constrain/idset.h: sets of numbers; each distinct set is stored once and has a number.
 * Private to sample/. */
#pragma once

#include "base/error.h"
#include <stdint.h>

struct constrain_idsets {
    uint32_t *at, n_set, at_room; /* set i is id[at[i]..at[i + 1]), ascending */
    uint32_t *id, n_id, id_room;  /* from at[n_set] on: the set under construction */
    uint32_t *slot, n_slot;       /* hash table of set number + 1 */
};
/* Removes all sets but keeps the memory. */
bool constrain_idsets_clear(struct constrain_idsets *s, struct base_error *err);
void constrain_idsets_free(struct constrain_idsets *s);

/* Adds an id (each only once) to the set under construction. */
bool constrain_idsets_add(struct constrain_idsets *s, uint32_t id, struct base_error *err);
/* Ends the construction and sets *number: that of an equal earlier set; otherwise the set is new
 * and *number + 1 == n_set. `apart`: the set is always new, and later sets never equal it. */
bool constrain_idsets_close(struct constrain_idsets *s, bool apart, uint32_t *number,
                            struct base_error *err);
