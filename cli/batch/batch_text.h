/* cli/batch/batch_text.h: a line of the input as a job of the scheduler, and its answer as a line
 * of the output.
 *
 * Owns: what members a line may have, how the options of a line and those of the command go
 * together, what an answer says. Refuses: reading, order, evaluating. Lines with the same options
 * share what is made of them (a profile: options, a compiled constraint). */
#ifndef CLI_BATCH_BATCH_TEXT_H
#define CLI_BATCH_BATCH_TEXT_H

#include "cli/chat/chat_reply.h"
#include "cli/generation.h"
#include "generate/scheduler.h"

struct cli_batch_profile; /* opaque */

/* What all lines share. */
struct cli_batch_context {
    const struct cli_values *values; /* of the command; texts_only */
    const struct cli_model *model;
    struct generate_scheduler *scheduler;
    struct cli_chat_template template; /* where there is one */
    struct base_error no_template;     /* why there is none */
    struct base_buffer each;           /* --each, with escapes as bytes */
    struct cli_batch_profile *profile; /* the latest first */
    size_t n_profiles;
};

/* Whether lines are plain text, and whether answers are. */
static inline bool cli_batch_is_plain(const struct cli_values *values)
{
    return values->each && !values->json;
}

/* Opens the template that chats go through: that of the model may be missing, until a line needs
 * it. Compiles what the command's options say, so that they are wrong before the first line. The
 * scheduler is set later. */
bool cli_batch_context_open(struct cli_batch_context *c, const struct cli_values *values,
                            const struct cli_model *model, struct base_error *err);
void cli_batch_context_close(struct cli_batch_context *c); /* a zeroed one is fine */

/* A text from its line to its answer. */
struct cli_batch_text {
    struct generate_job job; /* its prompt and options are ready; sink and end are the caller's */
    struct cli_batch_context *context;
    struct cli_batch_profile *profile;
    uint64_t number; /* of the line */
    json_t *line;    /* the object, for its id; NULL: none */
    bool is_chat;
    struct text_ids ids;
    struct cli_chat_prompt prompt; /* of a chat */
    struct cli_chat_reply reply;
    struct generate_thought_marks marks;
    struct base_buffer text;
};

/* Makes a job of line[size]. False for a wrong line too: *err then says what is wrong with it, and
 * cli_batch_text_fail makes an answer of that. */
bool cli_batch_text_open(struct cli_batch_text *t, struct cli_batch_context *c, uint64_t number,
                         const char *line, size_t size, struct base_error *err);
void cli_batch_text_close(struct cli_batch_text *t); /* a zeroed one is fine */

/* The scheduler's sink, of the text. */
bool cli_batch_text_take(struct cli_batch_text *t, const struct generate_piece *piece,
                         struct base_error *err);
/* Appends the answer, a whole line. *cut: the constraint was not satisfied, and the line has an
 * "error".
 */
bool cli_batch_text_end(struct cli_batch_text *t, const struct generate_outcome *outcome, bool *cut,
                        struct base_buffer *out, struct base_error *err);
/* Appends the line of a text that failed. */
void cli_batch_text_fail(const struct cli_batch_text *t, const struct base_error *failed,
                         struct base_buffer *out);

#endif
