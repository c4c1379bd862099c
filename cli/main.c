/* cli/main.c: finds the command, parses its options, runs it, reports, exits. The only place that
 * ends the process. */
#include "cli/commands.h"
#include "cli/system.h"
#include <string.h>

static bool fail_command(const char *word, struct base_error *err)
{
    const char *names[CLI_COMMAND_COUNT];
    const struct cli_foreign *foreign = cli_foreign_find(word, strlen(word));
    if (foreign) {
        char says[CLI_CLAUSE_SIZE];
        cli_foreign_say(foreign, says, sizeof says);
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; %s", says);
    }
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) names[i] = cli_command_table[i].name;
    const char *near = cli_nearest(word, names, CLI_COMMAND_COUNT);
    if (near)
        return base_fail_at(err, BASE_USAGE, word, -1, "unknown command; did you mean %s?", near);
    return base_fail_at(err, BASE_USAGE, word, -1,
                        "unknown command (a text is given with -p); see infer --help");
}

bool cli_cmd_help(const struct cli_values *values, struct base_error *err)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    bool ok = true;
    if (values->n_arguments == 0) {
        cli_help_overview(&out);
    } else if (strcmp(values->argument[0], "coming-from") == 0) {
        cli_help_foreign(&out);
    } else {
        enum cli_command_id c = cli_command_find(values->argument[0]);
        if (c == CLI_COMMAND_COUNT)
            ok = fail_command(values->argument[0], err);
        else
            cli_help_command(c, &out);
    }
    ok = ok && cli_write_buffer(&out, err);
    base_buffer_free(&out);
    return ok;
}

static bool help_of(enum cli_command_id command, struct base_error *err)
{
    struct cli_values values = {.argument = {cli_command_table[command].name}, .n_arguments = 1};
    return cli_cmd_help(&values, err);
}

static bool run(int argc, char **argv, struct base_error *err)
{
    struct cli_values values = {0};
    enum cli_command_id command = CLI_RUN;
    int first = 1;
    if (argc > 1 && argv[1][0] != '-') {
        command = cli_command_find(argv[1]);
        first = 2;
        if (command == CLI_COMMAND_COUNT) return fail_command(argv[1], err);
    } else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return cli_cmd_help(&values, err);
    } else if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        return cli_cmd_version(&values, err);
    }
    if (!cli_options_parse(command, argc, argv, first, &values, err)) return false;
    if (values.help) return help_of(command, err);
    if (cli_command_table[command].run(&values, err)) return true;
    cli_options_name_variable(&values, err);
    return false;
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    cli_system_init();
    if (run(argc, argv, &err)) return BASE_OK;
    /* Who pressed Ctrl-C knows. */
    if (err.code != BASE_INTERRUPTED) cli_report(&err);
    return err.code ? (int)err.code : BASE_FAILED;
}
