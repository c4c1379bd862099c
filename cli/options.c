/* cli/options.c: parses the command line and the environment.
 *
 * Rules: --name VALUE, --name=VALUE, aliases exactly as in the table (short options are not
 * combined), -- ends options, numbers are decimal and complete. Unknown options are errors. */
#include "cli/options.h"
#include "base/size.h"
#include "cli/model_path.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAME_MAX_SIZE = 64 };

enum origin { FROM_DEFAULT, FROM_LINE, FROM_ENVIRONMENT };

struct parser {
    enum cli_command_id command;
    struct cli_values *values;
    enum origin origin[CLI_OPTION_MAX];                  /* [row of the table] */
    const struct cli_option *implied_by[CLI_OPTION_MAX]; /* NULL: it is on the line itself */
    struct base_buffer unknown, unknown_names;           /* words that are no options */
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
    while (i < CLI_COMMAND_COUNT && strcmp(cli_command_table[i].name, name) != 0) i++;
    return (enum cli_command_id)i;
}

/* ---- Unknown words ---- */

/* Finds the spelling of an option of the command that a word resembles. */
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
    const char *own = cli_command_table[command].name;
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
                cli_command_table[c].name, own, own);
    char near[NAME_MAX_SIZE];
    if (resembles(command, given, near))
        return base_fail_at(err, BASE_USAGE, given, -1,
                            "unknown option; did you mean %s? See infer %s --help", near, own);
    return base_fail_at(err, BASE_USAGE, given, -1, "unknown option; see infer %s --help", own);
}

/* ---- Values ---- */

static bool parse_integer(const struct cli_option *o, const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0 && (double)*out >= o->low && (double)*out <= o->high;
}

static bool parse_integers(const struct cli_option *o, const char *text, struct cli_integers *out)
{
    char one[NAME_MAX_SIZE];
    out->count = 0;
    for (;; text++) {
        const size_t size = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)(size < sizeof one ? size : sizeof one), text);
        if (out->count == CLI_INTEGERS_MAX || size >= sizeof one ||
            !parse_integer(o, one, &out->item[out->count++]))
            return false;
        text += size;
        if (*text == '\0') return true;
    }
}

static bool parse_real(const struct cli_option *o, const char *text, float *out)
{
    if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    char *end;
    const double value = strtod(text, &end);
    *out = (float)value;
    return *end == '\0' && value >= o->low && value <= o->high;
}

bool cli_size_parse(const char *text, const char *option, uint64_t *out, struct base_error *err)
{
    enum { MEGABYTE = 1000 * 1000 };
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    const uint64_t unit = *end == 'M' ? MEGABYTE : *end == 'G' ? 1000ULL * MEGABYTE : 0;
    if (text[0] < '0' || text[0] > '9' || errno || n == 0 || unit == 0 || end[1] ||
        !base_mul(n, unit, out))
        return base_fail_at(err, BASE_USAGE, option, -1,
                            "'%s' is not a size: a whole number and M or G, as 500M or 2G", text);
    return true;
}

static bool parse_flag(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) != 0 && strcasecmp(text, no[i]) != 0) continue;
        *out = strcasecmp(text, yes[i]) == 0;
        return true;
    }
    return false;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *c = choices; n > 0 && c; c = strchr(c, '|')) {
        c += *c == '|';
        if (strncasecmp(c, text, n) == 0 && (c[n] == '|' || c[n] == '\0')) return true;
    }
    return false;
}

/* Returns whether a text is a list of at most CLI_INTEGERS_MAX of the choices, separated by commas.
 */
static bool are_choices(const char *choices, const char *text)
{
    char one[NAME_MAX_SIZE];
    for (int n = 1; n <= CLI_INTEGERS_MAX; n++, text++) {
        const size_t size = strcspn(text, ",");
        if (size >= sizeof one) return false;
        snprintf(one, sizeof one, "%.*s", (int)size, text);
        text += size;
        if (!is_choice(choices, one)) return false;
        if (*text == '\0') return true;
    }
    return false;
}

/* Sets an option's value. `source` names the origin of the value for the user: "--top-k",
 * "INFER_TOP_K". */
static bool set(struct parser *p, const struct cli_option *o, const char *source, const char *text,
                struct base_error *err)
{
    char *at = (char *)p->values + o->at;
    switch (o->kind) {
    case CLI_FLAG:
        if (parse_flag(text, (bool *)at)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is neither on nor off", text);
    case CLI_TEXT:
        *(const char **)at = text;
        return true;
    case CLI_LIST: {
        struct cli_list *list = (struct cli_list *)at;
        if (list->count == CLI_LIST_MAX)
            return base_fail_at(err, BASE_USAGE, source, -1, "given more than %d times",
                                CLI_LIST_MAX);
        if (*text == '\0') return base_fail_at(err, BASE_USAGE, source, -1, "is empty");
        list->item[list->count++] = text;
        return true;
    }
    case CLI_INTEGER:
        if (parse_integer(o, text, (int64_t *)at)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is not a whole number from %.0f to %.0f", text, o->low, o->high);
    case CLI_INTEGERS:
        if (parse_integers(o, text, (struct cli_integers *)at)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is not one to %d whole numbers from %.0f to %.0f, separated by "
                            "commas",
                            text, CLI_INTEGERS_MAX, o->low, o->high);
    case CLI_REAL:
        if (parse_real(o, text, (float *)at)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is not a number from %g to %g", text,
                            o->low, o->high);
    case CLI_CHOICE:
        *(const char **)at = text;
        if (is_choice(o->choices, text)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1, "'%s' is none of %s", text, o->choices);
    case CLI_CHOICES:
        *(const char **)at = text;
        if (are_choices(o->choices, text)) return true;
        return base_fail_at(err, BASE_USAGE, source, -1,
                            "'%s' is no list, separated by commas, of %s", text, o->choices);
    }
    return false;
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
    if (p->origin[o - cli_option_table] == FROM_LINE && o->kind == CLI_TEXT &&
        o->at != offsetof(struct cli_values, model) &&
        (cli_option_takes_file(o) || o->at == offsetof(struct cli_values, prompt)))
        return base_fail_at(err, BASE_USAGE, source, -1, "given twice");
    p->origin[o - cli_option_table] = FROM_LINE;
    p->values->text[o - cli_option_table] = text;
    return set(p, o, source, text, err);
}

/* Writes the name of row i as the line has it. */
static void spell(const struct cli_values *values, size_t i, char *out, size_t room)
{
    const char *word = values->typed[i];
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
    const char *text = attached ? attached : equals ? equals + 1 : "on";
    p->values->typed[o - cli_option_table] = attached ? o->alias[0] : argv[*i];
    if (strcmp(argv[*i], "-h") == 0) p->values->brief = true;
    if (!attached && !equals && o->kind != CLI_FLAG) {
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
    struct cli_values *v = p->values;
    const bool equals = argv[*i][1] == '-' && strchr(argv[*i], '=');
    const char *next = *i + 1 < argc ? argv[*i + 1] : "-";
    if (v->n_passed < CLI_PASSED_MAX) v->passed[v->n_passed++] = argv[*i];
    if (equals || f->use == CLI_FOREIGN_FLAG) return;
    if (f->use == CLI_FOREIGN_VALUE ? *i + 1 < argc
                                    : strspn(next, "0123456789,") == strlen(next) ||
                                          is_choice("on|off|auto|true|false", next))
        ++*i;
}

/* ---- Positional texts ---- */

/* Returns whether a word is the name of a model, as other programs have it before the text. Short
 * beginnings of names are texts. */
static bool is_model(const char *word)
{
    enum { LEAST = 5 };
    struct base_buffer path = BASE_BUFFER_INIT;
    struct base_error none = BASE_ERROR_INIT;
    const bool is = strlen(word) >= LEAST && !strchr(word, '/') && cli_model_folder(&path) &&
                    !path.failed && cli_model_find(word, &path, &none);
    base_buffer_free(&path);
    return is;
}

/* Takes an argument as the value of the option that the command names for it. */
static bool take_positional(struct parser *p, const char *word, struct base_error *err)
{
    const struct cli_command *c = &cli_command_table[p->command];
    const struct cli_option *o = find_named(p->command, c->positional);
    const bool is_text = o->at == offsetof(struct cli_values, prompt);
    const size_t n = strlen(word);
    if (n > 4 && strcmp(word + n - 4, ".svg") == 0 && find_named(p->command, "svg"))
        return base_fail_at(err, BASE_USAGE, word, -1, "a picture is written with --svg %s", word);
    if (is_text && cli_command_find(word) != CLI_COMMAND_COUNT)
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "unexpected argument; a command comes first (-p: as a text)");
    if (is_text && access(word, F_OK) == 0)
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "is a file: -f reads a text from it, -m takes it as the model, -p its "
                            "name as the text");
    if (is_text && find(p->command, "-m", 2) && is_model(word))
        return base_fail_at(err, BASE_USAGE, word, -1,
                            "is a model: -m takes it, and -p its name as the text");
    if (p->origin[o - cli_option_table] == FROM_LINE && o->kind != CLI_LIST)
        return base_fail_at(err, BASE_USAGE, word, -1, "unexpected argument; %s. Usage: %s",
                            is_text ? "a text of several words needs quotes, and a model -m"
                                    : "too many",
                            c->usage);
    return set_given(p, o, word, err);
}

/* Adds an error about a word of the line; the parser goes on, so that one call names all of them.
 */
static void add_unknown(struct parser *p, const char *word, size_t n)
{
    struct base_error one = BASE_ERROR_INIT;
    fail_unknown(p->command, word, n, &one);
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
                  cli_command_table[p->command].name);
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
    const struct cli_option *o = find(p->command, word, n);
    const struct cli_foreign *f = o ? NULL : cli_foreign_find(word, n);
    if (f && f->option) o = find_named(p->command, f->option);
    if (!o && !f) o = find_attached(p->command, word, &attached);
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
    const size_t n = p->values->n_arguments++;
    if (n < CLI_ARGUMENT_MAX) p->values->argument[n] = argv[i];
    argv[first + (int)n] = argv[i]; /* of a word that was read before */
}

static bool read_line(struct parser *p, int argc, char **argv, int first, struct base_error *err)
{
    const struct cli_command *c = &cli_command_table[p->command];
    bool options = true, ok = true;
    p->values->arguments = argv + first;
    for (int i = first; ok && i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && word[0] == '-' && word[1] != '\0')
            ok = read_option(p, argc, argv, &i, err);
        else if (p->values->n_arguments < c->max_arguments)
            add_argument(p, argv, first, i);
        else if (p->n_unknown)
            continue; /* it may be the value of an unknown option */
        else if (c->positional)
            ok = take_positional(p, word, err);
        else if (strspn(word, "0123456789") == strlen(word) && find(p->command, "-t", 2))
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
static bool is_on(const struct parser *p, size_t i, enum origin origin)
{
    const struct cli_option *o = &cli_option_table[i];
    const void *value = (const char *)p->values + o->at;
    if (p->origin[i] != origin) return false;
    if (o->kind == CLI_LIST) return ((const struct cli_list *)value)->count > 0;
    return o->kind != CLI_FLAG || *(const bool *)value;
}

/* Turns on the switches that options on the line imply, as if they were on the line. */
static void add_implied(struct parser *p)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const char *implied = cli_option_table[i].implies;
        if (!implied || !is_on(p, i, FROM_LINE)) continue;
        for (size_t k = 0; k < cli_option_count; k++) {
            const struct cli_option *o = &cli_option_table[k];
            if (!cli_option_belongs(o, p->command) || strcmp(o->name, implied) != 0 ||
                p->origin[k] == FROM_LINE)
                continue;
            *(bool *)((char *)p->values + o->at) = true;
            p->origin[k] = FROM_LINE;
            p->implied_by[k] = &cli_option_table[i];
        }
    }
}

/* Returns the option on the line or in the environment that contradicts row `o`, or NULL. */
static const struct cli_option *contradiction(const struct parser *p, const struct cli_option *o,
                                              enum origin origin)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *other = &cli_option_table[i];
        if (is_on(p, i, origin) && cli_option_belongs(other, p->command) &&
            (cli_has_word(o->excludes, other->name, strlen(other->name)) ||
             cli_has_word(other->excludes, o->name, strlen(o->name))))
            return other;
    }
    return NULL;
}

/* Returns whether a switch is on, or another option has a value other than its default. */
static bool is_given(const struct parser *p, size_t i)
{
    const struct cli_option *o = &cli_option_table[i];
    if (o->kind == CLI_FLAG) return *(const bool *)((const char *)p->values + o->at);
    return p->origin[i] != FROM_DEFAULT;
}

/* Returns whether row `o` needs one of other options of this command and none of them is given;
 * writes their names for a message. */
static bool lacks_need(const struct parser *p, const struct cli_option *o, char *names, size_t room)
{
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; o->needs && i < cli_option_count; i++) {
        const struct cli_option *other = &cli_option_table[i];
        if (!cli_option_belongs(other, p->command) ||
            !cli_has_word(o->needs, other->name, strlen(other->name)))
            continue;
        if (is_given(p, i)) return false;
        if (used < room)
            used += (size_t)snprintf(names + used, room - used, "%s--%s", used ? " or " : "",
                                     other->name);
    }
    return used > 0;
}

/* Checks the needs of options after the environment was read, because it may contain the needed
 * option. A variable without the option that it needs is ignored. */
static bool check_needs(const struct parser *p, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[NAME_MAX_SIZE], needs[2 * NAME_MAX_SIZE];
        if (p->origin[i] != FROM_LINE || !lacks_need(p, o, needs, sizeof needs)) continue;
        snprintf(name, sizeof name, "--%s", o->name);
        return base_fail_at(err, BASE_USAGE, name, -1, "needs %s", needs);
    }
    return true;
}

/* Writes the name of what the user wrote: row i, or the option that implies it. */
static void spell_written(const struct parser *p, size_t i, char *out, size_t room)
{
    const struct cli_option *by = p->implied_by[i];
    spell(p->values, by ? (size_t)(by - cli_option_table) : i, out, room);
}

/* Fails if a switch that the option implies is off on the line. */
static bool check_implied(const struct parser *p, size_t i, struct base_error *err)
{
    const struct cli_option *o = &cli_option_table[i];
    const struct cli_option *implied = o->implies ? find_named(p->command, o->implies) : NULL;
    const size_t k = implied ? (size_t)(implied - cli_option_table) : 0;
    char name[NAME_MAX_SIZE];
    if (!implied || !is_on(p, i, FROM_LINE) || is_on(p, k, FROM_LINE)) return true;
    snprintf(name, sizeof name, "--%s", o->name);
    return base_fail_at(err, BASE_USAGE, name, -1, "contradicts --%s off", implied->name);
}

static bool check_line(const struct parser *p, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        const struct cli_option *other =
            is_on(p, i, FROM_LINE) ? contradiction(p, o, FROM_LINE) : NULL;
        char name[NAME_MAX_SIZE], other_name[NAME_MAX_SIZE];
        if (!check_implied(p, i, err)) return false;
        if (!other) continue;
        spell_written(p, i, name, sizeof name);
        spell_written(p, (size_t)(other - cli_option_table), other_name, sizeof other_name);
        return base_fail_at(err, BASE_USAGE, name, -1, "contradicts %s; give one of them",
                            other_name);
    }
    return true;
}

/* Returns whether an option on the line replaces the variable of row `o`. */
static bool yields(const struct parser *p, const struct cli_option *o)
{
    for (size_t i = 0; o->yields && i < cli_option_count; i++) {
        const char *name = cli_option_table[i].name;
        if (is_on(p, i, FROM_LINE) && cli_has_word(o->yields, name, strlen(name))) return true;
    }
    return false;
}

/* Reads the variables. The option itself, and any option on the line that contradicts it, override
 * a variable. An empty variable counts as absent. */
static bool read_environment(struct parser *p, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[CLI_VARIABLE_SIZE];
        cli_option_variable(o, name);
        const char *text = getenv(name);
        if (!text || !*text || !cli_option_belongs(o, p->command) || p->origin[i] == FROM_LINE ||
            !cli_option_has_variable(o))
            continue;
        if (contradiction(p, o, FROM_LINE) || yields(p, o)) continue;
        const struct cli_option *other = contradiction(p, o, FROM_ENVIRONMENT);
        if (other)
            return base_fail_at(err, BASE_USAGE, name, -1,
                                "contradicts the variable of --%s; set one of them", other->name);
        if (!set(p, o, name, text, err)) return false;
        p->origin[i] = FROM_ENVIRONMENT;
        p->values->text[i] = text;
        p->values->from_environment[i] = true;
    }
    return true;
}

/* Sets the defaults: last those of the command's own rows, because rows of several commands may
 * share a member. */
static bool set_defaults(struct parser *p, struct base_error *err)
{
    for (int own = 0; own < 2; own++)
        for (size_t i = 0; i < cli_option_count; i++) {
            const struct cli_option *o = &cli_option_table[i];
            if (o->standard && cli_option_belongs(o, p->command) == own &&
                !set(p, o, o->name, o->standard, err))
                return false;
        }
    return true;
}

bool cli_options_parse(enum cli_command_id command, int argc, char **argv, int first,
                       struct cli_values *values, struct base_error *err)
{
    struct parser p = {.command = command, .values = values};
    *values = (struct cli_values){0};
    if (cli_option_count > CLI_OPTION_MAX)
        return base_fail(err, BASE_FAILED, "the options table has outgrown the parser");
    if (!set_defaults(&p, err) || !read_line(&p, argc, argv, first, err)) return false;
    if (values->help || values->version) return true;
    add_implied(&p);
    const struct cli_command *c = &cli_command_table[command];
    if (values->n_arguments < c->min_arguments)
        return base_fail(err, BASE_USAGE, "%s: missing argument. Usage: %s", c->name, c->usage);
    if (!check_line(&p, err) || !read_environment(&p, err) || !check_needs(&p, err)) return false;
    for (size_t i = 0; i < cli_option_count; i++) values->given[i] = p.origin[i] != FROM_DEFAULT;
    return true;
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
    const bool own =
        o && (o->request || o->group == CLI_GROUP_SAMPLING || o->group == CLI_GROUP_CONSTRAINT);
    return own ? o : NULL;
}

static size_t size_of(const struct cli_option *o)
{
    static const size_t sizes[] = {[CLI_FLAG] = sizeof(bool),
                                   [CLI_TEXT] = sizeof(const char *),
                                   [CLI_LIST] = sizeof(struct cli_list),
                                   [CLI_INTEGER] = sizeof(int64_t),
                                   [CLI_INTEGERS] = sizeof(struct cli_integers),
                                   [CLI_REAL] = sizeof(float),
                                   [CLI_CHOICE] = sizeof(const char *),
                                   [CLI_CHOICES] = sizeof(const char *)};
    return sizes[o->kind];
}

bool cli_options_override(enum cli_command_id command, const struct cli_values *base,
                          const struct cli_setting *settings, size_t n, struct cli_values *values,
                          struct base_error *err)
{
    struct parser p = {.command = command, .values = values};
    *values = (struct cli_values){.texts_only = base->texts_only};
    if (!set_defaults(&p, err)) return false;
    for (size_t i = 0; i < n; i++) {
        const struct cli_option *o = settings[i].option;
        char source[NAME_MAX_SIZE];
        snprintf(source, sizeof source, "--%s", o->name);
        if (settings[i].text && !set(&p, o, source, settings[i].text, err)) return false;
        p.origin[o - cli_option_table] = FROM_LINE;
    }
    add_implied(&p);
    if (!check_line(&p, err)) return false;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!base->given[i] || p.origin[i] == FROM_LINE || contradiction(&p, o, FROM_LINE))
            continue;
        memcpy((char *)values + o->at, (const char *)base + o->at, size_of(o));
        p.origin[i] = FROM_ENVIRONMENT;
    }
    for (size_t i = 0; i < cli_option_count; i++) values->given[i] = p.origin[i] != FROM_DEFAULT;
    return check_needs(&p, err);
}

/* ---- What was given ---- */

void cli_options_describe(const struct cli_values *values, struct base_buffer *out)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        const char *text = values->text[i];
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
        if (values->from_environment[i]) base_buffer_add_format(out, " (%s)", name);
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

enum cli_mode cli_options_mode(const struct cli_values *values)
{
    if (values->chat) return CLI_MODE_CHAT;
    for (size_t i = 0; i < cli_option_count; i++)
        if (values->given[i] && cli_option_table[i].at == offsetof(struct cli_values, chat))
            return CLI_MODE_RAW; /* --chat=off */
    return values->raw ? CLI_MODE_RAW : CLI_MODE_BY_MODEL;
}

void cli_options_name_source(const struct cli_values *values, struct base_error *err)
{
    if (strncmp(err->item, "--", 2) != 0) return;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[CLI_VARIABLE_SIZE];
        if ((!values->from_environment[i] && !values->typed[i]) ||
            strcmp(err->item + 2, o->name) != 0)
            continue;
        if (values->from_environment[i])
            cli_option_variable(o, name);
        else
            spell(values, i, name, sizeof name);
        snprintf(err->item, sizeof err->item, "%s", name);
        return;
    }
}
