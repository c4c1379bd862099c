/* text/chat/chat_formats_tables.c: the chat templates that have a name. See
 * text/chat/chat_formats.h.
 *
 * Each string is one line of Jinja; tags strip the space before them, so that only text between
 * tags is written. */
#include "text/chat/chat_formats.h"
#include <string.h>

/* A role that a format does not have is an error: no message is ever left out. */
#define ROLES                                                                                      \
    "{%- for m in messages if m.role not in ['system', 'user', 'assistant'] -%}"                   \
    "{{- raise_exception('the built-in template has no role ' ~ m.role) -}}"                       \
    "{%- endfor -%}"

/* For formats without a system message: its text comes before the first user message. */
#define MERGE_SYSTEM                                                                               \
    ROLES                                                                                          \
    "{%- set ns = namespace(system='') -%}"                                                        \
    "{%- for m in messages if m.role == 'system' -%}"                                              \
    "{%- set ns.system = ns.system ~ m.content|trim ~ '\\n\\n' -%}"                                \
    "{%- endfor -%}"

static const char chatml[] =
    "{%- for m in messages -%}"
    "{{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}";

static const char llama2[] =
    ROLES "{%- set ns = namespace(system='') -%}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{%- set ns.system = ns.system ~ '<<SYS>>\\n' ~ m.content ~ '\\n<</SYS>>\\n\\n' -%}"
          "{%- elif m.role == 'user' -%}"
          "{{- bos_token ~ '[INST] ' ~ (ns.system ~ m.content)|trim ~ ' [/INST]' -}}"
          "{%- set ns.system = '' -%}"
          "{%- else -%}"
          "{{- ' ' ~ m.content|trim ~ ' ' ~ eos_token -}}"
          "{%- endif -%}"
          "{%- endfor -%}";

static const char llama3[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{{- '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\\n\\n' -}}"
          "{{- m.content|trim ~ '<|eot_id|>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}"
          "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}"
          "{%- endif -%}";

static const char llama4[] = ROLES
    "{{- bos_token -}}"
    "{%- for m in messages -%}"
    "{{- '<|header_start|>' ~ m.role ~ '<|header_end|>\\n\\n' ~ m.content|trim ~ '<|eot|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|header_start|>assistant<|header_end|>\\n\\n' -}}"
    "{%- endif -%}";

static const char gemma[] = MERGE_SYSTEM
    "{{- bos_token -}}"
    "{%- for m in messages if m.role != 'system' -%}"
    "{{- '<start_of_turn>' ~ ('model' if m.role == 'assistant' else 'user') ~ '\\n' -}}"
    "{%- if m.role == 'user' -%}{{- ns.system -}}{%- set ns.system = '' -%}{%- endif -%}"
    "{{- m.content|trim ~ '<end_of_turn>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}";

static const char phi3[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{{- '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}";

static const char phi4[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<|im_start|>' ~ m.role ~ '<|im_sep|>' ~ m.content ~ '<|im_end|>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant<|im_sep|>' -}}{%- endif -%}";

static const char falcon3[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<|' ~ m.role ~ '|>\\n' ~ m.content -}}"
          "{{- eos_token if m.role == 'assistant' -}}{{- '\\n' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}";

static const char zephyr[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<|' ~ m.role ~ '|>\\n' ~ m.content ~ eos_token ~ '\\n' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}";

static const char mistral_v1[] =
    MERGE_SYSTEM "{{- bos_token -}}"
                 "{%- for m in messages -%}"
                 "{%- if m.role == 'user' -%}"
                 "{{- ' [INST] ' ~ ns.system ~ m.content ~ ' [/INST]' -}}{%- set ns.system = '' -%}"
                 "{%- elif m.role == 'assistant' -%}"
                 "{{- ' ' ~ m.content|trim ~ eos_token -}}"
                 "{%- endif -%}"
                 "{%- endfor -%}";

static const char mistral_v3[] =
    MERGE_SYSTEM "{{- bos_token -}}"
                 "{%- for m in messages -%}"
                 "{%- if m.role == 'user' -%}"
                 "{{- '[INST] ' ~ ns.system ~ m.content ~ '[/INST]' -}}{%- set ns.system = '' -%}"
                 "{%- elif m.role == 'assistant' -%}"
                 "{{- ' ' ~ m.content|trim ~ eos_token -}}"
                 "{%- endif -%}"
                 "{%- endfor -%}";

static const char mistral_v3_tekken[] =
    MERGE_SYSTEM "{{- bos_token -}}"
                 "{%- for m in messages -%}"
                 "{%- if m.role == 'user' -%}"
                 "{{- '[INST]' ~ ns.system ~ m.content ~ '[/INST]' -}}{%- set ns.system = '' -%}"
                 "{%- elif m.role == 'assistant' -%}"
                 "{{- m.content ~ eos_token -}}"
                 "{%- endif -%}"
                 "{%- endfor -%}";

static const char mistral_v7[] = ROLES "{{- bos_token -}}"
                                       "{%- for m in messages -%}"
                                       "{%- if m.role == 'system' -%}"
                                       "{{- '[SYSTEM_PROMPT] ' ~ m.content ~ '[/SYSTEM_PROMPT]' -}}"
                                       "{%- elif m.role == 'user' -%}"
                                       "{{- '[INST] ' ~ m.content ~ '[/INST]' -}}"
                                       "{%- else -%}"
                                       "{{- ' ' ~ m.content ~ eos_token -}}"
                                       "{%- endif -%}"
                                       "{%- endfor -%}";

static const char mistral_v7_tekken[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{{- '[SYSTEM_PROMPT]' ~ m.content ~ '[/SYSTEM_PROMPT]' -}}"
          "{%- elif m.role == 'user' -%}"
          "{{- '[INST]' ~ m.content ~ '[/INST]' -}}"
          "{%- else -%}"
          "{{- m.content ~ eos_token -}}"
          "{%- endif -%}"
          "{%- endfor -%}";

static const char vicuna[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{{- m.content|trim ~ ' ' -}}"
          "{%- elif m.role == 'user' -%}"
          "{{- 'USER: ' ~ m.content|trim ~ ' ' -}}"
          "{%- else -%}"
          "{{- 'ASSISTANT: ' ~ m.content|trim ~ eos_token -}}"
          "{%- endif -%}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}";

static const char alpaca[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{{- m.content|trim ~ '\\n\\n' -}}"
          "{%- elif m.role == 'user' -%}"
          "{{- '### Instruction:\\n' ~ m.content|trim ~ '\\n\\n' -}}"
          "{%- else -%}"
          "{{- '### Response:\\n' ~ m.content|trim ~ eos_token ~ '\\n\\n' -}}"
          "{%- endif -%}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '### Response:\\n' -}}{%- endif -%}";

static const char openchat[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{{- 'GPT4 Correct ' ~ m.role|title ~ ': ' if m.role != 'system' -}}"
          "{{- m.content ~ '<|end_of_turn|>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- 'GPT4 Correct Assistant:' -}}{%- endif -%}";

static const char deepseek[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{{- m.content -}}"
          "{%- elif m.role == 'user' -%}"
          "{{- '### Instruction:\\n' ~ m.content ~ '\\n' -}}"
          "{%- else -%}"
          "{{- '### Response:\\n' ~ m.content ~ '\\n<|EOT|>\\n' -}}"
          "{%- endif -%}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '### Response:\\n' -}}{%- endif -%}";

static const char deepseek_v2[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'system' -%}"
          "{{- m.content ~ '\\n\\n' -}}"
          "{%- elif m.role == 'user' -%}"
          "{{- 'User: ' ~ m.content ~ '\\n\\n' -}}"
          "{%- else -%}"
          "{{- 'Assistant: ' ~ m.content ~ eos_token -}}"
          "{%- endif -%}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}";

static const char deepseek_v3[] =
    ROLES "{{- bos_token -}}"
          "{%- for m in messages if m.role == 'system' -%}"
          "{{- '\\n\\n' if not loop.first -}}{{- m.content -}}"
          "{%- endfor -%}"
          "{%- for m in messages -%}"
          "{%- if m.role == 'user' -%}"
          "{{- '<｜User｜>' ~ m.content -}}"
          "{%- elif m.role == 'assistant' -%}"
          "{{- '<｜Assistant｜>' ~ m.content ~ '<｜end▁of▁sentence｜>' -}}"
          "{%- endif -%}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<｜Assistant｜>' -}}{%- endif -%}";

static const char command_r[] =
    ROLES "{%- set name = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} -%}"
          "{{- bos_token -}}"
          "{%- for m in messages -%}"
          "{{- '<|START_OF_TURN_TOKEN|><|' ~ name[m.role] ~ '_TOKEN|>' ~ m.content|trim -}}"
          "{{- '<|END_OF_TURN_TOKEN|>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}"
          "{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' -}}"
          "{%- endif -%}";

static const char chatglm4[] =
    ROLES "{{- '[gMASK]<sop>' -}}"
          "{%- for m in messages -%}{{- '<|' ~ m.role ~ '|>\\n' ~ m.content -}}{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}";

static const char granite[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<|start_of_role|>' ~ m.role ~ '<|end_of_role|>' ~ m.content -}}"
          "{{- '<|end_of_text|>\\n' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}"
          "{{- '<|start_of_role|>assistant<|end_of_role|>' -}}"
          "{%- endif -%}";

static const char exaone3[] =
    ROLES "{%- for m in messages -%}"
          "{{- '[|' ~ m.role ~ '|]' ~ m.content|trim -}}"
          "{{- ('\\n' if m.role == 'user' else '[|endofturn|]\\n') -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '[|assistant|]' -}}{%- endif -%}";

static const char minicpm[] =
    MERGE_SYSTEM "{{- bos_token -}}"
                 "{%- for m in messages -%}"
                 "{%- if m.role == 'user' -%}"
                 "{{- '<用户>' ~ ns.system ~ m.content|trim ~ '<AI>' -}}{%- set ns.system = '' -%}"
                 "{%- elif m.role == 'assistant' -%}"
                 "{{- m.content|trim ~ eos_token -}}"
                 "{%- endif -%}"
                 "{%- endfor -%}";

static const char kimi_k2[] = ROLES
    "{%- for m in messages -%}"
    "{{- '<|im_' ~ m.role ~ '|>' ~ m.role ~ '<|im_middle|>' ~ m.content ~ '<|im_end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_assistant|>assistant<|im_middle|>' -}}{%- endif -%}";

static const char seed_oss[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<seed:bos>' ~ m.role ~ '\\n' ~ m.content ~ '<seed:eos>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<seed:bos>assistant\\n' -}}{%- endif -%}";

static const char gpt_oss[] =
    ROLES "{%- for m in messages -%}"
          "{{- '<|start|>' ~ m.role -}}"
          "{{- '<|channel|>final' if m.role == 'assistant' -}}"
          "{{- '<|message|>' ~ m.content ~ '<|end|>' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- '<|start|>assistant' -}}{%- endif -%}";

static const char rwkv_world[] =
    ROLES "{%- set name = {'system': 'System', 'user': 'User', 'assistant': 'Assistant'} -%}"
          "{%- for m in messages -%}"
          "{{- name[m.role] ~ ': ' ~ m.content|trim ~ '\\n\\n' -}}"
          "{%- endfor -%}"
          "{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}";

static const struct {
    const char *name, *text;
} builtin[] = {
    {"alpaca", alpaca},
    {"chatglm4", chatglm4},
    {"chatml", chatml},
    {"command-r", command_r},
    {"deepseek", deepseek},
    {"deepseek-v2", deepseek_v2},
    {"deepseek-v3", deepseek_v3},
    {"exaone3", exaone3},
    {"falcon3", falcon3},
    {"gemma", gemma},
    {"gpt-oss", gpt_oss},
    {"granite", granite},
    {"kimi-k2", kimi_k2},
    {"llama2", llama2},
    {"llama3", llama3},
    {"llama4", llama4},
    {"minicpm", minicpm},
    {"mistral-v1", mistral_v1},
    {"mistral-v3", mistral_v3},
    {"mistral-v3-tekken", mistral_v3_tekken},
    {"mistral-v7", mistral_v7},
    {"mistral-v7-tekken", mistral_v7_tekken},
    {"openchat", openchat},
    {"phi3", phi3},
    {"phi4", phi4},
    {"rwkv-world", rwkv_world},
    {"seed-oss", seed_oss},
    {"vicuna", vicuna},
    {"zephyr", zephyr},
};
enum { N_BUILTIN = sizeof builtin / sizeof builtin[0] };

const char *text_chat_format(const char *name)
{
    for (size_t i = 0; i < N_BUILTIN; i++)
        if (strcmp(builtin[i].name, name) == 0) return builtin[i].text;
    return NULL;
}

const char *text_chat_format_name(size_t i)
{
    return i < N_BUILTIN ? builtin[i].name : NULL;
}
