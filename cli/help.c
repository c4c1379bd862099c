/* cli/help.c: makes the texts of --help and -h from the options table, for the terminal's width (80
 * columns if standard output is none): words are not broken. */
#include "cli/options.h"
#include "cli/quantize_types.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include <stdio.h>
#include <string.h>

enum {
    WIDTH_MIN = 20,
    WIDTH_MAX = 100,
    INDENT = 2,
    NAMES = 14,         /* width of the column of commands, */
    LEFT = 30,          /* and of that of options */
    RIGHT_MIN = 30,     /* with less room for explanations they are below the names, */
    BELOW = 6,          /* indented by this */
    ABOUT_WIDTH = 80,   /* of the lists in the tables' texts */
    SCREEN = 20,        /* lines, without those after the options */
    BRIEF_COMMANDS = 13 /* number of options that -h describes; it only names the others */
};

/* ---- Layout ---- */

static size_t width_of_help(void)
{
    const size_t width = cli_stdout_width();
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Appends lines. `joins`: they are paragraphs, whose line ends are spaces, except before and after
 * a line that is empty or begins with a space. */
static void add_text(const char *text, bool joins, struct base_buffer *out)
{
    const size_t width = width_of_help();
    BASE_LOCAL_BUFFER one = BASE_BUFFER_INIT;
    while (*text) {
        const size_t size = strcspn(text, "\n");
        const bool alone = !joins || size == 0 || *text == ' ';
        base_buffer_clear(&one);
        base_buffer_add(&one, text, size);
        text += size + (text[size] == '\n');
        while (!alone && *text && *text != ' ' && *text != '\n') {
            const size_t more = strcspn(text, "\n");
            base_buffer_add_text(&one, " ");
            base_buffer_add(&one, text, more);
            text += more + (text[more] == '\n');
        }
        if (one.data) cli_show_wrapped(one.data, one.size, 0, *one.data == ' ' ? 4 : 0, width, out);
        out->failed |= one.failed;
    }
}

/* Appends a name and its explanation, in two columns if the terminal is wide enough and the name
 * fits; otherwise the explanation is below the name. */
static void add_pair(const char *name, const char *text, size_t left, struct base_buffer *out)
{
    const size_t width = width_of_help(), size = strlen(text);
    const bool wide = width >= left + RIGHT_MIN;
    if (!wide) name += strspn(name, " ");
    const size_t n = strlen(name);
    if (wide && INDENT + n < left) {
        base_buffer_add_format(out, "%*s%-*s ", INDENT, "", (int)left - INDENT - 1, name);
        cli_show_wrapped(text, size, left, left, width, out);
        return;
    }
    const size_t below = wide ? left : BELOW;
    base_buffer_add_format(out, "%*s", INDENT, "");
    cli_show_wrapped(name, n, INDENT, 2 * INDENT, width, out);
    base_buffer_add_format(out, "%*s", (int)below, "");
    cli_show_wrapped(text, size, below, below, width, out);
}

/* ---- The texts ---- */

/* Adds the names of the commands from index `first` on. */
static void add_names(int first, struct base_buffer *out)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    for (int i = first; i < CLI_COMMAND_COUNT; i++)
        base_buffer_add_format(&names, "%s%s", i > first ? " " : "", cli_command_table[i]->name);
    base_buffer_add_text(out, "  ");
    cli_show_wrapped(names.size ? names.data : "", names.size, 2, 2, width_of_help(), out);
    out->failed |= names.failed;
}

void cli_help_overview(bool brief, struct base_buffer *out)
{
    add_text("Usage: infer [COMMAND] [options]\n\n", false, out);
    if (!brief)
        add_text("Runs language models in GGUF files on this machine's processor.\n\nCommands:\n",
                 false, out);
    const int listed = brief ? BRIEF_COMMANDS : CLI_COMMAND_COUNT;
    for (int i = 0; i < listed; i++)
        add_pair(cli_command_table[i]->name, cli_command_table[i]->effect, NAMES, out);
    if (brief) {
        add_names(listed, out);
        add_text("\n  infer \"What is the capital of France?\"\n"
                 "\ninfer COMMAND -h: its main options; --help: all of them\n"
                 "infer help: all commands\n",
                 false, out);
        return;
    }
    add_text("\nExamples:\n"
             "  infer \"What is the capital of France?\"\n"
             "  git diff | infer -m model.gguf -p \"What does this change do?\" --temp 0\n"
             "  infer --raw -p \"The capital of France is\" -n 20\n"
             "  infer chat --system \"Be brief.\"\n"
             "  infer bench -m model.gguf --format json\n"
             "\n"
             "Standard output carries the result and nothing else; standard error carries one "
             "line when something failed (more with -v).\n"
             "Without -m: $INFER_MODEL, else the only model of `infer models`.\n"
             "Every option has an environment variable: --top-k is INFER_TOP_K. Options win.\n"
             "\n"
             "infer COMMAND --help lists a command's options; infer man is the whole manual;\n"
             "infer help coming-from: what options of llama.cpp, ollama and llm are here.\n\n"
             "Exit status:\n",
             false, out);
    for (size_t i = 0; i < cli_status_count; i++) {
        char status[16];
        snprintf(status, sizeof status, "%d", cli_status_table[i].status);
        add_pair(status, cli_status_table[i].meaning, NAMES, out);
    }
}

/* Appends a row of the table as Markdown; a test compares the table with docs/coming-from.md. */
static void add_foreign_row(const struct cli_foreign *f, struct base_buffer *out)
{
    base_buffer_add_text(out, "| `");
    for (const char *c = f->words; *c; c++)
        base_buffer_add(out, *c == ' ' ? "` `" : c, *c == ' ' ? 3 : 1);
    base_buffer_add_format(out, "` | %s%s%s%s%s |\n", f->here ? "`" : "", f->here ? f->here : "",
                           f->here ? "`" : "", f->here && f->note ? ": " : "",
                           f->note ? f->note : "");
}

void cli_help_foreign(bool markdown, struct base_buffer *out)
{
    const char *program = "";
    for (size_t i = 0; i < cli_foreign_count; i++) {
        const struct cli_foreign *f = &cli_foreign_table[i];
        char text[CLI_CLAUSE_SIZE];
        if (strcmp(f->program, program) != 0)
            base_buffer_add_format(out, markdown ? "%s| %s | here |\n|---|---|\n" : "%s%s:\n",
                                   i ? "\n" : "", f->program);
        program = f->program;
        snprintf(text, sizeof text, "%s%s%s", f->here ? f->here : "",
                 f->here && f->note ? ": " : "", f->note ? f->note : "");
        if (markdown)
            add_foreign_row(f, out);
        else
            add_pair(f->words, text, LEFT, out);
    }
}

static void add_option(const struct cli_option *o, struct base_buffer *out)
{
    char name[96], text[256];
    bool is_short = o->alias[0] && o->alias[0][1] != '-';
    snprintf(name, sizeof name, "%s%s--%s%s%s", is_short ? o->alias[0] : "    ",
             is_short ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
    snprintf(text, sizeof text, o->standard ? "%s [%s]" : "%s", o->help, o->standard);
    add_pair(name, text, LEFT, out);
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

/* Appends the possible values of TYPE. */
static void add_types(size_t width, struct base_buffer *out)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    for (size_t i = 0; cli_quantize_type_name(i); i++)
        base_buffer_add_format(&names, "%s%s", i ? " " : "", cli_quantize_type_name(i));
    base_buffer_add_text(out, " ");
    if (names.data) cli_show_wrapped(names.data, names.size, 1, 1, width, out);
    out->failed |= names.failed;
}

/* Returns whether an argument of the command is a type of quantize. */
static bool takes_type(enum cli_command_id command)
{
    const char *const *takes = cli_command_table[command]->takes;
    for (int i = 0; i < CLI_ARGUMENT_MAX && takes[i]; i++)
        if (strcmp(takes[i], "TYPE") == 0) return true;
    return false;
}

void cli_help_about(enum cli_command_id command, struct base_buffer *out)
{
    base_buffer_add_format(out, "%s\n", cli_command_table[command]->about);
    if (takes_type(command)) add_types(ABOUT_WIDTH, out);
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
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    base_buffer_add_format(&text, "\nAn absent option comes from its variable: --%s from %s.\n",
                           shown->name, name);
    add_text(text.data ? text.data : "", false, out);
    out->failed |= text.failed;
}

void cli_help_command(enum cli_command_id command, bool brief, struct base_buffer *out)
{
    const struct cli_command *c = cli_command_table[command];
    BASE_LOCAL_BUFFER all = BASE_BUFFER_INIT;
    base_buffer_add_text(out, "Usage: ");
    cli_show_wrapped(c->usage, strlen(c->usage), 7, 7, width_of_help(), out);
    base_buffer_add_text(out, "\n");
    add_text(c->about, true, out);
    if (takes_type(command)) add_types(width_of_help(), out);
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
}
