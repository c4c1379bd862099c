/* chat/chat_request.h: one text to generate, as data: the settings of generate/, those of a
 * conversation, and how a plain text is read.
 *
 * It is filled by whoever receives requests: options of a command line, members of a JSON object
 * (cli/option_value.h). Nothing in it is compiled, opened or read from a file. */
#pragma once

#include "generate/settings.h"
#include <jansson.h>

/* Whether a text is answered through a chat template or completed as it is. */
enum chat_mode { CHAT_MODE_BY_MODEL, CHAT_MODE_CHAT, CHAT_MODE_RAW };

/* The words of whoever filled the request, for messages of chat/. */
struct chat_caller {
    const char *template, *variable, *tools, *tool_choice; /* names of these settings */
    const char *no_template;                               /* advice if the model has no template */
    const char *lossy;              /* advice about a byte that is not UTF-8 or has no token */
    void (*note)(const char *text); /* takes notes that are no errors */
};

struct chat_settings {
    const struct chat_caller *caller; /* must be set */
    enum chat_mode mode;              /* of `chat` and `raw`; BY_MODEL: neither was given */
    bool chat, raw;
    const char *system;         /* the system message; NULL: none */
    const char *continues;      /* the beginning of the answer; NULL: none */
    const char *template;       /* a template, or the name of one; NULL: the model's */
    const char *template_file;  /* the file that the template is from, for messages; or NULL */
    struct base_texts variable; /* "NAME=JSON" for the template */
    const json_t *variables;    /* {"NAME": value}; NULL: none */
    const char *tools;          /* a list of tools as JSON; NULL: none */
    const json_t *tool_list;    /* the list itself; NULL: `tools` */
    const char *tool_choice;    /* "auto", "required" or a tool's name; NULL: auto */
    const char *reasoning;      /* "show", "hide" or "only"; NULL: the caller's default */
};

struct chat_request {
    struct generate_settings generate;
    struct chat_settings chat;
    const char *suffix; /* text after the gap that is filled; NULL: none */
    bool escape;        /* the texts had escapes (\n), which whoever filled it has replaced */
    bool no_bos;        /* no beginning-of-text token is added */
    bool no_special;    /* names of special tokens are text */
    bool lossy;         /* bytes without a token are skipped */
    bool special;       /* control tokens are part of the text */
};
