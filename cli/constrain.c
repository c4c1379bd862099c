/* cli/constrain.c: compiling the constraint options. See cli/constrain.h. */
#include "cli/constrain.h"
#include "cli/system.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of a grammar or schema, from a file where the argument names one. */
static bool read_source(const char *argument, struct base_buffer *out, struct base_error *err)
{
    if (access(argument, R_OK) == 0) return cli_file_read(argument, out, err);
    base_buffer_add_text(out, argument);
    return cli_buffer_check(out, err);
}

static bool compile_choices(const char *list, struct sample_constraint **out,
                            struct base_error *err)
{
    char *copy = strdup(list), *rest = copy;
    const char *choice[CLI_LIST_MAX];
    size_t n = 0;
    if (!copy) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    for (char *one; (one = strsep(&rest, ",")) != NULL; n++) {
        if (n == CLI_LIST_MAX) {
            base_fail_at(err, BASE_USAGE, "--choices", -1, "more than %d", CLI_LIST_MAX);
            goto done;
        }
        if (*one == '\0') { /* a slip of the comma; it would let every answer be none at all */
            base_fail_at(err, BASE_USAGE, "--choices", -1, "choice %zu is empty: %s", n + 1,
                         *list ? "there is a comma too many" : "give texts separated by commas");
            goto done;
        }
        choice[n] = one;
    }
    *out = sample_constraint_choices(choice, n, err);

done:
    free(copy);
    return *out != NULL;
}

static bool compile_schema(const struct cli_values *v, bool generate, const struct base_buffer *b,
                           struct sample_constraint **out, struct base_error *err)
{
    const struct sample_schema_options options = {.generate = generate,
                                                  .lenient = v->schema_lenient.item,
                                                  .n_lenient = v->schema_lenient.count};
    *out = sample_constraint_schema(b->data ? b->data : "", b->size, &options, err);
    return *out != NULL;
}

/* Errors of a compiler have a place and no name: they get that of the file or of the option. An
 * argument of one word that is no file was most likely meant to be one. */
static void name_source(const char *option, const char *argument, bool may_be_file,
                        struct base_error *err)
{
    const bool is_file = may_be_file && access(argument, R_OK) == 0;
    if (!err || err->code != BASE_USAGE || err->file[0] || err->item[0]) return;
    if (!is_file && may_be_file && !argument[strcspn(argument, " \t\r\n{}[]\"=")]) {
        const struct base_error as_text = *err;
        *err = BASE_ERROR_INIT;
        base_fail(err, BASE_USAGE, "'%.100s' is no file that can be read, and as text: %s",
                  argument, as_text.text);
    }
    if (is_file)
        base_error_set_file(err, argument);
    else
        snprintf(err->item, sizeof err->item, "%s", option);
}

bool cli_constraint_open(const struct cli_values *v, bool generate, struct sample_constraint **out,
                         struct base_error *err)
{
    const char *source = v->grammar ? v->grammar : v->json_schema;
    struct base_buffer text = BASE_BUFFER_INIT;
    bool ok = true;
    *out = NULL;
    if (source && !read_source(source, &text, err)) {
        ok = false;
    } else if (v->grammar) {
        ok = (*out = sample_constraint_grammar(text.data ? text.data : "", text.size, err)) != NULL;
    } else if (v->json_schema) {
        ok = compile_schema(v, generate, &text, out, err);
    } else if (v->regex) {
        ok = (*out = sample_constraint_regex(v->regex, strlen(v->regex), err)) != NULL;
    } else if (v->choices) {
        ok = compile_choices(v->choices, out, err);
    } else if (v->json_object) {
        ok = (*out = sample_constraint_json_object(generate, err)) != NULL;
    }
    if (!ok && source)
        name_source(v->grammar ? "--grammar" : "--json-schema", source, true, err);
    else if (!ok)
        name_source(v->regex ? "--regex" : "--choices", "", false, err);
    base_buffer_free(&text);
    return ok;
}
