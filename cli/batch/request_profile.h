/* cli/batch/request_profile.h: the options of texts, compiled: requests with the same options share
 * a profile.
 *
 * A profile is made from the members of a JSON object that are options of one text, in addition to
 * those of the command: its request, the options of the scheduler's jobs, its chat template. */
#pragma once

#include "cli/generation.h"
#include "generate/scheduler.h"

struct cli_profile {
    struct cli_profile *next;
    struct base_buffer key;      /* the options as JSON, sorted by name; "": none */
    size_t n_texts;              /* the caller counts the texts that use it */
    struct chat_request request; /* points into `options` and `keep` */
    json_t *options;
    struct base_keep keep;
    struct cli_generation generation;
    bool has_adapters;                    /* the options name those that act on the texts: */
    float adapters[MODEL_ADAPTERS_MAX];   /* their scales */
    struct chat_template own;             /* with a template, tools or variables of its own */
    const struct chat_template *template; /* own, or that of all */
};

/* The profiles of a command. */
struct cli_profiles {
    enum cli_command_id command;
    const struct cli_values *values; /* its grammar or schema is a text, not a file */
    const struct cli_model *model;
    struct generate_scheduler *scheduler; /* the caller sets it after opening */
    struct chat_template template;        /* if the model has one */
    struct base_error no_template;        /* the error if the model has none */
    struct cli_profile *latest;           /* the latest first */
    size_t n_profiles;
};

/* Opens the chat template; the model's own one may be missing until a text needs it. Compiles the
 * command's constraint, so that errors are reported before the first text. The caller calls
 * cli_profiles_close, after a failure too. */
bool cli_profiles_open(struct cli_profiles *p, enum cli_command_id command,
                       const struct cli_values *values, const struct cli_model *model,
                       struct base_error *err);
void cli_profiles_close(struct cli_profiles *p); /* may be all zeros */

/* Returns the profile for these options, an object without the members of the text itself; it is
 * valid while n_texts is not 0, and until the next call. Returns NULL with BASE_USAGE and the name
 * of the option. */
struct cli_profile *cli_profile_of(struct cli_profiles *p, json_t *options, struct base_error *err);
