/* test/fake_cuda.h: the functions of NVIDIA's driver (engine/gpu/driver.h), on the emulator.
 *
 * The fake GPU has compute capability 8.0. Its memory is inaccessible outside of the driver's
 * functions: a function of the host that reads or writes it ends the program with a segmentation
 * fault. "Machine code" is a text with the number of PTX texts. A program that is linked with it
 * opens it by a NULL library; a shared library of it stands in for libcuda.so.1, with as many
 * devices as the variable FAKE_CUDA_DEVICES says, each with the bytes of memory of
 * FAKE_CUDA_MEMORY; with FAKE_CUDA_LOG it writes started kernels to stderr. A function for one
 * device that reads or writes the memory of another one ends the program, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_cuda {
    int devices;                         /* at first 1 */
    uint64_t memory;                     /* bytes of all buffers, at most; at first 64 MiB */
    int major;                           /* compute capability; at first 8 */
    int links, launches, graphs, copies; /* so far; graphs: started */
    int locked;                          /* allocations of page-locked memory so far */
    int live;                            /* buffers, streams, modules, links and contexts in use */
    bool fail_locked;                    /* such memory cannot be had */
    int fail_launch, fail_copy; /* the launch or copy that fails, counted from 1; 0: none */
    const char *fail;           /* the function whose calls fail; NULL: none */
    uint64_t blocks;            /* of launches, so far */
    uint64_t seed;              /* of the emulator */
};
extern struct fake_cuda fake_cuda;
