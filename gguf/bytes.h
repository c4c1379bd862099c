/* gguf/bytes.h: little-endian numbers at any address. A GGUF file aligns tensor data only, so these
 * functions read and write every number of the header. The program runs on little-endian
 * processors only (cpu_check). Private to gguf/. */
#pragma once

#include <stdint.h>
#include <string.h>

#define GGUF_LOAD(name, type)                                                                      \
    static inline type gguf_load_##name(const void *at)                                            \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return value;                                                                              \
    }
GGUF_LOAD(u16, uint16_t)
GGUF_LOAD(u32, uint32_t)
GGUF_LOAD(u64, uint64_t)
GGUF_LOAD(f32, float)
GGUF_LOAD(f64, double)
