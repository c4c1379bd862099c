/* generate/constraint_source.h: a constraint as the user writes it, and its compiled form.
 *
 * Contains the kinds of constraints; nothing is read from files here. */
#pragma once

#include "base/keep.h"
#include "sample/constrain/constraint.h"

/* At most one of the first five is set. */
struct generate_constraint_source {
    const char *grammar; /* the text of a GBNF grammar */
    const char *schema;  /* the text of a JSON schema */
    const char *regex;   /* a regular expression for the whole text */
    struct base_texts choices;
    bool object; /* any JSON object */

    /* For a schema: */
    struct base_texts lenient;  /* keywords that need not be enforced */
    bool open;                  /* names that it does not mention may be generated */
    bool any_order;             /* names need not be in its order */
    const char *lenient_advice; /* for messages: how the user adds such a keyword; or NULL */
};

/* Sets *out to the compiled constraint, which the caller frees; NULL for a source without one.
 * `generate`: the subset of JSON for generation; false: all that a schema accepts. `notes`: as in
 * constrain_schema_options. Fails with BASE_USAGE, with line and column, for errors and for
 * constructs that cannot be enforced. */
bool generate_constraint_compile(const struct generate_constraint_source *source, bool generate,
                                 struct constrain_notes *notes, struct constraint **out,
                                 struct base_error *err);
