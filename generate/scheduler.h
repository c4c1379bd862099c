/* generate/scheduler.h: many requests in one session, evaluated together.
 *
 * It assigns sequences to requests, selects the tokens of each step, and shares prefixes of
 * prompts; callers read jobs and write texts.
 *
 *     sequences 0 .. n_slots - 1        one request each; a free slot is filled at once
 *     sequences n_slots .. n_seq - 1    prefixes that several waiting prompts share
 *
 * If a single text is being generated and no prompt is being evaluated, a step evaluates draft
 * tokens too. Otherwise it evaluates the next token of each text and, up to n_step tokens, parts of
 * prompts, oldest first. A prompt shares the longest prefix that any sequence has (model_seq_fork),
 * and waits while another job evaluates a longer one. A job's text has the same bytes as with
 * generate_run, because the logits of a sequence depend on its own tokens only.
 *
 * Memory is that of the session, n_ctx ids for each sequence and n_slots requests. The caller
 * allocates the jobs and bounds their number. A step allocates only for a request with options that
 * are new to its slot, and what generate/generate.h states. */
#pragma once

#include "generate/draft.h"
#include "generate/generate.h"

struct generate_scheduler; /* opaque */

/* A store of prefixes that remains after the scheduler. Both functions may be NULL. */
struct generate_store {
    /* May replace the n_held ids of sequence `seq` by a longer prefix of ids[n], but never by all
     * of it. Returns the new length, or 0 if the sequence is unchanged. */
    size_t (*load)(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                   size_t n, size_t n_held);
    /* Called when sequence `seq` has a prefix ids[n] that several prompts share; its first n_held
     * ids are a copy of another sequence or of the store. */
    void (*save)(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                 size_t n, size_t n_held);
    void *user;
};

struct generate_scheduler_options {
    uint32_t n_slots; /* requests evaluated together; 0: as many as the session has sequences */
    uint32_t n_step;  /* maximum of tokens per step; 0: 512. Each generating text and the oldest
                       * prompt have at least one token */
    struct generate_store store;
    struct generate_draft *draft; /* for steps with one generating text and no prompt; NULL: none.
                                   * It has the session's n_ctx, looks up tokens in the text
                                   * (generate/draft.h), and must outlive the scheduler */
};

/* Called once per job, after which the scheduler does not use the job: how its text ended, or
 * (outcome NULL) the job's own error. Returning false ends the step with *err. */
typedef bool generate_end_fn(void *user, const struct generate_outcome *outcome,
                             const struct base_error *failed, struct base_error *err);

/* A text to generate. The caller sets the first members, and must not move or change the job, its
 * ids and what it points to until `end` is called. Jobs with the same options share requests: see
 * generate_scheduler_release. */
struct generate_job {
    const struct generate_options *options;
    struct generate_prompt prompt; /* the scheduler sets n_held */
    generate_sink_fn *sink;        /* an error of the sink is the job's own */
    generate_end_fn *end;
    void *user; /* for sink and end */

    struct generate_job *next; /* set by the scheduler */
    uint32_t n_passed;         /* number of later jobs that were started before it */
    bool cancelled;
};

/* Creates a scheduler, which the caller frees. Returns NULL with BASE_USAGE for more slots than the
 * session has sequences, or BASE_NO_MEMORY. */
struct generate_scheduler *generate_scheduler_new(const struct generate_model *model,
                                                  const struct generate_scheduler_options *options,
                                                  struct base_error *err);
/* Removes the remaining jobs without calling their `end`. Accepts NULL. */
void generate_scheduler_free(struct generate_scheduler *s);

/* Appends a job to the queue. Must not be called during `end` of the same job. */
void generate_scheduler_add(struct generate_scheduler *s, struct generate_job *job);
/* Makes the next step end the job (GENERATE_END_INTERRUPTED), running or waiting. Pieces that were
 * already passed to its sink remain valid output. */
void generate_scheduler_cancel(struct generate_job *job);
/* Frees the requests that were made for these options, which no job may use; the options may then
 * be freed. */
void generate_scheduler_release(struct generate_scheduler *s,
                                const struct generate_options *options);

size_t generate_scheduler_waiting(const struct generate_scheduler *s); /* jobs without a slot */
size_t generate_scheduler_running(const struct generate_scheduler *s); /* jobs with one */

/* Runs one evaluation; does nothing without jobs. Returns false for errors that are not a job's
 * own: of the evaluation, or of an `end`. After an error or an interrupt (BASE_INTERRUPTED) the
 * scheduler can only be freed. */
bool generate_scheduler_step(struct generate_scheduler *s, struct base_error *err);
