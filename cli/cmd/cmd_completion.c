/* cli/cmd/cmd_completion.c: `infer completion`: completion scripts for bash, zsh and fish, made
 * from the tables of commands and options.
 *
 * Each script is self-contained: it runs no program while the user types and uses only functions of
 * the shell. Names of models are the short ones of the files in the user's folder, as `infer
 * models` shows them. */
#include "cli/options.h"
#include "cli/quantize_types.h"
#include "cli/system.h"
#include "text/chat/chat_formats.h"
#include <string.h>

/* ---- Reading the tables ---- */

static void add_words(struct base_buffer *out, const char *choices)
{
    for (const char *c = choices; c && *c; c++) base_buffer_add(out, *c == '|' ? " " : c, 1);
}

/* Adds the words of an argument: choices, or the names of types. */
static void add_argument_words(struct base_buffer *out, const char *takes)
{
    if (strcmp(takes, "TYPE") != 0) {
        add_words(out, takes);
        return;
    }
    for (size_t i = 0; cli_quantize_type_name(i); i++)
        base_buffer_add_format(out, "%s%s", i ? " " : "", cli_quantize_type_name(i));
}

/* Returns whether the option takes the name of a model. */
static bool takes_model(const struct cli_option *o)
{
    return o->at == offsetof(struct cli_values, model) ||
           o->at == offsetof(struct cli_values, models) ||
           o->at == offsetof(struct cli_values, draft);
}

/* Returns whether words can complete an option's value. */
static bool has_words(const struct cli_option *o)
{
    return o->kind == CLI_CHOICE || o->at == CLI_REQUEST_AT(chat.template) || takes_model(o);
}

static void add_value_words(struct base_buffer *out, const struct cli_option *o)
{
    add_words(out, o->choices);
    if (o->at != CLI_REQUEST_AT(chat.template)) return;
    for (size_t i = 0; text_chat_format_name(i); i++)
        base_buffer_add_format(out, "%s%s", i ? " " : "", text_chat_format_name(i));
}

static void add_spellings(struct base_buffer *out, const struct cli_option *o)
{
    base_buffer_add_format(out, " --%s", o->name);
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++)
        base_buffer_add_format(out, " %s", o->alias[i]);
}

static void add_command_names(struct base_buffer *out, const char *between)
{
    for (int i = 0; i < CLI_COMMAND_COUNT; i++)
        base_buffer_add_format(out, "%s%s", i ? between : "", cli_command_table[i]->name);
}

/* Appends text for single quotes of a shell: every quote as '\'' , and characters of `escaped` with
 * a backslash before them. */
static void add_quoted(struct base_buffer *out, const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'') {
            base_buffer_add_text(out, "'\\''");
            continue;
        }
        if (strchr(escaped, *text)) base_buffer_add_text(out, "\\");
        base_buffer_add(out, text, 1);
    }
}

/* ---- bash ---- */

static const char bash_head[] =
    "# bash completion for infer; made by `infer completion bash`\n"
    "_infer_model_names() {\n"
    "    local file name names=''\n"
    "    for file in \"${XDG_DATA_HOME:-$HOME/.local/share}\"/infer/models/*.gguf; do\n"
    "        name=${file##*/} name=${name%.gguf}\n"
    "        case $name in\n"
    "        \\*|*[[:space:]]*) continue ;;\n"
    "        *-00001-of-[0-9][0-9][0-9][0-9][0-9]) name=${name%-00001-of-*} ;;\n"
    "        *-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]) continue ;;\n"
    "        esac\n"
    "        names+=\" $name\"\n"
    "    done\n"
    "    values+=$names\n"
    "}\n"
    "_infer() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command=run at=1 n=0 i options taking files values='' kind='' arguments=()\n"
    "    # --name=value comes as three words\n"
    "    if [[ $word == '=' ]]; then word=''\n"
    "    elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    COMPREPLY=()\n";

static const char bash_tail[] =
    "    esac\n"
    "    if [[ \" $files \" == *\" $before \"* ]]; then kind=FILE\n"
    "    elif [[ -n $values ]]; then :\n"
    "    elif [[ \" $taking \" == *\" $before \"* ]]; then return\n"
    "    elif [[ $word == -* ]]; then values=$options\n"
    "    else\n"
    "        for ((i = at; i < COMP_CWORD; i++)); do\n"
    "            if [[ \" $taking \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "                i=$((i + 1))\n"
    "                [[ ${COMP_WORDS[i]} != '=' ]] || i=$((i + 1))\n"
    "            elif [[ ${COMP_WORDS[i]} != -* ]]; then n=$((n + 1)); fi\n"
    "        done\n"
    "        values=${arguments[n]-}\n"
    "        case $values in\n"
    "        FILE|FOLDER) kind=$values values='' ;;\n"
    "        '') values=$options ;;\n"
    "        esac\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
    "    if [[ -n $kind ]]; then\n"
    "        local IFS=$'\\n' what=-f\n"
    "        [[ $kind == FILE ]] || what=-d\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY+=($(compgen $what -- \"$word\"))\n"
    "    fi\n"
    "}\n"
    "complete -F _infer infer\n";

/* Lists of spellings of the command's options: all, those with a value, those with a file name. */
enum list { LIST_ALL, LIST_TAKING, LIST_FILES };

static void bash_list(struct base_buffer *out, enum cli_command_id command, const char *name,
                      enum list list)
{
    base_buffer_add_format(out, "        %s='", name);
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!cli_option_belongs(o, command) || (list == LIST_TAKING && o->kind == CLI_FLAG) ||
            (list == LIST_FILES && !cli_option_takes_file(o)))
            continue;
        add_spellings(out, o);
    }
    base_buffer_add_text(out, "'\n");
}

static void bash_values(struct base_buffer *out, enum cli_command_id command)
{
    base_buffer_add_text(out, "        case $before in\n");
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!cli_option_belongs(o, command) || !has_words(o)) continue;
        base_buffer_add_format(out, "        --%s", o->name);
        for (int a = 0; a < CLI_ALIAS_MAX && o->alias[a]; a++)
            base_buffer_add_format(out, "|%s", o->alias[a]);
        base_buffer_add_text(out, ") values='");
        add_value_words(out, o);
        base_buffer_add_text(out, takes_model(o) ? "'; _infer_model_names ;;\n" : "' ;;\n");
    }
    base_buffer_add_text(out, "        esac\n");
}

static void bash_arguments(struct base_buffer *out, enum cli_command_id command)
{
    base_buffer_add_text(out, "        arguments=(");
    for (int i = 0; i < CLI_ARGUMENT_MAX && cli_command_table[command]->takes[i]; i++) {
        const char *takes = cli_command_table[command]->takes[i];
        base_buffer_add_text(out, i ? " '" : "'");
        if (strcmp(takes, "COMMAND") == 0)
            add_command_names(out, " ");
        else
            add_argument_words(out, takes);
        base_buffer_add_text(out, "'");
    }
    base_buffer_add_text(out, ")\n        ;;\n");
}

static void add_bash(struct base_buffer *out)
{
    base_buffer_add_text(out, bash_head);
    base_buffer_add_text(out, "    if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then\n"
                              "        COMPREPLY=($(compgen -W '");
    add_command_names(out, " ");
    base_buffer_add_text(out, "' -- \"$word\"))\n        return\n    fi\n"
                              "    case ${COMP_WORDS[1]} in\n    ");
    add_command_names(out, "|");
    base_buffer_add_text(out, ") command=${COMP_WORDS[1]} at=2 ;;\n    esac\n"
                              "    case $command in\n");
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) {
        const enum cli_command_id c = (enum cli_command_id)i;
        base_buffer_add_format(out, "    %s)\n", cli_command_table[c]->name);
        bash_list(out, c, "options", LIST_ALL);
        bash_list(out, c, "taking", LIST_TAKING);
        bash_list(out, c, "files", LIST_FILES);
        bash_values(out, c);
        bash_arguments(out, c);
    }
    base_buffer_add_text(out, bash_tail);
}

/* ---- zsh ---- */

/* Appends the action of _arguments for a value or an argument. */
static void zsh_action(struct base_buffer *out, const char *takes, bool is_file)
{
    if (is_file) {
        base_buffer_add_text(out, "_files");
    } else if (takes && strcmp(takes, "FOLDER") == 0) {
        base_buffer_add_text(out, "_files -/");
    } else if (takes && strcmp(takes, "COMMAND") == 0) {
        base_buffer_add_text(out, "_infer_commands");
    } else if (takes) {
        base_buffer_add_text(out, "(");
        add_argument_words(out, takes);
        base_buffer_add_text(out, ")");
    } else {
        base_buffer_add_text(out, " ");
    }
}

static void zsh_option(struct base_buffer *out, const struct cli_option *o)
{
    const char *value_mark = o->kind == CLI_FLAG ? "" : "=";
    base_buffer_add_text(out, " \\\n        ");
    if (o->kind == CLI_LIST) {
        base_buffer_add_text(out, "'*'");
    } else if (o->alias[0]) {
        base_buffer_add_text(out, "'(");
        add_spellings(out, o);
        base_buffer_add_text(out, ")'");
    }
    base_buffer_add_text(out, o->alias[0] ? "{" : "");
    base_buffer_add_format(out, "--%s%s", o->name, value_mark);
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++)
        base_buffer_add_format(out, ",%s%s", o->alias[i], o->alias[i][1] == '-' ? value_mark : "");
    base_buffer_add_text(out, o->alias[0] ? "}'[" : "'[");
    add_quoted(out, o->help, "[]\\");
    base_buffer_add_text(out, "]");
    if (o->kind != CLI_FLAG) {
        base_buffer_add_text(out, ":");
        add_quoted(out, o->value, ":\\");
        base_buffer_add_text(out, ":");
        if (cli_option_takes_file(o) && has_words(o))
            base_buffer_add_format(out, "_infer_value_%s", o->name);
        else
            zsh_action(out, o->choices, cli_option_takes_file(o));
    }
    base_buffer_add_text(out, "'");
}

/* Appends a function as the action of a value that is a word or a file. */
static void zsh_value(struct base_buffer *out, const struct cli_option *o)
{
    if (!cli_option_takes_file(o) || !has_words(o)) return;
    base_buffer_add_format(out, "_infer_value_%s() {\n    _alternative 'files:file:_files'",
                           o->name);
    if (o->at != offsetof(struct cli_values, model)) {
        base_buffer_add_text(out, " 'names:name:(");
        add_value_words(out, o);
        base_buffer_add_text(out, ")'");
    }
    if (takes_model(o)) base_buffer_add_text(out, " 'models:model:_infer_model_names'");
    base_buffer_add_text(out, "\n}\n");
}

static void zsh_command(struct base_buffer *out, enum cli_command_id command)
{
    base_buffer_add_format(out, "_infer_%s() {\n    _arguments -S",
                           cli_command_table[command]->name);
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_belongs(&cli_option_table[i], command))
            zsh_option(out, &cli_option_table[i]);
    for (int i = 0; i < CLI_ARGUMENT_MAX && cli_command_table[command]->takes[i]; i++) {
        const char *takes = cli_command_table[command]->takes[i];
        base_buffer_add_format(out, " \\\n        '%d:argument:", i + 1);
        zsh_action(out, takes, strcmp(takes, "FILE") == 0);
        base_buffer_add_text(out, "'");
    }
    base_buffer_add_text(out, "\n}\n");
}

static void add_zsh(struct base_buffer *out)
{
    base_buffer_add_text(out, "#compdef infer\n"
                              "# zsh completion for infer; made by `infer completion zsh`\n"
                              "_infer_commands() {\n    local -a commands\n    commands=(\n");
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) {
        base_buffer_add_format(out, "        '%s:", cli_command_table[i]->name);
        add_quoted(out, cli_command_table[i]->effect, ":\\");
        base_buffer_add_text(out, "'\n");
    }
    base_buffer_add_text(
        out, "    )\n    _describe command commands\n}\n"
             "_infer_model_names() {\n"
             "    local -a names\n"
             "    names=(${XDG_DATA_HOME:-$HOME/.local/share}/infer/models/*.gguf(N:t:r))\n"
             "    names=(${names:#*-0000[2-9]-of-?????})\n"
             "    names=(${names:#*-000[1-9]?-of-?????})\n"
             "    names=(${names%-00001-of-?????})\n"
             "    compadd -a names\n}\n");
    for (size_t i = 0; i < cli_option_count; i++) zsh_value(out, &cli_option_table[i]);
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) zsh_command(out, (enum cli_command_id)i);
    base_buffer_add_text(out, "_infer() {\n"
                              "    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
                              "        _infer_commands\n        return\n    fi\n"
                              "    local command=run\n    case $words[2] in\n    ");
    add_command_names(out, "|");
    base_buffer_add_text(out, ") command=$words[2]; shift words; ((CURRENT--)) ;;\n    esac\n"
                              "    _infer_$command\n}\n"
                              /* If it is loaded from $fpath, the file itself is the function. */
                              "if [[ $funcstack[1] == _infer ]]; then _infer \"$@\"\n"
                              "else compdef _infer infer; fi\n");
}

/* ---- fish ---- */

static void fish_option(struct base_buffer *out, const struct cli_option *o)
{
    base_buffer_add_text(out, "complete -c infer -n '__infer_in");
    for (int c = 0; c < CLI_COMMAND_COUNT; c++)
        if (cli_option_belongs(o, (enum cli_command_id)c))
            base_buffer_add_format(out, " %s", cli_command_table[c]->name);
    base_buffer_add_format(out, "' -l %s", o->name);
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++) {
        const char *name = o->alias[i] + 1;
        const char *kind = *name == '-' ? "-l" : name[1] == '\0' ? "-s" : "-o";
        base_buffer_add_format(out, " %s %s", kind, name + (*name == '-'));
    }
    if (cli_option_takes_file(o)) {
        base_buffer_add_text(out, " -r -F");
    } else if (o->kind != CLI_FLAG) {
        base_buffer_add_text(out, " -x");
    }
    if (has_words(o)) {
        base_buffer_add_text(out, " -a '");
        add_value_words(out, o);
        base_buffer_add_text(out, takes_model(o) ? " (__infer_model_names)'" : "'");
    }
    base_buffer_add_text(out, " -d '");
    for (const char *c = o->help; *c; c++) { /* fish interprets \' and \\ inside single quotes */
        if (*c == '\'' || *c == '\\') base_buffer_add_text(out, "\\");
        base_buffer_add(out, c, 1);
    }
    base_buffer_add_text(out, "'\n");
}

static void fish_arguments(struct base_buffer *out, enum cli_command_id command)
{
    const char *takes = NULL;
    bool files = false;
    /* fish does not count arguments: it offers all kinds of a command's arguments for each of
     * them. */
    for (int i = 0; i < CLI_ARGUMENT_MAX && cli_command_table[command]->takes[i]; i++) {
        takes = cli_command_table[command]->takes[i];
        files |= strcmp(takes, "FILE") == 0;
        if (i > 0 && strcmp(takes, cli_command_table[command]->takes[i - 1]) == 0) continue;
        base_buffer_add_format(out, "complete -c infer -n '__infer_in %s'",
                               cli_command_table[command]->name);
        if (strcmp(takes, "FILE") == 0) {
            base_buffer_add_text(out, " -F\n");
            continue;
        }
        base_buffer_add_text(out, " -a '");
        if (strcmp(takes, "FOLDER") == 0)
            base_buffer_add_text(out, "(__fish_complete_directories)");
        else if (strcmp(takes, "COMMAND") == 0)
            add_command_names(out, " ");
        else
            add_argument_words(out, takes);
        base_buffer_add_text(out, files ? "' -F\n" : "'\n");
    }
}

static void add_fish(struct base_buffer *out)
{
    base_buffer_add_text(out, "# fish completion for infer; made by `infer completion fish`\n"
                              "function __infer_in\n"
                              "    set -l words (commandline -opc)\n"
                              "    set -l command run\n"
                              "    if set -q words[2]; and contains -- $words[2] ");
    add_command_names(out, " ");
    base_buffer_add_text(out,
                         "\n        set command $words[2]\n    end\n"
                         "    contains -- $command $argv\nend\n"
                         "function __infer_model_names\n"
                         "    set -l data $XDG_DATA_HOME\n"
                         "    test -n \"$data\"; or set data $HOME/.local/share\n"
                         "    for file in $data/infer/models/*.gguf\n"
                         "        string match -qr -- '-\\d{5}-of-\\d{5}\\.gguf$' $file; and not "
                         "string match -qr -- '-00001-of-' $file; and continue\n"
                         "        string replace -r '(-00001-of-\\d{5})?\\.gguf$' '' (string "
                         "replace -r '.*/' '' $file)\n"
                         "    end\nend\n"
                         "function __infer_first\n"
                         "    test (count (commandline -opc)) -eq 1\nend\n"
                         "complete -c infer -f\n");
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) {
        base_buffer_add_format(out, "complete -c infer -n __infer_first -a %s -d '",
                               cli_command_table[i]->name);
        add_quoted(out, cli_command_table[i]->effect, "");
        base_buffer_add_text(out, "'\n");
    }
    for (size_t i = 0; i < cli_option_count; i++) fish_option(out, &cli_option_table[i]);
    for (int i = 0; i < CLI_COMMAND_COUNT; i++) fish_arguments(out, (enum cli_command_id)i);
}

/* ---- The command ---- */

static bool cmd_completion(const struct cli_values *values, struct base_error *err)
{
    static const struct {
        const char *shell;
        void (*add)(struct base_buffer *out);
    } shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};
    const char *wanted = values->argument[0];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(wanted, shells[i].shell) != 0) continue;
        struct base_buffer out = BASE_BUFFER_INIT;
        shells[i].add(&out);
        const bool ok = cli_write_buffer(&out, err);
        base_buffer_free(&out);
        return ok;
    }
    return base_fail_at(err, BASE_USAGE, wanted, -1, "is none of bash, zsh and fish");
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .usage = "infer completion bash|zsh|fish",
    .effect = "print a script that completes commands and options",
    .about = "Prints a completion script. `make install` puts it in place; without it:\n"
             "  bash  source <(infer completion bash)\n"
             "  zsh   source <(infer completion zsh)\n"
             "  fish  infer completion fish | source",
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = {"bash|zsh|fish"},
    .run = cmd_completion,
};
