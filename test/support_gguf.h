/* test/support_gguf.h: writes GGUF files byte by byte, valid or not, for tests of the reader. */
#pragma once

#include "base/buffer.h"
#include "gguf/gguf.h"

/* A file under construction. `mark`: the offset at which the reader should report the error. */
struct forge {
    struct base_buffer bytes;
    int64_t mark;
};

void forge_begin(struct forge *f); /* empty, mark -1 */
void forge_free(struct forge *f);
void forge_mark(struct forge *f); /* sets mark to the next byte */

void forge_u8(struct forge *f, uint8_t value);
void forge_u16(struct forge *f, uint16_t value);
void forge_u32(struct forge *f, uint32_t value);
void forge_u64(struct forge *f, uint64_t value);
void forge_f32(struct forge *f, float value);
void forge_f64(struct forge *f, double value);
void forge_str(struct forge *f, const char *text); /* length and bytes */

void forge_head(struct forge *f, uint32_t version, uint64_t n_tensors, uint64_t n_kv);
void forge_key(struct forge *f, const char *key, uint32_t kind);
void forge_array(struct forge *f, const char *key, uint32_t item, uint64_t count);
/* A complete directory record; dimensions beyond n_dims are omitted. */
void forge_tensor(struct forge *f, const char *name, uint32_t n_dims, uint64_t ne0, uint64_t ne1,
                  uint32_t type, uint64_t offset);
void forge_zeros(struct forge *f, uint64_t count);
void forge_pad(struct forge *f, uint64_t alignment);

/* A small valid file: every metadata kind, an array of every item kind, two tensors ("a" F32 [4],
 * "b" Q8_0 [32][2]). */
void forge_everything(struct forge *f, uint32_t version);

/* Reads all of an open file as callers would: every key, string, item and tensor. Returns a sum, so
 * that the compiler keeps the reads. */
uint64_t gguf_touch(const struct gguf_file *file);

/* Values that only tests write. `items`: `count` numbers of `item`, in memory order. */
void gguf_writer_u64(struct gguf_writer *w, const char *key, uint64_t value);
void gguf_writer_i32(struct gguf_writer *w, const char *key, int32_t value);
void gguf_writer_f32(struct gguf_writer *w, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_kind item,
                       const void *items, uint64_t count);
