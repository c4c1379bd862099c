/* generate/constraint_source.c: compiles constraints by their kind. See
 * generate/constraint_source.h. */
#include "generate/constraint_source.h"

bool generate_constraint_compile(const struct generate_constraint_source *s,
                                 struct constraint **out, struct base_error *err)
{
    const char *text = s->text ? s->text : "";
    const struct constrain_schema_options schema = {.generate = s->generate,
                                                    .open = s->open,
                                                    .any_order = s->any_order,
                                                    .lenient = s->lenient,
                                                    .n_lenient = s->n_lenient,
                                                    .lenient_advice = s->lenient_advice,
                                                    .remarks = s->remarks};
    *out = NULL;
    switch (s->kind) {
    case GENERATE_CONSTRAINT_NONE:
        return true;
    case GENERATE_CONSTRAINT_GRAMMAR:
        *out = constraint_from_grammar(text, s->size, err);
        break;
    case GENERATE_CONSTRAINT_SCHEMA:
        *out = constraint_from_schema(text, s->size, &schema, err);
        break;
    case GENERATE_CONSTRAINT_OBJECT:
        *out = constraint_json_object(s->generate, err);
        break;
    case GENERATE_CONSTRAINT_REGEX:
        *out = constraint_from_regex(text, s->size, err);
        break;
    case GENERATE_CONSTRAINT_CHOICES:
        *out = constraint_from_choices(s->choice, s->n_choices, err);
        break;
    }
    return *out != NULL;
}
