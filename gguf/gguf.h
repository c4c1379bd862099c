/* gguf/gguf.h: the GGUF container: reading (memory-mapped, read-only) and writing.
 *
 * Format: "GGUF" specification, versions 2 and 3, little-endian; split files named
 * NAME-00001-of-0000N.gguf; files of PowerInfer, which differ in the first four bytes. Contains the
 * mapping, the metadata and the tensor directory; it does not interpret keys (hyper-parameters,
 * vocabularies), compute with tensors or print. Every count, length, offset and type is checked
 * against the size of the file, and every error is BASE_MODEL with the byte offset and the key's or
 * tensor's name. */
#pragma once

#include "base/error.h"
#include "base/output.h"
#include "gguf/str.h"
#include "quant/quant.h"

enum gguf_kind { /* metadata value types, ids of the specification */
                 GGUF_U8,
                 GGUF_I8,
                 GGUF_U16,
                 GGUF_I16,
                 GGUF_U32,
                 GGUF_I32,
                 GGUF_F32,
                 GGUF_BOOL,
                 GGUF_STRING,
                 GGUF_ARRAY,
                 GGUF_U64,
                 GGUF_I64,
                 GGUF_F64,
                 GGUF_KIND_COUNT
};

enum { GGUF_MAX_DIMS = 4 };

struct gguf_kv {
    struct gguf_str key;
    enum gguf_kind kind;
    enum gguf_kind item; /* GGUF_ARRAY: the items' kind */
    uint64_t count;      /* GGUF_ARRAY: items; else 1 */
    const void *data;    /* the value's bytes in the map, unaligned, little-endian */
    uint64_t size;       /* bytes of the value */
    uint64_t offset;     /* of the key in its file; UINT64_MAX if the value was given */
    bool given;          /* by gguf_override, not by the file */
};

struct gguf_tensor {
    struct gguf_str name;
    const struct quant_type *type; /* never NULL */
    uint32_t n_dims;
    uint64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, fastest first; 1 beyond n_dims */
    const void *data;           /* in the map; at least alignment-aligned in its file */
    uint64_t size;              /* bytes: product of ne in blocks */
    uint64_t offset;            /* of the data in its file */
    int part;                   /* which file of a split model, from 0 */
};

struct gguf_file; /* opaque */

/* Opens and checks a model. A path that ends in -00001-of-0000N.gguf (any part's number) opens all
 * N parts, unless it is a complete model by its metadata. Parts whose split.id differs (or that
 * only some have) are of different models. NULL and BASE_MODEL (or BASE_NO_MEMORY) on failure. */
struct gguf_file *gguf_open(const char *path, struct base_error *err);
/* As gguf_open, for a file that may be truncated: missing tensor data reads as zeros. The header of
 * every part must be complete. */
struct gguf_file *gguf_open_header(const char *path, struct base_error *err);
/* As gguf_open, for bytes that must remain valid until gguf_close (tests, fuzzing); `name` is for
 * messages. */
struct gguf_file *gguf_open_memory(const void *bytes, uint64_t size, const char *name,
                                   struct base_error *err);
/* Unmaps and frees the file; every slice, key and tensor of it becomes invalid. `file` may be
 * NULL. */
void gguf_close(struct gguf_file *file);

/* Whether a file may begin with these four bytes. */
bool gguf_is_magic(const char bytes[4]);
uint32_t gguf_version(const struct gguf_file *file);
/* Whether the (first) file begins with "PWRI" instead of "GGUF", as those of PowerInfer. */
bool gguf_is_powerinfer(const struct gguf_file *file);
const char *gguf_path(const struct gguf_file *file); /* of the first part */
uint64_t gguf_size(const struct gguf_file *file);    /* bytes of all parts */
int gguf_part_count(const struct gguf_file *file);
uint64_t gguf_alignment(const struct gguf_file *file);

/* One file of the model as it was when opened. For gguf_open_memory everything but bytes and size
 * is zero. `part` is below gguf_part_count. */
struct gguf_part_facts {
    const void *bytes; /* [size], mapped */
    uint64_t size, device, inode;
    int64_t changed_ns, written_ns; /* max(ctime, mtime), and mtime; since 1970 */
};
struct gguf_part_facts gguf_part_facts(const struct gguf_file *file, int part);

/* The name under which part `part` was opened; the caller frees it. NULL and BASE_NO_MEMORY on
 * failure. */
char *gguf_part_name(const struct gguf_file *file, int part, struct base_error *err);
/* The name of a part: "PREFIX-00002-of-00003.gguf" for `part` 1 (from 0) of 3; the caller frees it.
 * NULL and BASE_NO_MEMORY on failure. */
char *gguf_part_path(struct gguf_str prefix, int part, int count, struct base_error *err);

/* BASE_MODEL if one of the model's files was written to since it was opened; to be called after all
 * of the model has been read. Replacing a file by another of the same name is no change. */
bool gguf_check_unchanged(const struct gguf_file *file, struct base_error *err);
/* BASE_MODEL if a part other than the first has metadata that the first lacks or that differs
 * there, except split.* and general.alignment: the parts belong to different models, or keys would
 * be lost. */
bool gguf_check_parts(const struct gguf_file *file, struct base_error *err);

/* ---- Metadata (of the first part) ---- */
uint64_t gguf_kv_count(const struct gguf_file *file);
/* The entry at `index` in file order, without overrides; NULL from the count on. */
const struct gguf_kv *gguf_kv_at(const struct gguf_file *file, uint64_t index);
/* The entry of that key, an override first; NULL if there is none. */
const struct gguf_kv *gguf_kv_find(const struct gguf_file *file, const char *key);
/* gguf_kv_find with a key that need not be NUL-terminated. */
const struct gguf_kv *gguf_kv_find_str(const struct gguf_file *file, struct gguf_str key);
const char *gguf_kind_name(enum gguf_kind kind);

/* Whether general.alignment may have this value. */
bool gguf_alignment_valid(uint64_t alignment);
bool gguf_kind_is_integer(uint32_t kind);
uint32_t gguf_kind_size(uint32_t kind); /* bytes; 0 for strings, arrays and unknown ids */

/* Whether both values have the same kind and the same bytes. */
bool gguf_kv_equal(const struct gguf_kv *a, const struct gguf_kv *b);

/* Typed reads. Absent key: returns true and leaves *out unchanged, so the caller sets a default
 * beforehand; use gguf_kv_find where absence is an error. A value of a wrong kind, or out of range
 * for *out, is BASE_MODEL and the message names the key. Any integer kind is accepted by an integer
 * read if it fits. */
bool gguf_get_u32(const struct gguf_file *f, const char *key, uint32_t *out, struct base_error *e);
bool gguf_get_i64(const struct gguf_file *f, const char *key, int64_t *out, struct base_error *e);
bool gguf_get_f32(const struct gguf_file *f, const char *key, float *out, struct base_error *e);
bool gguf_get_bool(const struct gguf_file *f, const char *key, bool *out, struct base_error *e);
bool gguf_get_str(const struct gguf_file *f, const char *key, struct gguf_str *out,
                  struct base_error *e);

/* Overrides metadata: every later look-up of `key` finds this value, whether or not the file has
 * the key; the last call for a key counts. `kind` is I64, F64, BOOL (one byte) or STRING, `bytes`
 * are little-endian; key and bytes are copied. If a typed read rejects the value, the error is
 * BASE_USAGE. False and BASE_NO_MEMORY when there is no memory. */
bool gguf_override(struct gguf_file *file, struct gguf_str key, enum gguf_kind kind,
                   const void *bytes, uint64_t size, struct base_error *err);

/* Returns the override at `index`; NULL from their number on. *used: the file has its key, or a
 * look-up has found it. Not while other threads look keys up. */
const struct gguf_kv *gguf_override_at(const struct gguf_file *file, uint64_t index, bool *used);

/* Array items, index < kv->count; the caller must check kv->item before. Strings take O(1): opening
 * indexes every string array. */
struct gguf_str gguf_array_str(const struct gguf_file *file, const struct gguf_kv *kv,
                               uint64_t index);
/* Whether kv, which may be NULL, is an array whose items gguf_array_int reads. */
bool gguf_is_integers(const struct gguf_kv *kv);
/* Any integer or bool item as int64_t (u64 above INT64_MAX saturates), any number as double. */
int64_t gguf_array_int(const struct gguf_kv *kv, uint64_t index);
double gguf_array_num(const struct gguf_kv *kv, uint64_t index);

/* ---- Tensors (of all parts, in file order) ---- */
uint64_t gguf_tensor_count(const struct gguf_file *file);
/* NULL from the count on, and for a name that no tensor has. */
const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, uint64_t index);
const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file, const char *name);
const struct gguf_tensor *gguf_tensor_find_str(const struct gguf_file *file, struct gguf_str name);

/* ---- Writing ---- */
struct gguf_writer; /* opaque; metadata and tensor headers first, then data in the same order */
enum { GGUF_MAX_PARTS = 65535 }; /* of a split model: split.count is written as u16 */

struct gguf_writer *gguf_writer_new(struct base_error *err);
/* Frees the writer and removes an output that gguf_writer_end has not finished. `w` may be NULL. */
void gguf_writer_free(struct gguf_writer *w);
/* The writer's output, for a caller that removes it when a signal ends the process. */
struct base_output *gguf_writer_output(struct gguf_writer *w);

/* Metadata; the first error sticks in the writer, and gguf_writer_begin reports it. */
void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_str(struct gguf_writer *w, const char *key, const char *bytes, uint64_t size);
void gguf_writer_str_array(struct gguf_writer *w, const char *key, const struct gguf_str *items,
                           uint64_t count);
/* Any value, as a file has it. Writing the same key again replaces it. */
void gguf_writer_copy_kv(struct gguf_writer *w, const struct gguf_kv *kv);

/* Makes the file begin with the first four bytes of another one. */
void gguf_writer_copy_magic(struct gguf_writer *w, const struct gguf_file *file);
/* Copies all metadata of a file (of its first part) except split.*, and its first four bytes. */
void gguf_writer_copy_metadata(struct gguf_writer *w, const struct gguf_file *file);

/* Begins a part of a split model: tensors declared after this call are written to a separate file.
 * Call it before the first tensor, then before the first tensor of each further part. A part may
 * have no tensors. */
void gguf_writer_part(struct gguf_writer *w);
int gguf_writer_part_count(const struct gguf_writer *w); /* 0: not split */

/* Declares a tensor; its data follows through gguf_writer_data in the same order. */
void gguf_writer_tensor(struct gguf_writer *w, struct gguf_str name, const struct quant_type *type,
                        uint32_t n_dims, const uint64_t *ne);

/* Returns everything declared so far as one file in memory whose tensor data is zeros, to test
 * whether it is usable; the caller closes it. Call it before gguf_writer_begin. NULL and an error
 * if the file could not be written. */
struct gguf_file *gguf_writer_preview(struct gguf_writer *w, struct base_error *err);

/* Opens `path` and writes the metadata and the tensor directory; as with every base/output.h, the
 * file has its final name only after gguf_writer_end. For a split model `path` is the prefix of
 * gguf_part_path, and the first part has all metadata. The writer adds split.no, split.count,
 * split.tensors.count and split.id (a checksum of all parts) to every part; the caller must not
 * declare them. Parts that lack a common id are not opened as one model. */
bool gguf_writer_begin(struct gguf_writer *w, const char *path, struct base_error *err);
bool gguf_writer_data(struct gguf_writer *w, const void *bytes, uint64_t size,
                      struct base_error *err); /* the data of a tensor may take several calls */
/* Writes all data of a tensor of another file, which must have the declared size. The file system
 * shares or copies the bytes where it can. BASE_INTERRUPTED, or BASE_MODEL if the file was
 * truncated. */
bool gguf_writer_copy_data(struct gguf_writer *w, const struct gguf_file *file,
                           const struct gguf_tensor *t, struct base_error *err);
/* Checks that all declared data was written, closes the output and renames it. */
bool gguf_writer_end(struct gguf_writer *w, struct base_error *err);
