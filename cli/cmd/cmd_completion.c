/* cli/cmd/cmd_completion.c: `infer completion`: scripts for bash, zsh and fish, which call
 * `infer completion words -- WORD..` while the user types, and the words that it offers, from the
 * tables of commands and options. Names of models are those of `infer models`. */
#include "cli/commands.h"
#include "cli/hub_name.h"
#include "cli/model_path.h"
#include "cli/quantize_types.h"
#include "cli/system.h"
#include "text/chat/chat_formats.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Scripts ---- */

static const char bash[] =
    "# bash completion for infer; made by `infer completion bash`\n"
    "_infer() {\n"
    "    local line typed=${COMP_WORDS[COMP_CWORD]} IFS=$'\\n'\n"
    "    [[ $typed != '=' ]] || typed=''\n"
    "    COMPREPLY=()\n"
    "    while read -r line; do\n"
    "        case $line in\n"
    "        :file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- \"$typed\")) ;;\n"
    "        :folder) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- \"$typed\")) "
    ";;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]/#\\~/$HOME}\" completion words -- \\\n"
    "        \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _infer infer\n";

static const char zsh[] =
    "#compdef infer\n"
    "# zsh completion for infer; made by `infer completion zsh`\n"
    "_infer() {\n"
    "    local line\n"
    "    local -a found\n"
    "    [[ $words[CURRENT] == --*=* ]] && compset -P '*='\n"
    "    for line in ${(f)\"$(${~words[1]} completion words -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)\"}; do\n"
    "        case $line in\n"
    "        :file) _files ;;\n"
    "        :folder) _files -/ ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    _describe infer found\n"
    "}\n"
    /* If it is loaded from $fpath, the file itself is the function. */
    "if [[ $funcstack[1] == _infer ]]; then _infer \"$@\"\n"
    "else compdef _infer infer; fi\n";

static const char fish[] =
    "# fish completion for infer; made by `infer completion fish`\n"
    "function __infer_words\n"
    "    set -l typed (commandline -ct)\n"
    "    set -l words (commandline -opc) \"$typed\"\n"
    "    set -l lead (string match -r -- '^--[^=]*=' \"$typed\")\n"
    "    set -l rest (string replace -r -- '^--[^=]*=' '' \"$typed\")\n"
    "    set -l program (string replace -r '^~' $HOME $words[1])\n"
    "    for line in (command $program completion words -- $words[2..-1] 2>/dev/null)\n"
    "        switch $line\n"
    "            case :file\n"
    "                __fish_complete_path \"$rest\" | string replace -r '^' \"$lead\"\n"
    "            case :folder\n"
    "                __fish_complete_directories \"$rest\" | string replace -r '^' \"$lead\"\n"
    "            case '*'\n"
    "                echo \"$lead$line\"\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c infer -f -a '(__infer_words)'\n";

/* ---- Words ---- */

struct typing {
    char *const *word; /* [n]: after `infer`; the last one is being typed */
    size_t n;
    const char *typed; /* it, or its value after `--name=` */
    struct base_buffer out;
};

/* Offers a word if it begins with what was typed. */
static void offer(struct typing *t, const char *word, size_t size, const char *about)
{
    const size_t n = strlen(t->typed);
    if (size >= n && memcmp(word, t->typed, n) == 0)
        base_buffer_add_format(&t->out, "%.*s\t%s\n", (int)size, word, about);
}

/* Offers choices: "a|b". */
static void offer_choices(struct typing *t, const char *choices)
{
    for (const char *c = choices; c && *c; c += strspn(c, "|")) {
        const size_t size = strcspn(c, "|");
        offer(t, c, size, "");
        c += size;
    }
}

static void offer_commands(struct typing *t)
{
    for (int i = 0; i < CLI_COMMAND_COUNT; i++)
        offer(t, cli_command_table[i]->name, strlen(cli_command_table[i]->name),
              cli_command_table[i]->effect);
}

static void offer_models(struct typing *t)
{
    BASE_LOCAL_BUFFER folder = BASE_BUFFER_INIT;
    struct dirent **entry;
    const int n = cli_model_folder(&folder) ? scandir(folder.data, &entry, NULL, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        if (cli_model_is_listed(name) && !strpbrk(name, " \t\n"))
            offer(t, name, cli_model_name_size(name), "");
        free(entry[i]);
    }
    if (n >= 0) free(entry);
}

static void offer_option(struct typing *t, const struct cli_option *o)
{
    char name[64];
    const int n = snprintf(name, sizeof name, "--%s", o->name);
    offer(t, name, (size_t)n, o->help);
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++)
        offer(t, o->alias[i], strlen(o->alias[i]), o->help);
}

static void offer_options(struct typing *t, enum cli_command_id command)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_option_belongs(&cli_option_table[i], command))
            offer_option(t, &cli_option_table[i]);
}

static void offer_value(struct typing *t, const struct cli_option *o)
{
    offer_choices(t, o->choices);
    if (strcmp(o->name, "template") == 0)
        for (size_t i = 0; text_chat_format_name(i); i++)
            offer(t, text_chat_format_name(i), strlen(text_chat_format_name(i)), "");
    if (cli_has_word("model models draft", o->name, strlen(o->name))) offer_models(t);
    if (cli_option_takes_file(o)) base_buffer_add_text(&t->out, ":file\n");
}

static void offer_argument(struct typing *t, const char *takes)
{
    if (strcmp(takes, "FILE") == 0)
        base_buffer_add_text(&t->out, ":file\n");
    else if (strcmp(takes, "FOLDER") == 0)
        base_buffer_add_text(&t->out, ":folder\n");
    else if (strcmp(takes, "COMMAND") == 0)
        offer_commands(t);
    else if (strcmp(takes, "TYPE") != 0)
        offer_choices(t, takes);
    else
        for (size_t i = 0; cli_quantize_type_name(i); i++)
            offer(t, cli_quantize_type_name(i), strlen(cli_quantize_type_name(i)), "");
}

/* Returns whether an option is written word[0..n). */
static bool is_written(const struct cli_option *o, const char *word, size_t n)
{
    bool is = n > 2 && strncmp(word, "--", 2) == 0 && cli_has_word(o->name, word + 2, n - 2);
    for (int i = 0; i < CLI_ALIAS_MAX && o->alias[i]; i++) is |= cli_has_word(o->alias[i], word, n);
    return is;
}

/* Returns the option with a value that is written word[0..n), or NULL. */
static const struct cli_option *taking(enum cli_command_id command, const char *word, size_t n)
{
    for (const struct cli_option *o = cli_option_table; o < cli_option_table + cli_option_count;
         o++)
        if (o->kind != CLI_FLAG && cli_option_belongs(o, command) && is_written(o, word, n))
            return o;
    return NULL;
}

/* Returns the option whose value is being typed, or NULL. bash makes three words of --name=value.
 */
static const struct cli_option *option_of_value(struct typing *t, enum cli_command_id command)
{
    size_t before = t->n - 1; /* 0: none */
    const char *equals = strncmp(t->typed, "--", 2) == 0 ? strchr(t->typed, '=') : NULL;
    if (equals) {
        const char *name = t->typed;
        t->typed = equals + 1;
        return taking(command, name, (size_t)(equals - name));
    }
    if (strcmp(t->typed, "=") == 0)
        t->typed = "";
    else if (before > 1 && strcmp(t->word[before - 1], "=") == 0)
        before--;
    return before ? taking(command, t->word[before - 1], strlen(t->word[before - 1])) : NULL;
}

/* Returns the number of arguments before the word that is being typed. */
static size_t count_arguments(const struct typing *t, enum cli_command_id command, size_t first)
{
    size_t n = 0;
    for (size_t i = first; i + 1 < t->n; i++) {
        if (taking(command, t->word[i], strlen(t->word[i])))
            i += 1 + (i + 2 < t->n && strcmp(t->word[i + 1], "=") == 0);
        else
            n += t->word[i][0] != '-';
    }
    return n;
}

static void offer_all(struct typing *t)
{
    const enum cli_command_id named = t->n > 1 ? cli_command_find(t->word[0]) : CLI_COMMAND_COUNT;
    const bool is_named = named != CLI_COMMAND_COUNT;
    const enum cli_command_id command = is_named ? named : CLI_RUN;
    const struct cli_option *o = option_of_value(t, command);
    const size_t n = count_arguments(t, command, is_named);
    const char *takes = n < CLI_ARGUMENT_MAX ? cli_command_table[command]->takes[n] : NULL;
    if (o)
        offer_value(t, o);
    else if (t->n == 1 && t->typed[0] != '-')
        offer_commands(t);
    else if (t->typed[0] == '-' || !takes)
        offer_options(t, command);
    else
        offer_argument(t, takes);
}

/* ---- The command ---- */

static bool cmd_completion(struct cli_values *values, struct base_error *err)
{
    static const struct {
        const char *shell, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const char *wanted = values->arguments[0];
    if (strcmp(wanted, "words") == 0 && values->n_arguments > 1) {
        struct typing t = {.word = values->arguments + 1, .n = values->n_arguments - 1};
        t.typed = t.word[t.n - 1];
        offer_all(&t);
        const bool ok = cli_write_buffer(&t.out, err);
        base_buffer_free(&t.out);
        return ok;
    }
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(wanted, shells[i].shell) == 0 && values->n_arguments == 1)
            return cli_write(shells[i].script, strlen(shells[i].script), err);
    return base_fail_at(err, BASE_USAGE, wanted, -1, "is none of bash, zsh and fish");
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .usage = "infer completion bash|zsh|fish",
    .effect = "print a script that completes commands and options",
    .about = "Prints a completion script. `make install` puts it in place; without it:\n"
             "  bash  source <(infer completion bash)\n"
             "  zsh   source <(infer completion zsh)\n"
             "  fish  infer completion fish | source\n"
             "It calls `infer completion words -- WORD..` while you type.",
    .min_arguments = 1,
    .max_arguments = 65536,
    .takes = {"bash|zsh|fish"},
    .run = cmd_completion,
};
