/* gguf/part.h: one file of a model, parsed and checked. Private to gguf/. */
#pragma once

#include "gguf/gguf.h"
#include "gguf/index.h"

/* A metadata entry: the public part, and the starts of the items of a string array. Every gguf_kv
 * pointer points to the first member of one. */
struct gguf_entry {
    struct gguf_kv kv;
    uint64_t *start; /* string arrays: [count], each item's length field, from kv.data; else NULL */
};

struct gguf_part {
    const unsigned char *bytes; /* the file; gguf_part_free does not unmap it */
    uint64_t size;
    uint64_t device, inode; /* of the file; file.c sets these and changed_ns */
    int64_t changed_ns, written_ns;
    uint32_t version;
    bool powerinfer; /* begins with GGUF_MAGIC_POWERINFER */
    uint64_t alignment;
    uint64_t head_end;   /* of the tensor directory */
    uint64_t data_start; /* of the tensor data in the file */
    uint64_t data_end;   /* end of the last tensor's data */
    bool may_lack_data;  /* set before parsing: data may end past the end of the file */
    uint64_t map_size;   /* bytes that file.c has mapped: size, or more, with zeros after the end of
                            the file */
    struct gguf_entry *entry;
    uint64_t entry_count;
    struct gguf_tensor *tensor;
    uint64_t tensor_count;
    struct gguf_index keys;
};

/* Parses `size` bytes as part `number` (from 0). On failure the part may be incomplete:
 * gguf_part_free is valid for any part that began as all zero. */
bool gguf_part_parse(struct gguf_part *part, const void *bytes, uint64_t size, int number,
                     struct base_error *err);
void gguf_part_free(struct gguf_part *part);

/* Offsets of the pieces of a part in its file. */
struct gguf_part_places {
    uint64_t head_end, data_start, data_end, alignment;
};
struct gguf_part_places gguf_part_places(const struct gguf_file *file, int part);

/* general.alignment: a power of two. The specification requires a multiple of 8; the limit of 1 MiB
 * keeps padding from overflowing. */
enum { GGUF_DEFAULT_ALIGNMENT = 32, GGUF_MIN_ALIGNMENT = 8, GGUF_MAX_ALIGNMENT = 1 << 20 };

/* The first four bytes of a file, and those of files of PowerInfer, which are the same otherwise.
 */
#define GGUF_MAGIC            "GGUF"
#define GGUF_MAGIC_POWERINFER "PWRI"

enum { GGUF_MAX_NAME = 64, GGUF_MAX_KEY = 65535 }; /* bytes; limits of the specification */

/* Opens a file of `size` bytes that begins with a copy of head[0..head_size); the rest is zeros. */
struct gguf_file *gguf_open_head(const void *head, uint64_t head_size, uint64_t size,
                                 struct base_error *err);
