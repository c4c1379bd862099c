/* engine/cpu/roofline.h: measures the machine's two limits of inference: memory reads and integer
 * multiplications.
 *
 * Generation reads every weight once per token, so streaming read bandwidth limits it; reading a
 * prompt multiplies 8-bit integers. Only ratios to figures of the same run are meaningful: on
 * shared machines both drift within minutes. */
#pragma once

#include "engine/cpu/cpu_device.h"

/* Total bytes per second that all threads of the engine read from a buffer larger than any cache
 * (256 MiB, or half of what this process may use), in huge pages if available: the best of several
 * passes, with one or four address streams per thread. 0 and BASE_NO_MEMORY when the buffer cannot
 * be allocated. */
double engine_roofline_bandwidth(struct engine_cpu *e, struct base_error *err);

/* The bytes of that buffer. */
uint64_t engine_roofline_bytes(void);

/* Total 8-bit multiply-adds per second of all threads, from registers, with the instructions of the
 * engine's level (VPDPBUSD; VPMADDUBSW and VPMADDWD; scalar). */
double engine_roofline_int8(struct engine_cpu *e);

/* The measured loops of a level. */
enum {
    ENGINE_ROOFLINE_STEPS = 2000, /* rounds of `multiply` */
    ENGINE_ROOFLINE_CHAINS = 12   /* independent accumulators: enough to hide the latency */
};
struct engine_roofline_loops {
    /* Read all of `data`; used in even and in odd passes. */
    uint64_t (*read[2])(const uint64_t *data, size_t bytes);
    /* ENGINE_ROOFLINE_STEPS * ENGINE_ROOFLINE_CHAINS * lanes multiply-adds. */
    int32_t (*multiply)(int32_t seed);
    double lanes;
};
