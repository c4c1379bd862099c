/* sample/constrain/idset.c: distinct sets of numbers. See sample/constrain/idset.h. */
#include "sample/constrain/idset.h"
#include "sample/constrain/automaton.h"
#include <stdlib.h>
#include <string.h>

bool constrain_idsets_clear(struct constrain_idsets *s, struct base_error *err)
{
    if (!constrain_grow(&s->at, &s->at_room, 0, sizeof *s->at, err)) return false;
    if (!constrain_grow(&s->id, &s->id_room, 0, sizeof *s->id, err)) return false;
    s->at[0] = s->n_set = s->n_id = 0;
    if (s->n_slot) memset(s->slot, 0, s->n_slot * sizeof *s->slot);
    return true;
}

void constrain_idsets_free(struct constrain_idsets *s)
{
    free(s->at), free(s->id), free(s->slot);
    *s = (struct constrain_idsets){0};
}

bool constrain_idsets_add(struct constrain_idsets *s, uint32_t id, struct base_error *err)
{
    if (!constrain_grow(&s->id, &s->id_room, s->n_id, sizeof *s->id, err)) return false;
    s->id[s->n_id++] = id;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t hash_ids(const uint32_t *id, uint32_t n)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = (h ^ id[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
}

/* Inserts the sets of the old table into a new one; so sets that are `apart` remain outside. */
static bool rehash(struct constrain_idsets *s, struct base_error *err)
{
    if (s->n_set * 2 < s->n_slot) return true;
    const uint32_t n = s->n_slot ? s->n_slot * 2 : 64;
    uint32_t *slot = calloc(n, sizeof *slot);
    if (!slot) return base_fail(err, BASE_NO_MEMORY, "no memory for a table of sets");
    for (uint32_t k = 0; k < s->n_slot; k++) {
        if (!s->slot[k]) continue;
        const uint32_t i = s->slot[k] - 1;
        uint64_t h = hash_ids(s->id + s->at[i], s->at[i + 1] - s->at[i]);
        while (slot[h & (n - 1)]) h++;
        slot[h & (n - 1)] = i + 1;
    }
    free(s->slot);
    s->slot = slot;
    s->n_slot = n;
    return true;
}

bool constrain_idsets_close(struct constrain_idsets *s, bool apart, uint32_t *number,
                            struct base_error *err)
{
    uint32_t *mine = s->id + s->at[s->n_set];
    const uint32_t count = s->n_id - s->at[s->n_set];
    if (count > 1) qsort(mine, count, sizeof *mine, compare_ids);
    if (!rehash(s, err)) return false;
    uint64_t h = hash_ids(mine, count);
    for (; !apart && s->slot[h & (s->n_slot - 1)]; h++) {
        const uint32_t i = s->slot[h & (s->n_slot - 1)] - 1;
        if (s->at[i + 1] - s->at[i] != count ||
            memcmp(s->id + s->at[i], mine, count * sizeof *mine) != 0)
            continue;
        s->n_id = s->at[s->n_set];
        *number = i;
        return true;
    }
    if (!constrain_grow(&s->at, &s->at_room, s->n_set + 1, sizeof *s->at, err)) return false;
    if (!apart) s->slot[h & (s->n_slot - 1)] = s->n_set + 1;
    *number = s->n_set++;
    s->at[s->n_set] = s->n_id;
    return true;
}
