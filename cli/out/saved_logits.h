/* cli/out/saved_logits.h: files of logits, for comparing two models position by position.
 *
 * Two forms, both little-endian. Rows are, for each chunk, the positions from chunk / 2 to
 * chunk - 2, as `infer perplexity` scores them.
 *
 *     f32   "INFERLG1", u32 vocabulary, u32 chunk, u64 number of ids (a multiple of chunk), i32 ids[],
 *           then float32 logits [rows][vocabulary]
 *     u16   of llama-perplexity: "_logits_", u32 chunk, u32 vocabulary, u32 number of chunks,
 *           i32 ids[], then rows of float32 scale, float32 least, u16 code[vocabulary]
 *
 * In the form u16 a row is padded to an even number of codes; a log-probability is least + scale *
 * code. `least` is at most 16 below the largest one; lower values have code 0. */
#pragma once

#include "base/output.h"
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>

struct cli_saved_writer {
    struct base_output file; /* the caller opens and closes it */
    uint32_t n_vocab;
    bool is_log;    /* u16 */
    uint16_t *rows; /* u16: scratch memory for a write */
    uint64_t room;
};
/* Writes the header; in the form u16 if `is_log`. */
bool cli_saved_begin(struct cli_saved_writer *w, bool is_log, uint32_t n_vocab, uint32_t chunk,
                     const int32_t *ids, uint64_t n_ids, struct base_error *err);
bool cli_saved_write_rows(struct cli_saved_writer *w, const float *logits, uint64_t rows,
                          struct base_error *err);
void cli_saved_end(struct cli_saved_writer *w); /* does not close the file; `w` may be all zeros */

struct cli_saved_reader {
    const char *path;
    FILE *file;
    bool is_log; /* u16: rows are log-probabilities, otherwise logits */
    float *rows; /* rows of the last read */
    uint16_t *codes;
    uint64_t room;
    uint32_t n_vocab;
};
/* Checks the header against the vocabulary and the file's size. Returns the ids and the chunk size.
 * The ids of the form u16 are those of the text: the caller must replace the first id of each chunk
 * by the beginning-of-text token. */
bool cli_saved_open(struct cli_saved_reader *r, const char *path, uint32_t n_vocab,
                    struct text_ids *ids, uint32_t *chunk, struct base_error *err);
/* Reads the next rows, which are valid until the next call. */
bool cli_saved_read_rows(struct cli_saved_reader *r, uint64_t rows, const float **out,
                         struct base_error *err);
void cli_saved_close(struct cli_saved_reader *r);
