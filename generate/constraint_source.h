/* generate/constraint_source.h: a constraint as the user writes it, and its compiled form.
 *
 * Contains the kinds of constraints; their text is not read from files here. */
#ifndef GENERATE_CONSTRAINT_SOURCE_H
#define GENERATE_CONSTRAINT_SOURCE_H

#include "sample/constrain/constraint.h"

enum generate_constraint_kind {
    GENERATE_CONSTRAINT_NONE,
    GENERATE_CONSTRAINT_GRAMMAR, /* GBNF */
    GENERATE_CONSTRAINT_SCHEMA,  /* a JSON schema */
    GENERATE_CONSTRAINT_OBJECT,  /* any JSON object; no source */
    GENERATE_CONSTRAINT_REGEX,
    GENERATE_CONSTRAINT_CHOICES
};

struct generate_constraint_source {
    enum generate_constraint_kind kind;
    const char *text; /* [size] the text of a grammar, a schema or an expression */
    size_t size;
    const char *const *choice; /* [n_choices] */
    size_t n_choices;
    const char *const *lenient; /* [n_lenient]: keywords of a schema that need not be enforced */
    size_t n_lenient;
    const char *lenient_advice;        /* for messages: how the user adds such a keyword; or NULL */
    struct constrain_remarks *remarks; /* as in constrain_schema_options */
    bool open;      /* for a schema: names that it does not mention may be generated */
    bool any_order; /* for a schema: names need not be in its order */
    bool generate;  /* JSON: the subset for generation; false: all that the schema accepts */
};

/* Sets *out to the compiled constraint, which the caller frees; NULL for GENERATE_CONSTRAINT_NONE.
 * Fails with BASE_USAGE, with line and column, for errors and for constructs that cannot be
 * enforced. */
bool generate_constraint_compile(const struct generate_constraint_source *source,
                                 struct constraint **out, struct base_error *err);

#endif
