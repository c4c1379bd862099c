/* text/tokenizer/table.c: the hash table of tokens and merges. See text/tokenizer/vocab.h. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 56);
}

bool text_table_init(struct text_table *t, uint32_t n_values, struct base_error *err)
{
    uint32_t room = 16;
    while (room < 2 * n_values) room *= 2;
    t->slot = calloc(room, sizeof *t->slot);
    if (!t->slot) return base_fail(err, BASE_NO_MEMORY, "no memory for %u texts", n_values);
    t->mask = room - 1;
    return true;
}

void text_table_free(struct text_table *t)
{
    free(t->slot);
    *t = (struct text_table){0};
}

void text_table_prefetch(const struct text_table *t, uint64_t hash)
{
    __builtin_prefetch(&t->slot[(uint32_t)hash & t->mask], 1);
}

int64_t text_table_next(const struct text_table *t, uint64_t hash, uint32_t *at)
{
    for (uint32_t i = *at & t->mask;; i = (i + 1) & t->mask) {
        uint32_t slot = t->slot[i];
        *at = i;
        if (slot == 0) return TEXT_NO_VALUE;
        if (slot >> 24 != tag_of(hash)) continue;
        *at = i + 1;
        return (int64_t)(slot & 0xffffff) - 1;
    }
}

/* Half of the slots are free, so only texts that were made to collide have a chain this long. */
enum { LONGEST_CHAIN = 4096 };

static void set(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value)
{
    t->slot[at & t->mask] = tag_of(hash) << 24 | (value + 1);
}

bool text_table_put(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value,
                    struct base_error *err)
{
    if (((at - (uint32_t)hash) & t->mask) > LONGEST_CHAIN)
        return base_fail(err, BASE_MODEL, "the vocabulary's texts are made to collide");
    set(t, hash, at, value);
    return true;
}

void text_table_replace(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value)
{
    set(t, hash, at - 1, value);
}

/* ---- Hashing ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load8(const char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint32_t load4(const char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

uint64_t text_hash(const char *bytes, size_t size)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ size, last = 0;
    for (; size > 8; bytes += 8, size -= 8) h = mix(h ^ load8(bytes), 0xd6e8feb86659fd93u);
    if (size >= 4) {
        last = (uint64_t)load4(bytes) << 32 | load4(bytes + size - 4); /* they may overlap */
    } else if (size > 0) {
        const unsigned char *u = (const unsigned char *)bytes;
        last = (uint64_t)u[0] << 16 | (uint64_t)u[size / 2] << 8 | u[size - 1];
    }
    return mix(h ^ last, 0xa0761d6478bd642fu);
}

uint64_t text_hash_pair(uint64_t left, uint64_t right)
{
    return mix(left ^ 0xe7037ed1a0b428dbu, right ^ 0x8ebc6af09c88c6e3u);
}
