/* cli/options.h: the options of every subcommand, from one table (options_tables.c).
 *
 * Parsing, defaults, environment variables, --help, the man page, completions and suggestions use
 * its rows; outside the table only error messages contain names of options. An option's value
 * is that of the command line, otherwise that of INFER_<NAME>, otherwise the row's default. */
#pragma once

#include "base/buffer.h"
#include "base/keep.h"
#include "chat/chat_request.h"
#include "cli/commands.h"
#include <stddef.h>

enum {
    CLI_LIST_MAX = 64,
    CLI_INTEGERS_MAX = 16,
    CLI_ALIAS_MAX = 3,
    CLI_VARIABLE_SIZE = 64,
    CLI_NAME_SIZE = 64, /* "--top-k" */
    CLI_OPTION_MAX = 224,
    CLI_PASSED_MAX = 32,
    CLI_CLAUSE_SIZE = 256 /* size of the text about a word of another program */
};

/* Integers separated by commas: "128,512". */
struct cli_integers {
    int64_t item[CLI_INTEGERS_MAX];
    size_t count;
};

/* Where the value of a row is from. */
struct cli_source {
    bool given;            /* on the line or in the environment */
    bool from_environment; /* given in the environment */
    const char *text;      /* as given; of a list the last; NULL: not given */
    const char *typed;     /* the word of the line, up to "=", or the value itself where no
                              option stands before it; NULL: none */
};

/* The values, one member per row of the table. Absent texts are NULL; the others point into the
 * command line or the environment. */
struct cli_gpu;
struct cli_values {
    struct chat_request request; /* what may differ between texts */
    const char *model, *prompt, *file, *ids, *output;
    const char *cache_type_k, *cache_type_v, *isa, *format;
    const char *save_logits, *kl, *output_type, *embedding_type, *imatrix, *svg;
    const char *messages, *draft, *diffusion_algorithm;
    const char *on_full;
    const char *each, *shard, *resume, *column, *logits_format;
    const char *hub, *as, *sha256, *remove;
    const char *rope_scaling, *max_size, *fit, *target_size;
    const char *cache, *compare, *statistics;
    const char *pooling, *normalize, *prefix, *index;
    struct base_texts tensor_type, override_kv, continuation, set, delete, rename, texts, combine,
        models, control_vector;
    int64_t ctx_size, batch_size, threads, top, chunk, chunks, stride;
    const char *gpu, *gpu_draft;
    bool cpu_moe, activations;
    const char *cpu_cold;
    float hot_share;
    struct cli_gpu *device; /* of --gpu (cli/gpu_layers.h); NULL: none */
    const char *gpu_device;
    int64_t cache_size, older, connections, retries, timeout;
    int64_t repetitions, n_slots, yarn_orig_ctx, max_tensors;
    float rope_scale, rope_freq_base, rope_freq_scale, target_bpw;
    float yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    int64_t dimensions, diffusion_steps, diffusion_block;
    struct cli_integers pieces; /* --chunk N,OVERLAP */
    struct cli_integers n_prompt, n_gen, n_depth, n_parallel, thread_counts, batch_sizes;
    const char *sparse; /* on, off, predict, or NULL */
    bool decode, lines, csv, echo, json;
    bool show_prompt, no_history, commands;
    bool jsonl, token_ids, hash, plan;
    bool pure, dry_run, columns, zeros, process_output, keep_split, no_tensor_first, all;
    bool metadata, tensors, plot, heat, profile, blas, pin, no_sandbox;
    bool verbose, newline, unordered, clear, insecure;
    bool matrix, truncate, in_order;
    bool joined;
    bool help, brief, version; /* brief: the short form of help */

    const char *argument[CLI_ARGUMENT_MAX]; /* positional arguments, in order; the first ones */
    char *const *arguments;                 /* [n_arguments]: all, in the command line's array */
    size_t n_arguments;

    struct base_keep keep;              /* arrays of lists; copies of the struct share it */
    struct cli_source *source;          /* [row of the table], in `keep` */
    const char *passed[CLI_PASSED_MAX]; /* words of other programs that have no effect here */
    size_t n_passed;
};

enum cli_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_LIST,  /* struct base_texts: a text for each time that it is given */
    CLI_WORDS, /* struct base_texts: "A,B,C" */
    CLI_INTEGER,
    CLI_INTEGERS,
    CLI_REAL,
    CLI_CHOICE,
    CLI_CHOICES
};

enum cli_group {
    CLI_GROUP_INPUT,
    CLI_GROUP_CHAT,
    CLI_GROUP_SAMPLING,
    CLI_GROUP_CONSTRAINT,
    CLI_GROUP_OUTPUT,
    CLI_GROUP_MEASURE,
    CLI_GROUP_ENGINE,
    CLI_GROUP_GENERAL,
    CLI_GROUP_COUNT
};

struct cli_option {
    const char *name;                 /* "top-k" for --top-k and INFER_TOP_K */
    const char *alias[CLI_ALIAS_MAX]; /* with dashes, the short one first */
    enum cli_kind kind;
    unsigned commands; /* bits 1 << enum cli_command_id */
    enum cli_group group;
    const char *value;     /* the name of the value in --help; NULL for flags */
    const char *standard;  /* the default as typed; NULL: none */
    double low, high;      /* range of numbers, both ends allowed */
    const char *bare;      /* CLI_CHOICE: the value if no choice follows the name; NULL: none */
    const char *choices;   /* "md|json|csv"; CLI_CHOICE: one of them, CLI_CHOICES: "md,csv" */
    const char *excludes;  /* names of contradicting options, separated by spaces */
    const char *yields;    /* names of options: if one is on the line, the variable is ignored */
    const char *needs;     /* names of options, one of which this one needs to have an effect */
    const char *implies;   /* name of a switch that this option turns on if it is on the line */
    const char *help;      /* one line; --help adds the default */
    const char *parameter; /* the member of struct sample_options that it sets; NULL: none */
    bool writes;           /* FILE is written, not read */
    bool escapes;          /* with --escape its texts have escapes, which the parser replaces */
    bool common;           /* listed by -h */
    size_t at;             /* offset of the member in struct cli_values */
    /* Sets the request's member from a JSON value that is no text; NULL: by the kind. */
    bool (*from_json)(struct chat_request *request, const json_t *value, struct base_keep *keep,
                      struct base_error *err);
};

extern const struct cli_option cli_option_table[];
extern const size_t cli_option_count;
extern const char *const cli_group_title[CLI_GROUP_COUNT];
extern const struct chat_caller cli_chat_caller;

/* The exit statuses that --help and the man page list. */
struct cli_status {
    int status;
    const char *meaning;
};
extern const struct cli_status cli_status_table[];
extern const size_t cli_status_count;

/* What the parser does with an option of another program that this one lacks: reports its hint, or
 * passes over it (a flag, one with a value, one that may have a value), because it names only what
 * is done anyway and cannot change what is written. */
enum cli_foreign_use { CLI_FOREIGN_HINT, CLI_FOREIGN_FLAG, CLI_FOREIGN_VALUE, CLI_FOREIGN_MAYBE };

/* Options and commands of other programs: their names in this program, or the reason why there is
 * none. */
struct cli_foreign {
    const char *program; /* the other program */
    const char *words;   /* options with their dashes or commands, separated by spaces */
    const char *here;    /* the replacement; NULL: none */
    const char *note;    /* a further note; NULL: none */
    enum cli_foreign_use use;
    const char *option; /* the option that the words mean; NULL: none */
};
extern const struct cli_foreign cli_foreign_table[];
extern const size_t cli_foreign_count;

static inline bool cli_option_belongs(const struct cli_option *o, enum cli_command_id command)
{
    return o->commands >> command & 1;
}

/* The offset in struct cli_values of a request's member. */
#define CLI_REQUEST_AT(member) offsetof(struct cli_values, request.member)

/* Returns whether texts may differ in the option: its member is one of a request. */
static inline bool cli_option_is_of_request(const struct cli_option *o)
{
    const size_t first = offsetof(struct cli_values, request);
    return o->at >= first && o->at < first + sizeof(struct chat_request);
}

/* Returns whether an option has a variable: --help, --version and --remove have none. */
static inline bool cli_option_has_variable(const struct cli_option *o)
{
    return o->at != offsetof(struct cli_values, help) &&
           o->at != offsetof(struct cli_values, version) &&
           o->at != offsetof(struct cli_values, remove);
}

/* Returns whether its value is a file name: "FILE", or "FILE|..." if other texts are valid too. */
bool cli_option_takes_file(const struct cli_option *o);

/* Writes the name of the variable: INFER_TOP_K for "top-k". */
void cli_option_variable(const struct cli_option *o, char out[CLI_VARIABLE_SIZE]);

/* Returns the command of that name; CLI_COMMAND_COUNT if there is none. */
enum cli_command_id cli_command_find(const char *name);
/* Returns whether a word that is no command resembles one, or is one of another program; and fails
 * with BASE_USAGE for it, with what is meant. */
bool cli_command_is_near(const char *word);
bool cli_command_unknown(const char *word, struct base_error *err);

/* Parses argv[first..argc) for a command, and moves the positional arguments to argv[first]. Fails
 * with BASE_USAGE, with the option's name and a remedy. With --help or --version among the options
 * the environment is not read and no option is required. */
bool cli_options_parse(enum cli_command_id command, int argc, char **argv, int first,
                       struct cli_values *values, struct base_error *err);

/* Parses "500M" or "2G", in decimal units. Fails with BASE_USAGE and the option's name. */
bool cli_size_parse(const char *text, const char *option, uint64_t *out, struct base_error *err);

/* Returns whether the option of the member at this offset is on the line or in the environment. */
bool cli_option_given(const struct cli_values *values, size_t at);
/* Returns the word of the line that names this option; NULL if it is not on the line. */
const char *cli_option_typed(const struct cli_values *values, size_t at);

/* Frees the memory of the values and of their copies. */
void cli_options_free(struct cli_values *values);

/* Which rows of the table have a value, and from where. */
struct cli_given {
    enum cli_command_id command;
    struct cli_values *values;    /* NULL: only the options of a request */
    struct chat_request *request; /* that of `values`, or one of many texts */
    struct base_keep *keep;
    unsigned char origin[CLI_OPTION_MAX];                /* [row]: enum origin of options.c */
    const struct cli_option *implied_by[CLI_OPTION_MAX]; /* [row]: NULL: it is given itself */
};

/* Options of one of many texts. *request begins as that of the command, `base`; the options that
 * are set replace the command's, and lists whole lists. cli_request_end applies the rules of the
 * table: options of the command that contradict one of the text count as absent. *request points
 * into `base`, *keep and the given texts and values. */
void cli_request_begin(struct cli_given *g, enum cli_command_id command,
                       const struct cli_values *base, struct chat_request *request,
                       struct base_keep *keep);
/* The text is copied; with --escape of the command it may have escapes. */
bool cli_request_set_text(struct cli_given *g, const struct cli_option *o, const char *text,
                          struct base_error *err);
/* `escapes`: the text's own texts have escapes in place of bytes. */
bool cli_request_set_json(struct cli_given *g, const struct cli_option *o, const json_t *value,
                          bool escapes, struct base_error *err);
bool cli_request_end(struct cli_given *g, const struct cli_values *base, struct base_error *err);
/* Returns whether a text itself has the option whose member is at the offset. */
bool cli_request_has(const struct cli_given *g, size_t at);

/* Returns the option that one of many texts may set, by its long name or a long alias, with - or _
 * in it ("top_k"); or NULL. *known: the command has the option for all texts. */
const struct cli_option *cli_option_of_request(enum cli_command_id command, const char *name,
                                               bool *known);

/* Appends the options whose values differ from the defaults, and the variables that they are from.
 */
void cli_options_describe(const struct cli_values *values, struct base_buffer *out);
/* Appends the names of variables INFER_... that no command has, with similar ones. */
void cli_options_unknown_variables(struct base_buffer *out);

/* Names in an error about an option what the user wrote: the word of the line, or the variable. */
void cli_options_name_source(const struct cli_values *values, struct base_error *err);

/* Append the text of `infer help`, and of `infer COMMAND --help`, for the width of the terminal;
 * `brief`: at most one screen of 80 columns. */
void cli_help_overview(bool brief, struct base_buffer *out);
void cli_help_command(enum cli_command_id command, bool brief, struct base_buffer *out);
/* Appends a command's `about`, and the possible values of its TYPE. */
void cli_help_about(enum cli_command_id command, struct base_buffer *out);

/* Appends the table of options of other programs, for a reader or as Markdown. */
void cli_help_foreign(bool markdown, struct base_buffer *out);

/* Returns whether a text is one of the choices "a|b", in any case of letters. */
bool cli_is_choice(const char *choices, const char *text);

/* Returns whether a list of words separated by spaces contains word[n]. */
bool cli_has_word(const char *list, const char *word, size_t n);
/* Return the row of the word word[0..n) of another program, or NULL; and write a clause about
 * it. */
const struct cli_foreign *cli_foreign_find(const char *word, size_t n);
void cli_foreign_say(const struct cli_foreign *f, char *out, size_t room);

/* Returns the most similar of names[n] to a misspelt word; NULL if none is similar, or if the word
 * has at most three letters, because some name is always similar to such a word. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);
