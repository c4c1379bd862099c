/* test/test_template_builtin.c: every built-in chat template against its format, written by hand,
 * with and without a system message; roles that a format does not have are errors. */
#include "test/support.h"

#include "text/chat/chat_formats.h"
#include "text/jinja/jinja.h"
#include <stdlib.h>
#include <string.h>

/* A conversation system S, user U, assistant A, user V with the generation prompt; `s` and `/s` are
 * bos_token and eos_token. */
static const struct {
    const char *name, *text;
} expected[] = {
    {"alpaca", "(s)S\n\n### Instruction:\nU\n\n### Response:\nA(/s)\n\n### Instruction:\nV\n\n"
               "### Response:\n"},
    {"chatglm4", "[gMASK]<sop><|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>\n"},
    {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
               "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nV<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"command-r", "(s)<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>U<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>V<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"deepseek", "(s)S### Instruction:\nU\n### Response:\nA\n<|EOT|>\n### Instruction:\nV\n"
                 "### Response:\n"},
    {"deepseek-v2", "(s)S\n\nUser: U\n\nAssistant: A(/s)User: V\n\nAssistant:"},
    {"deepseek-v3",
     "(s)S<｜User｜>U<｜Assistant｜>A<｜end▁of▁sentence｜><｜User｜>V<｜Assistant｜>"},
    {"exaone3", "[|system|]S[|endofturn|]\n[|user|]U\n[|assistant|]A[|endofturn|]\n[|user|]V\n"
                "[|assistant|]"},
    {"falcon3", "<|system|>\nS\n<|user|>\nU\n<|assistant|>\nA(/s)\n<|user|>\nV\n<|assistant|>\n"},
    {"gemma", "(s)<start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
              "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"},
    {"gpt-oss", "<|start|>system<|message|>S<|end|><|start|>user<|message|>U<|end|>"
                "<|start|>assistant<|channel|>final<|message|>A<|end|>"
                "<|start|>user<|message|>V<|end|><|start|>assistant"},
    {"granite", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>A<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>V<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>"},
    {"kimi-k2", "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>U<|im_end|>"
                "<|im_assistant|>assistant<|im_middle|>A<|im_end|>"
                "<|im_user|>user<|im_middle|>V<|im_end|><|im_assistant|>assistant<|im_middle|>"},
    {"llama2", "(s)[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A (/s)(s)[INST] V [/INST]"},
    {"llama3", "(s)<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"llama4", "(s)<|header_start|>system<|header_end|>\n\nS<|eot|>"
               "<|header_start|>user<|header_end|>\n\nU<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\nA<|eot|>"
               "<|header_start|>user<|header_end|>\n\nV<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\n"},
    {"minicpm", "(s)<用户>S\n\nU<AI>A(/s)<用户>V<AI>"},
    {"mistral-v1", "(s) [INST] S\n\nU [/INST] A(/s) [INST] V [/INST]"},
    {"mistral-v3", "(s)[INST] S\n\nU[/INST] A(/s)[INST] V[/INST]"},
    {"mistral-v3-tekken", "(s)[INST]S\n\nU[/INST]A(/s)[INST]V[/INST]"},
    {"mistral-v7", "(s)[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U[/INST] A(/s)[INST] V[/INST]"},
    {"mistral-v7-tekken", "(s)[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U[/INST]A(/s)[INST]V[/INST]"},
    {"openchat", "(s)S<|end_of_turn|>GPT4 Correct User: U<|end_of_turn|>"
                 "GPT4 Correct Assistant: A<|end_of_turn|>GPT4 Correct User: V<|end_of_turn|>"
                 "GPT4 Correct Assistant:"},
    {"phi3", "(s)<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV"
             "<|end|>\n<|assistant|>\n"},
    {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U<|im_end|>"
             "<|im_start|>assistant<|im_sep|>A<|im_end|><|im_start|>user<|im_sep|>V<|im_end|>"
             "<|im_start|>assistant<|im_sep|>"},
    {"rwkv-world", "System: S\n\nUser: U\n\nAssistant: A\n\nUser: V\n\nAssistant:"},
    {"seed-oss",
     "<seed:bos>system\nS<seed:eos><seed:bos>user\nU<seed:eos>"
     "<seed:bos>assistant\nA<seed:eos><seed:bos>user\nV<seed:eos><seed:bos>assistant\n"},
    {"vicuna", "(s)S USER: U ASSISTANT: A(/s)USER: V ASSISTANT:"},
    {"zephyr", "<|system|>\nS(/s)\n<|user|>\nU(/s)\n<|assistant|>\nA(/s)\n<|user|>\nV(/s)\n"
               "<|assistant|>\n"},
};
enum { N_EXPECTED = sizeof expected / sizeof expected[0] };

static bool render(const char *name, const char *context, struct base_buffer *out,
                   struct base_error *err)
{
    const char *source = text_chat_format(name);
    assert_non_null(source);
    struct jinja_template *t = jinja_template_parse(source, strlen(source), err);
    if (!t) fail_msg("%s: %s", name, err->text);
    json_t *json = json_loads(context, 0, NULL);
    assert_non_null(json);
    const bool ok = jinja_template_render(t, json, NULL, out, err);
    json_decref(json);
    jinja_template_free(t);
    return ok;
}

static void every_format_gives_its_written_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_EXPECTED; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer out = BASE_BUFFER_INIT;
        const bool ok = render(expected[i].name,
                               "{\"bos_token\": \"(s)\", \"eos_token\": \"(/s)\","
                               "\"add_generation_prompt\": true, \"messages\": ["
                               "{\"role\": \"system\", \"content\": \"S\"},"
                               "{\"role\": \"user\", \"content\": \"U\"},"
                               "{\"role\": \"assistant\", \"content\": \"A\"},"
                               "{\"role\": \"user\", \"content\": \"V\"}]}",
                               &out, &err);
        if (!ok) fail_msg("%s: %s", expected[i].name, err.text);
        if (strcmp(out.data, expected[i].text) != 0)
            fail_msg("%s:\n%s\ninstead of\n%s", expected[i].name, out.data, expected[i].text);
        base_buffer_free(&out);
    }
}

/* Every name of the list is tested above, and the list is sorted. */
static void every_name_of_a_format_is_tested(void **state)
{
    (void)state;
    size_t n = 0;
    for (; text_chat_format_name(n); n++)
        assert_string_equal(text_chat_format_name(n), expected[n].name);
    assert_int_equal(n, N_EXPECTED);
    assert_null(text_chat_format("no-such-format"));
    assert_null(text_chat_format(""));
}

static void roles_without_a_place_are_refused_or_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_EXPECTED; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer out = BASE_BUFFER_INIT;
        const bool ok = render(expected[i].name,
                               "{\"bos_token\": \"\", \"eos_token\": \"\", \"messages\": ["
                               "{\"role\": \"user\", \"content\": \"U\"},"
                               "{\"role\": \"tool\", \"content\": \"T\"}]}",
                               &out, &err);
        assert_int_equal(ok, strcmp(expected[i].name, "chatml") == 0);
        if (!ok) assert_non_null(strstr(err.text, "has no role tool"));
        base_buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_its_written_text),
        cmocka_unit_test(every_name_of_a_format_is_tested),
        cmocka_unit_test(roles_without_a_place_are_refused_or_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
