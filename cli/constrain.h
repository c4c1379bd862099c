/* cli/constrain.h: the constraint of --grammar, --json-schema, --json-object, --regex or
 * --choices, compiled. */
#pragma once

#include "generate/constraint_source.h"

/* Sets *out to the compiled constraint, which the caller frees; NULL without such an option.
 * `names_files`: a grammar or schema may be the name of a readable file in place of the text.
 * `generate` selects the subset of JSON for generation. `notes` is filled; NULL: an error
 * instead. Fails with BASE_USAGE, with line and column. */
bool cli_constraint_open(const struct generate_constraint_source *given, bool names_files,
                         bool generate, struct constraint **out, struct constrain_notes *notes,
                         struct base_error *err);
