/* cli/commands.h: the subcommands.
 *
 * A command is a file, cli/cmd/cmd_NAME.c, which defines its row `cli_command_NAME`, and a line of
 * the list below; its options are the rows of options_tables.c that have its bit. It writes its
 * result to standard output, or returns false with an error that main.c reports. */
#pragma once

#include "base/error.h"
#include <stddef.h>

/* In the order of --help. */
#define CLI_COMMANDS(ROW)                                                                          \
    ROW(RUN, run)                                                                                  \
    ROW(CHAT, chat)                                                                                \
    ROW(BATCH, batch)                                                                              \
    ROW(SCORE, score)                                                                              \
    ROW(EMBED, embed)                                                                              \
    ROW(RERANK, rerank)                                                                            \
    ROW(SIMILAR, similar)                                                                          \
    ROW(TOKENIZE, tokenize)                                                                        \
    ROW(LOGITS, logits)                                                                            \
    ROW(PERPLEXITY, perplexity)                                                                    \
    ROW(BENCH, bench)                                                                              \
    ROW(MODELS, models)                                                                            \
    ROW(PULL, pull)                                                                                \
    ROW(INSPECT, inspect)                                                                          \
    ROW(QUANTIZE, quantize)                                                                        \
    ROW(DOCTOR, doctor)                                                                            \
    ROW(IMATRIX, imatrix)                                                                          \
    ROW(CHECK, check)                                                                              \
    ROW(CACHE, cache)                                                                              \
    ROW(SPLIT, split)                                                                              \
    ROW(MERGE, merge)                                                                              \
    ROW(MERGE_LORA, merge_lora)                                                                    \
    ROW(EDIT, edit)                                                                                \
    ROW(DIFF, diff)                                                                                \
    ROW(VERIFY, verify)                                                                            \
    ROW(COMPLETION, completion)                                                                    \
    ROW(MAN, man)                                                                                  \
    ROW(VERSION, version)                                                                          \
    ROW(HELP, help)

#define CLI_COMMAND_ID(ID, name) CLI_##ID,
enum cli_command_id { CLI_COMMANDS(CLI_COMMAND_ID) CLI_COMMAND_COUNT };

enum { CLI_ARGUMENT_MAX = 3 };
struct cli_values;

struct cli_command {
    const char *name;
    const char *usage;  /* "infer quantize IN.gguf OUT.gguf TYPE" */
    const char *effect; /* one line for the list of commands */
    const char *about;  /* lines for its own --help */
    size_t min_arguments, max_arguments;
    const char *positional; /* the option whose value an argument is; NULL: none */
    /* The kinds of its arguments, for completions: "FILE", "FOLDER", "COMMAND", "TYPE" or choices
     * "a|b"; NULL: unknown. */
    const char *takes[CLI_ARGUMENT_MAX];
    /* `values` are the command's own: it may replace defaults by what it chooses. */
    bool (*run)(struct cli_values *values, struct base_error *err);
};

#define CLI_COMMAND_ROW(ID, name) extern const struct cli_command cli_command_##name;
CLI_COMMANDS(CLI_COMMAND_ROW)
extern const struct cli_command *const cli_command_table[CLI_COMMAND_COUNT];
