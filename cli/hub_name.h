/* cli/hub_name.h: names of models on a hub and in the user's folder, and the record of which file
 * of the folder came from which name.
 *
 *     USER/REPO[@REVISION][:QUANT]
 *     [https://]HOST/USER/REPO...      the same as it stands in a browser: also .../tree/REVISION,
 *                                      .../blob/REVISION/FILE and .../resolve/REVISION/FILE
 *
 * `infer pull` writes NAME.gguf.origin beside a model: what was named, and size and time of each
 * file. With it a name finds its file without a network. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#define CLI_ORIGIN_BEGIN "infer origin " /* of each record */
#define CLI_HUB_USUAL    "Q4_K_M"        /* without a quantization, if the hub has one */

struct cli_hub_name {
    struct base_buffer repository; /* USER/REPO, or an address without its query */
    struct base_buffer revision;   /* "main" if none is named; "" for an address */
    struct base_buffer quant;      /* a part of a file's name, or its path; "": the usual one */
};

/* Returns whether a file of that name is listed as a model: NAME.gguf, and only the first part of a
 * split model. */
bool cli_model_is_listed(const char *name);

/* Returns the length of the short name of such a file: without the suffix and the number of a
 * part. */
size_t cli_model_name_size(const char *name);

/* Returns whether text[0..size) is a safe and visible name of a file: UTF-8 without separators,
 * control, format and invisible characters, neither hidden nor like an option. */
bool cli_hub_is_name(const char *text, size_t size);
/* Returns whether each part of a path is such a name. */
bool cli_hub_is_path(const char *path);
/* Returns whether the path contains the quantization as a word, ignoring case, or is the file's
 * name. */
bool cli_hub_fits(const char *path, const char *quant);
/* Appends a text in which %XX stands for each byte that is not a letter, digit or one of "-._~" and
 * `others`; and a decoded one. */
void cli_hub_add_encoded(struct base_buffer *out, const char *text, const char *others);
void cli_hub_add_decoded(struct base_buffer *out, const char *text, size_t size);

/* Reads a name. An address must be one of `hubs`, a list of addresses that ends with NULL; without
 * a list it may be of any host. Fails with BASE_USAGE and the form to write. The caller frees it,
 * after a failure too. */
bool cli_hub_name_read(struct cli_hub_name *n, const char *text, const char *const *hubs,
                       struct base_error *err);
/* Makes the name of an address that is not of a hub. */
bool cli_hub_name_from_url(struct cli_hub_name *n, const char *url, struct base_error *err);
void cli_hub_name_free(struct cli_hub_name *n);
/* Appends USER/REPO[@REVISION][:QUANT]. */
void cli_hub_name_show(const struct cli_hub_name *n, struct base_buffer *out);

/* ---- Records ---- */

/* Appends the path of the model of that name in the folder; false if there is none. `as`: its
 * file's name; NULL: any. `unchanged`: the first one whose files all have the recorded sizes and
 * times; a name without quantization finds what was pulled by such a name, or has the usual one.
 * Otherwise fails with BASE_MODEL if there are several. */
bool cli_origin_find(const struct cli_hub_name *n, const char *folder, const char *as,
                     bool unchanged, struct base_buffer *path, struct base_error *err);

/* Records that the files folder/names[0..count) came from the name. `path`: the first file's path
 * in the repository. A record that cannot be written is not an error. */
void cli_origin_write(const struct cli_hub_name *n, const char *path, const char *folder,
                      const char *const *names, size_t count);
