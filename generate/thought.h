/* generate/thought.h: phases of a text with reasoning before the answer. Private to generate/.
 *
 *     OPENING    tokens of the opening mark, or of the answer's header, while the model writes them
 *       |  \
 *       |   THINKING   any tokens, up to the closing mark
 *       |      |
 *       |   CLOSING    tokens that the request writes: the closing mark, or the rest of it, and the
 *       |  /           answer's header
 *     ANSWERING        a constraint applies */
#pragma once

#include "generate/constraint_driver.h"
#include "generate/generate.h"
#include "generate/stop.h"

enum generate_phase { GENERATE_OPENING, GENERATE_THINKING, GENERATE_CLOSING, GENERATE_ANSWERING };

enum { GENERATE_MARK_TOKENS = 256 };

struct generate_thought {
    const struct text_tokenizer *tokenizer;
    struct generate_driver *driver; /* NULL: no constraint */
    enum generate_phase phase;
    struct text_ids open, close;  /* the ids of the marks */
    struct text_ids after, start; /* written after the closing mark; before an answer without
                                   * reasoning: its header. None without a constraint. */
    size_t n_opened; /* number of tokens of `open` or `start` that were written; without a
                      * constraint number of bytes of `open_text` */
    const char *open_text;
    bool is_start; /* these tokens differ from `open` */
    bool refused;  /* these tokens cannot begin an answer: only the rest of the mark can follow */
    struct generate_stop *match;           /* finds the closing mark in the reasoning */
    size_t close_size;                     /* of the closing mark, in bytes */
    bool close_is_token;                   /* it begins with a control or user-defined token */
    size_t n_since;                        /* bytes since that token, at most close_size */
    uint64_t left;                         /* maximum of further reasoning tokens */
    uint64_t owed;                         /* tokens reserved for the answer */
    int32_t written[GENERATE_MARK_TOKENS]; /* [n_written]: written in the phase CLOSING */
    size_t n_written, written_at;
    bool wrote;  /* the latest token is one of the written ones */
    bool begins; /* the answer begins after the latest token */
    struct base_buffer bytes, scratch;
};

/* Begins a text of at most `left` tokens. `marks` NULL: the whole text is the answer. `has_header`:
 * the constraint contains the answer's header. */
bool generate_thought_begin(struct generate_thought *t, const struct generate_thought_marks *marks,
                            bool has_header, int64_t max_thought, uint64_t left,
                            struct base_error *err);
void generate_thought_free(struct generate_thought *t);

/* Call this before a token is chosen by the logits; `left` tokens may still come, this one
 * included. Returns the token of the opening mark that is allowed in addition to the constraint's,
 * -1 for none; *id is the token that must be written, or -1. */
int32_t generate_thought_offer(struct generate_thought *t, const float *logits, uint64_t left,
                               int32_t *id);

/* Call this after a token was chosen or written; it may replace the token. */
bool generate_thought_take(struct generate_thought *t, int32_t *id, struct base_error *err);
