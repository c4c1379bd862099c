/* cli/input.c: reads prompts and lists of ids. See cli/input.h. */
#include "cli/input.h"
#include "base/utf8.h"
#include "cli/system.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_input_unescape(const char *text, size_t size, struct base_buffer *out)
{
    static const char from[] = "ntr\\\"'", to[] = "\n\t\r\\\"'";
    for (const char *c = text, *end = text + size; c < end; c++) {
        const char *simple = *c == '\\' && end - c > 1 ? memchr(from, c[1], sizeof from - 1) : NULL;
        char byte = *c;
        if (simple) {
            byte = to[simple - from];
            c++;
        } else if (*c == '\\' && end - c > 3 && c[1] == 'x' && base_hex_digit(c[2]) >= 0 &&
                   base_hex_digit(c[3]) >= 0) {
            byte = (char)(base_hex_digit(c[2]) * 16 + base_hex_digit(c[3]));
            c += 3;
        }
        base_buffer_add(out, &byte, 1);
    }
}

void cli_input_add(const struct chat_request *request, const char *text, struct base_buffer *out)
{
    if (request->escape)
        cli_input_unescape(text, strlen(text), out);
    else
        base_buffer_add_text(out, text);
}

/* Returns whether the file is the one that standard input reads, for example /dev/stdin. */
static bool is_stdin(const char *path)
{
    struct stat file, input;
    if (strcmp(path, "-") == 0) return true;
    return stat(path, &file) == 0 && fstat(STDIN_FILENO, &input) == 0 &&
           file.st_dev == input.st_dev && file.st_ino == input.st_ino;
}

/* Appends a text on a line of its own. */
static void join(struct base_buffer *out, const struct base_buffer *text)
{
    if (out->size && text->size && out->data[out->size - 1] != '\n' && text->data[0] != '\n')
        base_buffer_add(out, "\n", 1);
    base_buffer_add(out, text->data, text->size);
    out->failed |= text->failed;
}

/* Reads the text of -f, then -p. */
static bool read_given(const struct cli_values *values, struct base_buffer *out,
                       struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    const bool ok = !values->file || cli_file_read(values->file, out, err);
    if (values->prompt) cli_input_add(&values->request, values->prompt, &text);
    join(out, &text);
    return ok && cli_buffer_check(out, err);
}

bool cli_input_read(const struct cli_values *values, struct base_buffer *out,
                    struct base_error *err)
{
    BASE_LOCAL_BUFFER given = BASE_BUFFER_INIT;
    const bool has_given = values->file || values->prompt, is_piped = cli_stdin_is_piped();
    if (!has_given && cli_stdin_is_terminal())
        return base_fail(err, BASE_USAGE,
                         "no text: give -p TEXT or -f FILE, or pipe it in; see infer --help");
    /* Read first, so that a wrong file name is reported without waiting for a pipe. */
    bool ok = !has_given || read_given(values, &given, err);
    if (ok && (!has_given || (is_piped && !(values->file && is_stdin(values->file)))))
        ok = cli_file_read("-", out, err);
    if (ok && has_given && out->size && cli_stderr_is_terminal())
        cli_note("%zu bytes of standard input come before %s", out->size,
                 values->file ? "the file" : "the text");
    join(out, &given);
    return ok && cli_buffer_check(out, err);
}

bool cli_encode(const struct chat_request *request, const struct text_tokenizer *t,
                const struct base_buffer *text, const char *own, unsigned flags,
                struct text_ids *ids, struct base_error *err)
{
    if (text_encode_framed(t, text->data ? text->data : "", own, text->size,
                           flags | (request->lossy ? TEXT_LOSSY : 0), ids, err))
        return true;
    if (err->code == BASE_USAGE && err->offset >= 0) {
        const size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, "; %s",
                 cli_is_utf16(text->data, text->size) ? "this " CLI_UTF16_ADVICE
                                                      : "--lossy leaves out such bytes");
    }
    return false;
}

static bool add_part(const struct chat_request *request, const struct text_tokenizer *t,
                     enum text_fill part, const struct base_buffer *text, struct text_ids *ids,
                     struct base_error *err)
{
    return text_ids_add(ids, text_token_fill(t, part), err) &&
           (text->size == 0 || cli_encode(request, t, text, NULL, TEXT_CONTINUES, ids, err));
}

/* Appends the ids of the text, a gap and --suffix, in the order that models are trained with; in
 * neither part a name of a special token is read. */
static bool encode_fill(const struct chat_request *request, const struct text_tokenizer *t,
                        const struct base_buffer *text, struct text_ids *ids,
                        struct base_error *err)
{
    const int32_t middle = text_token_fill(t, TEXT_FILL_MIDDLE);
    BASE_LOCAL_BUFFER suffix = BASE_BUFFER_INIT;
    if (text_token_fill(t, TEXT_FILL_PREFIX) < 0 || text_token_fill(t, TEXT_FILL_SUFFIX) < 0)
        return base_fail_at(err, BASE_USAGE, "--suffix", -1,
                            "the model has no tokens for a text with a gap (fill-in-the-middle)");
    base_buffer_add_text(&suffix, request->suffix);
    bool ok = cli_buffer_check(&suffix, err);
    if (ok && text_adds_bos(t) && !request->no_bos) ok = text_ids_add(ids, text_token_bos(t), err);
    if (middle >= 0)
        ok = ok && add_part(request, t, TEXT_FILL_PREFIX, text, ids, err) &&
             add_part(request, t, TEXT_FILL_SUFFIX, &suffix, ids, err) &&
             text_ids_add(ids, middle, err);
    else
        ok = ok && add_part(request, t, TEXT_FILL_SUFFIX, &suffix, ids, err) &&
             add_part(request, t, TEXT_FILL_PREFIX, text, ids, err);
    return ok;
}

bool cli_input_encode(const struct chat_request *request, const struct text_tokenizer *t,
                      const struct base_buffer *text, struct text_ids *ids, struct base_error *err)
{
    unsigned flags =
        (request->no_bos ? 0 : TEXT_ADD_SPECIAL) | (request->no_special ? 0 : TEXT_PARSE_SPECIAL);
    if (request->suffix) return encode_fill(request, t, text, ids, err);
    return cli_encode(request, t, text, NULL, flags, ids, err);
}

static void add_prompt_json(const struct text_tokenizer *t, const struct base_buffer *text,
                            const struct text_ids *ids, struct base_buffer *out)
{
    base_buffer_add_text(out, "{\"prompt\":");
    base_buffer_add_json(out, text->size ? text->data : "", text->size);
    base_buffer_add_format(out, ",\"count\":%zu,\"ids\":[", ids->count);
    for (size_t i = 0; i < ids->count; i++)
        base_buffer_add_format(out, "%s%d", i ? "," : "", ids->id[i]);
    base_buffer_add_text(out, "],\"tokens\":[");
    for (size_t i = 0; i < ids->count; i++) {
        const struct gguf_str raw = text_token_raw(t, ids->id[i]);
        if (i) base_buffer_add_text(out, ",");
        base_buffer_add_json(out, raw.data, raw.size);
    }
    base_buffer_add_text(out, "]}\n");
}

bool cli_prompt_show(const struct cli_values *values, const struct text_tokenizer *t,
                     const struct base_buffer *text, const struct text_ids *ids,
                     struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT, whole = BASE_BUFFER_INIT;
    if (values->request.suffix && !values->request.chat.chat) {
        for (size_t i = 0; i < ids->count; i++) text_token_bytes(t, ids->id[i], true, &whole);
        text = &whole;
    }
    if (values->json) {
        add_prompt_json(t, text, ids, &out);
    } else {
        base_buffer_add(&out, text->data, text->size);
        if (text->size && text->data[text->size - 1] != '\n') base_buffer_add_text(&out, "\n");
        for (size_t i = 0; i < ids->count; i++)
            base_buffer_add_format(&out, "%s%d", i ? " " : "", ids->id[i]);
        base_buffer_add_text(&out, "\n");
    }
    out.failed |= whole.failed;
    return cli_write_buffer(&out, err);
}

bool cli_ids_parse(const char *text, size_t size, uint32_t n_vocab, struct text_ids *ids,
                   struct base_error *err)
{
    static const char between[] = " ,\t\r\n";
    for (size_t i = 0; i < size;) {
        if (text[i] != '\0' && strchr(between, text[i])) {
            i++;
            continue;
        }
        size_t start = i;
        uint64_t id = 0;
        if (!base_goes_on(err)) return false;
        for (; i < size && text[i] >= '0' && text[i] <= '9' && id <= UINT32_MAX; i++)
            id = id * 10 + (uint64_t)(text[i] - '0');
        bool ends = i == size || (text[i] != '\0' && strchr(between, text[i]));
        if (i == start || !ends)
            return base_fail(err, BASE_USAGE, "ids: '%.*s' is not a token id (at byte %zu)",
                             (int)(size - start < 12 ? size - start : 12), text + start, start);
        if (id >= n_vocab)
            return base_fail(err, BASE_USAGE, "ids: %llu is outside the vocabulary of %u tokens",
                             (unsigned long long)id, n_vocab);
        if (!text_ids_add(ids, (int32_t)id, err)) return false;
    }
    return true;
}

/* ---- Plain lines ---- */

bool cli_each_read(const struct cli_values *values, struct base_buffer *each,
                   struct base_error *err)
{
    base_buffer_add_text(each, values->each);
    if (!cli_buffer_check(each, err)) return false;
    return values->csv || strstr(values->each, "{}") ||
           base_fail_at(err, BASE_USAGE, "--each", -1, "has no {} for the text of a line");
}

void cli_each_fill(const struct base_buffer *each, const char *line, size_t size,
                   struct base_buffer *out)
{
    static const char hole[] = "{}";
    const char *from = each->data, *end = each->data + each->size, *at;
    if (size > 0 && line[size - 1] == '\r') size--;
    while ((at = memmem(from, (size_t)(end - from), hole, 2)) != NULL) {
        base_buffer_add(out, from, (size_t)(at - from));
        base_buffer_add(out, line, size);
        from = at + 2;
    }
    base_buffer_add(out, from, (size_t)(end - from));
}

/* ---- Chunks ---- */

bool cli_chunks_cut(const struct cli_values *values, const struct text_ids *ids, uint32_t *chunk,
                    uint64_t *n_chunks, struct base_error *err)
{
    if (ids->count < *chunk) *chunk = (uint32_t)ids->count;
    if (*chunk < 4)
        return base_fail(err, BASE_USAGE, "the text has %zu tokens; at least 4 are needed",
                         ids->count);
    *n_chunks = ids->count / *chunk;
    if (values->chunks > 0 && *n_chunks > (uint64_t)values->chunks)
        *n_chunks = (uint64_t)values->chunks;
    return true;
}

void cli_chunks_begin(const struct cli_values *values, const struct text_tokenizer *t,
                      struct text_ids *ids, uint32_t chunk, uint64_t n_chunks)
{
    const bool bos = !values->request.no_bos && text_adds_bos(t);
    for (uint64_t i = 0; bos && i < n_chunks; i++) ids->id[i * chunk] = text_token_bos(t);
}

bool cli_chunks_read(const struct cli_values *values, const struct text_tokenizer *t,
                     uint32_t n_vocab, struct text_ids *ids, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    bool ok;
    if (values->ids) {
        ok = cli_file_read(values->ids, &text, err) &&
             cli_ids_parse(text.data ? text.data : "", text.size, n_vocab, ids, err);
        if (!ok) base_error_set_file(err, values->ids);
    } else {
        ok = cli_input_read(values, &text, err) &&
             cli_input_encode(&values->request, t, &text, ids, err);
    }
    return ok;
}
