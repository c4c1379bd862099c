/* cli/main.c: finds the command, parses its options, runs it, reports errors and exits. Only this
 * file ends the process. */
#include "base/cpu.h"
#include "cli/commands.h"
#include "cli/system.h"
#include <string.h>

static const char *nearest_command(const char *word)
{
    const char *names[CLI_COMMAND_COUNT];
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) names[i] = cli_command_table[i].name;
    return cli_nearest(word, names, CLI_COMMAND_COUNT);
}

static bool resembles_command(const char *word)
{
    return cli_foreign_find(word, strlen(word)) || nearest_command(word);
}

static bool fail_command(const char *word, struct base_error *err)
{
    const struct cli_foreign *foreign = cli_foreign_find(word, strlen(word));
    const char *near = nearest_command(word);
    if (foreign) {
        char says[CLI_CLAUSE_SIZE];
        cli_foreign_say(foreign, says, sizeof says);
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; %s", says);
    }
    if (near)
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; did you mean %s?", near);
    return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; see infer --help");
}

bool cli_cmd_help(const struct cli_values *values, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    bool ok = true;
    if (values->n_arguments == 0) {
        cli_help_overview(values->brief, &out);
    } else if (strcmp(values->argument[0], "coming-from") == 0) {
        cli_help_foreign(strcasecmp(values->format, "md") == 0, &out);
    } else {
        enum cli_command_id c = cli_command_find(values->argument[0]);
        if (c == CLI_COMMAND_COUNT)
            ok = fail_command(values->argument[0], err);
        else
            cli_help_command(c, values->brief, &out);
    }
    ok = ok && cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

/* Handles --help and -h among a command's options. */
static bool help_of(enum cli_command_id command, bool brief, struct base_error *err)
{
    struct cli_values values = {
        .argument = {cli_command_table[command].name}, .n_arguments = 1, .brief = brief};
    return cli_cmd_help(&values, err);
}

static bool (*const commands[CLI_COMMAND_COUNT])(const struct cli_values *, struct base_error *) = {
    [CLI_RUN] = cli_cmd_run,         [CLI_CHAT] = cli_cmd_chat,
    [CLI_BATCH] = cli_cmd_batch,     [CLI_TOKENIZE] = cli_cmd_tokenize,
    [CLI_LOGITS] = cli_cmd_logits,   [CLI_PERPLEXITY] = cli_cmd_perplexity,
    [CLI_SCORE] = cli_cmd_score,     [CLI_BENCH] = cli_cmd_bench,
    [CLI_INSPECT] = cli_cmd_inspect, [CLI_QUANTIZE] = cli_cmd_quantize,
    [CLI_IMATRIX] = cli_cmd_imatrix, [CLI_SPLIT] = cli_cmd_split,
    [CLI_MERGE] = cli_cmd_merge,     [CLI_EDIT] = cli_cmd_edit,
    [CLI_DIFF] = cli_cmd_diff,       [CLI_VERIFY] = cli_cmd_verify,
    [CLI_CHECK] = cli_cmd_check,     [CLI_MODELS] = cli_cmd_models,
    [CLI_CACHE] = cli_cmd_cache,     [CLI_PULL] = cli_cmd_pull,
    [CLI_DOCTOR] = cli_cmd_doctor,   [CLI_COMPLETION] = cli_cmd_completion,
    [CLI_MAN] = cli_cmd_man,         [CLI_VERSION] = cli_cmd_version,
    [CLI_HELP] = cli_cmd_help,
};

/* ---- Remarks ---- */

static void note_variables(void)
{
    struct base_buffer names = BASE_BUFFER_INIT;
    cli_options_unknown_variables(&names);
    if (names.size && !names.failed) cli_note("no variable of infer, ignored: %s", names.data);
    base_buffer_free(&names);
}

static void note_options(const struct cli_values *values)
{
    struct base_buffer given = BASE_BUFFER_INIT;
    char says[CLI_CLAUSE_SIZE];
    cli_options_describe(values, &given);
    if (given.size && !given.failed) cli_note("options: %s", given.data);
    base_buffer_free(&given);
    for (size_t i = 0; i < values->n_passed; i++) {
        const char *word = values->passed[i];
        cli_foreign_say(cli_foreign_find(word, strcspn(word, "=")), says, sizeof says);
        cli_note("%s: %s", word, says);
    }
}

static bool run(int argc, char **argv, struct cli_values *values, struct base_error *err)
{
    enum cli_command_id command = CLI_RUN;
    int first = 1;
    if (!cpu_family_check(err)) return false;
    if (argc > 1 && argv[1][0] != '-') {
        command = cli_command_find(argv[1]);
        first = 2;
        if (command == CLI_COMMAND_COUNT) {
            if (strcspn(argv[1], " \t\n") == strlen(argv[1]) && resembles_command(argv[1]))
                return fail_command(argv[1], err);
            command = CLI_RUN; /* its prompt */
            first = 1;
        }
    } else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        values->brief = argv[1][1] == 'h';
        return cli_cmd_help(values, err);
    }
    if (!cli_options_parse(command, argc, argv, first, values, err)) return false;
    if (values->help) return help_of(command, values->brief, err);
    if (values->version) return cli_cmd_version(values, err);
    note_variables();
    if (values->verbose) note_options(values);
    if (commands[command](values, err)) return true;
    cli_options_name_variable(values, err);
    return false;
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct cli_values values = {0};
    const bool ok = cli_system_init(&err) && run(argc, argv, &values, &err);
    cli_options_free(&values);
    if (ok) return BASE_OK;
    /* No message after Ctrl-C, or for a result that is not a failure (diff). */
    if (err.code != BASE_INTERRUPTED && err.code != BASE_OK) cli_report(&err);
    return err.code ? (int)err.code : BASE_FAILED;
}
