/* text/chat/reply_tables.c: the marks of reasoning and tool calls in the known formats. See
 * text/chat/reply_rows.h. Facts about published models; a new format is a new row. */
#include "text/chat/reply_rows.h"

#define THINK TEXT_REPLY_THINK
#define TOOL  TEXT_REPLY_TOOL
#define BARE  TEXT_REPLY_BARE
#define HEAD  TEXT_REPLY_HEAD
#define SKIP  TEXT_REPLY_SKIP
#define BEGIN TEXT_REPLY_BEGIN
#define LEFT  TEXT_REPLY_LEFTOVER

const struct text_reply_row text_reply_rows[] = {
    /* Reasoning: DeepSeek R1, Qwen 3, QwQ, GLM, Granite, Kimi, MiniMax, Nemotron, SmolLM3, ... */
    {THINK, .open = "<think>", .close = "</think>", .sign = "think>"},
    {THINK, .open = "<think:opensource>", .close = "</think:opensource>", .sign = "<think{}>"}, /* Hy3 */
    {THINK, .open = "[THINK]", .close = "[/THINK]"}, /* Magistral */
    {THINK, .open = "<reasoning>", .close = "</reasoning>"},
    {THINK, .open = "<thinking>", .close = "</thinking>"},
    {THINK, .open = "<thought>", .close = "</thought>"}, /* EXAONE Deep */
    {THINK, .open = "<seed:think>", .close = "</seed:think>", .sign = "seed:think"},
    {THINK, .open = "<mm:think>", .close = "</mm:think>", .sign = "mm:think"},
    {THINK, .open = "<|START_THINKING|>", .close = "<|END_THINKING|>"}, /* Command A, R7B */
    {THINK, .open = "<|inner_prefix|>", .close = "<|inner_suffix|>"},   /* Apertus */
    {THINK, .open = "<|channel>thought", .close = "<channel|>", .sign = "<|channel>"}, /* Gemma 4 */
    {THINK, .open = "<|think|>", .close = "<|end|>", .sign = "<|begin|>"},             /* Solar */
    {THINK, .open = "<|open|>think<|sep|>", .close = "<|close|>think<|sep|>", .sign = "<|open|>",
     .answer = "<|open|>response<|sep|>"}, /* Kimi K3 */
    {THINK, .open = "Here are my reasoning steps:", .close = "[BEGIN FINAL RESPONSE]",
     .sign = "[BEGIN FINAL RESPONSE]"}, /* Apriel */
    /* Harmony (gpt-oss): a header names the recipient of the content. */
    {HEAD, .open = "<|start|>", .close = "<|message|>", .sign = "<|channel|>",
     .stop = {"<|end|>", "<|return|>", "<|call|>"},
     .thought = "<|channel|>analysis<|message|>", .turn = "<|start|>assistant",
     .answer = "<|channel|>final<|message|>"},
    {HEAD, .open = "<|channel|>", .close = "<|message|>",
     .stop = {"<|end|>", "<|return|>", "<|call|>"},
     .thought = "<|channel|>analysis<|message|>", .turn = "<|start|>assistant",
     .answer = "<|channel|>final<|message|>"},
    {HEAD, .open = "<|start|>", .close = "<|message|>", .sign = " to=self<|message|>",
     .stop = {"<|eom|>", "<|eot|>"},
     .thought = " to=self<|message|>", .turn = "<|start|>assistant",
     .answer = " to=user<|message|>"}, /* Muse */
    /* Functionary 3.2: the name of a tool, or "all". */
    {HEAD, .open = ">>>", .close = "\n", .sign = ">>>all", .stop = {"<|eot_id|>", "<|eom_id|>"}},
    /* Calls. */
    {TOOL, .open = "<tool_call>", .close = "</tool_call>"}, /* Hermes, Qwen, GLM, Granite 4, ... */
    {TOOL, .open = "<function=", .close = "</function>", .flags = TEXT_REPLY_WHOLE},
    {TOOL, .open = "<function name=\"", .close = "</function>", .flags = TEXT_REPLY_WHOLE}, /* MiniCPM5 */
    {TOOL, .open = "]<]minimax[>[<tool_call>", .close = "]<]minimax[>[</tool_call>",
     .sign = "]<]minimax[>["}, /* MiniMax M3 */
    {TOOL, .open = "<tool_calls:opensource>", .close = "</tool_calls:opensource>",
     .sign = "<tool_calls{}>"}, /* Hy3 */
    {TOOL, .open = "<|open|>tools<|sep|>", .close = "<|close|>tools<|sep|>", .sign = "<|open|>"},
    {TOOL, .open = "<|open|>call ", .close = "<|close|>call<|sep|>", .sign = "<|open|>",
     .flags = TEXT_REPLY_WHOLE}, /* Kimi K3, without the mark before */
    {TOOL, .open = "<|function_call|>"}, /* GigaChat */
    {TOOL, .open = "<|action_start|>", .close = "<|action_end|>"}, /* InternLM 2 */
    {TOOL, .open = "<|tool_call|>", .stop = {NULL}},           /* Granite 3 */
    {LEFT, .open = "<|/tool_call|>", .sign = "<|tool_call|>"}, /* Phi 4 mini closes it */
    {TOOL, .open = "<|tool_call>", .close = "<tool_call|>"},   /* Gemma 4 */
    {TOOL, .open = "[TOOL_CALLS]"},                            /* Mistral */
    {TOOL, .open = "<|python_tag|>", .close = "<|eom_id|>", .stop = {"<|eot_id|>"},
     .flags = TEXT_REPLY_TO_END},                                              /* Llama 3 */
    {TOOL, .open = "<｜tool▁calls▁begin｜>", .close = "<｜tool▁calls▁end｜>"}, /* DeepSeek */
    {TOOL, .open = "<｜tool▁call▁begin｜>", .close = "<｜tool▁call▁end｜>",
     .flags = TEXT_REPLY_WHOLE},
    {TOOL, .open = "<｜DSML｜function_calls>", .close = "</｜DSML｜function_calls>",
     .sign = "｜DSML｜"},
    {TOOL, .open = "<｜DSML｜tool_calls>", .close = "</｜DSML｜tool_calls>", .sign = "｜DSML｜"},
    {TOOL, .open = "<|tool_calls_section_begin|>",
     .close = "<|tool_calls_section_end|>"}, /* Kimi */
    {TOOL, .open = "<|tool_call_begin|>", .close = "<|tool_call_end|>", .flags = TEXT_REPLY_WHOLE},
    {TOOL, .open = "<|START_ACTION|>", .close = "<|END_ACTION|>"}, /* Command A, R7B */
    {TOOL, .open = "<minimax:tool_call>", .close = "</minimax:tool_call>"},
    {TOOL, .open = "<atem:function_calls>", .close = "</atem:function_calls>"},
    {TOOL, .open = "<seed:tool_call>", .close = "</seed:tool_call>"},
    {TOOL, .open = "<function_calls>", .close = "</function_calls>"},    /* OLMo 3 */
    {TOOL, .open = "<tool_calls>", .close = "</tool_calls>"},            /* Jamba, MiniMax M1 */
    {TOOL, .open = "<TOOLCALL>", .close = "</TOOLCALL>"},                /* Nemotron Nano */
    {TOOL, .open = "<|tool_call_start|>", .close = "<|tool_call_end|>"}, /* LFM 2 */
    {TOOL, .open = "<|tools_prefix|>", .close = "<|tools_suffix|>"},     /* Apertus */
    {TOOL, .open = "functools[", .flags = TEXT_REPLY_WHOLE},             /* firefunction */
    /* Calls without marks: Llama 3.1 and 3.2, Llama 4. */
    {BARE, .open = "{", .sign = "{\"name\": function name, \"parameters\""},
    {BARE, .open = "[", .sign = "[func_name1("},
    /* Marks around an answer, without meaning. */
    {BEGIN, .open = "<|START_RESPONSE|>"},
    {SKIP, .open = "<|END_RESPONSE|>"},
    {BEGIN, .open = "<|START_TEXT|>"},
    {SKIP, .open = "<|END_TEXT|>"},
    {BEGIN, .open = "<|begin|>assistant<|content|>", .sign = "<|content|>"},
    {BEGIN, .open = "<|open|>response<|sep|>", .sign = "<|open|>"},
    {SKIP, .open = "<|close|>response<|sep|>", .sign = "<|open|>"},
    {SKIP, .open = "<|close|>message<|sep|>", .sign = "<|open|>"},
    {SKIP, .open = "<|end_of_msg|>", .sign = "<|open|>"},
    {SKIP, .open = "[END FINAL RESPONSE]", .sign = "[BEGIN FINAL RESPONSE]"},
    {LEFT, .open = "<response>"}, /* Granite 3.3, ERNIE 4.5 */
    {SKIP, .open = "</response>", .sign = "<response>"},
    {LEFT, .open = "<answer>"}, /* Hunyuan */
    {SKIP, .open = "</answer>", .sign = "<answer>"},
    /* Marks after calls or reasoning. */
    {LEFT, .open = "<|message_sep|>"},
    {LEFT, .open = "<|eom|>", .sign = " to=self<|message|>"},
    {LEFT, .open = "<|eot|>", .sign = " to=self<|message|>"},
    {LEFT, .open = "<|end|>", .sign = "<|channel|>"},
    {LEFT, .open = "<|call|>", .sign = "<|channel|>"},
    {LEFT, .open = "</function>", .sign = "<function="},
    {LEFT, .open = "</tool_call>", .sign = "<tool_call>"},
    {LEFT, .open = "</think>"},
};
const size_t text_reply_n_rows = sizeof text_reply_rows / sizeof text_reply_rows[0];
_Static_assert(sizeof text_reply_rows / sizeof text_reply_rows[0] <= TEXT_REPLY_MAX_ROWS,
               "a stream has room for all rows");
