/* cli/cmd/cmd_tokenize.c: `infer tokenize`: prints the ids of a text, or the text of ids. It reads
 * only the vocabulary of the file, so files without weights work too. */
#include "cli/input.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <string.h>

struct id_printer {
    const struct cli_values *values;
    const struct text_tokenizer *tokenizer;
    struct base_buffer out;
};

/* Appends ids without printf, which takes longer than encoding. */
static void add_ids(struct id_printer *j, const struct text_ids *ids, char separator)
{
    for (size_t i = 0; i < ids->count; i++) {
        char digits[1 + 10];
        size_t at = sizeof digits;
        uint32_t left = (uint32_t)ids->id[i];
        do {
            digits[--at] = (char)('0' + left % 10);
        } while (left /= 10);
        if (i) digits[--at] = separator;
        base_buffer_add(&j->out, digits + at, sizeof digits - at);
    }
}

static void add_json_ids(struct id_printer *j, const struct text_ids *ids)
{
    base_buffer_add_text(&j->out, "\"ids\":[");
    add_ids(j, ids, ',');
    base_buffer_add_text(&j->out, "]");
}

static bool encode(struct id_printer *j, const char *bytes, size_t size, struct base_error *err)
{
    const struct base_buffer view = {.data = (char *)bytes, .size = size};
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT;
    bool ok = cli_input_encode(&j->values->request, j->tokenizer, &view, &ids, err);
    if (ok && j->values->json) {
        base_buffer_add_format(&j->out, "{\"count\":%zu,", ids.count);
        add_json_ids(j, &ids);
        base_buffer_add_text(&j->out, ",\"tokens\":[");
        for (size_t i = 0; i < ids.count; i++) {
            struct gguf_str raw = text_token_raw(j->tokenizer, ids.id[i]);
            if (i) base_buffer_add_text(&j->out, ",");
            base_buffer_add_json(&j->out, raw.data, raw.size);
        }
        base_buffer_add_text(&j->out, "]}");
    } else if (ok) {
        add_ids(j, &ids, ' ');
    }
    if (ok) base_buffer_add_text(&j->out, "\n");
    return ok;
}

/* Writes the exact bytes of the text. Adds a line end only between lines, in JSON, or on a
 * terminal. */
static bool decode(struct id_printer *j, const char *bytes, size_t size, struct base_error *err)
{
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT;
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct text_decoder d;
    bool ok = cli_ids_parse(bytes, size, text_vocab_size(j->tokenizer), &ids, err);
    text_decoder_init(&d, j->tokenizer, false, j->values->request.special);
    for (size_t i = 0; ok && i < ids.count; i++) {
        text_decoder_add(&d, ids.id[i], &text);
        ok = base_goes_on(err);
    }
    base_buffer_add(&text, d.held, d.n_held); /* an incomplete character too: U+FFFD in JSON only */
    if (ok && j->values->json) {
        base_buffer_add_format(&j->out, "{\"count\":%zu,", ids.count);
        add_json_ids(j, &ids);
        base_buffer_add_text(&j->out, ",\"text\":");
        base_buffer_add_json(&j->out, text.size ? text.data : "", text.size);
        base_buffer_add_text(&j->out, "}\n");
    } else if (ok) {
        base_buffer_add(&j->out, text.data, text.size);
        if (j->values->lines || cli_stdout_is_terminal()) base_buffer_add_text(&j->out, "\n");
    }
    return ok && cli_buffer_check(&text, err);
}

static bool one(struct id_printer *j, const char *bytes, size_t size, struct base_error *err)
{
    bool ok = j->values->decode ? decode(j, bytes, size, err) : encode(j, bytes, size, err);
    return ok && cli_write_buffer(&j->out, err);
}

static bool each_line(struct id_printer *j, const struct base_buffer *text, struct base_error *err)
{
    for (size_t at = 0; at < text->size;) {
        const char *line = text->data + at;
        const char *end = memchr(line, '\n', text->size - at);
        size_t size = end ? (size_t)(end - line) : text->size - at;
        if (!base_goes_on(err) || !one(j, line, size, err)) return false;
        at += size + 1;
    }
    return true;
}

static bool cmd_tokenize(struct cli_values *values, struct base_error *err)
{
    if (values->request.special && !values->decode)
        return base_fail_at(err, BASE_USAGE, "--special", -1, "goes with --decode only");
    struct cli_model m = {.encodes = true};
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct id_printer j = {.values = values};
    bool ok = cli_input_read(values, &text, err) && cli_model_open_file(&m, values, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(0);
    ok = ok && cli_model_open_tokenizer(&m, err);
    j.tokenizer = m.tokenizer;
    if (ok && values->lines)
        ok = each_line(&j, &text, err);
    else if (ok)
        ok = one(&j, text.data ? text.data : "", text.size, err);
    base_buffer_free(&j.out);
    cli_model_close(&m);
    return ok;
}

const struct cli_command cli_command_tokenize = {
    .name = "tokenize",
    .usage = "infer tokenize [-m MODEL] TEXT [options]",
    .effect = "print the token ids of a text, or the text of ids",
    .about = "Prints the token ids of the text (-p, -f or standard input), separated by\n"
             "spaces, one line per input. Needs the vocabulary only, not the weights.",
    .positional = "prompt",
    .run = cmd_tokenize,
};
