/* test/fuzz_tools.c: a fuzz target: tools as JSON, and after a NUL byte a model's reply, which is
 * split without losing a byte; the arguments of every call are a JSON object. */
#include "test/fuzz.h"
#include "text/chat/reply.h"
#include <string.h>

static void check_part(const struct text_reply_part *part, const char *text, size_t *seen)
{
    if (part->size && memcmp(part->bytes, text + *seen, part->size) != 0) abort();
    *seen += part->size;
    if (part->kind != TEXT_REPLY_CALL) return;
    json_t *arguments = json_loads(part->arguments, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(arguments)) abort();
    json_decref(arguments);
}

/* The last byte of the input determines how the reply is cut. */
static void use_reply(const char *text, size_t size, const json_t *tools)
{
    static const char signs[] =
        "think> [THINK] <|channel|> <|channel> >>>all <tool_call> <function= <|tool_call|> "
        "<|tool_call> [TOOL_CALLS] <|python_tag|> <｜tool▁calls▁begin｜> ｜DSML｜ "
        "<|tool_calls_section_begin|> <|START_ACTION|> <minimax:tool_call> <|tool_call_start|> "
        " to=self<|message|> <|open|> ]<]minimax[>[ <function name=\" <tool_calls{}> "
        "<|action_start|> "
        "[func_name1( {\"name\": function name, \"parameters\"";
    struct base_error err = BASE_ERROR_INIT;
    struct text_reply_part part;
    const struct text_reply_options options = {
        .template_text = signs, .tools = tools, .max_call = 300};
    struct text_reply *r = text_reply_new(&options, &err);
    if (!r) abort();
    const size_t step = 1 + (size ? (unsigned char)text[size - 1] % 7u : 0);
    size_t seen = 0;
    for (size_t at = 0; at <= size; at += step) {
        const size_t n = size - at < step ? size - at : step;
        if (!text_reply_feed(r, text + at, n, &err)) abort();
        while (text_reply_next(r, &part)) check_part(&part, text, &seen);
    }
    if (!text_reply_end(r, &err)) abort();
    while (text_reply_next(r, &part)) check_part(&part, text, &seen);
    if (seen != size) abort();
    text_reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *const text = (const char *)bytes;
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    json_t *tools = nul ? json_loadb(text, (size_t)(nul - text), 0, NULL) : NULL;
    if (tools && !json_is_array(tools)) {
        json_decref(tools);
        tools = NULL;
    }
    const char *const from = nul ? nul + 1 : text;
    use_reply(from, size - (size_t)(from - text), tools);
    json_decref(tools);
    return 0;
}
