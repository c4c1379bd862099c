/* sample/constrain/idset.h: sets of numbers, each distinct set once and with a number of its own.
 * Private to sample/. */
#ifndef SAMPLE_CONSTRAIN_IDSET_H
#define SAMPLE_CONSTRAIN_IDSET_H

#include "base/error.h"
#include <stdint.h>

struct constrain_idsets {
    uint32_t *at, n_set, at_room; /* set i is id[at[i]..at[i + 1]), ascending */
    uint32_t *id, n_id, id_room;  /* those from at[n_set] on are being put together */
    uint32_t *slot, n_slot;       /* hash table of set number + 1 */
};
/* Without sets; what is there is forgotten, its memory used again. */
bool constrain_idsets_clear(struct constrain_idsets *s, struct base_error *err);
void constrain_idsets_free(struct constrain_idsets *s);

/* One more id (each once) for the set that is being put together. */
bool constrain_idsets_add(struct constrain_idsets *s, uint32_t id, struct base_error *err);
/* The number of the set that has been put together: an earlier one if it is equal, else
 * *number + 1 == n_set. `apart`: it is a new one, which no later one equals. */
bool constrain_idsets_close(struct constrain_idsets *s, bool apart, uint32_t *number,
                            struct base_error *err);

#endif
