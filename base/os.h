/* base/os.h: what differs between operating systems. base/linux/os_linux.c is Linux with glibc or
 * musl, base/macos/os_macos.c is macOS; the Makefile compiles one of them. Everything else of the
 * program, except for cli/sandbox.h, is POSIX. */
#pragma once

#include "base/buffer.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- Threads and processors ---- */

/* Sleeps until base_os_wake_all(word), if *word still is `old`; may return earlier. */
void base_os_wait(_Atomic uint32_t *word, uint32_t old);
void base_os_wake_all(_Atomic uint32_t *word);

/* Sets of processors: bit n of words[size / 8] is processor n. The first reads those that the
 * calling thread may use; the second binds a thread to a set. Return false if the system cannot. */
bool base_os_cpus_get(uint64_t *words, size_t size);
bool base_os_cpus_bind(pthread_t thread, const uint64_t *words, size_t size);

/* Sets the stack size of threads that are started later, where they do not have a fixed one. */
void base_os_stack_size(size_t size);

/* The bits of HWCAP and HWCAP2 as Linux numbers them for 64-bit ARM. */
void base_os_arm_features(uint32_t *hwcap, uint32_t *hwcap2);

/* Returns whether this process may use the tile registers of x86-64 (AMX) from now on. */
bool base_os_allow_tiles(void);

/* Writes the name of the processor, "" if it is unknown, and its features, as words of
 * /proc/cpuinfo. Returns false if the features are unknown. */
bool base_os_cpu_text(char *name, size_t name_size, char *features, size_t features_size);

/* ---- Memory ---- */

/* Sets the bytes of memory of the machine, and those that are available without swapping. `root` as
 * in base/memory.h. Returns false if they are unknown. */
bool base_os_memory(const char *root, uint64_t *total, uint64_t *available);

/* The resident bytes of this process without mapped files, of which more or fewer pages are there
 * in each call, but with the program's code; 0 if they are unknown. The first opens what the second
 * reads, -1 if there is nothing, for processes that may open no file later. */
int base_os_resident_open(void);
uint64_t base_os_resident(int fd);

/* Advises the system to use huge pages. */
void base_os_huge_pages(void *at, size_t size);

/* Advice about whole pages of a mapped file: the system reads nothing around a page that is touched
 * (`on`), or as much as it does by default, in huge pages; its pages stay in memory once they are
 * read, where the system can and the limit of locked memory allows. */
void base_os_map_random(void *at, size_t size, bool on);
void base_os_map_keep(void *at, size_t size);

/* Moves a mapping of a file to an address inside another mapping, which it replaces there. */
bool base_os_map_move(void *from, size_t size, void *to);

/* ---- Files ---- */

/* Times in nanoseconds since 1970: of the last write to a file, and of the last change of it or of
 * its inode. */
int64_t base_os_written_ns(const struct stat *st);
int64_t base_os_changed_ns(const struct stat *st);

/* Opens a file for reading past the page cache, by whole blocks of 4096 bytes to addresses that are
 * multiples of that; -1 with errno. */
int base_os_open_direct(const char *path);

/* Exchanges the names of two files; false with errno, ENOENT if one does not exist. */
bool base_os_swap_files(const char *a, const char *b);

/* Copies up to `size` bytes from *at to the position of `to`, in a way that file systems may share
 * them, and advances *at. Returns their number; 0 or less if the system cannot. */
ssize_t base_os_copy_shared(int from, off_t *at, int to, size_t size);

/* ---- Other ---- */

/* Fills out[size], at most 256 bytes. With `wait`, waits until the system has collected enough
 * chance; without, returns false then. */
bool base_os_random(void *out, size_t size, bool wait);

/* qsort with a context that `compare` receives last. */
void base_os_sort(void *items, size_t count, size_t size,
                  int (*compare)(const void *a, const void *b, void *context), void *context);

/* A timer that runs a signal handler, on the thread that started it, until it is stopped. The
 * handler ignores signals that base_os_timer_sent denies. */
struct base_os_timer {
    void *id;
    struct sigaction before;
};
bool base_os_timer_start(struct base_os_timer *t, void (*handler)(int, siginfo_t *, void *),
                         int first_ms, int each_ms);
void base_os_timer_stop(struct base_os_timer *t);
bool base_os_timer_sent(const siginfo_t *info);

/* Appends what identifies the program and the C library that computes for it. Returns false if the
 * program has no build id. */
bool base_os_program_id(struct base_buffer *out);
