/* cli/options.c: parses the command line and the environment.
 *
 * Rules: --name VALUE, --name=VALUE, aliases exactly as in the table (short options are not
 * combined), -- ends options, numbers are decimal and complete. Unknown options are errors. */
#include "cli/model_path.h"
#include "cli/option_value.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ; /* which POSIX lets programs declare */

enum { NAME_MAX_SIZE = CLI_NAME_SIZE };

enum origin { FROM_DEFAULT, FROM_LINE, FROM_ENVIRONMENT };

struct parser {
    struct cli_given given;
    struct base_buffer unknown, unknown_names; /* words that are no options */
    size_t n_unknown;
    struct base_error first_unknown;
};

bool cli_option_takes_file(const struct cli_option *o)
{
    return o->value && strncmp(o->value, "FILE", 4) == 0;
}

void cli_option_variable(const struct cli_option *o, char out[CLI_VARIABLE_SIZE])
{
    snprintf(out, CLI_VARIABLE_SIZE, "INFER_%s", o->name);
    for (char *c = out; *c; c++) *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* Returns whether the first n characters of word are the option's --name or an alias. */
static bool is_called(const struct cli_option *o, const char *word, size_t n)
{
    if (n == strlen(o->name) + 2 && word[0] == '-' && word[1] == '-' &&
        memcmp(word + 2, o->name, n - 2) == 0)
        return true;
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++)
        if (n == strlen(o->alias[i]) && memcmp(word, o->alias[i], n) == 0) return true;
    return false;
}

static const struct cli_option *find(enum cli_command_id command, const char *word, size_t n)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_belongs(&cli_option_table[i], command) &&
            is_called(&cli_option_table[i], word, n))
            return &cli_option_table[i];
    return NULL;
}

/* Returns the option of that name, or NULL. */
static const struct cli_option *find_named(enum cli_command_id command, const char *name)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_belongs(&cli_option_table[i], command) &&
            strcmp(cli_option_table[i].name, name) == 0)
            return &cli_option_table[i];
    return NULL;
}

enum cli_command_id cli_command_find(const char *name)
{
    int i = 0;
    while (i < CLI_COMMAND_COUNT && strcmp(cli_command_table[i]->name, name) != 0) i++;
    return (enum cli_command_id)i;
}

/* ---- Unknown words ---- */

/* Finds the name of an option of the command that a word resembles. */
static bool resembles(enum cli_command_id command, const char *word, char near[NAME_MAX_SIZE])
{
    char spelt[CLI_OPTION_MAX][NAME_MAX_SIZE];
    const char *names[CLI_OPTION_MAX * (CLI_ALIAS_MAX + 1)];
    size_t count = 0;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!cli_option_belongs(o, command)) continue;
        snprintf(spelt[i], sizeof spelt[i], "--%s", o->name);
        names[count++] = spelt[i];
        for (int a = 0; a < CLI_ALIAS_MAX && o->alias[a]; a++) names[count++] = o->alias[a];
    }
    const char *found = cli_nearest(word, names, count);
    if (found) snprintf(near, NAME_MAX_SIZE, "%s", found);
    return found != NULL;
}

static bool fail_unknown(enum cli_command_id command, const char *word, size_t n,
                         struct base_error *err)
{
    const char *own = cli_command_table[command]->name;
    char given[NAME_MAX_SIZE];
    snprintf(given, sizeof given, "%.*s", (int)n, word);
    const struct cli_foreign *foreign = cli_foreign_find(word, n);
    if (foreign) {
        char says[CLI_CLAUSE_SIZE];
        cli_foreign_say(foreign, says, sizeof says);
        return base_fail_at(err, BASE_USAGE, given, -1, "unknown option; %s", says);
    }
    for (int c = 0; c < CLI_COMMAND_COUNT; c++)
        if (find((enum cli_command_id)c, word, n))
            return base_fail_at(
                err, BASE_USAGE, given, -1,
                "is an option of `infer %s`, not of `infer %s`; see infer %s --help",
                cli_command_table[c]->name, own, own);
    char near[NAME_MAX_SIZE];
    if (resembles(command, given, near))
        return base_fail_at(err, BASE_USAGE, given, -1,
                            "unknown option; did you mean %s? See infer %s --help", near, own);
    return base_fail_at(err, BASE_USAGE, given, -1, "unknown option; see infer %s --help", own);
}

/* ---- Values ---- */

static size_t row_of(const struct cli_option *o)
{
    return (size_t)(o - cli_option_table);
}

/* Returns whether the command has the option, and its member is one of *g. */
static bool belongs(const struct cli_given *g, const struct cli_option *o)
{
    return cli_option_belongs(o, g->command) && (g->values || cli_option_is_of_request(o));
}

static void *member_of(const struct cli_given *g, const struct cli_option *o)
{
    return cli_option_is_of_request(o)
               ? (char *)g->request + (o->at - offsetof(struct cli_values, request))
               : (char *)g->values + o->at;
}

static bool set(const struct cli_given *g, const struct cli_option *o, const char *source,
                const char *text, struct base_error *err)
{
    return cli_value_from_text(o, member_of(g, o), source, text, g->keep, err);
}

/* ---- Sources ---- */

/* Sets an option to a value of the command line. */
static bool set_given(struct parser *p, const struct cli_option *o, const char *text,
                      struct base_error *err)
{
    char source[NAME_MAX_SIZE];
    snprintf(source, sizeof source, "--%s", o->name);
    /* Of two texts or files one would be ignored silently. A second -m replaces that of an alias.
     */
    if (p->given.origin[row_of(o)] == FROM_LINE && o->kind == CLI_TEXT &&
        o->at != offsetof(struct cli_values, model) &&
        (cli_option_takes_file(o) || o->at == offsetof(struct cli_values, prompt)))
        return base_fail_at(err, BASE_USAGE, source, -1, "given twice");
    p->given.origin[row_of(o)] = FROM_LINE;
    p->given.values->source[row_of(o)].text = text;
    return set(&p->given, o, source, text, err);
}

/* Writes the name of row i as the line has it; `values` NULL: of a request. */
static void name_row(const struct cli_values *values, size_t i, char *out, size_t room)
{
    const char *word = values ? values->source[i].typed : NULL;
    if (word)
        snprintf(out, room, "%.*s", (int)strcspn(word, "="), word);
    else
        snprintf(out, room, "--%s", cli_option_table[i].name);
}

/* `attached`: the value that follows a short option in the same word, or NULL. */
static bool set_from_line(struct parser *p, const struct cli_option *o, const char *attached,
                          int argc, char **argv, int *i, struct base_error *err)
{
    const char *equals = argv[*i][1] == '-' ? strchr(argv[*i], '=') : NULL;
    const bool bare = o->bare && !(*i + 1 < argc && cli_is_choice(o->choices, argv[*i + 1]));
    const char *text = attached ? attached : equals ? equals + 1 : bare ? o->bare : "on";
    p->given.values->source[row_of(o)].typed = attached ? o->alias[0] : argv[*i];
    if (strcmp(argv[*i], "-h") == 0) p->given.values->brief = true;
    if (!attached && !equals && !bare && o->kind != CLI_FLAG) {
        char source[NAME_MAX_SIZE];
        snprintf(source, sizeof source, "--%s", o->name);
        if (++*i == argc)
            return base_fail_at(err, BASE_USAGE, source, -1, "needs a value: %s", o->value);
        text = argv[*i];
    }
    return set_given(p, o, text, err);
}

/* Returns the option whose one-letter alias begins the word, if what follows it can be its value:
 * "-n3". A word that resembles a long option ("-model") is none. */
static const struct cli_option *find_attached(enum cli_command_id command, const char *word,
                                              const char **value)
{
    const struct cli_option *o = word[1] == '-' ? NULL : find(command, word, 2);
    char name[NAME_MAX_SIZE], near[NAME_MAX_SIZE];
    if (!o || o->kind == CLI_FLAG) return NULL;
    *value = word + 2;
    if (o->kind == CLI_INTEGER || o->kind == CLI_INTEGERS || o->kind == CLI_REAL)
        return strspn(*value, "+-.,0123456789") == strlen(*value) ? o : NULL;
    snprintf(name, sizeof name, "-%.60s", word);
    return resembles(command, name, near) ? NULL : o;
}

/* Passes over an option of another program that names only what is done anyway, and its value. */
static void pass_over(struct parser *p, const struct cli_foreign *f, int argc, char **argv, int *i)
{
    struct cli_values *v = p->given.values;
    const bool equals = argv[*i][1] == '-' && strchr(argv[*i], '=');
    const char *next = *i + 1 < argc ? argv[*i + 1] : "-";
    if (v->n_passed < CLI_PASSED_MAX) v->passed[v->n_passed++] = argv[*i];
    if (equals || f->use == CLI_FOREIGN_FLAG) return;
    if (f->use == CLI_FOREIGN_VALUE ? *i + 1 < argc
                                    : strspn(next, "0123456789,") == strlen(next) ||
                                          cli_is_choice("on|off|auto|true|false", next))
        ++*i;
}

/* ---- Positional texts ---- */

/* Returns whether a word is the name of a model, as other programs have it before the text. Short
 * beginnings of names are texts. */
static bool is_model(const char *word)
{
    enum { LEAST = 5 };
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    struct base_error none = BASE_ERROR_INIT;
    return strlen(word) >= LEAST && !strchr(word, '/') && cli_model_folder(&path) && !path.failed &&
           cli_model_find(word, &path, &none);
}

/* Takes an argument as the value of the option that the command names for it. */
static bool take_positional(struct parser *p, const char *word, struct base_error *err)
{
    const struct cli_command *c = cli_command_table[p->given.command];
    const struct cli_option *o = find_named(p->given.command, c->positional);
    const bool is_text = o->at == offsetof(struct cli_values, prompt);
    const size_t n = strlen(word);
    if (n > 4 && strcmp(word + n - 4, ".svg") == 0 && find_named(p->given.command, "svg"))
        return base_fail_at(err, BASE_USAGE, word, -1, "a picture is written with --svg %s", word);
    if (is_text && cli_command_find(word) != CLI_COMMAND_COUNT)
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "unexpected argument; a command comes first (-p: as a text)");
    if (is_text && access(word, F_OK) == 0)
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "is a file: -f reads a text from it, -m takes it as the model, -p its "
                            "name as the text");
    if (is_text && find(p->given.command, "-m", 2) && is_model(word))
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "is a model: -m takes it, and -p its name as the text");
    if (p->given.origin[row_of(o)] == FROM_LINE && o->kind != CLI_LIST)
        return base_fail_at(err, BASE_USAGE, word, -1, "unexpected argument; %s. Usage: %s",
                            is_text ? "a text of several words needs quotes, and a model -m"
                                    : "too many",
                            c->usage);
    p->given.values->source[row_of(o)].typed = word;
    return set_given(p, o, word, err);
}

/* Adds an error about a word of the line; the parser goes on, so that one call names all of them.
 */
static void add_unknown(struct parser *p, const char *word, size_t n)
{
    struct base_error one = BASE_ERROR_INIT;
    fail_unknown(p->given.command, word, n, &one);
    base_buffer_add_format(&p->unknown, "%s%s: %s", p->n_unknown ? "; " : "", one.item, one.text);
    base_buffer_add_format(&p->unknown_names, "%s%.*s", p->n_unknown ? ", " : "", (int)n, word);
    if (p->n_unknown++ == 0) p->first_unknown = one;
}

static bool check_unknown(struct parser *p, struct base_error *err)
{
    const char *all = p->unknown.failed ? NULL : p->unknown.data;
    if (p->n_unknown == 1)
        *err = p->first_unknown;
    else if (p->n_unknown && all && strlen(all) < sizeof err->text)
        base_fail(err, BASE_USAGE, "%s", all);
    else if (p->n_unknown)
        base_fail(err, BASE_USAGE,
                  "unknown options: %s; see infer %s --help, and infer help coming-from",
                  p->unknown_names.failed ? "" : p->unknown_names.data,
                  cli_command_table[p->given.command]->name);
    base_buffer_free(&p->unknown);
    base_buffer_free(&p->unknown_names);
    return p->n_unknown == 0;
}

static bool read_option(struct parser *p, int argc, char **argv, int *i, struct base_error *err)
{
    const char *word = argv[*i], *attached = NULL;
    const size_t n = word[1] == '-' ? strcspn(word, "=") : strlen(word);
    char plain[NAME_MAX_SIZE]; /* --top_k is --top-k */
    if (word[1] == '-' && n < sizeof plain && memchr(word, '_', n)) {
        snprintf(plain, sizeof plain, "%.*s", (int)n, word);
        for (char *c = plain; *c; c++)
            if (*c == '_') *c = '-';
        word = plain;
    }
    const struct cli_option *o = find(p->given.command, word, n);
    const struct cli_foreign *f = o ? NULL : cli_foreign_find(word, n);
    if (f && f->option) o = find_named(p->given.command, f->option);
    if (!o && !f) o = find_attached(p->given.command, word, &attached);
    if (o) return set_from_line(p, o, attached, argc, argv, i, err);
    if (f && f->use != CLI_FOREIGN_HINT)
        pass_over(p, f, argc, argv, i);
    else
        add_unknown(p, word, n);
    return true;
}

/* Adds word i of the line to the arguments, which become consecutive words from `first` on. */
static void add_argument(struct parser *p, char **argv, int first, int i)
{
    const size_t n = p->given.values->n_arguments++;
    if (n < CLI_ARGUMENT_MAX) p->given.values->argument[n] = argv[i];
    argv[first + (int)n] = argv[i]; /* of a word that was read before */
}

static bool read_line(struct parser *p, int argc, char **argv, int first, struct base_error *err)
{
    const struct cli_command *c = cli_command_table[p->given.command];
    bool options = true, ok = true;
    p->given.values->arguments = argv + first;
    for (int i = first; ok && i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && word[0] == '-' && word[1] != '\0')
            ok = read_option(p, argc, argv, &i, err);
        else if (p->given.values->n_arguments < c->max_arguments)
            add_argument(p, argv, first, i);
        else if (p->n_unknown)
            continue; /* it may be the value of an unknown option */
        else if (c->positional)
            ok = take_positional(p, word, err);
        else if (strspn(word, "0123456789") == strlen(word) && find(p->given.command, "-t", 2))
            ok = base_fail_at(err, BASE_USAGE, word, -1,
                              "unexpected argument; a number of threads is -t %s", word);
        else
            ok = base_fail_at(err, BASE_USAGE, word, -1, "unexpected argument; %s. Usage: %s",
                              c->max_arguments ? "too many" : "there is none", c->usage);
    }
    return check_unknown(p, err) && ok;
}

/* Returns whether row i comes from there with an effect: it is no switch that is off, no empty
 * list. */
static bool is_on(const struct cli_given *g, size_t i, enum origin origin)
{
    const struct cli_option *o = &cli_option_table[i];
    if (g->origin[i] != origin) return false;
    if (o->at == CLI_REQUEST_AT(chat.variable) && json_object_size(g->request->chat.variables))
        return true;
    if (o->kind == CLI_LIST) return ((const struct base_texts *)member_of(g, o))->count > 0;
    return o->kind != CLI_FLAG || *(const bool *)member_of(g, o);
}

/* Turns on the switches that options on the line imply, as if they were on the line. */
static void add_implied(struct cli_given *g)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const char *implied = cli_option_table[i].implies;
        if (!implied || !is_on(g, i, FROM_LINE)) continue;
        for (size_t k = 0; k < cli_option_count; k++) {
            const struct cli_option *o = &cli_option_table[k];
            if (!belongs(g, o) || strcmp(o->name, implied) != 0 || g->origin[k] == FROM_LINE)
                continue;
            *(bool *)member_of(g, o) = true;
            g->origin[k] = FROM_LINE;
            g->implied_by[k] = &cli_option_table[i];
        }
    }
}

/* Returns the option on the line or in the environment that contradicts row `o`, or NULL. */
static const struct cli_option *contradiction(const struct cli_given *g, const struct cli_option *o,
                                              enum origin origin)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *other = &cli_option_table[i];
        if (is_on(g, i, origin) && belongs(g, other) &&
            (cli_has_word(o->excludes, other->name, strlen(other->name)) ||
             cli_has_word(other->excludes, o->name, strlen(o->name))))
            return other;
    }
    return NULL;
}

/* Returns whether a switch is on, or another option has a value other than its default. */
static bool is_given(const struct cli_given *g, size_t i)
{
    const struct cli_option *o = &cli_option_table[i];
    if (o->kind == CLI_FLAG) return *(const bool *)member_of(g, o);
    return g->origin[i] != FROM_DEFAULT;
}

/* Returns whether row `o` needs one of other options of this command and none of them is given;
 * writes their names for a message. */
static bool lacks_need(const struct cli_given *g, const struct cli_option *o, char *names,
                       size_t room)
{
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; o->needs && i < cli_option_count; i++) {
        const struct cli_option *other = &cli_option_table[i];
        if (!belongs(g, other) || !cli_has_word(o->needs, other->name, strlen(other->name)))
            continue;
        if (is_given(g, i)) return false;
        if (used < room)
            used += (size_t)snprintf(names + used, room - used, "%s--%s", used ? " or " : "",
                                     other->name);
    }
    return used > 0;
}

/* Checks the needs of options after the environment was read, because it may contain the needed
 * option. A variable without the option that it needs is ignored. */
static bool check_needs(const struct cli_given *g, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[NAME_MAX_SIZE], needs[2 * NAME_MAX_SIZE];
        if (g->origin[i] != FROM_LINE || !lacks_need(g, o, needs, sizeof needs)) continue;
        snprintf(name, sizeof name, "--%s", o->name);
        return base_fail_at(err, BASE_USAGE, name, -1, "needs %s", needs);
    }
    return true;
}

/* Writes the name of what the user wrote: row i, or the option that implies it. */
static void name_given(const struct cli_given *g, size_t i, char *out, size_t room)
{
    const struct cli_option *by = g->implied_by[i];
    name_row(g->values, by ? row_of(by) : i, out, room);
}

/* Fails if a switch that the option implies is off on the line. */
static bool check_implied(const struct cli_given *g, size_t i, struct base_error *err)
{
    const struct cli_option *o = &cli_option_table[i];
    const struct cli_option *implied = o->implies ? find_named(g->command, o->implies) : NULL;
    const size_t k = implied ? row_of(implied) : 0;
    char name[NAME_MAX_SIZE];
    if (!implied || !is_on(g, i, FROM_LINE) || is_on(g, k, FROM_LINE)) return true;
    snprintf(name, sizeof name, "--%s", o->name);
    return base_fail_at(err, BASE_USAGE, name, -1, "contradicts --%s off", implied->name);
}

static bool check_line(const struct cli_given *g, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        const struct cli_option *other =
            is_on(g, i, FROM_LINE) ? contradiction(g, o, FROM_LINE) : NULL;
        char name[NAME_MAX_SIZE], other_name[NAME_MAX_SIZE];
        if (!check_implied(g, i, err)) return false;
        if (!other) continue;
        name_given(g, i, name, sizeof name);
        name_given(g, row_of(other), other_name, sizeof other_name);
        return base_fail_at(err, BASE_USAGE, name, -1, "contradicts %s; give one of them",
                            other_name);
    }
    return true;
}

/* Returns whether an option on the line replaces the variable of row `o`. */
static bool yields(const struct cli_given *g, const struct cli_option *o)
{
    for (size_t i = 0; o->yields && i < cli_option_count; i++) {
        const char *name = cli_option_table[i].name;
        if (is_on(g, i, FROM_LINE) && cli_has_word(o->yields, name, strlen(name))) return true;
    }
    return false;
}

/* Reads the variables. The option itself, and any option on the line that contradicts it, override
 * a variable. An empty variable counts as absent. */
static bool read_environment(struct cli_given *g, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[CLI_VARIABLE_SIZE];
        cli_option_variable(o, name);
        const char *text = getenv(name);
        if (!text || !*text || !belongs(g, o) || g->origin[i] == FROM_LINE ||
            !cli_option_has_variable(o))
            continue;
        if (contradiction(g, o, FROM_LINE) || yields(g, o)) continue;
        const struct cli_option *other = contradiction(g, o, FROM_ENVIRONMENT);
        if (other)
            return base_fail_at(err, BASE_USAGE, name, -1,
                                "contradicts the variable of --%s; set one of them", other->name);
        if (!set(g, o, name, text, err)) return false;
        g->origin[i] = FROM_ENVIRONMENT;
        g->values->source[i].text = text;
        g->values->source[i].from_environment = true;
    }
    return true;
}

/* Sets the defaults: last those of the command's own rows, because rows of several commands may
 * share a member. */
static bool set_defaults(const struct cli_given *g, struct base_error *err)
{
    for (int own = 0; own < 2; own++)
        for (size_t i = 0; i < cli_option_count; i++) {
            const struct cli_option *o = &cli_option_table[i];
            if (o->standard && cli_option_belongs(o, g->command) == own &&
                !set(g, o, o->name, o->standard, err))
                return false;
        }
    return true;
}

/* Makes bytes of the escapes in the texts that may have them. */
static bool unescape_all(const struct cli_given *g, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char source[NAME_MAX_SIZE];
        if (!o->escapes || !belongs(g, o) || g->origin[i] == FROM_DEFAULT) continue;
        struct base_texts *list = o->kind == CLI_LIST ? member_of(g, o) : NULL;
        const char **text = list ? list->item : member_of(g, o);
        snprintf(source, sizeof source, "--%s", o->name);
        for (size_t k = 0; k < (list ? list->count : 1); k++)
            if (!(text[k] = cli_value_unescape(source, text[k], g->keep, err))) return false;
    }
    return true;
}

/* Returns how a prompt is read: --chat=off is --raw. */
static enum chat_mode mode_of(const struct cli_given *g)
{
    const struct chat_settings *chat = &g->request->chat;
    const struct cli_option *o = find_named(g->command, "chat");
    if (chat->chat) return CHAT_MODE_CHAT;
    if (chat->raw || (o && g->origin[row_of(o)] != FROM_DEFAULT)) return CHAT_MODE_RAW;
    return CHAT_MODE_BY_MODEL;
}

bool cli_options_parse(enum cli_command_id command, int argc, char **argv, int first,
                       struct cli_values *values, struct base_error *err)
{
    struct parser p = {.given = {.command = command,
                                 .values = values,
                                 .request = &values->request,
                                 .keep = &values->keep}};
    struct cli_given *g = &p.given;
    *values = (struct cli_values){.request.chat.caller = &cli_chat_caller};
    if (cli_option_count > CLI_OPTION_MAX)
        return base_fail(err, BASE_FAILED, "the options table has outgrown the parser");
    values->source = base_keep_take(g->keep, cli_option_count * sizeof *values->source, err);
    if (!values->source) return false;
    if (!set_defaults(g, err) || !read_line(&p, argc, argv, first, err)) return false;
    if (values->help || values->version) return true;
    add_implied(g);
    const struct cli_command *c = cli_command_table[command];
    if (values->n_arguments < c->min_arguments)
        return base_fail(err, BASE_USAGE, "%s: missing argument. Usage: %s", c->name, c->usage);
    if (!check_line(g, err) || !read_environment(g, err) || !check_needs(g, err)) return false;
    for (size_t i = 0; i < cli_option_count; i++)
        values->source[i].given = g->origin[i] != FROM_DEFAULT;
    values->request.chat.mode = mode_of(g);
    return !values->request.escape || unescape_all(g, err);
}

bool cli_option_given(const struct cli_values *values, size_t at)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_table[i].at == at && values->source[i].given) return true;
    return false;
}

const char *cli_option_typed(const struct cli_values *values, size_t at)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_table[i].at == at && values->source[i].typed) return values->source[i].typed;
    return NULL;
}

void cli_options_free(struct cli_values *values)
{
    base_keep_free(&values->keep);
}

/* ---- Options of one of many texts ---- */

const struct cli_option *cli_option_of_request(enum cli_command_id command, const char *name,
                                               bool *known)
{
    char word[NAME_MAX_SIZE];
    const int n = snprintf(word, sizeof word, "--%s", name);
    for (char *c = word; *c; c++)
        if (*c == '_') *c = '-';
    const struct cli_option *o = n < (int)sizeof word ? find(command, word, (size_t)n) : NULL;
    *known = o != NULL;
    return o && cli_option_is_of_request(o) ? o : NULL;
}

static size_t size_of(const struct cli_option *o)
{
    static const size_t sizes[] = {[CLI_FLAG] = sizeof(bool),
                                   [CLI_TEXT] = sizeof(const char *),
                                   [CLI_LIST] = sizeof(struct base_texts),
                                   [CLI_WORDS] = sizeof(struct base_texts),
                                   [CLI_INTEGER] = sizeof(int64_t),
                                   [CLI_INTEGERS] = sizeof(struct cli_integers),
                                   [CLI_REAL] = sizeof(float),
                                   [CLI_CHOICE] = sizeof(const char *),
                                   [CLI_CHOICES] = sizeof(const char *)};
    return sizes[o->kind];
}

/* Makes an option absent. */
static bool reset(const struct cli_given *g, const struct cli_option *o, struct base_error *err)
{
    memset(member_of(g, o), 0, size_of(o));
    return !o->standard || set(g, o, o->name, o->standard, err);
}

void cli_request_begin(struct cli_given *g, enum cli_command_id command,
                       const struct cli_values *base, struct chat_request *request,
                       struct base_keep *keep)
{
    *g = (struct cli_given){.command = command, .request = request, .keep = keep};
    *request = base->request;
}

/* Notes that the text has the option, of which only a list can be set again. */
static bool claim(struct cli_given *g, const struct cli_option *o, struct base_error *err)
{
    const bool again = g->origin[row_of(o)] == FROM_LINE;
    g->origin[row_of(o)] = FROM_LINE;
    return again || reset(g, o, err);
}

bool cli_request_set_text(struct cli_given *g, const struct cli_option *o, const char *text,
                          struct base_error *err)
{
    char source[NAME_MAX_SIZE];
    snprintf(source, sizeof source, "--%s", o->name);
    if (g->request->escape && o->escapes)
        text = cli_value_unescape(source, text, g->keep, err);
    else
        text = base_keep_text(g->keep, text, strlen(text), err);
    return text && claim(g, o, err) && set(g, o, source, text, err);
}

bool cli_request_set_json(struct cli_given *g, const struct cli_option *o, const json_t *value,
                          bool escapes, struct base_error *err)
{
    return claim(g, o, err) &&
           cli_value_from_json(o, member_of(g, o), g->request, value, escapes, g->keep, err);
}

bool cli_request_has(const struct cli_given *g, size_t at)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (g->origin[i] == FROM_LINE && cli_option_table[i].at == at) return true;
    return false;
}

bool cli_request_end(struct cli_given *g, const struct cli_values *base, struct base_error *err)
{
    add_implied(g);
    if (!check_line(g, err)) return false;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!base->source[i].given || g->origin[i] == FROM_LINE || !belongs(g, o)) continue;
        if (contradiction(g, o, FROM_LINE)) {
            if (!reset(g, o, err)) return false;
        } else {
            g->origin[i] = FROM_ENVIRONMENT;
        }
    }
    g->request->chat.mode = mode_of(g);
    return check_needs(g, err);
}

/* ---- What was given ---- */

void cli_options_describe(const struct cli_values *values, struct base_buffer *out)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        const char *text = values->source[i].text;
        char name[CLI_VARIABLE_SIZE];
        if (!text || (o->standard && strcmp(text, o->standard) == 0) ||
            o->at == offsetof(struct cli_values, verbose))
            continue;
        cli_option_variable(o, name);
        base_buffer_add_format(out, "%s--%s", out->size ? ", " : "", o->name);
        if (o->kind == CLI_FLAG && !*(const bool *)((const char *)values + o->at))
            base_buffer_add_text(out, " off");
        if (o->kind != CLI_FLAG)
            base_buffer_add_format(out, " %.40s%s", text, strlen(text) > 40 ? "..." : "");
        if (values->source[i].from_environment) base_buffer_add_format(out, " (%s)", name);
    }
}

void cli_options_unknown_variables(struct base_buffer *out)
{
    enum { PREFIX = sizeof "INFER_" - 1 };
    char names[CLI_OPTION_MAX][CLI_VARIABLE_SIZE];
    const char *known[CLI_OPTION_MAX];
    for (size_t i = 0; i < cli_option_count; i++) {
        cli_option_variable(&cli_option_table[i], names[i]);
        known[i] = names[i] + PREFIX;
    }
    for (char **at = environ; *at; at++) {
        char name[CLI_VARIABLE_SIZE];
        const size_t n = strcspn(*at, "=");
        if (strncmp(*at, "INFER_", PREFIX) != 0 || strncmp(*at, "INFER_TEST_", 11) == 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)n, *at);
        bool is_known = strcmp(name, "INFER_SHARED") == 0; /* of the tests */
        for (size_t i = 0; i < cli_option_count; i++) is_known |= strcmp(name, names[i]) == 0;
        if (is_known) continue;
        const char *near = cli_nearest(name + PREFIX, known, cli_option_count);
        base_buffer_add_format(out, "%s%s", out->size ? ", " : "", name);
        if (near) base_buffer_add_format(out, " (INFER_%s?)", near);
    }
}

void cli_options_name_source(const struct cli_values *values, struct base_error *err)
{
    if (strncmp(err->item, "--", 2) != 0 || !values->source) return;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[CLI_VARIABLE_SIZE];
        if ((!values->source[i].from_environment && !values->source[i].typed) ||
            strcmp(err->item + 2, o->name) != 0)
            continue;
        if (values->source[i].from_environment)
            cli_option_variable(o, name);
        else
            name_row(values, i, name, sizeof name);
        snprintf(err->item, sizeof err->item, "%s", name);
        return;
    }
}
