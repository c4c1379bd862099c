/* cli/chat/chat_command.c: the commands: lines that begin with '/'. See cli/chat/chat.h. Results
 * are written to standard error, because standard output has only answers. */
#include "chat/messages.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_files.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/system.h"
#include <stdio.h>
#include <string.h>

typedef bool command_fn(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                        struct base_error *err);

struct command {
    const char *name, *argument; /* name of the argument; NULL: none */
    bool needs_argument;
    const char *help; /* NULL: not listed */
    command_fn *run;
};

static bool help(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err);

static bool clear(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                  struct base_error *err)
{
    (void)argument;
    (void)next;
    (void)err;
    chat_messages_cut(c->messages, chat_messages_n_system(c->messages));
    cli_chat_changed(c);
    return true;
}

static bool save(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err)
{
    struct base_output file;
    (void)next;
    const bool ok = cli_output_open(&file, argument, c->values, c->model.file, err) &&
                    chat_messages_write(c->messages, &file, err);
    if (!cli_output_close(&file, ok, err)) return false;
    cli_note("%zu messages written to %s", json_array_size(c->messages), argument);
    return true;
}

static bool load(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err)
{
    json_t *messages;
    (void)next;
    if (!cli_messages_read(argument, &messages, err)) return false;
    json_decref(c->messages);
    c->messages = messages;
    cli_chat_changed(c);
    cli_note("%zu messages read from %s", json_array_size(messages), argument);
    return true;
}

static bool set_system(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                       struct base_error *err)
{
    (void)next;
    if (*argument) {
        cli_chat_changed(c);
        return chat_messages_set_system(c->messages, strcmp(argument, "-") == 0 ? NULL : argument,
                                        c->request.chat.caller, err);
    }
    const json_t *message =
        chat_messages_n_system(c->messages) ? json_array_get(c->messages, 0) : NULL;
    const char *text = json_string_value(json_object_get(message, "content"));
    cli_tell(text ? text : "there is no system message");
    cli_tell("\n");
    return true;
}

static bool undo(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err)
{
    const size_t turn = chat_messages_last_turn(c->messages);
    (void)argument;
    (void)next;
    if (turn == json_array_size(c->messages))
        return base_fail(err, BASE_USAGE, "there is no message to take back");
    chat_messages_cut(c->messages, turn);
    cli_chat_changed(c);
    return true;
}

static bool regenerate(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                       struct base_error *err)
{
    const size_t turn = chat_messages_last_turn(c->messages);
    (void)argument;
    if (turn == json_array_size(c->messages))
        return base_fail(err, BASE_USAGE, "there is no message to answer again");
    chat_messages_cut(c->messages, turn + 1);
    *next = CLI_CHAT_ANSWER;
    return true;
}

static bool set(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                struct base_error *err)
{
    (void)next;
    return cli_chat_set(c, argument, err);
}

static bool show(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err)
{
    (void)next;
    return cli_chat_show(c, argument, err);
}

static bool end_chat(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                     struct base_error *err)
{
    (void)c;
    (void)argument;
    (void)err;
    *next = CLI_CHAT_LEAVE;
    return true;
}

static const struct command commands[] = {
    {"/help", NULL, false, "this list", help},
    {"/clear", NULL, false, "forget the conversation but its system message", clear},
    {"/undo", NULL, false, "take back the last message and its answer", undo},
    {"/regen", NULL, false, "answer the last message again; so does /retry", regenerate},
    {"/retry", NULL, false, NULL, regenerate},
    {"/system", "TEXT", false, "set the system message; - removes it; without TEXT show it",
     set_system},
    {"/save", "FILE", true, "write the conversation as JSON, as --messages reads it", save},
    {"/load", "FILE", true, "go on with a conversation from a file", load},
    {"/set", "WHAT", false, "change an option, as in /set parameter temperature 0; /set lists them",
     set},
    {"/show", "WHAT", false, "info, parameters, system or template", show},
    {"/exit", NULL, false, "end; so do /bye, /quit and Ctrl-D", end_chat},
    {"/bye", NULL, false, NULL, end_chat},
    {"/quit", NULL, false, NULL, end_chat},
    {"/?", NULL, false, NULL, help},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static bool help(struct cli_chat *c, const char *argument, enum cli_chat_next *next,
                 struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    (void)c;
    (void)argument;
    (void)next;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (!commands[i].help) continue;
        const char *what = commands[i].argument ? commands[i].argument : "";
        base_buffer_add_format(&out, "%-8s%-6s%s\n", commands[i].name, what, commands[i].help);
    }
    base_buffer_add_text(&out, "Several lines: end a line with \\, or put \"\"\" before and after\n"
                               "(more quotes where the text has three).\n"
                               "// begins a message that begins with /. Ctrl-C stops an answer.\n");
    const bool ok = !out.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
    if (ok) cli_tell(out.data);
    return ok;
}

bool cli_chat_command(struct cli_chat *c, const char *line, enum cli_chat_next *next,
                      struct base_error *err)
{
    const size_t n = strcspn(line, " \t\n");
    const char *argument = line + n + strspn(line + n, " \t\n");
    const char *names[N_COMMANDS];
    char word[32];
    *next = CLI_CHAT_LISTEN;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct command *command = &commands[i];
        names[i] = command->name;
        if (strlen(command->name) != n || memcmp(command->name, line, n) != 0) continue;
        if (*argument && !command->argument)
            return base_fail_at(err, BASE_USAGE, command->name, -1, "takes no argument");
        if (!*argument && command->needs_argument)
            return base_fail_at(err, BASE_USAGE, command->name, -1, "needs %s", command->argument);
        return command->run(c, argument, next, err);
    }
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), line);
    const char *near = cli_nearest(word, names, N_COMMANDS);
    return base_fail_at(err, BASE_USAGE, word, -1,
                        "unknown command%s%s; /help lists them, // begins "
                        "a message that begins with /",
                        near ? ", did you mean " : "", near ? near : "");
}
