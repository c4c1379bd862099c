/* test/fuzz_template.c: a fuzz target: a chat template, and after a NUL byte the messages as JSON.
 * It is an error or renders within its limits. */
#include "test/fuzz.h"
#include "text/jinja/jinja.h"
#include <jansson.h>
#include <string.h>

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

static void use_template(const char *text, size_t size, const json_t *context)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct jinja_template_options options = jinja_template_options_default();
    options.max_steps = 20000;
    options.max_memory = 8 << 20;
    options.max_output = 1 << 20;
    struct jinja_template *t = jinja_template_parse(text, size, &err);
    fuzz_check(t != NULL, &err);
    if (t) {
        fuzz_check(jinja_template_render(t, context, &options, &out, &err), &err);
        if (out.size > options.max_output) abort();
    }
    base_buffer_free(&out);
    jinja_template_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *const text = (const char *)bytes;
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    json_t *context = json_loadb(context_text, sizeof context_text - 1, 0, NULL);
    if (!context) abort();
    if (nul) {
        json_t *messages =
            json_loadb(nul + 1, size - (size_t)(nul + 1 - text), JSON_ALLOW_NUL, NULL);
        if (messages && json_object_set_new(context, "messages", messages) != 0) abort();
    }
    use_template(text, nul ? (size_t)(nul - text) : size, context);
    json_decref(context);
    return 0;
}
