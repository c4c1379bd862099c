/* text/jinja/jinja.h: chat templates: a sandboxed interpreter of the Jinja language.
 *
 * Parses and renders with the semantics of Python's jinja2 as chat templates expect it: an
 * immutable sandbox, trim_blocks and lstrip_blocks on, loop controls, the `generation` block,
 * tojson without HTML escaping, raise_exception and strftime_now. There are no files or other
 * templates (include, import, extends, block), no changes of the caller's data, and no attributes
 * other than a mapping's keys and known methods. An unsupported construct is an error that names it
 * and its line. Steps, depth, memory and output are bounded.
 *
 * Known differences from Python: integers have 64 bits (an overflow is an error), and printing a
 * value that Python prints with an address (a generator, a function) is an error. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <jansson.h>
#include <time.h>

struct jinja_template; /* opaque; immutable after parsing: any number of threads may render it */

/* Parses UTF-8 source[0..size), which is copied. The caller frees the template. Returns NULL with
 * BASE_USAGE and "line N: ..." for a syntax error, an unknown filter or test, or an unsupported
 * construct. */
struct jinja_template *jinja_template_parse(const char *source, size_t size,
                                            struct base_error *err);
void jinja_template_free(struct jinja_template *t); /* accepts NULL */

struct jinja_template_options {
    uint64_t max_steps;     /* evaluated nodes and visited items */
    uint64_t max_output;    /* bytes of the rendered text */
    uint64_t max_memory;    /* bytes of the values during a rendering */
    uint32_t max_depth;     /* nested evaluations; a macro call takes about five */
    const struct tm *clock; /* the clock of strftime_now; NULL: the local time */
    bool *exhausted;        /* NULL, or set if a rendering fails at one of the first three */

    /* NULL, or a buffer to which one byte is appended for each byte of the output: 1 if the
     * template itself wrote it, 0 if it came from the caller's data. With these marks the tokenizer
     * can distinguish "<|im_end|>" that ends a message from the same letters inside a message. The
     * template's own bytes are those of its text and constants, also after expressions, of the
     * variables in own_variables, and of a "role" that is one word (templates put roles between
     * marks: '<|' + role + '|>'). In doubt a byte counts as data. Doubles the memory of values. */
    struct base_buffer *own;
    const char *const *own_variables; /* top-level variables such as "bos_token" */
    size_t n_own_variables;
};

/* Returns 50 million steps, 64 MiB of output, 512 MiB of memory, depth 1000, local time. */
struct jinja_template_options jinja_template_options_default(void);

/* Renders with the variables of `context`, an object: messages, tools, documents,
 * add_generation_prompt, bos_token, eos_token and any others. A key that is absent is undefined;
 * JSON null is none. Appends the text to `out`, which after an error is unchanged. Fails with
 * BASE_USAGE and "line N: ...", with the construct that failed, the limit that was reached, or the
 * template's message for raise_exception. `options` may be NULL. */
bool jinja_template_render(const struct jinja_template *t, const json_t *context,
                           const struct jinja_template_options *options, struct base_buffer *out,
                           struct base_error *err);

/* Returns whether the template's code reads a variable of this name (such as "tools" or
 * "enable_thinking"). A value for another variable would have no effect. */
bool jinja_template_uses(const struct jinja_template *t, const char *name);
