/* cli/embedding.h: what `embed`, `rerank` and `similar` share: a model for embeddings, the tokens
 * of its texts, and the prefixes that some models were trained with. */
#pragma once

#include "cli/load.h"
#include "generate/embed.h"

struct cli_embed {
    const struct cli_values *values;
    struct cli_model model;
    struct generate_embedder *embedder;
    enum model_pooling pooling;
    uint32_t size;         /* numbers of a row, after --dimensions */
    uint32_t n_max;        /* tokens of a text */
    size_t n_head, n_tail; /* special tokens before and after a text */
    int norm;              /* of --normalize */
};

/* A text, or a part of one, with its tokens and its row. */
struct cli_embed_row {
    struct text_ids ids;
    size_t n_rows;     /* 1, or without pooling the number of tokens */
    float *v;          /* [n_rows][size of the embedder], of which cli_embed.size numbers count */
    const float *lora; /* the scale of each adapter, not owned; NULL: those of the command line */
};

struct cli_embed_rows {
    struct cli_embed_row *row; /* [n] */
    size_t n, room;
};

/* Opens the model with the given pooling (NULL: the file's), --normalize, --dimensions and
 * --ctx-size, and unless `hash` is NULL computes that of its file, adapters and settings.
 * The caller calls cli_embed_close, also after a failure. */
bool cli_embed_open(struct cli_embed *e, const struct cli_values *values, const char *pooling,
                    char *hash, struct base_error *err);
void cli_embed_close(struct cli_embed *e);

/* Appends the prefix of texts of a role: that of --prefix, otherwise the one of a known model,
 * which the names in the file identify; none for CLI_EMBED_ANY and for other models. With --as
 * other models are BASE_USAGE. */
enum cli_embed_role { CLI_EMBED_ANY, CLI_EMBED_QUERY, CLI_EMBED_DOCUMENT };
bool cli_embed_prefix(const struct cli_embed *e, enum cli_embed_role role, struct base_buffer *out,
                      struct base_error *err);

/* Appends the rows of a text: one, or with --chunk one for each part. A text that is longer than
 * the model reads is BASE_TOO_LONG, or is cut (--truncate). */
bool cli_embed_add(const struct cli_embed *e, const struct base_buffer *prefix, const char *text,
                   size_t size, struct cli_embed_rows *rows, struct base_error *err);
/* Appends one row of the given tokens, which it takes over. */
bool cli_embed_add_ids(const struct cli_embed *e, struct text_ids *ids, struct cli_embed_rows *rows,
                       struct base_error *err);
/* Computes all rows, cut to --dimensions and normalized. */
bool cli_embed_run(const struct cli_embed *e, struct cli_embed_rows *rows, struct base_error *err);
/* Returns row i of a text's rows. */
float *cli_embed_row(const struct cli_embed *e, const struct cli_embed_row *r, size_t i);
/* Frees all rows but the first n. */
void cli_embed_rows_cut(struct cli_embed_rows *rows, size_t n);
/* Frees the rows, which become none. */
void cli_embed_rows_clear(struct cli_embed_rows *rows);
