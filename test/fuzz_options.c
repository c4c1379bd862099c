/* test/fuzz_options.c: a fuzz target: a command line and an environment. The first byte selects the
 * command; then lines follow: INFER_NAME=VALUE is a variable, any other line an argument. */
#include "cli/input.h"
#include "cli/options.h"
#include "test/fuzz.h"
#include <string.h>

enum { ARGUMENTS_MAX = 24, LINE_MAX_SIZE = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct cli_values values;
    char line[ARGUMENTS_MAX][LINE_MAX_SIZE], *argument[ARGUMENTS_MAX + 1];
    char variable[ARGUMENTS_MAX][LINE_MAX_SIZE];
    int n = 0, n_variables = 0;
    struct base_error err = BASE_ERROR_INIT;
    if (size == 0) return 0;
    const char *at = (const char *)bytes + 1, *const end = (const char *)bytes + size;
    while (at < end && n < ARGUMENTS_MAX && n_variables < ARGUMENTS_MAX) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        const size_t kept = length < LINE_MAX_SIZE ? length : LINE_MAX_SIZE - 1;
        memcpy(line[n], at, kept);
        line[n][kept] = '\0';
        at += length + 1;
        char *equals = strchr(line[n], '=');
        if (strncmp(line[n], "INFER_", 6) == 0 && equals) {
            *equals = '\0';
            if (setenv(line[n], equals + 1, 1) != 0) return 0;
            strcpy(variable[n_variables++], line[n]);
        } else {
            argument[n] = line[n];
            n++;
        }
    }
    argument[n] = NULL;
    values = (struct cli_values){0};
    const enum cli_command_id command = bytes[0] % CLI_COMMAND_COUNT;
    const bool ok = cli_options_parse(command, n, argument, 0, &values, &err);
    fuzz_check(ok, &err);
    if (!ok) cli_options_name_source(&values, &err);
    if (ok && values.prompt) {
        struct base_buffer out = BASE_BUFFER_INIT;
        cli_input_unescape(values.prompt, strlen(values.prompt), &out);
        base_buffer_free(&out);
    }
    cli_options_free(&values);
    for (int i = 0; i < n_variables; i++) unsetenv(variable[i]);
    return 0;
}
