/* cli/cmd/cmd_man.c: `infer man`: the manual page, man(7) source made from the tables of commands
 * and options. `make install` installs its output in share/man. */
#include "cli/options.h"
#include "cli/system.h"
#include <ctype.h>
#include <string.h>

/* Appends text as roff, with escapes for characters that are special there or at the beginning of
 * lines. */
static void add_roff(struct base_buffer *out, const char *text, size_t size)
{
    static const char *const escapes[] = {"\\\\e",   "-\\-",   "'\\(aq", "`\\(ga",
                                          "\"\\(dq", "^\\(ha", "~\\(ti"};
    for (const char *c = text; c < text + size; c++) {
        const char *escape = NULL;
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            if (*c == escapes[i][0]) escape = escapes[i] + 1;
        if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n'))
            base_buffer_add_text(out, "\\&");
        base_buffer_add(out, escape ? escape : c, escape ? strlen(escape) : 1);
    }
}

/* Appends lines that begin with spaces unchanged, and the others as one paragraph. */
static void add_paragraph(struct base_buffer *out, const char *text)
{
    bool literal = false;
    while (*text) {
        const size_t size = strcspn(text, "\n");
        if ((*text == ' ') != literal) {
            literal = !literal;
            base_buffer_add_text(out, literal ? ".nf\n" : ".fi\n");
        }
        add_roff(out, text, size);
        base_buffer_add_text(out, "\n");
        text += size + (text[size] == '\n');
    }
    if (literal) base_buffer_add_text(out, ".fi\n");
}

static void add_commands(struct base_buffer *out)
{
    base_buffer_add_text(out, ".SH COMMANDS\n");
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) {
        const struct cli_command *c = cli_command_table[i];
        base_buffer_add_text(out, ".TP\n.B ");
        add_roff(out, c->usage, strlen(c->usage));
        base_buffer_add_text(out, "\n");
        BASE_LOCAL_BUFFER about = BASE_BUFFER_INIT;
        cli_help_about((enum cli_command_id)i, &about);
        add_paragraph(out, about.data ? about.data : "");
        out->failed |= about.failed;
    }
}

static void add_option(struct base_buffer *out, const struct cli_option *o)
{
    char variable[CLI_VARIABLE_SIZE];
    base_buffer_add_text(out, ".TP\n");
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++) {
        base_buffer_add_text(out, "\\fB");
        add_roff(out, o->alias[i], strlen(o->alias[i]));
        base_buffer_add_text(out, "\\fR, ");
    }
    base_buffer_add_text(out, "\\fB\\-\\-");
    add_roff(out, o->name, strlen(o->name));
    base_buffer_add_text(out, o->value ? "\\fR \\fI" : "\\fR");
    if (o->value) add_roff(out, o->value, strlen(o->value));
    base_buffer_add_text(out, o->value ? "\\fR\n" : "\n");
    add_roff(out, o->help, strlen(o->help));
    if (o->choices) {
        base_buffer_add_text(out, "; one of ");
        for (const char *c = o->choices; *c; c++)
            base_buffer_add(out, *c == '|' ? ", " : c, *c == '|' ? 2 : 1);
    }
    if (o->standard) {
        base_buffer_add_text(out, " (default ");
        add_roff(out, o->standard, strlen(o->standard));
        base_buffer_add_text(out, ")");
    }
    base_buffer_add_text(out, ".\nCommands:");
    const char *before = " ";
    for (int c = 0; c < CLI_COMMAND_COUNT; c++) {
        if (!cli_option_belongs(o, (enum cli_command_id)c)) continue;
        base_buffer_add_format(out, "%s%s", before, cli_command_table[c]->name);
        before = ", ";
    }
    base_buffer_add_text(out, ".\n");
    if (!cli_option_has_variable(o)) return;
    cli_option_variable(o, variable);
    base_buffer_add_format(out, "Variable: %s.\n", variable);
}

static void add_options(struct base_buffer *out)
{
    base_buffer_add_text(out, ".SH OPTIONS\n"
                              "A value follows its option as the next word, or after an equals "
                              "sign when the option has two dashes.\n"
                              ".B \\-\\-\nends the options.\n");
    for (int group = 0; group < CLI_GROUP_COUNT; group++) {
        base_buffer_add_format(out, ".SS %s\n", cli_group_title[group]);
        for (size_t i = 0; i < cli_option_count; i++) {
            const struct cli_option *o = &cli_option_table[i];
            if ((int)o->group == group) add_option(out, o);
        }
    }
}

static const char head[] =
    ".SH NAME\ninfer \\- run language models in GGUF files on the processor\n"
    ".SH SYNOPSIS\n.B infer\n[\\fICOMMAND\\fR] [\\fIoptions\\fR]\n.br\n"
    ".B infer\n.I TEXT\n[\\fIoptions\\fR]\n"
    ".SH DESCRIPTION\n"
    "Runs language models in GGUF files on the processor of this machine.\n"
    "Standard output has only the result; standard error has one line when something failed.\n"
    "The same command writes the same bytes each time.\n"
    "Without a command, infer is\n.BR \"infer run\" .\n"
    ".SH EXAMPLES\n.nf\n"
    "infer \"What is the capital of France?\"\n"
    "git diff | infer \\-m model.gguf \\-p \"What does this change do?\" \\-\\-temp 0\n"
    "infer \\-\\-raw \\-p \"The capital of France is\" \\-n 20\n"
    "infer batch \\-\\-lines < questions.txt\n"
    "infer chat \\-\\-system \"Be brief.\"\n"
    "infer bench \\-m model.gguf \\-\\-format json\n"
    ".fi\n";

static const char tail[] =
    ".SH ENVIRONMENT\n"
    "Every option but \\-\\-help and \\-\\-version has a variable, named with it above, for its "
    "value. An option on the command line,\n"
    "and one that contradicts it there, override the variable. An empty variable counts as "
    "absent;\n"
    "a wrong value is a usage error that names the variable. Flags are\n"
    ".BR on \" or \" off .\n"
    ".TP\n.B INFER_MODEL\nThe model that is used without\n.BR \\-m .\n"
    ".TP\n.B XDG_DATA_HOME\nWhere models are (otherwise ~/.local/share).\n"
    ".TP\n.B XDG_CACHE_HOME\nWhere the prefix cache and hashes are (otherwise ~/.cache).\n"
    ".TP\n.B XDG_STATE_HOME\nWhere the history of chats is (otherwise ~/.local/state).\n"
    ".TP\n.B NO_COLOR\nIf it is not empty, there is no colour.\n"
    ".TP\n.B HF_TOKEN\nThe token that\n.B infer pull\nsends to the hub.\n"
    ".SH FILES\n"
    ".TP\n.I $XDG_DATA_HOME/infer/models/\nThe default model, and the folder of\n"
    ".BR \"infer models\" .\n"
    ".TP\n.I $XDG_CACHE_HOME/infer/prefix/\nEvaluated prompts, with\n.BR \"\\-\\-cache auto\" .\n"
    ".TP\n.I $XDG_CACHE_HOME/infer/sha256/\nHashes of model files.\n"
    ".TP\n.I $XDG_STATE_HOME/infer/history\nLines typed in\n.BR \"infer chat\" .\n"
    ".SH SEE ALSO\nThe contract with scripts is docs/scripting.md.\n.B infer help coming\\-from\n"
    "lists options of llama.cpp, ollama and llm and their names here.\n";

static void add_page(struct base_buffer *out)
{
    base_buffer_add_text(out, ".\\\" Made by `infer man` from the table of options.\n"
                              ".TH INFER 1 \"" INFER_RELEASED "\" \"infer " INFER_VERSION
                              "\" \"User Commands\"\n");
    base_buffer_add_text(out, head);
    add_commands(out);
    add_options(out);
    base_buffer_add_text(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < cli_status_count; i++) {
        const char *text = cli_status_table[i].meaning;
        base_buffer_add_format(out, ".TP\n.B %d\n%c", cli_status_table[i].status,
                               toupper((unsigned char)*text));
        add_roff(out, text + 1, strlen(text + 1));
        base_buffer_add_text(out, ".\n");
    }
    base_buffer_add_text(out, tail);
}

static bool cmd_man(struct cli_values *values, struct base_error *err)
{
    (void)values;
    BASE_LOCAL_BUFFER page = BASE_BUFFER_INIT;
    add_page(&page);
    return cli_write_buffer(&page, err);
}

const struct cli_command cli_command_man = {
    .name = "man",
    .usage = "infer man",
    .effect = "print the manual page (infer man | man -l -)",
    .about = "Prints the manual page as roff source: infer man | man -l -",
    .run = cmd_man,
};
