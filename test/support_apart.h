/* test/support_apart.h: a device for tests: the processor's ops on memory that is inaccessible
 * outside of the device's own functions.
 *
 * Code that touches a place's memory other than through its device ends the test program with a
 * segmentation fault, and a run fails if a step of the device reads or writes other memory. */
#pragma once

#include "models/model.h"

/* Which part of a model lies apart: nothing, the last half of its layers, or all of it. */
enum support_apart { SUPPORT_HERE, SUPPORT_HALF, SUPPORT_ALL, SUPPORT_APARTS };
extern const char *const support_apart_names[SUPPORT_APARTS];

/* For the models that other support files open from now on; at first SUPPORT_HERE. */
extern enum support_apart support_apart_now;

/* Adds the device to the engine (unless `how` is SUPPORT_HERE) and opens the model. */
struct model *support_apart_open(const struct gguf_file *file, struct engine *engine,
                                 enum support_apart how, struct base_error *err);

/* The numbers of runs of the device, and of bytes that it copied to and from this machine's memory,
 * since the program began. */
struct support_apart_counts {
    uint64_t runs, bytes;
};
struct support_apart_counts support_apart_counts(void);
