/* cli/batch/batch_text.h: makes a job of the scheduler from a line of input, and a line of output
 * from its answer.
 *
 * It reads the members of a line that are no options (request_profile.h has these), and writes the
 * content of an answer. */
#pragma once

#include "chat/chat_reply.h"
#include "cli/batch/csv.h"
#include "cli/batch/request_profile.h"
#include "cli/out/logprobs.h"

/* State shared by all lines. */
struct cli_batch_context {
    const struct cli_values *values; /* those of the command, with texts in place of files */
    const struct cli_model *model;
    struct cli_profiles profiles;
    struct base_buffer each;      /* --each */
    struct cli_csv csv;           /* the table of --csv */
    uint64_t n_empty, empty_line; /* number of empty answers, and the line of the first one, */
    const char *empty_why;        /* with the reason */
};

/* Returns whether answers are plain text, as lines of input are with --each. */
static inline bool cli_batch_is_plain(const struct cli_values *values)
{
    return values->each && !values->json;
}

/* Opens the profiles, whose scheduler the caller sets later. */
bool cli_batch_context_open(struct cli_batch_context *c, const struct cli_values *values,
                            const struct cli_model *model, struct base_error *err);
void cli_batch_context_close(struct cli_batch_context *c); /* may be all zeros */

/* Reads the first line of a table. Appends the header of the answers, if they are a table too. */
bool cli_batch_context_begin(struct cli_batch_context *c, const char *line, size_t size,
                             struct base_buffer *header, struct base_error *err);

/* A text, from its line to its answer. */
struct cli_batch_text {
    struct generate_job job; /* prompt and options are set; the caller sets sink and end */
    struct cli_batch_context *context;
    struct cli_profile *profile;
    uint64_t number;       /* number of the line */
    json_t *line;          /* the line's object; NULL: none */
    struct base_buffer id; /* its id, as the line has it; empty: none */
    json_t *openai;        /* the line in OpenAI's form (cli/batch/openai.h); NULL: in ours */
    bool is_chat;
    struct text_ids ids;
    struct chat_prompt prompt; /* of a chat */
    struct chat_reply reply;
    struct generate_thought_marks marks;
    struct base_buffer record; /* the line, if it is a record of a table */
    struct base_buffer text;
    struct cli_logprobs logprobs;
};

/* Makes a job of line[size]. If the line is invalid, returns false with the reason in *err, from
 * which cli_batch_text_fail makes an answer. */
bool cli_batch_text_open(struct cli_batch_text *t, struct cli_batch_context *c, uint64_t number,
                         const char *line, size_t size, struct base_error *err);
void cli_batch_text_close(struct cli_batch_text *t); /* may be all zeros */

/* The sink of the text for the scheduler. */
bool cli_batch_text_take(struct cli_batch_text *t, const struct generate_piece *piece,
                         struct base_error *err);
/* Appends the answer, a complete line. *cut: the constraint was not satisfied, and the line has an
 * "error". */
bool cli_batch_text_end(struct cli_batch_text *t, const struct generate_outcome *outcome, bool *cut,
                        struct base_buffer *out, struct base_error *err);
/* Appends the line of a text that failed. */
void cli_batch_text_fail(const struct cli_batch_text *t, const struct base_error *failed,
                         struct base_buffer *out);
