/* test/test_reply.c: parts of replies: every format at once, split at every offset, and byte by
 * byte, with the same result; every byte is returned; text that is not a call remains text;
 * limits. */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_vocab.h"
#include "text/chat/reply.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reply_case {
    const char *name;
    const char *signs;  /* what the template contains */
    const char *prompt; /* before the reply */
    const char *reply;
    const char *parts; /* T text, R reasoning, C name(arguments)#id; one per line */
    bool tools;
};

static const char tools_json[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"find\", \"parameters\": {\"type\": "
    "\"object\", \"properties\": {\"q\": {\"type\": \"string\"}, \"n\": {\"type\": "
    "\"integer\"}}}}}]";

static const struct reply_case cases[] = {
    {"plain", "", "", "Hello <b>world</b>.\n", "T Hello <b>world</b>.\n\n", false},
    {"no format, marks stay", "", "", "<think>a</think>b", "T <think>a</think>b\n", false},
    {"think", "<think></think>", "", "<think>\nWhy?\n\nSo.\n</think>\n\nYes.",
     "R Why?\n\nSo.\nT Yes.\n", false},
    {"think behind space", "<think></think>", "", "\n <think>a</think>b", "R a\nT b\n", false},
    {"think opened by the prompt", "</think>", "<|im_start|>assistant\n<think>\n",
     "\nWhy?\n</think>\n\nYes.", "R Why?\nT Yes.\n", false},
    {"think closed by the prompt", "<think></think>", "<think>\n\n</think>\n\n", "Yes.", "T Yes.\n",
     false},
    {"think without an end", "<think></think>", "", "<think>\nWhy? ", "R Why?\n", false},
    {"think inside the answer is text", "<think></think>", "", "Say <think>x</think>",
     "T Say <think>x</think>\n", false},
    {"not quite think", "<think></think>", "", " <thin k>", "T  <thin k>\n", false},
    {"cut mark", "<think></think>", "", "<thi", "T <thi\n", false},
    {"cut close", "<think></think>", "", "<think>a</thi", "R a</thi\n", false},
    {"space in front stays", "<think></think>", "", "\n\n  Hi", "T \n\n  Hi\n", false},
    {"only space", "<think></think>", "", "  \n", "T   \n\n", false},
    {"THINK", "[THINK]", "", "[THINK]a[/THINK]b", "R a\nT b\n", false},
    {"reasoning", "<reasoning>", "", "<reasoning>a</reasoning>b", "R a\nT b\n", false},
    {"seed", "<seed:think>", "", "<seed:think>a</seed:think>b", "R a\nT b\n", false},
    {"apertus", "<|inner_prefix|> <|tools_prefix|>", "",
     "<|inner_prefix|>a<|inner_suffix|>b<|tools_prefix|>[{\"find\": {\"q\": "
     "\"x\"}}]<|tools_suffix|>",
     "R a\nT b\nC find({\"q\":\"x\"})\n", true},
    {"gemma 4", "<|channel> <|tool_call>", "",
     "<|channel>thought\na\n<channel|><|tool_call>call:find{n:3,o:{a:[1,true]},q:<|\"|>x, "
     "\"y\"<|\"|>}<tool_call|>",
     "R a\nC find({\"n\":3,\"o\":{\"a\":[1,true]},\"q\":\"x, \\\"y\\\"\"})\n", true},
    {"command r7b", "<|START_THINKING|> <|START_ACTION|> <|START_RESPONSE|> <|END_RESPONSE|>", "",
     "<|START_THINKING|>a<|END_THINKING|><|START_ACTION|>[\n  {\"tool_call_id\": \"0\", "
     "\"tool_name\": \"find\", \"parameters\": {\"q\": \"x\"}}\n]<|END_ACTION|>",
     "R a\nC find({\"q\":\"x\"})#0\n", true},
    {"command r7b answer", "<|START_THINKING|> <|START_RESPONSE|> <|END_RESPONSE|>", "",
     "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "R a\nT b\n", false},
    {"harmony", "<|channel|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>final<|message|>"
     "Yes. <b><|return|>",
     "R Think.\nT Yes. <b>\n", false},
    {"harmony without an end", "<|channel|>", "<|start|>assistant",
     "<|channel|>final<|message|>Yes.", "T Yes.\n", false},
    {"harmony call", "<|channel|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.find <|constrain|>json<|message|>{\"q\": \"x\"}<|call|>",
     "R a\nC find({\"q\":\"x\"})\n", true},
    {"harmony call, name first", "<|channel|>", "<|start|>assistant",
     " to=functions.find<|channel|>commentary json<|message|>{\"q\": \"x\"}",
     "C find({\"q\":\"x\"})\n", true},
    {"harmony preamble", "<|channel|>", "<|start|>assistant",
     "<|channel|>commentary<|message|>I look.<|end|>", "T I look.\n", true},
    {"harmony opened by the prompt", "<|channel|>",
     "<|start|>user<|message|>x<|end|><|start|>assistant<|channel|>analysis<|message|>", "a<|end|>",
     "R a\n", false},
    {"harmony without a header", "<|channel|>", "x", "Hi.", "T Hi.\n", false},
    {"functionary", ">>>all", "assistant\n\n>>>",
     "all\nI look.>>>find\n{\"q\": \"x\"}>>>python\nprint(1)",
     "T I look.\nC find({\"q\":\"x\"})\nC python({\"code\":\"print(1)\"})\n", true},
    {"hermes", "<tool_call>", "",
     "I look.\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a</tool_call>b\", "
     "\"n\": 0.1}}\n</tool_call>\n<tool_call>\n{\"name\": \"find\", \"arguments\": "
     "{}}\n</tool_call>",
     "T I look.\n\nC find({\"q\":\"a</tool_call>b\",\"n\":0.1})\nC find({})\n", true},
    {"hermes, arguments as a string", "<tool_call>", "",
     "<tool_call>{\"name\": \"find\", \"arguments\": \"{\\\"q\\\": 1}\"}</tool_call>",
     "C find({\"q\":1})\n", true},
    {"hermes in Python's notation", "<tool_call>", "",
     "<tool_call>{'name': 'find', 'arguments': {'q': None, 'n': True}}</tool_call>",
     "C find({\"q\":null,\"n\":true})\n", true},
    {"hermes without an end", "<tool_call>", "",
     "<tool_call>{\"name\": \"find\", \"arguments\": {}}", "C find({})\n", true},
    {"a broken call is text", "<tool_call>", "", "a <tool_call>{\"name\": </tool_call> b",
     "T a <tool_call>{\"name\": </tool_call> b\n", true},
    {"a cut call is text", "<tool_call>", "", "<tool_call>{\"name\": \"find\", \"argum",
     "T <tool_call>{\"name\": \"find\", \"argum\n", true},
    {"qwen coder", "<tool_call> <function=", "",
     "<tool_call>\n<function=find>\n<parameter=q>\n12\n</parameter>\n<parameter=n>\n3\n"
     "</parameter>\n<parameter=z>\n[1, 2]\n</parameter>\n</function>\n</tool_call>",
     "C find({\"q\":\"12\",\"n\":3,\"z\":[1,2]})\n", true},
    {"qwen coder without the outer mark", "<tool_call> <function=", "",
     "<function=find>\n<parameter=q>\na\nb\n</parameter>\n</function>\n</tool_call>",
     "C find({\"q\":\"a\\nb\"})\n", true},
    {"functionary 3.1", "<function=", "", "<function=find>{\"q\": \"x\"}</function>",
     "C find({\"q\":\"x\"})\n", true},
    {"glm", "<think></think><tool_call>", "<|assistant|>",
     "\n<think>a</think>\n<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>7</arg_value>\n"
     "<arg_key>n</arg_key>\n<arg_value>7</arg_value>\n</tool_call>\n<tool_call>find\n</tool_call>",
     "R a\nC find({\"q\":\"7\",\"n\":7})\nC find({})\n", true},
    {"llama 3.2", "{\"name\": function name, \"parameters\"", "",
     "{\"name\": \"find\", \"parameters\": {\"q\": \"}\\\"\"}}", "C find({\"q\":\"}\\\"\"})\n",
     true},
    {"llama 3, two calls", "{\"name\": function name, \"parameters\"", "",
     "{\"name\": \"find\", \"parameters\": {}}; {\"name\": \"find\", \"parameters\": {\"n\": 2}}",
     "C find({})\nC find({\"n\":2})\n", true},
    {"llama 3, other JSON", "{\"name\": function name, \"parameters\"", "",
     "{\"names\": [1], \"b\": {}}", "T {\"names\": [1], \"b\": {}}\n", true},
    {"llama 3, JSON without parameters", "{\"name\": function name, \"parameters\"", "",
     "{\"name\": 12} and more", "T {\"name\": 12} and more\n", true},
    {"llama 3 without tools", "{\"name\": function name, \"parameters\"", "",
     "{\"name\": \"find\", \"parameters\": {}}", "T {\"name\": \"find\", \"parameters\": {}}\n",
     false},
    {"python tag", "<|python_tag|>", "", "<|python_tag|>find.call(q=\"x\", n=2)<|eom_id|>",
     "C find({\"q\":\"x\",\"n\":2})\n", true},
    {"python tag, JSON", "<|python_tag|>", "",
     "<|python_tag|>{\"name\": \"find\", \"parameters\": {\"q\": 1}}", "C find({\"q\":1})\n", true},
    {"python tag, code", "<|python_tag|>", "", "<|python_tag|>x = 1\nprint(x)",
     "C python({\"code\":\"x = 1\\nprint(x)\"})\n", true},
    {"llama 4", "[func_name1(params)]", "", "[find(q='it\\'s', n=-1.5), find()]",
     "C find({\"q\":\"it's\",\"n\":-1.5})\nC find({})\n", true},
    {"llama 4, a list", "[func_name1(params)]", "", "[find] it", "T [find] it\n", true},
    {"mistral", "[TOOL_CALLS]", "",
     "[TOOL_CALLS][{\"name\": \"find\", \"arguments\": {\"q\": \"]\"}, \"id\": \"abc123def\"}, "
     "{\"name\": \"find\", \"arguments\": {}}]",
     "C find({\"q\":\"]\"})#abc123def\nC find({})\n", true},
    {"mistral, brackets after an escaped quote", "[TOOL_CALLS]", "",
     "[TOOL_CALLS][{\"name\": \"find\", \"arguments\": {\"q\": \"\\\"}}]\"}}]",
     "C find({\"q\":\"\\\"}}]\"})\n", true},
    {"mistral small", "[TOOL_CALLS]", "",
     "Hm.[TOOL_CALLS]find[ARGS]{\"q\": \"x\"}[TOOL_CALLS]find[CALL_ID]a1[ARGS]{\"n\": 1}",
     "T Hm.\nC find({\"q\":\"x\"})\nC find({\"n\":1})#a1\n", true},
    {"deepseek r1", "<｜tool▁calls▁begin｜>", "",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{\"q\": "
     "\"x\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{}"
     "\n"
     "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "C find({\"q\":\"x\"})\nC find({})\n", true},
    {"deepseek v3.1", "<｜tool▁calls▁begin｜>", "",
     "ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"q\": \"x\"}"
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "T ok\nC find({\"q\":\"x\"})\n", true},
    {"deepseek v3.2", "｜DSML｜", "",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"find\">\n<｜DSML｜parameter name=\"a\" "
     "string=\"true\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" "
     "string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "C find({\"a\":\"5\",\"n\":5})\n", true},
    {"kimi", "<|tool_calls_section_begin|>", "",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0"
     "<|tool_call_argument_begin|>{\"q\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
     "C find({\"q\":\"x\"})#functions.find:0\n", true},
    {"minimax", "<minimax:tool_call>", "",
     "<minimax:tool_call>\n<invoke name=\"find\">\n<parameter name=\"q\">1</parameter>\n"
     "</invoke>\n<invoke name=\"find\">\n</invoke>\n</minimax:tool_call>",
     "C find({\"q\":\"1\"})\nC find({})\n", true},
    {"granite", "<|tool_call|>", "",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {\"q\": \"x\"}}]",
     "C find({\"q\":\"x\"})\n", true},
    {"phi 4 mini", "<|tool_call|>", "",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {}}]<|/tool_call|>", "C find({})\n", true},
    {"nemotron", "<TOOLCALL>", "", "<TOOLCALL>[{\"name\": \"find\", \"arguments\": {}}]</TOOLCALL>",
     "C find({})\n", true},
    {"firefunction", "functools[", "",
     " functools[{\"name\": \"find\", \"arguments\": {\"n\": 1}}]", "C find({\"n\":1})\n", true},
    {"lfm2", "<|tool_call_start|>", "",
     "<|tool_call_start|>[find(q=\"x\", n=[1, 'a'])]<|tool_call_end|>Done.",
     "C find({\"q\":\"x\",\"n\":[1,\"a\"]})\nT Done.\n", true},
    {"muse", " to=self<|message|> <atem:function_calls>", "<|start|>assistant",
     " to=self<|message|>a<|eom|><|start|>assistant to=find<|message|><atem:function_calls>\n"
     "<atem:invoke name=\"find\">\n<atem:parameter name=\"q\">x</atem:parameter>\n"
     "</atem:invoke>\n</atem:function_calls><|eom|><|start|>assistant to=user<|message|>b<|eot|>",
     "R a\nC find({\"q\":\"x\"})\nT b\n", true},
    {"kimi k3", "<|open|>", "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
     "a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|><|open|>tools<|sep|>"
     "<|open|>call tool=\"find\" index=\"1\"<|sep|><|open|>argument key=\"a &quot;&amp;\" "
     "type=\"string\"<|sep|>1<|close|>argument<|sep|><|open|>argument key=\"n\" type=\"number\""
     "<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"find\" "
     "index=\"2\"<|sep|><|open|>json type=\"object\"<|sep|>{\"q\":\"x\"}<|close|>json<|sep|>"
     "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
     "R a\nT b\nC find({\"a \\\"&\":\"1\",\"n\":1})\nC find({\"q\":\"x\"})\n", true},
    {"minimax m3", "<mm:think> ]<]minimax[>[", "<mm:think>",
     "a</mm:think>b]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"find\">\n"
     "]<]minimax[>[<q>7]<]minimax[>[</q>\n]<]minimax[>[<n>7]<]minimax[>[</n>\n]<]minimax[>[<l>"
     "]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[<item>]<]minimax[>[<k>v"
     "]<]minimax[>[</k>]<]minimax[>[</item>]<]minimax[>[</l>\n]<]minimax[>[</invoke>\n"
     "]<]minimax[>[</tool_call>",
     "R a\nT b\nC find({\"q\":\"7\",\"n\":7,\"l\":[1,{\"k\":\"v\"}]})\n", true},
    {"minicpm 5", "<function name=\"", "",
     "<function name=\"find\"><param name=\"q\"><![CDATA[a</param>\nb]]></param><param name=\"n\">"
     "3</param></function>\n<function name=\"find\"></function>",
     "C find({\"q\":\"a</param>\\nb\",\"n\":3})\nC find({})\n", true},
    {"hy3", "<think{}> <tool_calls{}>", "<think:opensource>",
     "a</think:opensource>b<tool_calls:opensource>\n<tool_call:opensource>find"
     "<tool_sep:opensource>\n<arg_key:opensource>q</arg_key:opensource>\n<arg_value:opensource>1"
     "</arg_value:opensource>\n</tool_call:opensource>\n<tool_call:opensource>find"
     "<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
     "R a\nT b\nC find({\"q\":\"1\"})\nC find({})\n", true},
    {"gigachat", "<|function_call|>", "",
     "a<|function_call|>{\"name\": \"find\", \"arguments\": {\"q\": \"x\"}}",
     "T a\nC find({\"q\":\"x\"})\n", true},
    {"internlm 2", "<|action_start|>", "",
     "<|action_start|><|plugin|>\n{\"name\": \"find\", \"parameters\": {}}<|action_end|>\n",
     "C find({})\n", true},
    {"apriel", "[BEGIN FINAL RESPONSE] <tool_calls>", "Here are my reasoning steps:\n",
     "a\n[BEGIN FINAL RESPONSE]\nb\n[END FINAL RESPONSE]<tool_calls>[{\"name\": \"find\", "
     "\"arguments\": {}}]</tool_calls>",
     "R a\nT b\n\nC find({})\n", true},
    {"granite 3.3", "<think> <response>", "", "<think>a</think><response>b</response>",
     "R a\nT b\n", false},
    {"a call closes reasoning", "<think></think><tool_call>", "",
     "<think>a\n<tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call>\n",
     "R a\nC find({})\n", true},
    {"two calls close reasoning", "<think></think><tool_call>", "",
     "<think>a <tool_call>b<tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call>"
     "<tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}</tool_call>",
     "R a <tool_call>b\nC find({})\nC find({\"n\":1})\n", true},
    {"a call within reasoning", "<think></think><tool_call>", "",
     "<think>a <tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call> c</think>b",
     "R a <tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call> c\nT b\n", true},
    {"reasoning goes on after a call", "<think></think><tool_call>", "",
     "<think>a <tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call> c",
     "R a <tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call> c\n", true},
    {"no mark between two calls", "<tool_call>", "",
     "<tool_call>{\"name\": \"find\", \"arguments\": {\"q\": "
     "\"<tool_call>\"}}<tool_call>{\"name\": "
     "\"find\", \"arguments\": {}}</tool_call>",
     "C find({\"q\":\"<tool_call>\"})\nC find({})\n", true},
    {"harmony, a missing end", "<|channel|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>a<|channel|>final<|message|>b", "R a\nT b\n", false},
    {"command r7b, a missing end", "<|START_THINKING|> <|START_RESPONSE|> <|END_RESPONSE|>", "",
     "<|START_THINKING|>a<|START_RESPONSE|>b<|END_RESPONSE|>", "R a\nT b\n", false},
    {"olmo 3", "<function_calls>", "", "<function_calls>\nfind(q=\"x\")\nfind()\n</function_calls>",
     "C find({\"q\":\"x\"})\nC find({})\n", true},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* The parts of a reply as text, and all its bytes. */
struct found {
    struct base_buffer parts, bytes;
    char kind; /* kind of the open part */
};

static void note(struct found *f, struct text_reply *r)
{
    struct text_reply_part part;
    while (text_reply_next(r, &part)) {
        base_buffer_add(&f->bytes, part.bytes, part.size);
        if (part.kind == TEXT_REPLY_MARK) continue;
        const char kind = "TRC"[part.kind];
        if (kind != f->kind || kind == 'C') {
            if (f->kind) base_buffer_add_text(&f->parts, "\n");
            base_buffer_add_format(&f->parts, "%c ", kind);
        }
        f->kind = kind;
        if (kind == 'C')
            base_buffer_add_format(&f->parts, "%s(%s)%s%s", part.name, part.arguments,
                                   part.id ? "#" : "", part.id ? part.id : "");
        else
            base_buffer_add(&f->parts, part.bytes, part.size);
    }
}

static struct text_reply *open_reply(const struct reply_case *c, const json_t *tools,
                                     size_t max_call)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct text_reply_options options = {.template_text = c->signs,
                                               .prompt = c->prompt,
                                               .prompt_size = strlen(c->prompt),
                                               .tools = c->tools ? tools : NULL,
                                               .max_call = max_call};
    struct text_reply *r = text_reply_new(&options, &err);
    assert_non_null(r);
    return r;
}

/* Feeds the reply in pieces: [0..first), then pieces of `step` bytes. */
static void check(const struct reply_case *c, const json_t *tools, size_t first, size_t step)
{
    struct base_error err = BASE_ERROR_INIT;
    struct found f = {0};
    struct text_reply *r = open_reply(c, tools, 0);
    const size_t n = strlen(c->reply);
    for (size_t at = 0, size = first; at < n; at += size, size = step) {
        if (size > n - at) size = n - at;
        /* An exactly sized copy, so that AddressSanitizer detects reads past the end. */
        char *piece = malloc(size ? size : 1);
        memcpy(piece, c->reply + at, size);
        assert_true(text_reply_feed(r, piece, size, &err));
        free(piece);
        note(&f, r);
    }
    assert_true(text_reply_end(r, &err));
    note(&f, r);
    if (f.kind) base_buffer_add_text(&f.parts, "\n");
    if (f.bytes.size != n || memcmp(f.bytes.data, c->reply, n) != 0)
        fail_msg("%s, cut at %zu by %zu: bytes lost: %s", c->name, first, step, f.bytes.data);
    if (strcmp(f.parts.data, c->parts) != 0)
        fail_msg("%s, cut at %zu by %zu:\n%s\ninstead of\n%s", c->name, first, step, f.parts.data,
                 c->parts);
    base_buffer_free(&f.parts);
    base_buffer_free(&f.bytes);
    text_reply_free(r);
}

static void replies_cut_anywhere_give_the_same_parts(void **state)
{
    (void)state;
    json_t *tools = json_loads(tools_json, 0, NULL);
    assert_non_null(tools);
    for (size_t i = 0; i < N_CASES; i++) {
        const size_t n = strlen(cases[i].reply);
        check(&cases[i], tools, n, n);
        for (size_t first = 1; first < n; first++) check(&cases[i], tools, first, n);
        for (size_t step = 1; step < 8; step++) check(&cases[i], tools, step, step);
    }
    json_decref(tools);
}

/* A vocabulary whose token is a mark: only that token is the mark, in pieces of any size. */
static void add_vocabulary(struct gguf_writer *w)
{
    static const char *const texts[] = {"<think>", "</think>", "<tool_call>", "</tool_call>", "a"};
    static const int32_t kinds[] = {TEXT_TOKEN_CONTROL, TEXT_TOKEN_USER, TEXT_TOKEN_CONTROL,
                                    TEXT_TOKEN_CONTROL, TEXT_TOKEN_NORMAL};
    support_put_text(w, "tokenizer.ggml.model", "gpt2");
    support_put_text(w, "tokenizer.ggml.pre", "gpt-2");
    support_put_tokens(w, texts, kinds, 5);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", NULL, 0);
}

static void a_marker_that_is_a_token_is_recognized_only_as_the_token(void **state)
{
    (void)state;
    /* Digits are tokens, letters are letters. */
    static const char script[] = "0so </think> <tool_call>1yes <think></think>2"
                                 "{\"name\": \"find\", \"arguments\": {\"q\": \"</tool_call>\"}}3";
    static const char want[] = "R so </think> <tool_call>\nT yes <think></think>\n"
                               "C find({\"q\":\"</tool_call>\"})";
    struct support_vocab v = support_vocab_make(add_vocabulary);
    struct base_error err = BASE_ERROR_INIT;
    assert_non_null(v.tokenizer);
    for (size_t step = 1; step < 12; step++) {
        struct base_buffer reply = BASE_BUFFER_INIT;
        struct found f = {0};
        const struct text_reply_options options = {.tokenizer = v.tokenizer};
        struct text_reply *r = text_reply_new(&options, &err);
        assert_non_null(r);
        for (const char *c = script; *c; c++) {
            const bool is_token = *c >= '0' && *c <= '3';
            const struct gguf_str token = text_token_raw(v.tokenizer, *c - '0');
            base_buffer_add(&reply, is_token ? token.data : c, is_token ? token.size : 1);
            text_reply_token(r, is_token ? *c - '0' : 4, reply.size);
        }
        for (size_t at = 0; at < reply.size; at += step) {
            const size_t n = reply.size - at < step ? reply.size - at : step;
            assert_true(text_reply_feed(r, reply.data + at, n, &err));
            note(&f, r);
        }
        assert_true(text_reply_end(r, &err));
        note(&f, r);
        assert_string_equal(f.parts.data, want);
        assert_int_equal(f.bytes.size, reply.size);
        text_reply_free(r);
        base_buffer_free(&reply);
        base_buffer_free(&f.parts);
        base_buffer_free(&f.bytes);
    }
    support_vocab_free(&v);
}

/* Allocations of jansson until one fails. */
static long allocations_left;

static void *fail_in_time(size_t size)
{
    if (--allocations_left != 0) return malloc(size);
    errno = ENOMEM;
    return NULL;
}

/* Whichever of jansson's allocations fails: an error, or the correct parts. Texts are short,
 * because jansson's scanner ignores a failure when a text grows past 16 bytes. */
static const struct reply_case short_calls[] = {
    {"hermes", "<tool_call>", "",
     "<tool_call>{\"name\": \"find\", \"arguments\": {\"n\": 1}}</tool_call>",
     "C find({\"n\":1})\n", true},
    {"python", "<|python_tag|>", "", "<|python_tag|>find.call(n=0.5, q=\"x\")",
     "C find({\"n\":0.5,\"q\":\"x\"})\n", true},
    {"nearly JSON", "<tool_call>", "",
     "<tool_call>{'name': 'find', 'arguments': {q: 'a'}}</tool_call>", "C find({\"q\":\"a\"})\n",
     true},
};

static void without_memory_a_call_does_not_become_text(void **state)
{
    (void)state;
    json_t *tools = json_loads(tools_json, 0, NULL);
    json_set_alloc_funcs(fail_in_time, free);
    for (size_t i = 0; i < sizeof short_calls / sizeof *short_calls; i++) {
        long n = 1;
        for (bool failed = true; failed; n++) {
            const struct reply_case *c = &short_calls[i];
            struct base_error err = BASE_ERROR_INIT;
            struct found f = {0};
            allocations_left = 0;
            struct text_reply *r = open_reply(c, tools, 0);
            allocations_left = n;
            bool ok = text_reply_feed(r, c->reply, strlen(c->reply), &err);
            if (ok) note(&f, r);
            ok = ok && text_reply_end(r, &err);
            failed = allocations_left <= 0;
            allocations_left = 0;
            if (!ok) assert_int_equal(err.code, BASE_NO_MEMORY);
            if (ok) note(&f, r);
            if (ok && f.kind) base_buffer_add_text(&f.parts, "\n");
            if (ok && strcmp(f.parts.data, c->parts) != 0)
                fail_msg("%s, allocation %ld:\n%s\ninstead of\n%s", c->name, n, f.parts.data,
                         c->parts);
            base_buffer_free(&f.parts);
            base_buffer_free(&f.bytes);
            text_reply_free(r);
        }
    }
    json_set_alloc_funcs(malloc, free);
    json_decref(tools);
}

/* Text is returned as soon as it cannot be a mark. */
static void text_is_returned_as_soon_as_it_cannot_become_a_marker(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    const struct reply_case c = {.signs = "<think></think><tool_call>", .prompt = ""};
    static const struct {
        const char *piece, *parts;
    } steps[] = {
        {"<th", ""},   {"ink>", ""},         {"why", "R why"}, {" not </", " not"},
        {"i", " </i"}, {"</think>", ""},     {"\n", ""},       {"\nYes", "\nT Yes"},
        {" <", " "},   {"b> <tool", "<b> "},
    };
    struct text_reply *r = open_reply(&c, NULL, 0);
    struct found f = {0};
    size_t before = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_true(text_reply_feed(r, steps[i].piece, strlen(steps[i].piece), &err));
        note(&f, r);
        assert_string_equal(f.parts.data ? f.parts.data + before : "", steps[i].parts);
        before = f.parts.size;
    }
    text_reply_free(r);
    base_buffer_free(&f.parts);
    base_buffer_free(&f.bytes);
}

/* Calls that are too long, endless closing marks, and deep and long values become text without long
 * delay. */
static void calls_and_markers_above_the_limit_are_text(void **state)
{
    (void)state;
    static const char *const openings[] = {"<tool_call>",    "[TOOL_CALLS][",
                                           "<|python_tag|>", "<|start|>x to=y<|message|>",
                                           "<|start|>",      "<think>"};
    static const char *const fillings[] = {"</tool_call>", "[", "{\"a\":", "x", " ", "\\\"", "<t"};
    struct base_error err = BASE_ERROR_INIT;
    const struct reply_case c = {
        .signs = "<think></think><tool_call>[TOOL_CALLS]<|python_tag|><|channel|>", .prompt = ""};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        for (size_t k = 0; k < sizeof fillings / sizeof fillings[0]; k++) {
            struct text_reply *r = open_reply(&c, NULL, 20000);
            struct found f = {0};
            const size_t n = strlen(fillings[k]);
            size_t size = strlen(openings[i]);
            assert_true(text_reply_feed(r, openings[i], size, &err));
            note(&f, r);
            for (size_t fed = 0; fed < 30000; fed += n, size += n) {
                assert_true(text_reply_feed(r, fillings[k], n, &err));
                note(&f, r);
            }
            /* All but a few bytes were returned before the end. */
            assert_in_range(f.bytes.size, size - 700, size);
            assert_true(text_reply_end(r, &err));
            note(&f, r);
            assert_int_equal(f.bytes.size, size);
            text_reply_free(r);
            base_buffer_free(&f.parts);
            base_buffer_free(&f.bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_cut_anywhere_give_the_same_parts),
        cmocka_unit_test(a_marker_that_is_a_token_is_recognized_only_as_the_token),
        cmocka_unit_test(without_memory_a_call_does_not_become_text),
        cmocka_unit_test(text_is_returned_as_soon_as_it_cannot_become_a_marker),
        cmocka_unit_test(calls_and_markers_above_the_limit_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
