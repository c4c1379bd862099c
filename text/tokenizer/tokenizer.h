/* text/tokenizer/tokenizer.h: text to token ids and back, exactly as the reference tokenizers do.
 *
 * Contains vocabularies, pre-tokenizer patterns, special tokens and streaming detokenization; no
 * models, sampling or printing. The tables are the tokenizer.ggml.* keys of a GGUF file; the
 * tokenizer keeps slices of the mapped file, which must outlive it. It is immutable after opening:
 * any number of threads may share it. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "gguf/gguf.h"

struct text_tokenizer; /* opaque */

/* Opens the vocabulary of a file. The caller frees the tokenizer with text_tokenizer_close. Returns
 * NULL with BASE_MODEL for a missing, damaged or unsupported vocabulary. A vocabulary of 262,144
 * tokens opens in milliseconds, because its tables are slices of the file and one hash table. */
struct text_tokenizer *text_tokenizer_open(const struct gguf_file *file, struct base_error *err);
void text_tokenizer_close(struct text_tokenizer *t); /* accepts NULL */

const char *text_tokenizer_model(const struct text_tokenizer *t); /* "gpt2", "llama", "bert" */
const char *text_tokenizer_pre(const struct text_tokenizer *t);   /* pre-tokenizer, or "" */

/* A growable list of ids; the caller frees it with text_ids_free. */
struct text_ids {
    int32_t *id;
    size_t count;
    size_t room;
};
#define TEXT_IDS_INIT ((struct text_ids){0})
/* As BASE_LOCAL_BUFFER. */
#define TEXT_LOCAL_IDS __attribute__((cleanup(text_ids_free))) struct text_ids
bool text_ids_add(struct text_ids *ids, int32_t id, struct base_error *err);
void text_ids_free(struct text_ids *ids);

enum text_encode_flags {
    TEXT_ADD_SPECIAL = 1,   /* add BOS/EOS (CLS/SEP) if the file specifies them */
    TEXT_PARSE_SPECIAL = 2, /* a special token's text, such as "<|im_end|>", becomes that token */
    TEXT_LOSSY = 4,         /* leave out a byte that has no token */
    TEXT_CONTINUES = 8      /* the text continues another one: add no space before it */
};

/* Appends the ids of bytes[0..size), which may be any bytes. A byte that is not part of valid UTF-8
 * counts as one symbol (U+FFFD) where words are cut, but keeps its value. A byte without a token,
 * in a vocabulary without an unknown token, is BASE_USAGE with its offset in the text; with
 * TEXT_LOSSY it is left out. BOS is not added if the ids begin with it already. The time is linear
 * in practice, also for 1 MB of one letter. After a failure `out` may contain some of the ids. */
bool text_encode(const struct text_tokenizer *t, const char *bytes, size_t size, unsigned flags,
                 struct text_ids *out, struct base_error *err);

/* text_encode for a text that is partly data: own[size] is 0 for bytes of data and 1 for those of
 * the frame around it (struct jinja_template_options); NULL: all is frame. Data never forms a
 * special token, with or without TEXT_PARSE_SPECIAL: a token that contains a byte of data is not
 * recognized if the file marks it as a control token, or if the frame has the same token somewhere
 * in this text, because fine-tuned models often mark their tokens of the frame as user-defined.
 * Other user-defined tokens (runs of spaces, "<table>") are recognized in data, as in any text. */
bool text_encode_framed(const struct text_tokenizer *t, const char *bytes, const char *own,
                        size_t size, unsigned flags, struct text_ids *out, struct base_error *err);

enum text_token_kind { /* values of tokenizer.ggml.token_type */
                       TEXT_TOKEN_NORMAL = 1,
                       TEXT_TOKEN_UNKNOWN = 2,
                       TEXT_TOKEN_CONTROL = 3,
                       TEXT_TOKEN_USER = 4,
                       TEXT_TOKEN_UNUSED = 5,
                       TEXT_TOKEN_BYTE = 6
};

uint32_t text_vocab_size(const struct text_tokenizer *t);
enum text_token_kind text_token_kind(const struct text_tokenizer *t, int32_t id);
struct gguf_str text_token_raw(const struct text_tokenizer *t, int32_t id); /* as in the file */
bool text_token_is_end(const struct text_tokenizer *t, int32_t id); /* EOS, EOT, EOM, FIM ends */
int32_t text_token_bos(const struct text_tokenizer *t);             /* -1: none */
int32_t text_token_eos(const struct text_tokenizer *t);
int32_t text_token_eot(const struct text_tokenizer *t);
/* The tokens before the parts of a text with a gap; -1: none. */
enum text_fill { TEXT_FILL_PREFIX, TEXT_FILL_SUFFIX, TEXT_FILL_MIDDLE };
int32_t text_token_fill(const struct text_tokenizer *t, enum text_fill part);
bool text_adds_bos(const struct text_tokenizer *t);
bool text_adds_eos(const struct text_tokenizer *t);

/* Appends the bytes of one token inside a text. Control tokens have no bytes unless `show_special`;
 * ids outside the vocabulary have none. (text_decode handles the first space of a SentencePiece
 * text.) */
void text_token_bytes(const struct text_tokenizer *t, int32_t id, bool show_special,
                      struct base_buffer *out);

/* A streaming detokenizer, which returns only complete UTF-8 sequences. */
struct text_decoder {
    const struct text_tokenizer *tokenizer;
    bool show_special;
    bool at_start; /* nothing is decoded yet: SentencePiece drops the space that it added */
    char held[4];  /* the beginning of an incomplete sequence */
    size_t n_held;
};

/* `continues`: the tokens follow a prompt, so no leading space is dropped. */
void text_decoder_init(struct text_decoder *d, const struct text_tokenizer *t, bool continues,
                       bool show_special);
/* Appends the text that is complete after this token. */
void text_decoder_add(struct text_decoder *d, int32_t id, struct base_buffer *out);
/* Appends the rest; an incomplete sequence becomes U+FFFD. */
void text_decoder_end(struct text_decoder *d, struct base_buffer *out);
