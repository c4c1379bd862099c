/* cli/cmd/cmd_chat.c: `infer chat`: a conversation, message by message. */
#include "chat/messages.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_files.h"
#include "cli/chat/chat_line.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <stdlib.h>
#include <string.h>

static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return cli_stdout_is_terminal() && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/* Returns whether the session continues: after an error of an interactive user, or Ctrl-C. Any
 * other error, and any error in a script, ends it with its status. */
static bool can_go_on(const struct cli_chat *c, const struct base_error *err)
{
    const bool strict = strcmp(c->values->on_full, "error") == 0;
    return c->interactive && (err->code == BASE_USAGE || err->code == BASE_INTERRUPTED ||
                              (err->code == BASE_TOO_LONG && !strict));
}

/* Generates an answer and handles Ctrl-C. `is_new`: the last message is new and is removed if it
 * cannot be answered. */
static bool answer(struct cli_chat *c, bool is_new, struct base_error *err)
{
    const size_t before = json_array_size(c->messages);
    if (!cli_chat_answer(c, err)) {
        if (!can_go_on(c, err)) return false;
        if (is_new) chat_messages_cut(c->messages, before - 1);
        if (err->code != BASE_INTERRUPTED) cli_report(err);
        *err = BASE_ERROR_INIT;
    }
    if (!base_interrupted()) return true;
    if (!c->interactive) return base_fail(err, BASE_INTERRUPTED, "interrupted");
    cli_interrupt_reset();
    return true;
}

/* Returns the command for a word with which other programs end a session. */
static const char *command_word(const char *text)
{
    static const char *const words[][2] = {
        {"exit", "/exit"}, {"quit", "/exit"}, {"?", "/help"}, {"help", "/help"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i][0]) == 0) return words[i][1];
    return NULL;
}

/* Handles a message, or a command (not if `is_text`); *ends: it was the last one. */
static bool take(struct cli_chat *c, const struct base_buffer *text, bool is_text, bool *ends,
                 struct base_error *err)
{
    const bool obeys = !is_text && (c->interactive || c->values->commands);
    const char *word = obeys && c->interactive ? command_word(text->data) : NULL;
    const bool is_command = word || (obeys && text->data[0] == '/');
    const bool escaped = is_command && !word && text->data[1] == '/';
    enum cli_chat_next next = CLI_CHAT_LISTEN;
    bool ok = true, is_new = false;
    if (strspn(text->data, " \t\r\n") == text->size) return true;
    if (is_command && !escaped) {
        ok = cli_chat_command(c, word ? word : text->data, &next, err);
    } else {
        ok = chat_messages_add(c->messages, "user", text->data + escaped, text->size - escaped,
                               &c->request, err);
        next = CLI_CHAT_ANSWER;
        is_new = true;
    }
    if (!ok && c->interactive && err->code != BASE_NO_MEMORY) {
        cli_report(err);
        *err = BASE_ERROR_INIT;
        return true;
    }
    *ends = next == CLI_CHAT_LEAVE;
    return ok && (next != CLI_CHAT_ANSWER || answer(c, is_new, err));
}

/* Standard input has no lines for this session if -p has a message and the input is another's. */
static bool has_lines(const struct cli_chat *c)
{
    return c->interactive || !c->values->prompt || cli_stdin_is_piped();
}

static bool talk(struct cli_chat *c, struct cli_lines *lines, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    const bool reads = has_lines(c);
    bool ok = true, ends = false, is_text;
    if (c->values->prompt) {
        cli_input_add(&c->request, c->values->prompt, &text);
        base_buffer_add_text(&text, "");
        ok = cli_buffer_check(&text, err) && take(c, &text, true, &ends, err);
        base_buffer_clear(&text);
    }
    while (ok && !ends && reads) {
        const enum cli_line_result result = cli_lines_next(lines, &text, &is_text, err);
        if (result == CLI_LINE_READ && text.size) {
            cli_lines_hide_typing(lines, true);
            ok = take(c, &text, is_text, &ends, err);
            cli_lines_hide_typing(lines, false);
        } else if (result == CLI_LINE_INTERRUPTED && !c->interactive)
            ok = base_fail(err, BASE_INTERRUPTED, "interrupted");
        else if (result == CLI_LINE_FAILED)
            ok = false;
        else if (result == CLI_LINE_END)
            break;
    }
    return ok;
}

static bool cmd_chat(struct cli_values *values, struct base_error *err)
{
    if (!cli_prefix_check(values, err)) return false;
    struct cli_chat c = {.values = values,
                         .request = values->request,
                         .verbose = values->verbose,
                         .interactive = cli_stdin_is_terminal()};
    struct cli_lines *lines = NULL;
    c.colour = wants_colour();
    /* Only commands that the user types may name files. */
    const bool obeys = c.interactive || values->commands;
    c.cache = cli_prefix_open(values, 2);
    if (!values->no_sandbox) {
        if (obeys)
            cli_sandbox_limit_programs();
        else
            cli_sandbox_limit(cli_prefix_file(c.cache));
    }
    bool ok = cli_messages_open(values->messages, &values->request.chat, &c.messages, err) &&
              cli_chat_open(&c, err);
    values->messages = NULL; /* they are in memory, so /save may overwrite that file */
    if (ok && values->verbose) cli_model_note(&c.model);
    if (ok) lines = cli_lines_open(c.interactive, c.colour, !values->no_history, err);
    if (ok && lines && c.interactive) {
        cli_interrupt_reset();
        cli_note("%s; /help lists commands, Ctrl-D ends", c.model.name.data);
    }
    if (ok && lines && !values->no_sandbox)
        cli_sandbox_close((obeys ? CLI_SANDBOX_FILES : cli_prefix_allows(c.cache)) |
                          cli_gpu_allows(values));
    ok = ok && lines && talk(&c, lines, err);
    if (ok) cli_chat_store(&c);
    cli_lines_close(lines);
    cli_chat_close(&c);
    return ok;
}

const struct cli_command cli_command_chat = {
    .name = "chat",
    .usage = "infer chat [-m MODEL] [TEXT] [options]",
    .effect = "a conversation, line by line, through the model's chat template",
    .about = "Answers each line of standard input. On a terminal lines can be edited, Ctrl-C\n"
             "stops the answer, and /help lists the commands; a backslash at the end of a\n"
             "line or lines between two \"\"\" make a message of several lines. From a pipe\n"
             "only the answers are written, each ending with a line end, and /commands are\n"
             "text unless --commands is given. The conversation stays in the cache: each turn\n"
             "evaluates only new text.",
    .positional = "prompt",
    .run = cmd_chat,
};
