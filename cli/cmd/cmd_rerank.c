/* cli/cmd/cmd_rerank.c: `infer rerank`: scores lines by how well they answer a query.
 *
 * The model reads query and line together. An encoder's pair is BOS query EOS (SEP) line EOS; a
 * decoder's is the text of a template. */
#include "cli/cmd/ranked.h"
#include "cli/commands.h"
#include "cli/gpu_layers.h"
#include "cli/input.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <string.h>

/* The template of decoders whose file has none: that of Qwen3-Reranker. */
static const char usual_template[] =
    "<|im_start|>system\n"
    "Judge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n"
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
    "<Query>: {query}\n"
    "<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n";

struct rerank {
    struct cli_embed e;
    struct base_buffer query;
    struct gguf_str template; /* no data: pairs of an encoder */
    int32_t separator;        /* between the parts of a pair; -1: none */
};

/* Finds what separates the parts of a pair besides the tokens at the end of a text. */
static bool find_separator(struct rerank *s, struct base_error *err)
{
    static const char *const doubled[] = {"roberta-bpe", "jina-v1-en", "jina-v2-code"};
    const struct text_tokenizer *t = s->e.model.tokenizer;
    const struct gguf_file *file = s->e.model.file;
    bool adds = false;
    uint32_t id = 0;
    for (size_t i = 0; i < sizeof doubled / sizeof *doubled; i++)
        adds = adds || strcmp(text_tokenizer_pre(t), doubled[i]) == 0;
    s->separator = -1;
    if (!gguf_get_bool(file, "tokenizer.ggml.add_sep_token", &adds, err)) return false;
    if (!adds || strcmp(text_tokenizer_model(t), "bert") == 0) return true;
    s->separator = text_token_eos(t);
    if (!gguf_kv_find(file, "tokenizer.ggml.seperator_token_id")) return true;
    if (!gguf_get_u32(file, "tokenizer.ggml.seperator_token_id", &id, err)) return false;
    s->separator = id < text_vocab_size(t) ? (int32_t)id : -1;
    return true;
}

static bool find_template(struct rerank *s, struct base_error *err)
{
    if (!gguf_get_str(s->e.model.file, "tokenizer.chat_template.rerank", &s->template, err))
        return false;
    if (!s->template.data && !model_facts(s->e.model.model)->bidirectional)
        s->template = (struct gguf_str){usual_template, sizeof usual_template - 1};
    return true;
}

/* Adds text, with `own` as its kind (text_encode_framed), to the text of a pair. */
static void add_piece(struct base_buffer *text, struct base_buffer *kinds, const char *piece,
                      size_t n, char own)
{
    base_buffer_add(text, piece, n);
    for (size_t i = 0; i < n; i++) base_buffer_add(kinds, &own, 1);
}

/* Fills the template; names of special tokens in query and line are text. */
static void fill_template(const struct rerank *s, const struct cli_ranked_line *line,
                          struct base_buffer *text, struct base_buffer *kinds)
{
    const char *at = s->template.data, *end = at + s->template.size;
    while (at < end) {
        const size_t left = (size_t)(end - at);
        if (left >= 7 && memcmp(at, "{query}", 7) == 0) {
            add_piece(text, kinds, s->query.data, s->query.size, 0);
            at += 7;
        } else if (left >= 10 && memcmp(at, "{document}", 10) == 0) {
            add_piece(text, kinds, line->text, line->size, 0);
            at += 10;
        } else {
            add_piece(text, kinds, at++, 1, 1);
        }
    }
}

static bool encode_template(const struct rerank *s, const struct cli_ranked_line *line,
                            struct text_ids *ids, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT, kinds = BASE_BUFFER_INIT;
    fill_template(s, line, &text, &kinds);
    return cli_buffer_check(&text, err) && cli_buffer_check(&kinds, err) &&
           cli_encode(&s->e.values->request, s->e.model.tokenizer, &text, kinds.data,
                      TEXT_PARSE_SPECIAL, ids, err);
}

static bool add_ids(struct text_ids *to, const struct text_ids *from, size_t first, size_t end,
                    struct base_error *err)
{
    bool ok = true;
    for (size_t i = first; ok && i < end; i++) ok = text_ids_add(to, from->id[i], err);
    return ok;
}

/* Encodes BOS query EOS (SEP) line EOS; with --truncate the line is cut. */
static bool encode_pair(const struct rerank *s, const struct cli_ranked_line *line,
                        struct text_ids *ids, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    TEXT_LOCAL_IDS document = TEXT_IDS_INIT;
    const struct text_tokenizer *t = s->e.model.tokenizer;
    base_buffer_add(&text, line->text, line->size);
    bool ok = cli_buffer_check(&text, err) &&
              cli_encode(&s->e.values->request, t, &s->query, NULL, TEXT_ADD_SPECIAL, ids, err) &&
              (s->separator < 0 || text_ids_add(ids, s->separator, err)) &&
              cli_encode(&s->e.values->request, t, &text, NULL, TEXT_ADD_SPECIAL, &document, err);
    const size_t tail = s->e.n_tail, head = s->e.n_head;
    const size_t room = s->e.n_max > ids->count + tail ? s->e.n_max - ids->count - tail : 0;
    size_t n = ok ? document.count - head - tail : 0;
    if (s->e.values->truncate && n > room) n = room;
    return ok && add_ids(ids, &document, head, head + n, err) &&
           add_ids(ids, &document, document.count - tail, document.count, err);
}

static bool add_line(void *user, const struct cli_ranked_line *line, struct cli_embed_rows *rows,
                     struct base_error *err)
{
    const struct rerank *s = user;
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT;
    bool ok =
        s->template.data ? encode_template(s, line, &ids, err) : encode_pair(s, line, &ids, err);
    if (ok && ids.count > s->e.n_max)
        ok =
            base_fail(err, BASE_TOO_LONG, "query and line have %zu tokens and the model reads %u%s",
                      ids.count, s->e.n_max, s->template.data ? "" : ": --truncate cuts the line");
    return ok && cli_embed_add_ids(&s->e, &ids, rows, err);
}

static double score_of(void *user, const float *row)
{
    (void)user;
    return (double)row[0];
}

static bool cmd_rerank(struct cli_values *values, struct base_error *err)
{
    struct rerank s = {.query = BASE_BUFFER_INIT};
    struct cli_ranked lines = {0};
    if (values->prompt) cli_input_add(&values->request, values->prompt, &s.query);
    bool ok = (values->prompt && *values->prompt
                   ? cli_buffer_check(&s.query, err)
                   : base_fail(err, BASE_USAGE, "no query: infer rerank QUERY < LINES")) &&
              cli_ranked_read(&lines, values, "rerank", err) &&
              cli_embed_open(&s.e, values, "rank", NULL, err) && find_template(&s, err) &&
              find_separator(&s, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(cli_gpu_allows(values));
    ok = ok && cli_ranked_run(&lines, &s.e, add_line, score_of, &s, err) &&
         cli_ranked_write(&lines, &s.e, err);
    cli_ranked_free(&lines);
    base_buffer_free(&s.query);
    cli_embed_close(&s.e);
    return ok;
}

const struct cli_command cli_command_rerank = {
    .name = "rerank",
    .usage = "infer rerank [-m MODEL] QUERY [options] < LINES",
    .effect = "scores of lines by how well they answer a query",
    .about = "The model reads the query and each line together. Writes score and line, best\n"
             "first. Needs a reranker: a model with a classifier.",
    .positional = "prompt",
    .run = cmd_rerank,
};
