/* cli/main.c: finds the command, parses its options, runs it, reports errors and exits. Only this
 * file ends the process. */
#include "base/cpu.h"
#include "cli/gpu_layers.h"
#include "cli/options.h"
#include "cli/system.h"
#include <string.h>

/* Handles --help and -h among a command's options. */
static bool help_of(enum cli_command_id command, bool brief, struct base_error *err)
{
    struct cli_values values = {
        .argument = {cli_command_table[command]->name}, .n_arguments = 1, .brief = brief};
    return cli_command_help.run(&values, err);
}

/* ---- Notes ---- */

static void note_variables(void)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    cli_options_unknown_variables(&names);
    if (names.size && !names.failed) cli_note("no variable of infer, ignored: %s", names.data);
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
    if (!cpu_check(err)) return false;
    if (argc > 1 && argv[1][0] != '-') {
        command = cli_command_find(argv[1]);
        first = 2;
        if (command == CLI_COMMAND_COUNT) {
            if (strcspn(argv[1], " \t\n") == strlen(argv[1]) && cli_command_is_near(argv[1]))
                return cli_command_unknown(argv[1], err);
            command = CLI_RUN; /* its prompt */
            first = 1;
        }
    } else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        values->brief = argv[1][1] == 'h';
        return cli_command_help.run(values, err);
    }
    if (!cli_options_parse(command, argc, argv, first, values, err)) {
        cli_options_name_source(values, err);
        return false;
    }
    if (values->help) return help_of(command, values->brief, err);
    if (values->version) return cli_command_version.run(values, err);
    note_variables();
    if (values->verbose) note_options(values);
    if (cli_gpu_open(values, err) && cli_command_table[command]->run(values, err)) return true;
    cli_options_name_source(values, err);
    return false;
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct cli_values values = {0};
    const bool ok = cli_system_init(&err) && run(argc, argv, &values, &err);
    cli_gpu_close(&values);
    cli_options_free(&values);
    if (ok) return BASE_OK;
    /* No message after Ctrl-C, or for a result that is not a failure (diff). */
    if (err.code != BASE_INTERRUPTED && err.code != BASE_OK) cli_report(&err);
    return err.code ? (int)err.code : BASE_FAILED;
}
