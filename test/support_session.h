/* test/support_session.h: opens a model file with an engine and a session, and compares rows of
 * logits. All functions fail the running test on an error. */
#pragma once

#include "base/buffer.h"
#include "models/model.h"

struct support_session {
    struct gguf_file *file;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
};

void support_session_open(struct support_session *s, const char *path,
                          const struct engine_options *engine,
                          const struct model_session_options *session);
void support_session_close(struct support_session *s);

/* A sink of model_eval that copies row i of the batch to data[i * n_vocab]. */
struct support_rows {
    float *data;
    size_t n_vocab;
};
bool support_rows_keep(void *rows, uint64_t first, uint64_t n, const float *logits,
                       struct base_error *err);

/* A saved sequence in memory: a sink that appends to a struct base_buffer, and functions of a
 * source whose user is a struct support_saved. */
struct support_saved {
    const struct base_buffer *bytes;
    uint64_t at; /* of the next byte that is read */
};
bool support_saved_keep(void *buffer, const void *bytes, uint64_t n, struct base_error *err);
bool support_saved_read(void *saved, void *bytes, uint64_t n, struct base_error *err);
bool support_saved_pass_over(void *saved, uint64_t n, struct base_error *err);

/* Normalized mean squared error: sum of squared differences over the sum of squares of `want`. */
double support_nmse(const float *got, const float *want, size_t n);

/* The name of row i of the architecture table, or NULL past the last one that has logits. */
const char *support_arch(size_t i);
/* Whether no name before i has the same kinds of mixers and of state: short runs test these. */
bool support_arch_is_first(size_t i);
