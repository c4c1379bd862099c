/* cli/cmd/cmd_version.c: `infer version`: version, commit and build of this program. */
#include "cli/options.h"
#include "cli/system.h"
#include "quant/quant.h"
#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

/* The commit of the build: the Makefile sets it in a checkout. */
#ifndef CLI_COMMIT
#define CLI_COMMIT ""
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void add_levels(struct base_buffer *out)
{
    const enum cpu_level best = cpu_level_best();
    base_buffer_add_format(out, ",\"level\":\"%s\",\"levels\":[", cpu_level_name(best));
    for (int l = 0; l < CPU_LEVEL_COUNT; l++)
        if (cpu_level_built((enum cpu_level)l))
            base_buffer_add_format(out, "%s\"%s\"", l ? "," : "",
                                   cpu_level_name((enum cpu_level)l));
    base_buffer_add_text(out, "]");
}

static void add_json(struct base_buffer *out)
{
    char pcre2[64] = "";
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof pcre2)
        pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    base_buffer_add_text(out, "{");
    base_buffer_add_string(out, "version", INFER_VERSION);
    base_buffer_add_string(out, "commit", CLI_COMMIT);
    base_buffer_add_string(out, "compiler", COMPILER);
    add_levels(out);
    base_buffer_add_text(out, ",\"libraries\":{");
    base_buffer_add_string(out, "pcre2", pcre2);
    base_buffer_add_string(out, "utf8proc", utf8proc_version());
    base_buffer_add_string(out, "jansson", jansson_version_str());
    base_buffer_add_text(out, "}}\n");
}

static bool cmd_version(struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    if (values->json)
        add_json(&out);
    else
        base_buffer_add_text(&out, "infer " INFER_VERSION "\n");
    return cli_write_buffer(&out, err);
}

const struct cli_command cli_command_version = {
    .name = "version",
    .usage = "infer version [--json]",
    .effect = "print the version",
    .about = "Prints the version; with --json also the source and the tools of the build.",
    .run = cmd_version,
};
