/* cli/option_value.h: sets the member of an option's row, from a text or from a JSON value.
 *
 * A line of `batch` has the members of struct chat_request that are rows of its command; errors
 * name the option. */
#pragma once

#include "cli/options.h"

/* Sets *member, which is that of the row. `source` names the origin of the text for messages:
 * "--top-k", "INFER_TOP_K". A list gets one more text. The text must outlive the member; arrays
 * are taken from `keep`. */
bool cli_value_from_text(const struct cli_option *o, void *member, const char *source,
                         const char *text, struct base_keep *keep, struct base_error *err);

/* Returns a copy of a text in `keep`, with bytes in place of its escapes; NULL with BASE_USAGE if
 * one is a NUL. */
const char *cli_value_unescape(const char *source, const char *text, struct base_keep *keep,
                               struct base_error *err);

/* Sets *member, which is that of a row of *request. `escapes`: texts have escapes in place of
 * bytes, if the row's may. The value must outlive the request. */
bool cli_value_from_json(const struct cli_option *o, void *member, struct chat_request *request,
                         const json_t *value, bool escapes, struct base_keep *keep,
                         struct base_error *err);

/* The rows' own setters, from values that are no text: a schema, a list of tools, and an object of
 * variables. */
bool cli_schema_from_json(struct chat_request *request, const json_t *value, struct base_keep *keep,
                          struct base_error *err);
bool cli_tools_from_json(struct chat_request *request, const json_t *value, struct base_keep *keep,
                         struct base_error *err);
bool cli_variables_from_json(struct chat_request *request, const json_t *value,
                             struct base_keep *keep, struct base_error *err);
