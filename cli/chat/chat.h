/* cli/chat/chat.h: a conversation with a loaded model, turn by turn; shared by cmd_chat.c,
 * chat_turn.c and chat_command.c.
 *
 * Contains the messages, the part of them that is in the cache, and what happens when the context
 * is full; chat_line.h reads lines and keys. */
#pragma once

#include "chat/chat_reply.h"
#include "cli/cache/prefix_cache.h"
#include "cli/chat/chat_wrap.h"
#include "cli/generation.h"

enum { CLI_CHAT_SETTINGS = 64 };

/* Options that /set changed. */
struct cli_chat_settings {
    const struct cli_option *option[CLI_CHAT_SETTINGS];
    char *text[CLI_CHAT_SETTINGS];
    float adapters[MODEL_ADAPTERS_MAX]; /* their scales, with the settings */
    size_t n;
    struct base_keep keep; /* of the conversation's request */
};

struct cli_chat {
    const struct cli_values *values;
    struct chat_request request; /* that of the command line, with the settings */
    struct cli_chat_settings settings;
    bool verbose;     /* -v, or /set verbose */
    bool interactive; /* the input is a terminal: an error does not end the session */
    bool colour;
    struct cli_model model;
    json_t *messages; /* the conversation; its first message may be a system message */
    struct chat_template template;
    struct chat_prompt prompt; /* prompt of the latest answer */
    struct cli_generation generation;
    struct chat_reply reply;
    struct generate_outcome outcome; /* outcome of the latest answer */
    size_t n_dropped;                /* messages after the system message that are not rendered */
    uint64_t n_answers;
    struct cli_prefix_cache *cache; /* NULL: none; else sequence 1 holds the prompt to store */
    size_t n_stored;                /* number of ids of sequence 0 that are stored in the cache */
    bool has_stored;                /* a prompt of this conversation is stored */
    /* The state of the answer on the terminal. */
    struct cli_wrap wrap;
    struct base_buffer piece;
    bool dim;       /* style of the text that `wrap` holds back */
    bool no_wrap;   /* /set nowordwrap */
    char last_byte; /* 0: no output yet */
};

/* Opens model, template and session, but not the messages and the prefix cache. */
bool cli_chat_open(struct cli_chat *c, struct base_error *err);
void cli_chat_close(struct cli_chat *c); /* may be all zeros */

/* Answers the messages, which end with a user's message, and appends the answer to them. Ctrl-C is
 * not an error: the text so far is the answer; if it is empty, the user's message is removed. After
 * BASE_USAGE and BASE_TOO_LONG nothing was evaluated, and the conversation can continue without
 * that message. */
bool cli_chat_answer(struct cli_chat *c, struct base_error *err);

/* Stores the conversation in the prefix cache, at its end. */
void cli_chat_store(struct cli_chat *c);

/* Call this after any change of the conversation other than a new message at its end. */
static inline void cli_chat_changed(struct cli_chat *c)
{
    c->n_dropped = 0;
}

/* /set and /show, with the text after the word. A change applies from the next answer on; then the
 * conversation is read again. */
bool cli_chat_set(struct cli_chat *c, const char *argument, struct base_error *err);
bool cli_chat_show(struct cli_chat *c, const char *argument, struct base_error *err);
void cli_chat_settings_free(struct cli_chat_settings *s);

enum cli_chat_next { CLI_CHAT_LISTEN, CLI_CHAT_ANSWER, CLI_CHAT_LEAVE };

/* Runs a line that begins with '/'. Fails with BASE_USAGE for an unknown command or a wrong
 * argument, and then changes nothing. */
bool cli_chat_command(struct cli_chat *c, const char *line, enum cli_chat_next *next,
                      struct base_error *err);
