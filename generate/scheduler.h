/* generate/scheduler.h: many requests in one session, evaluated together.
 *
 * Owns: which sequence a request gets, which tokens are evaluated in a step, which beginnings of
 * prompts are shared. Refuses: where jobs come from and where their texts go.
 *
 *     sequences 0 .. n_slots - 1        a request each; the slot of one that ended is filled at once
 *     sequences n_slots .. n_seq - 1    beginnings that several waiting prompts share, kept for them
 *
 * Where a single text grows and no prompt is read, a step evaluates guesses at its tokens too.
 * Otherwise it evaluates the next token of each text that grows and, with what is left of n_step,
 * pieces of the prompts that are being read, oldest first. A prompt shares the longest beginning
 * that any sequence holds (model_seq_fork), and waits while another reads a longer one. A job's
 * text has the bytes that generate_run gives it alone: what a sequence evaluates to depends on its
 * own tokens only.
 *
 * Memory is that of the session, n_ctx ids for each sequence and n_slots requests; the jobs belong
 * to the caller, who bounds their number. A step allocates nothing but for a request with options
 * that its slot did not have before, and what generate/generate.h says. */
#ifndef GENERATE_SCHEDULER_H
#define GENERATE_SCHEDULER_H

#include "generate/draft.h"
#include "generate/generate.h"

struct generate_scheduler; /* opaque; the caller owns it */

/* Beginnings that outlive the scheduler. Both may be NULL. */
struct generate_store {
    /* Sequence `seq` may become a longer beginning of ids[n] than the n_held ids that it holds of
     * it, never all of it; returns its length, 0: it is what it was. */
    size_t (*load)(void *user, struct model_session *session, uint32_t seq, const int32_t *ids,
                   size_t n, size_t n_held);
    /* Sequence `seq` is a beginning that several prompts share, ids[n]; the first n_held were
     * found in a sequence or in the store. */
    void (*save)(void *user, const struct model_session *session, uint32_t seq, const int32_t *ids,
                 size_t n, size_t n_held);
    void *user;
};

struct generate_scheduler_options {
    uint32_t n_slots; /* requests evaluated together; 0: as many as the session has sequences */
    uint32_t n_step; /* tokens of a step at most; 0: 512. Each text that grows and the oldest prompt
                      * that is read have one in any case */
    struct generate_store store;
    struct generate_draft *draft; /* for steps in which one text grows and nothing is read;
                                   * NULL: none. Of the session's n_ctx, and its text is looked up
                                   * (generate/draft.h); it must outlive the scheduler */
};

/* Called once for each job, as the last thing that the scheduler does with it: how its text ended,
 * or (outcome NULL) the job's own error. False ends the step with *err. */
typedef bool generate_end_fn(void *user, const struct generate_outcome *outcome,
                             const struct base_error *failed, struct base_error *err);

/* A text to make. The caller sets the upper members and leaves the job, what it points to, and its
 * ids where they are until `end`. Jobs of the same options share requests: see
 * generate_scheduler_release. */
struct generate_job {
    const struct generate_options *options;
    struct generate_prompt prompt; /* n_held is the scheduler's */
    generate_sink_fn *sink;        /* its error is the job's own */
    generate_end_fn *end;
    void *user; /* of both */

    struct generate_job *next; /* the scheduler's */
    uint32_t n_passed;         /* later jobs that were started before it */
    bool cancelled;
};

/* NULL on failure: BASE_USAGE for more slots than the session has sequences, BASE_NO_MEMORY. */
struct generate_scheduler *generate_scheduler_new(const struct generate_model *model,
                                                  const struct generate_scheduler_options *options,
                                                  struct base_error *err);
/* Removes jobs that are left, without their `end`. NULL is fine. */
void generate_scheduler_free(struct generate_scheduler *s);

/* Appends a job to those that wait. Not while `end` of the same job runs. */
void generate_scheduler_add(struct generate_scheduler *s, struct generate_job *job);
/* The next step ends the job (GENERATE_END_INTERRUPTED), wherever it is; what it has written
 * stays. */
void generate_scheduler_cancel(struct generate_job *job);
/* Frees requests that were made for these options, of which no job is left: from here on the
 * options may be freed. */
void generate_scheduler_release(struct generate_scheduler *s,
                                const struct generate_options *options);

size_t generate_scheduler_waiting(const struct generate_scheduler *s); /* jobs without a slot */
size_t generate_scheduler_running(const struct generate_scheduler *s); /* jobs with one */

/* One evaluation. With no job left it does nothing. False for what is no job's own failure: one of
 * the evaluation, one of an `end`. After it, and after an interrupt (BASE_INTERRUPTED), the
 * scheduler can only be freed. */
bool generate_scheduler_step(struct generate_scheduler *s, struct base_error *err);

#endif
