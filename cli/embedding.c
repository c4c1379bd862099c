/* cli/embedding.c: what the commands for embeddings share. See cli/embedding.h. */
#include "cli/embedding.h"
#include "base/list.h"
#include "cli/input.h"
#include "cli/model_hash.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STANDARD_SLOTS = 64, STANDARD_CTX = 8192 };

/* ---- Prefixes of known models ---- */

/* Prefixes that models were trained with; files do not contain them. `name` is a part of the file's
 * name or of general.name, in small letters and digits only; the first row that fits counts. */
static const struct known_prefix {
    const char *name, *query, *document;
} known[] = {
    {"nomicembed", "search_query: ", "search_document: "},
    {"e5mistral",
     "Instruct: Given a web search query, retrieve relevant passages that answer the "
     "query\nQuery: ",
     ""},
    {"e5largeinstruct",
     "Instruct: Given a web search query, retrieve relevant passages that answer the "
     "query\nQuery: ",
     ""},
    {"gteqwen2",
     "Instruct: Given a web search query, retrieve relevant passages that answer the "
     "query\nQuery: ",
     ""},
    {"qwen3embedding",
     "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
     ""},
    {"e5small", "query: ", "passage: "},
    {"e5base", "query: ", "passage: "},
    {"e5large", "query: ", "passage: "},
    {"bgem3", "", ""},
    {"bgesmallzh", "为这个句子生成表示以用于检索相关文章：", ""},
    {"bgebasezh", "为这个句子生成表示以用于检索相关文章：", ""},
    {"bgelargezh", "为这个句子生成表示以用于检索相关文章：", ""},
    {"bge", "Represent this sentence for searching relevant passages: ", ""},
    {"mxbaiembed", "Represent this sentence for searching relevant passages: ", ""},
    {"arcticembedlv2", "query: ", ""},
    {"arcticembedmv2", "query: ", ""},
    {"arcticembed", "Represent this sentence for searching relevant passages: ", ""},
    {"embeddinggemma", "task: search result | query: ", "title: none | text: "},
    {"allminilm", "", ""},
    {"allmpnet", "", ""},
    {"gte", "", ""},
    {"jinaembeddingsv2", "", ""},
};

static bool names_model(const char *name, const char *part)
{
    char letters[256];
    size_t n = 0;
    for (; *name && n + 1 < sizeof letters; name++)
        if (isalnum((unsigned char)*name)) letters[n++] = (char)tolower((unsigned char)*name);
    letters[n] = '\0';
    return strstr(letters, part) != NULL;
}

bool cli_embed_prefix(const struct cli_embed *e, enum cli_embed_role role, struct base_buffer *out,
                      struct base_error *err)
{
    const char *path = gguf_path(e->model.file), *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    if (e->values->prefix) cli_input_add(&e->values->request, e->values->prefix, out);
    if (e->values->prefix || role == CLI_EMBED_ANY) return cli_buffer_check(out, err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!names_model(file, known[i].name) && !names_model(e->model.name.data, known[i].name))
            continue;
        base_buffer_add_text(out, role == CLI_EMBED_QUERY ? known[i].query : known[i].document);
        return cli_buffer_check(out, err);
    }
    return !e->values->as ||
           base_fail_at(err, BASE_USAGE, "--as", -1,
                        "the prefixes of this model are not known: give one with --prefix");
}

/* ---- Opening ---- */

static bool read_pooling(struct cli_embed *e, const char *name)
{
    static const char *const names[] = {"none", "mean", "cls", "last", "rank"}; /* in order */
    e->pooling = model_facts(e->model.model)->pooling;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) e->pooling = (enum model_pooling)i;
    return true;
}

/* Reads --normalize: a word, or the number that it stands for. Scores are not normalized. */
static bool read_norm(struct cli_embed *e, struct base_error *err)
{
    static const struct {
        const char *word;
        int p;
    } words[] = {{"none", -1}, {"max", 0}, {"taxicab", 1}, {"euclidean", 2}};
    const char *text = e->values->normalize;
    char *end;
    e->norm = e->pooling == MODEL_POOL_RANK ? -1 : 2;
    if (!text) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i].word) == 0) {
            e->norm = words[i].p;
            return true;
        }
    const long p = strtol(text, &end, 10);
    if (*end || end == text || p < -1 || p > 64)
        return base_fail_at(err, BASE_USAGE, "--normalize", -1,
                            "'%s' is not none (-1), max (0), taxicab (1), euclidean (2) or a power "
                            "up to 64",
                            text);
    e->norm = (int)p;
    return true;
}

/* Counts the special tokens before and after a text. */
static bool count_ends(struct cli_embed *e, struct base_error *err)
{
    BASE_LOCAL_BUFFER probe = BASE_BUFFER_INIT;
    TEXT_LOCAL_IDS with = TEXT_IDS_INIT, plain = TEXT_IDS_INIT;
    const struct text_tokenizer *t = e->model.tokenizer;
    base_buffer_add_text(&probe, "a");
    const bool ok = cli_buffer_check(&probe, err) &&
                    cli_encode(&e->values->request, t, &probe, NULL,
                               e->values->request.no_bos ? 0 : TEXT_ADD_SPECIAL, &with, err) &&
                    cli_encode(&e->values->request, t, &probe, NULL, 0, &plain, err);
    while (ok && e->n_head + plain.count < with.count &&
           memcmp(with.id + e->n_head, plain.id, plain.count * sizeof *plain.id) != 0)
        e->n_head++;
    if (ok) e->n_tail = with.count - plain.count - e->n_head;
    return ok;
}

static bool check_sizes(struct cli_embed *e, struct base_error *err)
{
    const uint32_t size = generate_embedder_size(e->embedder);
    const struct cli_values *v = e->values;
    e->size = v->dimensions ? (uint32_t)v->dimensions : size;
    if (e->size > size)
        return base_fail_at(err, BASE_USAGE, "--dimensions", -1, "a row has %u numbers", size);
    if (!v->pieces.count) return true;
    const int64_t least = (int64_t)(e->n_head + e->n_tail) + 1;
    const int64_t n = v->pieces.item[0], overlap = v->pieces.count > 1 ? v->pieces.item[1] : 0;
    if (v->pieces.count > 2 || n < least || n > e->n_max || overlap > n - least)
        return base_fail_at(err, BASE_USAGE, "--chunk", -1,
                            "N,OVERLAP: %lld to %u tokens, and fewer that two parts share",
                            (long long)least, e->n_max);
    return true;
}

/* Replaces the hash of the model by one of the model, the options that change its rows, its
 * adapters and control vectors. */
static bool hash_all(const struct cli_embed *e, char hash[BASE_SHA256_HEX], struct base_error *err)
{
    const struct cli_adapters *a = &e->model.adapters;
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct base_sha256 h;
    base_buffer_add_text(&text, hash);
    cli_model_add_settings(e->values, &text);
    for (size_t i = 0; i < a->count; i++) {
        const struct cli_adapter *item = &a->item[i];
        cli_model_hash_pieces(item->file, true, hash);
        base_buffer_add_format(&text, "%s %a %u %u\n", hash, (double)item->scale, item->first,
                               item->last);
    }
    if (!cli_buffer_check(&text, err)) return false;
    base_sha256_init(&h);
    base_sha256_add(&h, text.data, text.size);
    base_sha256_hex(&h, hash);
    return true;
}

bool cli_embed_open(struct cli_embed *e, const struct cli_values *values, const char *pooling,
                    char *hash, struct base_error *err)
{
    uint32_t n_slots;
    *e = (struct cli_embed){.values = values, .model.embeds = true};
    if (!cli_model_open_file(&e->model, values, err) || !cli_model_open_tokenizer(&e->model, err))
        return false;
    if (hash && !cli_model_hash(e->model.file, hash, err)) return false;
    if (!values->no_sandbox) cli_sandbox_limit(values->output);
    if (!cli_model_open_weights(&e->model, values, err)) return false;
    if (hash && !hash_all(e, hash, err)) return false;
    const struct model_facts *f = model_facts(e->model.model);
    const uint32_t standard = f->n_ctx_train < STANDARD_CTX ? f->n_ctx_train : STANDARD_CTX;
    const uint32_t n_ctx = values->ctx_size ? (uint32_t)values->ctx_size : standard;
    if (!read_pooling(e, pooling) || !read_norm(e, err) ||
        !cli_model_open_slots(&e->model, values, n_ctx, STANDARD_SLOTS, 0, &n_slots, err))
        return false;
    f = model_facts(e->model.model); /* which the session may have opened again */
    if (f->writes && !f->has_pooling && !pooling)
        cli_note("the file has no pooling_type: a model that writes texts, whose rows compare them "
                 "badly");
    e->embedder = generate_embedder_new(e->model.session, f, e->pooling, err);
    e->n_max = model_session_n_ctx(e->model.session);
    if (e->embedder && values->verbose) cli_model_note(&e->model);
    return e->embedder && count_ends(e, err) && check_sizes(e, err);
}

void cli_embed_close(struct cli_embed *e)
{
    generate_embedder_free(e->embedder);
    cli_model_close(&e->model);
}

/* ---- Rows ---- */

bool cli_embed_add_ids(const struct cli_embed *e, struct text_ids *ids, struct cli_embed_rows *rows,
                       struct base_error *err)
{
    const size_t n_rows = e->pooling == MODEL_POOL_NONE ? ids->count : 1;
    if (!BASE_LIST_ROOM(rows->row, rows->n, rows->room))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu rows", rows->n + 1);
    float *v = calloc(n_rows ? n_rows : 1, generate_embedder_size(e->embedder) * sizeof *v);
    if (!v) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a row");
    rows->row[rows->n++] = (struct cli_embed_row){*ids, n_rows, v, NULL};
    *ids = TEXT_IDS_INIT;
    return true;
}

/* Adds a row of the special tokens of ids, with ids from .. end - 1 between them. */
static bool add_part(const struct cli_embed *e, const struct text_ids *ids, size_t n_head,
                     size_t from, size_t end, struct cli_embed_rows *rows, struct base_error *err)
{
    TEXT_LOCAL_IDS part = TEXT_IDS_INIT;
    bool ok = true;
    for (size_t i = 0; ok && i < ids->count; i++)
        if (i < n_head || (i >= from && i < end) || i >= ids->count - e->n_tail)
            ok = text_ids_add(&part, ids->id[i], err);
    return ok && cli_embed_add_ids(e, &part, rows, err);
}

/* Adds the parts of --chunk: consecutive tokens after the n_head first ones. */
static bool add_parts(const struct cli_embed *e, const struct text_ids *ids, size_t n_head,
                      struct cli_embed_rows *rows, struct base_error *err)
{
    const struct cli_integers *pieces = &e->values->pieces;
    const size_t n = (size_t)pieces->item[0], around = n_head + e->n_tail;
    const size_t overlap = pieces->count > 1 ? (size_t)pieces->item[1] : 0;
    const size_t last = ids->count - e->n_tail;
    if (n <= around + overlap)
        return base_fail_at(err, BASE_USAGE, "--chunk", -1,
                            "the prefix and special tokens alone are %zu tokens", around);
    for (size_t from = n_head;; from += n - around - overlap) {
        const size_t end = from + n - around < last ? from + n - around : last;
        if (!add_part(e, ids, n_head, from, end, rows, err)) return false;
        if (end == last) return true;
    }
}

static bool add_ids(const struct cli_embed *e, struct text_ids *ids, size_t n_prefix,
                    struct cli_embed_rows *rows, struct base_error *err)
{
    const size_t n_head = e->n_head + n_prefix, around = n_head + e->n_tail;
    const size_t n_part = e->values->pieces.count ? (size_t)e->values->pieces.item[0] : 0;
    if (ids->count == 0)
        return base_fail(err, BASE_USAGE, "the text is empty, and so is what surrounds it");
    if (n_part && ids->count > n_part) return add_parts(e, ids, n_head, rows, err);
    if (ids->count <= e->n_max) return cli_embed_add_ids(e, ids, rows, err);
    if (!e->values->truncate || around >= e->n_max)
        return base_fail(
            err, BASE_TOO_LONG,
            "the text has %zu tokens and the model reads %u: --truncate cuts it, --chunk "
            "%u,%u makes several rows",
            ids->count, e->n_max, e->n_max, e->n_max / 8);
    return add_part(e, ids, n_head, n_head, n_head + e->n_max - around, rows, err);
}

bool cli_embed_add(const struct cli_embed *e, const struct base_buffer *prefix, const char *text,
                   size_t size, struct cli_embed_rows *rows, struct base_error *err)
{
    BASE_LOCAL_BUFFER whole = BASE_BUFFER_INIT;
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT, body = TEXT_IDS_INIT;
    const struct cli_values *v = e->values;
    const unsigned special = v->request.no_special ? 0 : TEXT_PARSE_SPECIAL;
    base_buffer_add(&whole, prefix->data, prefix->size);
    base_buffer_add(&whole, text, size);
    bool ok = cli_buffer_check(&whole, err) &&
              cli_encode(&v->request, e->model.tokenizer, &whole, NULL,
                         special | (v->request.no_bos ? 0 : TEXT_ADD_SPECIAL), &ids, err);
    size_t n_prefix = 0;
    const size_t limit = v->pieces.count ? (size_t)v->pieces.item[0] : e->n_max;
    if (ok && prefix->size && ids.count > limit) { /* each part begins with the prefix */
        base_buffer_clear(&whole);
        base_buffer_add(&whole, text, size);
        ok =
            cli_buffer_check(&whole, err) && cli_encode(&v->request, e->model.tokenizer, &whole,
                                                        NULL, special | TEXT_CONTINUES, &body, err);
        const size_t rest = e->n_head + e->n_tail + body.count;
        n_prefix = ok && ids.count > rest ? ids.count - rest : 0;
    }
    return ok && add_ids(e, &ids, n_prefix, rows, err);
}

float *cli_embed_row(const struct cli_embed *e, const struct cli_embed_row *r, size_t i)
{
    return r->v + i * generate_embedder_size(e->embedder);
}

bool cli_embed_run(const struct cli_embed *e, struct cli_embed_rows *rows, struct base_error *err)
{
    struct generate_embed_text *text = calloc(rows->n ? rows->n : 1, sizeof *text);
    if (!text) return base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu rows", rows->n);
    for (size_t i = 0; i < rows->n; i++)
        text[i] = (struct generate_embed_text){rows->row[i].ids.id, rows->row[i].ids.count,
                                               rows->row[i].v, rows->row[i].lora};
    const bool ok = generate_embedder_run(e->embedder, text, rows->n, err);
    free(text);
    for (size_t i = 0; ok && i < rows->n; i++)
        for (size_t k = 0; k < rows->row[i].n_rows; k++) {
            float *v = cli_embed_row(e, &rows->row[i], k);
            generate_embed_normalize(v, e->size, e->norm);
            for (uint32_t d = 0; d < e->size; d++)
                if (!isfinite(v[d]))
                    return base_fail(err, BASE_FAILED,
                                     "the model gave numbers that are not finite");
        }
    return ok;
}

void cli_embed_rows_cut(struct cli_embed_rows *rows, size_t n)
{
    while (rows->n > n) {
        struct cli_embed_row *r = &rows->row[--rows->n];
        text_ids_free(&r->ids);
        free(r->v);
    }
}

void cli_embed_rows_clear(struct cli_embed_rows *rows)
{
    cli_embed_rows_cut(rows, 0);
    free(rows->row);
    *rows = (struct cli_embed_rows){0};
}
