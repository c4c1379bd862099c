/* cli/constrain.c: compiles the constraint options. See cli/constrain.h. */
#include "cli/constrain.h"
#include "cli/system.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the argument that may name a file, or NULL. */
static const char **file_of(struct generate_constraint_source *s)
{
    return s->grammar ? &s->grammar : s->schema ? &s->schema : NULL;
}

static const char *option_of(const struct generate_constraint_source *s)
{
    return s->grammar         ? "--grammar"
           : s->schema        ? "--json-schema"
           : s->regex         ? "--regex"
           : s->choices.count ? "--choices"
                              : "--json-object";
}

/* Adds the name of the file or option to an error of the compiler. A single word that is not a file
 * was probably meant as a file name, which the message states. */
static void name_source(const struct generate_constraint_source *given, const char *file,
                        const char *word, struct base_error *err)
{
    if (!err || err->code != BASE_USAGE || err->file[0] || err->item[0]) return;
    if (!file && word && !word[strcspn(word, " \t\r\n{}[]\"=")]) {
        const struct base_error as_text = *err;
        *err = BASE_ERROR_INIT;
        base_fail(err, BASE_USAGE, "'%.100s' is no file that can be read, and as text: %s", word,
                  as_text.text);
    }
    if (file)
        base_error_set_file(err, file);
    else
        snprintf(err->item, sizeof err->item, "%s", option_of(given));
}

bool cli_constraint_open(const struct generate_constraint_source *given, bool names_files,
                         bool generate, struct constraint **out, struct constrain_notes *notes,
                         struct base_error *err)
{
    struct generate_constraint_source s = *given;
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    const char **argument = names_files ? file_of(&s) : NULL, *word = argument ? *argument : NULL;
    const char *file = word && access(word, R_OK) == 0 ? word : NULL;
    *out = NULL;
    s.lenient_advice = "--schema-lenient and this word let it go unenforced";
    bool ok = !file || cli_source_read(file, &text, err);
    if (file) *argument = text.size ? text.data : "";
    ok = ok && generate_constraint_compile(&s, generate, notes, out, err);
    if (!ok) name_source(given, file, word, err);
    return ok;
}
