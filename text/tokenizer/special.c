/* text/tokenizer/special.c: special ids, the tokens that end a text, and kinds that depend on a
 * token's text. See text/tokenizer/vocab.h. The lists of texts are those of llama.cpp, because
 * files do not contain this information. */
#include "text/tokenizer/vocab.h"
#include <string.h>

/* Reads an id. -1 and 2^32-1 mean "none"; any other id outside the vocabulary is an error. If the
 * key is absent, the id is the default if the vocabulary has it. */
static bool read_id(const struct text_tokenizer *t, const char *key, int32_t by_default,
                    int32_t *out, struct base_error *err)
{
    *out = by_default >= 0 && (uint32_t)by_default < t->n_tokens ? by_default : -1;
    const struct gguf_kv *kv = gguf_kv_find(t->file, key);
    int64_t id;
    if (!kv) return true;
    if (!gguf_get_i64(t->file, key, &id, err)) return false;
    if (id == -1 || id == UINT32_MAX) {
        *out = -1;
        return true;
    }
    if (id < 0 || id >= t->n_tokens)
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset,
                            "token %lld is not in the vocabulary of %u tokens", (long long)id,
                            t->n_tokens);
    *out = (int32_t)id;
    return true;
}

static int32_t find(const struct text_tokenizer *t, const char *text)
{
    return text_find_token(t, text, strlen(text));
}

/* Makes a token a control token because of its text, whatever its kind in the file is. */
static void make_control(struct text_tokenizer *t, int32_t id)
{
    if (id >= 0) t->kind[id] = TEXT_TOKEN_CONTROL;
}

/* Returns the first of the texts that is a token, or -1. */
static int32_t find_first(struct text_tokenizer *t, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int32_t id = find(t, texts[i]);
        if (id >= 0) return id;
    }
    return -1;
}

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define DEEPSEEK(word) "<\xef\xbd\x9c" word "\xef\xbd\x9c>" /* the word between full-width bars */
#define LOW_LINE       "\xe2\x96\x81"

/* ---- Fill-in-the-middle tokens ---- */

struct fim {
    const char *key, *old_key;
    bool ends; /* the token ends a text */
    const char *text[10];
};

static const struct fim fims[] = {
    /* the first three in the order of enum text_fill */
    {"tokenizer.ggml.fim_pre_token_id",
     "tokenizer.ggml.prefix_token_id",
     false,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", DEEPSEEK("fim" LOW_LINE "begin"), "<PRE>",
      LOW_LINE "<PRE>", "<|code_prefix|>", "<|prefix|>", "[PREFIX]"}},
    {"tokenizer.ggml.fim_suf_token_id",
     "tokenizer.ggml.suffix_token_id",
     false,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", DEEPSEEK("fim" LOW_LINE "hole"), "<SUF>",
      LOW_LINE "<SUF>", "<|code_suffix|>", "<|suffix|>", "[SUFFIX]"}},
    {"tokenizer.ggml.fim_mid_token_id",
     "tokenizer.ggml.middle_token_id",
     false,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", DEEPSEEK("fim" LOW_LINE "end"), "<MID>",
      LOW_LINE "<MID>", "<|code_middle|>", "<|middle|>", "[MIDDLE]"}},
    {"tokenizer.ggml.fim_pad_token_id",
     NULL,
     true,
     {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {"tokenizer.ggml.fim_rep_token_id",
     NULL,
     true,
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {"tokenizer.ggml.fim_sep_token_id", NULL, true, {"<|file_sep|>"}},
};

static bool load_fims(struct text_tokenizer *t, struct base_error *err)
{
    for (size_t i = 0; i < COUNT(fims); i++) {
        const struct fim *f = &fims[i];
        int32_t id;
        if (!read_id(t, f->key, -1, &id, err)) return false;
        if (id < 0 && f->old_key && !read_id(t, f->old_key, -1, &id, err)) return false;
        for (size_t k = 0; id < 0 && f->text[k]; k++) {
            id = find(t, f->text[k]);
            make_control(t, id);
        }
        if (id >= 0 && f->ends) t->is_end[id] = 1;
        if (i <= TEXT_FILL_MIDDLE) t->fill[i] = id;
    }
    return true;
}

/* ---- Ends ---- */

static const char *const eot_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    DEEPSEEK("end" LOW_LINE "of" LOW_LINE "sentence"),
    "<end_of_utterance>",
};

static const char *const end_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    DEEPSEEK("end" LOW_LINE "of" LOW_LINE "sentence"),
    "[e~[",
};

/* Parts of a message's frame in gpt-oss, which are shown to the user. */
static const char *const shown_texts[] = {"<|channel|>", "<|message|>", "<|start|>",
                                          "<|constrain|>"};

static bool ends(const struct text_tokenizer *t, const char *text)
{
    int32_t id = find(t, text);
    return id >= 0 && t->is_end[id];
}

/* Two model families have a token with the text of an end that only closes a part of the answer. */
static void correct_ends(struct text_tokenizer *t)
{
    int32_t end = find(t, "<|end|>"), sentence = find(t, "</s>");
    bool call = ends(t, "<|call|>") || ends(t, "<|calls|>");
    if (end >= 0 && t->is_end[end] && call && (ends(t, "<|return|>") || ends(t, "<|flush|>"))) {
        t->is_end[end] = 0;
        t->kind[end] = TEXT_TOKEN_USER;
    }
    if (sentence >= 0 && t->is_end[sentence] && ends(t, "<|tool_response>")) {
        t->is_end[sentence] = 0;
        t->kind[sentence] = TEXT_TOKEN_NORMAL;
    }
}

static void load_ends(struct text_tokenizer *t)
{
    if (t->eot < 0) {
        t->eot = find_first(t, eot_texts, COUNT(eot_texts));
        make_control(t, t->eot);
    }
    if (t->eom < 0) {
        t->eom = find(t, "<|eom_id|>");
        make_control(t, t->eom);
    }
    for (size_t i = 0; i < COUNT(end_texts); i++) {
        int32_t id = find(t, end_texts[i]);
        make_control(t, id);
        if (id >= 0) t->is_end[id] = 1;
    }
    for (size_t i = 0; i < COUNT(shown_texts); i++) {
        int32_t id = find(t, shown_texts[i]);
        if (id >= 0) t->kind[id] = TEXT_TOKEN_USER;
    }
    const int32_t declared[] = {t->eos, t->eot, t->eom};
    for (size_t i = 0; i < COUNT(declared); i++)
        if (declared[i] >= 0) t->is_end[declared[i]] = 1;
    correct_ends(t);
}

/* ---- All of them ---- */

bool text_load_special_ids(struct text_tokenizer *t, struct base_error *err)
{
    const struct text_defaults d = t->defaults;
    const struct gguf_file *f = t->file;
    t->add_bos = d.add_bos;
    t->add_eos = d.add_eos;
    t->add_space_prefix = d.add_space_prefix;
    if (!read_id(t, "tokenizer.ggml.bos_token_id", d.bos, &t->bos, err) ||
        !read_id(t, "tokenizer.ggml.eos_token_id", d.eos, &t->eos, err) ||
        !read_id(t, "tokenizer.ggml.eot_token_id", -1, &t->eot, err) ||
        !read_id(t, "tokenizer.ggml.eom_token_id", -1, &t->eom, err) ||
        !read_id(t, "tokenizer.ggml.unknown_token_id", d.unk, &t->unk, err) ||
        !read_id(t, "tokenizer.ggml.seperator_token_id", d.sep, &t->sep, err) ||
        !gguf_get_bool(f, "tokenizer.ggml.add_bos_token", &t->add_bos, err) ||
        !gguf_get_bool(f, "tokenizer.ggml.add_eos_token", &t->add_eos, err) ||
        !gguf_get_bool(f, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err) ||
        !load_fims(t, err))
        return false;
    if (t->pre && t->pre->flags & TEXT_PRE_FORCE_BOS) t->add_bos = true;
    load_ends(t);
    return true;
}
