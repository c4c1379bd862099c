/* text/jinja/jinja.h: chat templates: a sandboxed interpreter of the Jinja language.
 *
 * Owns: parsing and rendering with the semantics of Python's jinja2 as chat templates expect it: an
 * immutable sandbox, trim_blocks and lstrip_blocks on, loop controls, the `generation` block,
 * tojson without HTML escaping, raise_exception and strftime_now. Refuses: files, other templates
 * (include, import, extends, block), changing the caller's data, any attribute that is not a
 * mapping's key or a known method. An unsupported construct is an error that names it and its line;
 * there is no fallback. Steps, depth, memory and output are bounded.
 *
 * Known differences from Python: integers have 64 bits (an overflow is an error), and printing a
 * value that Python prints with an address (a generator, a function) is an error. */
#ifndef TEXT_JINJA_JINJA_H
#define TEXT_JINJA_JINJA_H

#include "base/buffer.h"
#include "base/error.h"
#include <jansson.h>
#include <time.h>

struct jinja_template; /* opaque; immutable after parsing, any number of threads may render it */

/* Parses UTF-8 source[0..size); the text is copied. NULL and BASE_USAGE with "line N: ..." on a
 * syntax error, an unknown filter or test, or a construct that is refused. */
struct jinja_template *jinja_template_parse(const char *source, size_t size,
                                            struct base_error *err);
void jinja_template_free(struct jinja_template *t); /* NULL is fine */

struct jinja_template_options {
    uint64_t max_steps;     /* evaluated nodes and visited items */
    uint64_t max_output;    /* bytes of the rendered text */
    uint64_t max_memory;    /* bytes that values may take while rendering */
    uint32_t max_depth;     /* nested evaluations; a macro call takes about five */
    const struct tm *clock; /* the clock of strftime_now; NULL: the local time */
    bool *exhausted;        /* NULL, or set when a rendering fails at one of the first three */

    /* NULL, or where to append a byte for each byte of the output: 1 if the template itself wrote
     * it, 0 if it came from the caller's data, so that the tokenizer can distinguish "<|im_end|>"
     * that ends a message from the same letters inside one. The template's own bytes are those of
     * its text and constants, also after expressions, of the variables named here, and of a "role"
     * that is one word (templates put roles between marks: '<|' + role + '|>'). In doubt a byte
     * counts as data. Doubles the memory of values. */
    struct base_buffer *own;
    const char *const *own_variables; /* at the top of the context: "bos_token" and its like */
    size_t n_own_variables;
};

/* 50 million steps, 64 MiB of output, 512 MiB of memory, depth 1000, local time. */
struct jinja_template_options jinja_template_options_default(void);

/* Renders with the variables of `context`, an object: messages, tools, documents,
 * add_generation_prompt, bos_token, eos_token and any others. A key that is absent is undefined;
 * JSON null is none. The text is appended to `out`; after an error `out` is as it was. BASE_USAGE:
 * "line N: ..." with the construct that failed, the limit that was reached, or the message that the
 * template gave to raise_exception. `options` may be NULL. */
bool jinja_template_render(const struct jinja_template *t, const json_t *context,
                           const struct jinja_template_options *options, struct base_buffer *out,
                           struct base_error *err);

/* Whether the template's code uses a variable of this name (such as "tools" or "enable_thinking"):
 * a value for a variable that the template never uses would be ignored silently. */
bool jinja_template_uses(const struct jinja_template *t, const char *name);

#endif
