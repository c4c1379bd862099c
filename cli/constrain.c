/* cli/constrain.c: compiles the constraint options. See cli/constrain.h. */
#include "cli/constrain.h"
#include "cli/system.h"
#include "generate/constraint_source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source {
    struct generate_constraint_source is;
    const char *option, *argument;
    bool may_be_file;
    struct base_buffer text;
    char *list; /* the choices, as separate texts */
    const char *choice[CLI_LIST_MAX];
};

/* Reads the text of a grammar or schema, from a file if the argument names one. */
static bool read_text(struct source *s, struct base_error *err)
{
    if (s->may_be_file && access(s->argument, R_OK) == 0) {
        if (!cli_source_read(s->argument, &s->text, err)) return false;
    } else {
        base_buffer_add_text(&s->text, s->argument);
    }
    s->is.text = s->text.data;
    s->is.size = s->text.size;
    return !s->text.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

static bool split_choices(struct source *s, struct base_error *err)
{
    char *rest = s->list = strdup(s->argument);
    if (!s->list) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    for (char *one; (one = strsep(&rest, ",")) != NULL; s->choice[s->is.n_choices++] = one) {
        if (s->is.n_choices == CLI_LIST_MAX)
            return base_fail_at(err, BASE_USAGE, s->option, -1, "more than %d", CLI_LIST_MAX);
        /* Probably a typing error: an empty choice would allow an empty answer. */
        if (*one == '\0')
            return base_fail_at(
                err, BASE_USAGE, s->option, -1, "choice %zu is empty: %s", s->is.n_choices + 1,
                *s->argument ? "there is a comma too many" : "give texts separated by commas");
    }
    s->is.choice = s->choice;
    return true;
}

/* Adds the name of the file or option to an error of the compiler. A single word that is not a file
 * was probably meant as a file name; the message says so. */
static void name_source(const struct source *s, struct base_error *err)
{
    const bool is_file = s->may_be_file && access(s->argument, R_OK) == 0;
    if (!err || err->code != BASE_USAGE || err->file[0] || err->item[0]) return;
    if (!is_file && s->may_be_file && !s->argument[strcspn(s->argument, " \t\r\n{}[]\"=")]) {
        const struct base_error as_text = *err;
        *err = BASE_ERROR_INIT;
        base_fail(err, BASE_USAGE, "'%.100s' is no file that can be read, and as text: %s",
                  s->argument, as_text.text);
    }
    if (is_file)
        base_error_set_file(err, s->argument);
    else
        snprintf(err->item, sizeof err->item, "%s", s->option);
}

static struct source find_source(const struct cli_values *v)
{
    if (v->grammar)
        return (struct source){.is = {.kind = GENERATE_CONSTRAINT_GRAMMAR},
                               .option = "--grammar",
                               .argument = v->grammar,
                               .may_be_file = !v->texts_only};
    if (v->json_schema)
        return (struct source){
            .is = {.kind = GENERATE_CONSTRAINT_SCHEMA,
                   .open = v->schema_open,
                   .any_order = v->schema_any_order,
                   .lenient = v->schema_lenient.item,
                   .n_lenient = v->schema_lenient.count,
                   .lenient_advice = "--schema-lenient and this word let it go unenforced"},
            .option = "--json-schema",
            .argument = v->json_schema,
            .may_be_file = !v->texts_only};
    if (v->regex)
        return (struct source){
            .is = {.kind = GENERATE_CONSTRAINT_REGEX}, .option = "--regex", .argument = v->regex};
    if (v->choices)
        return (struct source){.is = {.kind = GENERATE_CONSTRAINT_CHOICES},
                               .option = "--choices",
                               .argument = v->choices};
    return (struct source){
        .is = {.kind = v->json_object ? GENERATE_CONSTRAINT_OBJECT : GENERATE_CONSTRAINT_NONE},
        .option = "--json-object"};
}

void cli_schema_note(const struct constrain_remarks *remarks, const char *source)
{
    if (remarks->count > 1)
        cli_note("%s: %s; %u such remarks in all", source, remarks->text, remarks->count);
    else if (remarks->count)
        cli_note("%s: %s", source, remarks->text);
}

bool cli_constraint_open(const struct cli_values *v, bool generate, struct constraint **out,
                         struct constrain_remarks *remarks, struct base_error *err)
{
    struct source s = find_source(v);
    bool ok = true;
    *out = NULL;
    s.is.generate = generate;
    s.is.remarks = remarks;
    if (s.is.kind == GENERATE_CONSTRAINT_CHOICES)
        ok = split_choices(&s, err);
    else if (s.argument)
        ok = read_text(&s, err);
    ok = ok && generate_constraint_compile(&s.is, out, err);
    if (!ok) name_source(&s, err);
    free(s.list);
    base_buffer_free(&s.text);
    return ok;
}
