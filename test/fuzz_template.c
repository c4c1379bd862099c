/* test/fuzz_template.c: libFuzzer entry for chat templates and replies: any text is refused or
 * renders within its limits, and any reply is taken apart without losing a byte. Built by
 * `make fuzz-template`; no part of the suite. */
#include "text/chat/reply.h"
#include "text/jinja/jinja.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char context_text[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"S\\u00e9\"}, {\"role\": \"user\", "
    "\"content\": \" U <b> \"}, {\"role\": \"assistant\", \"content\": \"<think>a</think>b\", "
    "\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"f\", "
    "\"arguments\": {\"x\": [1, 2.5, null, true, {\"y\": \"z\"}]}}}]}, {\"role\": \"tool\", "
    "\"content\": \"7\", \"tool_call_id\": \"1\"}], \"tools\": [{\"type\": \"function\", "
    "\"function\": {\"name\": \"f\", \"description\": \"d\", \"parameters\": {\"type\": "
    "\"object\", "
    "\"properties\": {\"x\": {\"type\": \"array\"}}}}}], \"bos_token\": \"<s>\", \"eos_token\": "
    "\"</s>\", \"add_generation_prompt\": true, \"s\": \"Hello, World\", \"n\": 7, \"l\": [3, 1, "
    "2], \"d\": {\"a\": 1}, \"f\": 2.5, \"t\": true, \"o\": null, \"x\": [], \"k\": [\"b\", "
    "\"a\"], \"w\": \"  a b \"}";

static void use_template(const char *text, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct jinja_template_options options = jinja_template_options_default();
    options.max_steps = 20000;
    options.max_memory = 8 << 20;
    options.max_output = 1 << 20;
    struct jinja_template *t = jinja_template_parse(text, size, &err);
    if ((t != NULL) != (err.code == BASE_OK)) abort();
    json_t *context = json_loadb(context_text, sizeof context_text - 1, 0, NULL);
    if (!context) abort();
    if (t) {
        const bool ok = jinja_template_render(t, context, &options, &out, &err);
        if (ok != (err.code == BASE_OK)) abort();
        if (out.size > options.max_output) abort();
    }
    json_decref(context);
    base_buffer_free(&out);
    jinja_template_free(t);
}

/* The input's last byte decides how the reply is cut. */
static void use_reply(const char *text, size_t size)
{
    static const char signs[] =
        "think> [THINK] <|channel|> <|channel> >>>all <tool_call> <function= <|tool_call|> "
        "<|tool_call> [TOOL_CALLS] <|python_tag|> <｜tool▁calls▁begin｜> ｜DSML｜ "
        "<|tool_calls_section_begin|> <|START_ACTION|> <minimax:tool_call> <|tool_call_start|> "
        "[func_name1( {\"name\": function name, \"parameters\"";
    struct base_error err = BASE_ERROR_INIT;
    struct text_reply_part part;
    json_t *tools = json_array();
    const struct text_reply_options options = {
        .template_text = signs, .tools = tools, .max_call = 300};
    struct text_reply *r = text_reply_new(&options, &err);
    if (!r || !tools) abort();
    const size_t step = 1 + (size ? (unsigned char)text[size - 1] % 7u : 0);
    size_t seen = 0;
    for (size_t at = 0; at <= size; at += step) {
        const size_t n = size - at < step ? size - at : step;
        if (!text_reply_feed(r, text + at, n, &err)) abort();
        while (text_reply_next(r, &part)) {
            if (memcmp(part.bytes, text + seen, part.size) != 0) abort();
            seen += part.size;
        }
    }
    if (!text_reply_end(r, &err)) abort();
    while (text_reply_next(r, &part)) {
        if (memcmp(part.bytes, text + seen, part.size) != 0) abort();
        seen += part.size;
    }
    if (seen != size) abort();
    text_reply_free(r);
    json_decref(tools);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    use_template((const char *)bytes, size);
    use_reply((const char *)bytes, size);
    return 0;
}
