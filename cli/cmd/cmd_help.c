/* cli/cmd/cmd_help.c: `infer help`: the commands, a command's options, or words of other programs.
 */
#include "cli/options.h"
#include "cli/system.h"
#include <string.h>

static bool cmd_help(struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    bool ok = true;
    if (values->n_arguments == 0) {
        cli_help_overview(values->brief, &out);
    } else if (strcmp(values->argument[0], "coming-from") == 0) {
        cli_help_foreign(strcasecmp(values->format, "md") == 0, &out);
    } else {
        enum cli_command_id c = cli_command_find(values->argument[0]);
        if (c == CLI_COMMAND_COUNT)
            ok = cli_command_unknown(values->argument[0], err);
        else
            cli_help_command(c, values->brief, &out);
    }
    return ok && cli_write_buffer(&out, err);
}

const struct cli_command cli_command_help = {
    .name = "help",
    .usage = "infer help [COMMAND | coming-from]",
    .effect = "this text, or a command's options",
    .about = "Prints the list of commands, or a command's options; with coming-from what\n"
             "options of llama.cpp, ollama and llm are here.",
    .max_arguments = 1,
    .takes = {"COMMAND"},
    .run = cmd_help,
};
