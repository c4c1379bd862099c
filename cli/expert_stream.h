/* cli/expert_stream.h: mixtures of experts that are larger than the memory: their experts are read
 * from the disk as tokens choose them, and everything else stays in memory. */
#pragma once

#include "gguf/gguf.h"

struct cli_model;

struct cli_stream {
    bool on;          /* the weights are larger than `room`, and experts are among them */
    uint64_t experts; /* bytes of all experts */
    uint64_t others;  /* bytes of the other weights */
    uint64_t chosen;  /* bytes of the experts that a token chooses */
    uint64_t missing; /* of these, what is not in memory if choices are even, `others` is and the
                         experts have the rest of `room` */
};

/* Computes the fields for a file whose tensors, except `placed` bytes on other devices, may take
 * `room` bytes of memory; used of n_expert experts, neither 0, are
 * chosen for a token. */
struct cli_stream cli_stream_plan(const struct gguf_file *file, uint64_t placed, uint64_t room,
                                  uint32_t used, uint32_t n_expert);

/* Sets m->stream of an open model if it may use `room` bytes of memory. */
void cli_stream_look(struct cli_model *m, uint64_t room);

/* Sets m->stream of an open model by the memory that this process may use. If it is on and the
 * weights are mapped, the engine requests chosen experts (engine_set_read_ahead), and pages of
 * other weights stay in memory once they are read, as far as the limit of locked memory and half of
 * the room allow. */
void cli_stream_open(struct cli_model *m);

/* Measures the rate of the disk with large random reads of the file that has the first experts,
 * past the page cache, in bytes per second; 0: not known. Takes about half a second. */
double cli_stream_disk_rate(const struct gguf_file *file);
