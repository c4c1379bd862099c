/* cli/options.c: parses the command line and the environment.
 *
 * Rules: --name VALUE, --name=VALUE, aliases exactly as in the table (short options are not
 * combined), -- ends options, numbers are decimal and complete. Unknown options are errors. */
#include "cli/options.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_SIZE = 64 };

enum origin { FROM_DEFAULT, FROM_LINE, FROM_ENVIRONMENT };

struct parser {
    enum cli_command_id command;
    struct cli_values *values;
    enum origin origin[CLI_OPTION_MAX]; /* [row of the table] */
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

enum cli_command_id cli_command_find(const char *name)
{
    int i = 0;
    while (i < CLI_COMMAND_COUNT && strcmp(cli_command_table[i].name, name) != 0) i++;
    return (enum cli_command_id)i;
}

/* ---- Suggestions ---- */

/* Returns the edit distance (insert, delete, replace, swap of adjacent characters) of texts up to
 * NAME_MAX_SIZE characters. */
static int distance(const char *a, const char *b)
{
    int row[3][NAME_MAX_SIZE + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > NAME_MAX_SIZE || m > NAME_MAX_SIZE) return NAME_MAX_SIZE;
    for (int j = 0; j <= m; j++) row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *upper = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                upper[j - 2] + 1 < best)
                best = upper[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    if (strlen(word + strspn(word, "-/")) <= 3) return NULL;
    int bar = (int)strlen(word) / 3;
    for (size_t i = 0; i < n; i++) {
        int d = distance(word, names[i]);
        if (d >= (int)strlen(names[i]) || d > bar || (nearest && d == bar)) continue;
        nearest = names[i];
        bar = d;
    }
    return nearest;
}

/* Returns whether a list of words separated by spaces contains the word. */
static bool has_word(const char *list, const char *word, size_t n)
{
    for (const char *c = list; c && *c; c += strspn(c, " ")) {
        const size_t size = strcspn(c, " ");
        if (size == n && memcmp(c, word, n) == 0) return true;
        c += size;
    }
    return false;
}

const struct cli_foreign *cli_foreign_find(const char *word, size_t n)
{
    for (size_t i = 0; i < cli_foreign_count; i++)
        if (has_word(cli_foreign_table[i].words, word, n)) return &cli_foreign_table[i];
    return NULL;
}

void cli_foreign_say(const struct cli_foreign *f, char *out, size_t room)
{
    const bool both = f->here && f->note;
    snprintf(out, room, "%s%s%s%s%s", f->here ? "here it is " : "", f->here ? f->here : "",
             both ? " (" : "", f->note ? f->note : "", both ? ")" : "");
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
    const char *near = cli_nearest(given, names, count);
    if (near)
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

static bool set_from_line(struct parser *p, const struct cli_option *o, int argc, char **argv,
                          int *i, struct base_error *err)
{
    char source[NAME_MAX_SIZE];
    snprintf(source, sizeof source, "--%s", o->name);
    const char *equals = argv[*i][1] == '-' ? strchr(argv[*i], '=') : NULL;
    const char *text = equals ? equals + 1 : "on";
    if (!equals && o->kind != CLI_FLAG) {
        if (++*i == argc)
            return base_fail_at(err, BASE_USAGE, source, -1, "needs a value: %s", o->value);
        text = argv[*i];
    }
    /* Of two texts one would be ignored silently. */
    if (p->origin[o - cli_option_table] == FROM_LINE &&
        (o->at == offsetof(struct cli_values, file) ||
         o->at == offsetof(struct cli_values, prompt)))
        return base_fail_at(err, BASE_USAGE, source, -1, "given twice");
    p->origin[o - cli_option_table] = FROM_LINE;
    if (strcmp(argv[*i], "-h") == 0) p->values->brief = true;
    return set(p, o, source, text, err);
}

/* Returns what the user may write in place of `word` if a command has no further arguments. */
static const char *instead_of_argument(enum cli_command_id command, const char *word)
{
    if (cli_command_table[command].max_arguments > 0) return "too many";
    if (cli_command_find(word) != CLI_COMMAND_COUNT) return "a command comes first";
    if (find(command, "--prompt", 8)) return "a text is given with -p";
    if (find(command, "--file", 6)) return "a file is given with -f";
    return find(command, "--model", 7) ? "a model is given with -m" : "there is none";
}

static bool read_line(struct parser *p, int argc, char **argv, int first, struct base_error *err)
{
    const struct cli_command *c = &cli_command_table[p->command];
    bool options = true;
    for (int i = first; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1] != '\0') {
            size_t n = word[1] == '-' ? strcspn(word, "=") : strlen(word);
            const struct cli_option *o = find(p->command, word, n);
            if (!o) return fail_unknown(p->command, word, n, err);
            if (!set_from_line(p, o, argc, argv, &i, err)) return false;
        } else if (p->values->n_arguments < c->max_arguments) {
            p->values->argument[p->values->n_arguments++] = word;
        } else {
            return base_fail_at(err, BASE_USAGE, word, -1, "unexpected argument; %s. Usage: %s",
                                instead_of_argument(p->command, word), c->usage);
        }
    }
    return true;
}

/* Turns on the switches that options on the line imply, as if they were on the line. */
static void add_implied(struct parser *p)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const char *implied = cli_option_table[i].implies;
        if (!implied || p->origin[i] != FROM_LINE) continue;
        for (size_t k = 0; k < cli_option_count; k++) {
            const struct cli_option *o = &cli_option_table[k];
            if (!cli_option_belongs(o, p->command) || strcmp(o->name, implied) != 0 ||
                p->origin[k] == FROM_LINE)
                continue;
            *(bool *)((char *)p->values + o->at) = true;
            p->origin[k] = FROM_LINE;
        }
    }
}

/* Returns the option on the line or in the environment that contradicts row `o`, or NULL. */
static const struct cli_option *contradiction(const struct parser *p, const struct cli_option *o,
                                              enum origin origin)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *other = &cli_option_table[i];
        if (p->origin[i] == origin && cli_option_belongs(other, p->command) &&
            (has_word(o->excludes, other->name, strlen(other->name)) ||
             has_word(other->excludes, o->name, strlen(o->name))))
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
            !has_word(o->needs, other->name, strlen(other->name)))
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

static bool check_line(const struct parser *p, struct base_error *err)
{
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        const struct cli_option *other =
            p->origin[i] == FROM_LINE ? contradiction(p, o, FROM_LINE) : NULL;
        char name[NAME_MAX_SIZE];
        snprintf(name, sizeof name, "--%s", o->name);
        if (other)
            return base_fail_at(err, BASE_USAGE, name, -1, "contradicts --%s; give one of them",
                                other->name);
    }
    return true;
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
        if (contradiction(p, o, FROM_LINE)) continue;
        const struct cli_option *other = contradiction(p, o, FROM_ENVIRONMENT);
        if (other)
            return base_fail_at(err, BASE_USAGE, name, -1,
                                "contradicts the variable of --%s; set one of them", other->name);
        if (!set(p, o, name, text, err)) return false;
        p->origin[i] = FROM_ENVIRONMENT;
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

void cli_options_name_variable(const struct cli_values *values, struct base_error *err)
{
    if (strncmp(err->item, "--", 2) != 0) return;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        char name[CLI_VARIABLE_SIZE];
        if (!values->from_environment[i] || strcmp(err->item + 2, o->name) != 0) continue;
        cli_option_variable(o, name);
        snprintf(err->item, sizeof err->item, "%s", name);
    }
}
