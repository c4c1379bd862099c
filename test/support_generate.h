/* test/support_generate.h: a tiny model with an engine, a session and a vocabulary, for tests of
 * requests. */
#pragma once

#include "generate/generate.h"

struct support_generate {
    struct gguf_file *file;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
    struct gguf_file *drafter_file;
    struct model *drafter; /* of support_generate_add_drafter; no session uses it yet */
    struct text_tokenizer *tokenizer;
    uint32_t n_vocab;
    struct generate_model parts; /* pointers to the members above */
};

/* With one thread, which for a tiny model takes a fifth of the processor time of two. Fails the
 * test on any error. */
void support_generate_open(struct support_generate *s, const char *arch, uint32_t n_seq,
                           uint32_t n_ctx);
void support_generate_open_with(struct support_generate *s, const char *arch, int n_threads,
                                uint32_t n_seq, uint32_t n_ctx);
/* Opens the drafter of that name (support_drafters) beside the model. */
void support_generate_add_drafter(struct support_generate *s, const char *name);
void support_generate_close(struct support_generate *s);

/* A new request; fails the test on an error. The options must outlive it. */
struct generate_request *support_request(const struct support_generate *s,
                                         const struct generate_options *options, uint32_t seq);
/* Runs one step of one request by itself; false when the request has ended. */
bool support_request_step(struct generate_request *r, struct generate_piece *piece);
