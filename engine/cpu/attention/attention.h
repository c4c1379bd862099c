/* engine/cpu/attention/attention.h: declarations that attention.c (the op, its units of work,
 * merging) and attention_chunk.c (one chunk of keys for a block of query rows) share. Private to
 * engine/attention/.
 *
 *   chunk   ENGINE_ATTENTION_CHUNK consecutive positions of a sequence, counted from 0
 *   block   query rows (token, head) of one KV head that read the same block table
 *   tile    ENGINE_ATTN_ROWS query rows of a block, computed by one kernel call
 *   slot    the place of a position's key and value in a KV cache; a block table lists them */
#pragma once

#include "engine/cpu/cpu_op.h"
#include "engine/cpu/isa/attn.h"
#include "engine/cpu/isa/tile.h"
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

enum {
    ATTENTION_CHUNK = ENGINE_ATTENTION_CHUNK,
    ATTENTION_BLOCK = 192, /* maximum query rows that share a chunk: whole tiles */
    ATTENTION_TILE = ENGINE_ATTN_ROWS,
    ATTENTION_PARTIAL_HEAD = 16 /* floats before o in a partial result: m, l, padding */
};

#define ATTENTION_LOG2_E 0x1.715476p+0f

/* Sizes, and offsets in bytes, identical on every worker. */
struct attention_layout {
    int64_t n_tokens, n_heads, n_kv, per_kv, d, dv; /* per_kv: query heads per KV head */
    int64_t rows, block_rows, n_blocks;             /* query rows of a KV head, and their blocks */
    int64_t n_positions, max_chunks;
    int64_t d_pad, dv_pad;          /* floats per row of a float cache */
    int64_t query_bytes;            /* of one converted query row */
    bool float_keys, float_values;  /* F32 caches */
    bool q16_keys, q16_values;      /* int16-quantized caches */
    int64_t key_bytes, value_bytes; /* per group of int16 rows */
    /* offsets in a worker's scratch */
    int64_t query_at, query_scale_at, key_at, value_at, decoded_at, offset_at, inverse_at;
    int64_t tile_at, tile_partials_at, sums_at;
    int64_t worker_bytes;
    bool may_split;
    int64_t partial_floats; /* per (row, chunk) */
    int64_t partial_bytes;  /* of all */
};

/* The result of one query row over some keys, in scratch; `o` follows it in memory. l and o are in
 * units of e^m, or of 2^m if values are int16. */
struct attention_partial {
    float m, l;
    float any; /* 0: no key yet, m and l are undefined */
    float padding[ATTENTION_PARTIAL_HEAD - 3];
    float o[];
};

/* Query rows of one KV head, and the block table and range of keys of each. */
struct attention_block {
    int64_t kv, first, n; /* rows first .. first + n - 1 */
    int64_t table[ATTENTION_BLOCK];
    int64_t lo[ATTENTION_BLOCK], hi[ATTENTION_BLOCK]; /* keys lo <= j < hi; empty: lo >= hi */
    int64_t self[ATTENTION_BLOCK];                    /* position of the query */
    int64_t part, part_end; /* rows part .. part_end - 1 use the loaded keys */
};

struct attention_run {
    const struct engine_task *task;
    struct engine_tensor *dst;
    struct attention_layout l;
    const struct engine_tile *tile;
    const struct engine_attn *attn;
    char *local; /* the worker's scratch */
    float scale, softcap, max_alibi;
    const struct engine_tensor *relative; /* or NULL */
    bool direct;       /* kernels compute int16 scores directly as exponents of weights */
    float query_scale; /* factor for the scale of a query's codes */
};

/* attention_chunk.c */

/* Converts the block's query rows, in the worker's scratch, to the form in which they are
 * multiplied by keys: int16 codes, or floats for an F32 cache. */
void engine_attention_convert_queries(const struct attention_run *run,
                                      const struct attention_block *b);

/* Keys lo .. hi - 1 of a chunk, relative to its first one, which are consecutive in memory: in the
 * cache, aligned slots of consecutive positions (several pieces after a fork of the sequence).
 * Pieces end at multiples of ENGINE_ATTN_SUB. `base` is the slot that key 0 of the chunk would
 * have; key and value are the addresses of its int16 groups, or floats, in scratch or in the cache.
 * Memory before key lo is not read. */
struct attention_piece {
    int64_t lo, hi;
    int64_t base;
    const char *key, *value;
};

/* The keys of a chunk that are in the range of any row of a block's part. */
struct attention_keys {
    int64_t chunk_lo; /* position of the chunk's first key */
    int64_t lo, hi;   /* keys in the range of any row, relative to chunk_lo */
    int64_t next;     /* groups of the next chunk that have such keys */
    bool in_place;    /* pieces of an int16 cache are read in the cache; otherwise one piece */
    int n_pieces;
    struct attention_piece piece[ATTENTION_CHUNK / ENGINE_ATTN_SUB];
    bool any_missing; /* this member and the next two: if keys are not read in place */
    bool missing[ATTENTION_CHUNK];
    int32_t slot[ATTENTION_CHUNK]; /* 0 for missing keys, whose slots are not in the cache */
};

/* Sets the part to the rows from b->part on that read the same slots in this chunk: rows of one
 * sequence, or of several with a common prefix. Loads the keys and values in the range of any of
 * them; false if there are none. */
bool engine_attention_chunk_load(const struct attention_run *run, struct attention_block *b,
                                 int64_t chunk, struct attention_keys *keys);

/* Computes the results of rows first .. first + n - 1 of the block, n <= ATTENTION_TILE, over the
 * loaded chunk into out[i]; sets `any` to 0 for rows without a key in it. */
void engine_attention_chunk_tile(const struct attention_run *run, const struct attention_block *b,
                                 const struct attention_keys *keys, int64_t first, int64_t n,
                                 struct attention_partial *const *out);
