/* cli/batch/openai.h: lines and answers in the form of OpenAI's Batch API.
 *
 *     {"custom_id":ID,"method":"POST","url":"/v1/chat/completions","body":{"messages":[...],...}}
 *
 *     {"line":1,"id":"batch_req_1","custom_id":ID,"error":null,
 *      "response":{"status_code":200,"request_id":"req_1","body":{...}}}
 *
 * The body is that of a chat completion, or with the url /v1/completions of a completion; other
 * members of it are options of a line of `infer batch`. `reasoning_effort` and the members of
 * `chat_template_kwargs` become variables of a template that reads them, and an effort of "none" a
 * budget of no reasoning tokens; a negative seed becomes one of 62 bits. Of an answer, `line` is
 * ours; `created` is 0, because the same line gives the same bytes. `text_offset` counts characters
 * of `text`. A line that failed has `response` null and `error` with the exit status as `code`.
 * Source: OpenAI API reference, "Batch", "Chat", "Completions". */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "generate/generate.h"
#include "text/jinja/jinja.h"
#include <jansson.h>
#include <stdint.h>

/* Returns whether a line has this form, or a part of it. */
bool cli_openai_is_line(const json_t *line);

/* Returns the line as one of `infer batch`, a new object; NULL with an error that names a member.
 * `template`: of the model; NULL: none. */
json_t *cli_openai_read(const json_t *line, const struct jinja_template *template,
                        struct base_error *err);

struct cli_openai_answer {
    uint64_t number;              /* of the line */
    const struct base_buffer *id; /* custom_id, as the line has it */
    const char *model;            /* the name of the model */
    const char *text;             /* [size] of a completion */
    size_t size;
    json_t *message;      /* of a chat; NULL: a completion */
    const char *logprobs; /* [n_logprobs]: the items of cli/out/logprobs.h; NULL: none */
    size_t n_logprobs;
    const struct generate_outcome *outcome;
};

/* Appends an answer, a complete line. */
bool cli_openai_add(const struct cli_openai_answer *a, struct base_buffer *out,
                    struct base_error *err);
/* Appends the line of a failure. */
void cli_openai_fail(uint64_t number, const struct base_buffer *id, const struct base_error *failed,
                     struct base_buffer *out);
