/* gguf/bytes.h: little-endian numbers at any address. A GGUF file aligns tensor data only, so these
 * functions read and write every number of the header. The program runs on little-endian
 * processors only (cpu_check). Private to gguf/. */
#ifndef GGUF_BYTES_H
#define GGUF_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t gguf_load_u16(const void *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t gguf_load_u32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t gguf_load_u64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline float gguf_load_f32(const void *at)
{
    uint32_t bits = gguf_load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double gguf_load_f64(const void *at)
{
    uint64_t bits = gguf_load_u64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
