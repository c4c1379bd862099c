/* cli/expert_stream.c: experts that are read from the disk. See cli/expert_stream.h. */
#include "cli/expert_stream.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/os.h"
#include "cli/load.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Interleaved rows are not mapped: they are copied when the model is opened. */
static bool is_experts(const struct gguf_tensor *t)
{
    return t->n_dims >= 3 && !t->type->interleave &&
           memmem(t->name.data, t->name.size, "exps.", 5) != NULL;
}

struct cli_stream cli_stream_plan(const struct gguf_file *file, uint64_t placed, uint64_t room,
                                  uint32_t used, uint32_t n_expert)
{
    struct cli_stream s = {0};
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        *(is_experts(t) ? &s.experts : &s.others) += t->size;
    }
    s.on = s.experts > 0 && s.experts + s.others - placed > room;
    if (!s.on) return s;
    const uint64_t left = room > s.others ? room - s.others : 0;
    const double share = left < s.experts ? 1 - (double)left / (double)s.experts : 0;
    s.chosen = (uint64_t)((double)s.experts * used / n_expert);
    s.missing = (uint64_t)((double)s.chosen * share);
    return s;
}

/* Keeps the whole pages of a tensor's bytes in memory, unless these are experts, or rows that were
 * copied. */
static void keep(const struct gguf_tensor *t)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), mask = ~(page - 1);
    const uintptr_t from = ((uintptr_t)t->data + page - 1) & mask;
    const uintptr_t to = ((uintptr_t)t->data + t->size) & mask;
    if (from < to && !is_experts(t) && !t->type->interleave)
        base_os_map_keep((void *)from, to - from);
}

void cli_stream_look(struct cli_model *m, uint64_t room)
{
    const struct model_facts *f = model_facts(m->model);
    struct base_error ignored = BASE_ERROR_INIT; /* model_open has checked its keys */
    uint32_t count = 0, used = 0;
    char key[96];
    snprintf(key, sizeof key, "%.64s.expert_count", f->arch);
    gguf_get_u32(m->file, key, &count, &ignored);
    snprintf(key, sizeof key, "%.64s.expert_used_count", f->arch);
    gguf_get_u32(m->file, key, &used, &ignored);
    if (count == 0 || used == 0) return;
    m->stream = cli_stream_plan(m->file, f->placed_bytes, room, used, count);
}

void cli_stream_open(struct cli_model *m)
{
    struct base_memory memory;
    uint64_t room;
    base_memory_read("", &memory);
    if (!base_memory_room(&memory, &room)) return;
    cli_stream_look(m, room);
    if (!m->stream.on || m->engine->options.plan_only) return;
    for (uint64_t i = 0; m->stream.others <= room / 2 && i < gguf_tensor_count(m->file); i++)
        keep(gguf_tensor_at(m->file, i));
    engine_set_read_ahead(m->engine, true);
}

/* ---- The disk ---- */

enum { READERS = 4, BLOCK = 1 << 20, READS = 160 }; /* of each reader, at most */
static const double SECONDS = 0.5;

struct disk_reader {
    pthread_t thread;
    int fd;
    uint64_t n_blocks, seed, bytes;
    double end;
};

static void *read_blocks(void *data)
{
    struct disk_reader *r = data;
    void *block = aligned_alloc(4096, BLOCK);
    for (int i = 0; block && i < READS && base_seconds() < r->end; i++) {
        r->seed = r->seed * 6364136223846793005U + 1442695040888963407U;
        const ssize_t n =
            pread(r->fd, block, BLOCK, (off_t)((r->seed >> 20) % r->n_blocks * BLOCK));
        if (n <= 0) break;
        r->bytes += (uint64_t)n;
    }
    free(block);
    return NULL;
}

/* Opens the part of a model that has its first experts, past the page cache; -1 on an error. */
static int open_experts(const struct gguf_file *file)
{
    struct base_error ignored = BASE_ERROR_INIT; /* the rate is not known then */
    uint64_t i = 0;
    while (i + 1 < gguf_tensor_count(file) && !is_experts(gguf_tensor_at(file, i))) i++;
    char *path = gguf_part_name(file, gguf_tensor_at(file, i)->part, &ignored);
    const int fd = path ? base_os_open_direct(path) : -1;
    free(path);
    return fd;
}

double cli_stream_disk_rate(const struct gguf_file *file)
{
    struct disk_reader reader[READERS];
    const int fd = open_experts(file);
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    const double start = base_seconds();
    uint64_t bytes = 0;
    int n = 0;
    for (; size >= BLOCK && n < READERS; n++) {
        reader[n] = (struct disk_reader){.fd = fd,
                                         .n_blocks = (uint64_t)size / BLOCK,
                                         .seed = (uint64_t)n + 1,
                                         .end = start + SECONDS};
        if (pthread_create(&reader[n].thread, NULL, read_blocks, &reader[n]) != 0) break;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(reader[i].thread, NULL);
        bytes += reader[i].bytes;
    }
    const double took = base_seconds() - start;
    if (fd >= 0) close(fd);
    return took > 0 ? (double)bytes / took : 0;
}
