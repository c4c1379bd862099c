/* generate/constraint_source.c: compiles constraints by their kind. See
 * generate/constraint_source.h. */
#include "generate/constraint_source.h"
#include <string.h>

bool generate_constraint_compile(const struct generate_constraint_source *s, bool generate,
                                 struct constrain_notes *notes, struct constraint **out,
                                 struct base_error *err)
{
    const struct constrain_schema_options schema = {.generate = generate,
                                                    .open = s->open,
                                                    .any_order = s->any_order,
                                                    .lenient = s->lenient.item,
                                                    .n_lenient = s->lenient.count,
                                                    .lenient_advice = s->lenient_advice,
                                                    .notes = notes};
    *out = NULL;
    if (s->grammar)
        *out = constraint_from_grammar(s->grammar, strlen(s->grammar), err);
    else if (s->schema)
        *out = constraint_from_schema(s->schema, strlen(s->schema), &schema, err);
    else if (s->regex)
        *out = constraint_from_regex(s->regex, strlen(s->regex), err);
    else if (s->choices.count)
        *out = constraint_from_choices((const char *const *)s->choices.item, s->choices.count, err);
    else if (s->object)
        *out = constraint_json_object(generate, err);
    else
        return true;
    return *out != NULL;
}
