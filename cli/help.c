/* cli/help.c: makes the texts of --help and -h from the options table: 80 columns, one line per
 * option. */
#include "cli/options.h"
#include "cli/quantize_types.h"
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 80,
    LEFT = 30,          /* width of the column of names */
    SCREEN = 20,        /* lines, without those after the options */
    BRIEF_COMMANDS = 13 /* number of options that -h describes; it only names the others */
};

/* Adds the names of the commands from index `first` on. */
static void add_names(int first, struct base_buffer *out)
{
    size_t column = WIDTH;
    for (int i = first; i < CLI_COMMAND_COUNT; i++) {
        const char *name = cli_command_table[i].name;
        const bool starts = column + 1 + strlen(name) > WIDTH;
        base_buffer_add_format(out, "%s%s%s",
                               !starts     ? " "
                               : i > first ? "\n"
                                           : "",
                               starts ? "  " : "", name);
        column = (starts ? 1 : column) + 1 + strlen(name);
    }
    base_buffer_add_text(out, "\n");
}

void cli_help_overview(bool brief, struct base_buffer *out)
{
    base_buffer_add_text(out, "Usage: infer [COMMAND] [options]\n\n");
    if (!brief)
        base_buffer_add_text(out,
                             "Runs language models in GGUF files on this machine's processor.\n"
                             "\nCommands:\n");
    const int listed = brief ? BRIEF_COMMANDS : CLI_COMMAND_COUNT;
    for (int i = 0; i < listed; i++)
        base_buffer_add_format(out, "  %-12s%s\n", cli_command_table[i].name,
                               cli_command_table[i].effect);
    if (brief) {
        add_names(listed, out);
        base_buffer_add_text(out, "\n  infer \"What is the capital of France?\"\n"
                                  "\ninfer COMMAND -h: its main options; --help: all of them\n"
                                  "infer help: all commands\n");
        return;
    }
    base_buffer_add_text(
        out, "\nExamples:\n"
             "  infer \"What is the capital of France?\"\n"
             "  git diff | infer -m model.gguf -p \"What does this change do?\" --temp 0\n"
             "  infer --raw -p \"The capital of France is\" -n 20\n"
             "  infer chat --system \"Be brief.\"\n"
             "  infer bench -m model.gguf --format json\n"
             "\n"
             "Standard output carries the result and nothing else; standard error carries one\n"
             "line when something failed (more with -v).\n"
             "Without -m: $INFER_MODEL, else the default model (infer-fetch-model).\n"
             "Every option has an environment variable: --top-k is INFER_TOP_K. Options win.\n"
             "\n"
             "infer COMMAND --help lists a command's options; infer man is the whole manual;\n"
             "infer help coming-from: what options of llama.cpp, ollama and llm are here.\n\n"
             "Exit status:\n");
    for (size_t i = 0; i < cli_status_count; i++)
        base_buffer_add_format(out, "  %-12d%s\n", cli_status_table[i].status,
                               cli_status_table[i].meaning);
}

/* A test compares this text with docs/coming-from.md. */
void cli_help_foreign(struct base_buffer *out)
{
    const char *program = "";
    for (size_t i = 0; i < cli_foreign_count; i++) {
        const struct cli_foreign *f = &cli_foreign_table[i];
        if (strcmp(f->program, program) != 0)
            base_buffer_add_format(out, "%s| %s | here |\n|---|---|\n", i ? "\n" : "", f->program);
        program = f->program;
        base_buffer_add_text(out, "| `");
        for (const char *c = f->words; *c; c++)
            base_buffer_add(out, *c == ' ' ? "` `" : c, *c == ' ' ? 3 : 1);
        base_buffer_add_format(out, "` | %s%s%s%s%s |\n", f->here ? "`" : "",
                               f->here ? f->here : "", f->here ? "`" : "",
                               f->here && f->note ? ": " : "", f->note ? f->note : "");
    }
}

static void add_option(const struct cli_option *o, struct base_buffer *out)
{
    char left[96];
    bool is_short = o->alias[0] && o->alias[0][1] != '-';
    snprintf(left, sizeof left, "  %s%s--%s%s%s", is_short ? o->alias[0] : "    ",
             is_short ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
    base_buffer_add_format(out, "%-*s %s", LEFT - 1, left, o->help);
    if (o->standard) base_buffer_add_format(out, " [%s]", o->standard);
    base_buffer_add_text(out, "\n");
}

static size_t add_options(enum cli_command_id command, bool brief, struct base_buffer *out)
{
    size_t n_left_out = 0;
    for (int group = 0; group < CLI_GROUP_COUNT; group++) {
        bool any = false;
        for (size_t i = 0; i < cli_option_count; i++) {
            const struct cli_option *o = &cli_option_table[i];
            if ((int)o->group != group || !cli_option_belongs(o, command)) continue;
            n_left_out += brief && !o->common;
            if (brief && !o->common) continue;
            if (!any && !brief) base_buffer_add_format(out, "\n%s:\n", cli_group_title[group]);
            any = true;
            add_option(o, out);
        }
    }
    return n_left_out;
}

void cli_help_about(enum cli_command_id command, struct base_buffer *out)
{
    size_t column = 0;
    base_buffer_add_format(out, "%s\n", cli_command_table[command].about);
    for (size_t i = 0; command == CLI_QUANTIZE && cli_quantize_type_name(i); i++) {
        const char *name = cli_quantize_type_name(i);
        if (column + 1 + strlen(name) > WIDTH) column = 0;
        base_buffer_add_format(out, column || i == 0 ? " %s" : "\n %s", name);
        column += 1 + strlen(name);
    }
    if (command == CLI_QUANTIZE) base_buffer_add_text(out, "\n");
}

static size_t count_lines(const struct base_buffer *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->size; i++) n += text->data[i] == '\n';
    return n;
}

/* Adds the line about variables, with an option of the command. */
static void add_variable(enum cli_command_id command, struct base_buffer *out)
{
    const struct cli_option *shown = NULL;
    char name[CLI_VARIABLE_SIZE];
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (cli_option_belongs(o, command) && cli_option_has_variable(o) &&
            (!shown || (!shown->value && o->value)))
            shown = o;
    }
    if (!shown) return;
    cli_option_variable(shown, name);
    base_buffer_add_format(out, "\nAn absent option comes from its variable: --%s from %s.\n",
                           shown->name, name);
}

void cli_help_command(enum cli_command_id command, bool brief, struct base_buffer *out)
{
    const struct cli_command *c = &cli_command_table[command];
    struct base_buffer all = BASE_BUFFER_INIT;
    base_buffer_add_format(out, "Usage: %s\n\n", c->usage);
    cli_help_about(command, out);
    add_options(command, false, &all);
    if (brief && count_lines(out) + count_lines(&all) > SCREEN) {
        base_buffer_add_text(out, "\n");
        const size_t n = add_options(command, true, out);
        base_buffer_add_format(out, "\n%zu more: infer %s --help\n", n, c->name);
    } else {
        base_buffer_add(out, all.data, all.size);
        add_variable(command, out);
    }
    out->failed |= all.failed;
    base_buffer_free(&all);
}
