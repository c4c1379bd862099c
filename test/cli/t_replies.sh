# Replies of models in the forms of published templates: reasoning, answer and calls apart. Models
# are scripted (test/cli/scripted_model.py), and each writes one reply.
. test/cli/lib.sh
python3 -c 1 2>/dev/null || { echo 'skip t_replies.sh: no python3'; finish; exit; }
scripted=test/cli/scripted_model.py
tools='[{"type":"function","function":{"name":"find","description":"finds","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}]'
printf '%s' "$tools" >"$work/tools.json"

model() { # NAME TEMPLATE REPLY [CONTROL]
    python3 $scripted "$work/$1.gguf" "$2" "$3" "${4-}" || bad "no model $1"
}
message() { # EXPECTED: reasoning / content / calls, of the JSON on standard output
    got=$(python3 -c 'import json, sys
m = json.loads(open(sys.argv[1]).readlines()[-1])["message"]
calls = [c["function"] for c in m.get("tool_calls", [])]
print(m.get("reasoning_content", ""), m["content"].strip(), *[c["name"] + c["arguments"] for c in calls], sep=" / ")' "$work/out")
    [ "$got" = "$1" ] || bad "$last: $got, not $1"
}

# Columns, separated by "#": the template, variables, the reply, what it contains (r reasoning,
# t text, c a call), control tokens of the prompt.
cat >"$work/table" <<'TABLE'
Apertus-8B-Instruct##‹<|inner_prefix|>›Hm.‹<|inner_suffix|>›Yes.‹<|tools_prefix|>›[{"find": {"q": "x"}}]‹<|tools_suffix|>›‹<|assistant_end|>›#rtc
Bielik-11B-v3.0-Instruct#enable_thinking=true#Hm.\n«</think>»\nYes.\n«<tool_call>»\n{"name": "find", "arguments": {"q": "x"}}\n«</tool_call>»#rtc#«<think>»
Cohere2MoE##Hm.‹<|END_THINKING|>›‹<|START_TEXT|>›Yes.‹<|END_TEXT|>›#rt#‹<|START_THINKING|>›
Cohere2MoE##Hm.‹<|END_THINKING|>›‹<|START_ACTION|>›[\n    {"tool_call_id": "0", "tool_name": "find", "parameters": {"q": "x"}}\n\n]‹<|END_ACTION|>›#rc#‹<|START_THINKING|>›
CohereForAI-c4ai-command-r7b-12-2024-tool_use#enable_thinking=true#‹<|START_THINKING|>›Hm.‹<|END_THINKING|>›‹<|START_ACTION|>›[\n    {"tool_call_id": "0", "tool_name": "find", "parameters": {"q": "x"}}\n]‹<|END_ACTION|>›#rc
CohereForAI-c4ai-command-r7b-12-2024-tool_use#enable_thinking=true#‹<|START_THINKING|>›Hm.‹<|START_RESPONSE|>›Yes.‹<|END_RESPONSE|>›#rt
GLM-4.7-Flash##Hm.«</think>»Yes.«<tool_call>»find«<arg_key>»q«</arg_key>»«<arg_value>»x«</arg_value>»«</tool_call>»#rtc#«<think>»
GigaChat3.1-10B-A1.8B##Yes.‹<|function_call|>›{"name": "find", "arguments": {"q": "x"}}‹<|message_sep|>›\n\n#tc
Kimi-K2-Instruct##Yes.‹<|tool_calls_section_begin|>›‹<|tool_call_begin|>›functions.find:0‹<|tool_call_argument_begin|>›{"q": "x"}‹<|tool_call_end|>›‹<|tool_calls_section_end|>›#tc
Kimi-K3##Hm.‹<|close|>›think‹<|sep|>›‹<|open|>›response‹<|sep|>›Yes.‹<|close|>›response‹<|sep|>›‹<|open|>›tools‹<|sep|>›‹<|open|>›call tool="find" index="1"‹<|sep|>›‹<|open|>›argument key="q" type="string"‹<|sep|>›x‹<|close|>›argument‹<|sep|>›‹<|close|>›call‹<|sep|>›‹<|close|>›tools‹<|sep|>›‹<|close|>›message‹<|sep|>›‹<|end_of_msg|>›#rtc#‹<|open|>›‹<|close|>›‹<|sep|>›
Kimi-K3##Hm.‹<|open|>›response‹<|sep|>›Yes.‹<|close|>›response‹<|sep|>›‹<|open|>›tools‹<|sep|>›‹<|open|>›call tool="find" index="1"‹<|sep|>›‹<|open|>›json type="object"‹<|sep|>›{"q":"x"}‹<|close|>›json‹<|sep|>›‹<|close|>›call‹<|sep|>›‹<|close|>›tools‹<|sep|>›#rtc#‹<|open|>›‹<|close|>›‹<|sep|>›
LFM2.5-8B-A1B##«<think>»Hm.«</think>»Yes.‹<|tool_call_start|>›[find(q='x')]‹<|tool_call_end|>›#rtc
MiMo-VL##«<think>»\nHm.\n«</think>»\nYes.\n«<tool_call>»\n{"name": "find", "arguments": {"q": "x"}}\n«</tool_call>»#rtc
MiniMax-M2##Hm.\n«</think>»\n\nYes.\n«<minimax:tool_call>»\n<invoke name="find">\n<parameter name="q">x</parameter>\n</invoke>\n«</minimax:tool_call>»#rtc#«<think>»
Mistral-Small-3.2-24B-Instruct-2506##Yes.‹[TOOL_CALLS]›find‹[CALL_ID]›abcdefghi‹[ARGS]›{"q": "x"}#tc
NVIDIA-Nemotron-Nano-v2##Hm.\n«</think>»\n\nYes.\n«<TOOLCALL>»[{"name": "find", "arguments": {"q": "x"}}]«</TOOLCALL>»#rtc#«<think>»
NousResearch-Hermes-3-Llama-3.1-8B-tool_use##Yes.\n«<tool_call>»\n{"name": "find", "arguments": {"q": "x"}}\n«</tool_call>»#tc
Qwen-Qwen2.5-7B-Instruct##Yes.\n«<tool_call>»\n{"name": "find", "arguments": {"q": "x"}}\n«</tool_call>»#tc
Qwen3-Coder##Yes.\n«<tool_call>»\n<function=find>\n<parameter=q>\nx\n</parameter>\n</function>\n«</tool_call>»#tc
Reka-Edge#enable_thinking=true#Hm.\n</think>\n\nYes.\n<tool_call>\n{"name": "find", "arguments": {"q": "x"}}\n</tool_call>\n\n#rtc
deepseek-ai-DeepSeek-R1-Distill-Llama-8B##Hm.\n‹</think>›\n\nYes.‹<｜tool▁calls▁begin｜>›‹<｜tool▁call▁begin｜>›function‹<｜tool▁sep｜>›find\n```json\n{"q": "x"}\n```‹<｜tool▁call▁end｜>›‹<｜tool▁calls▁end｜>›#rtc#‹<think>›
deepseek-ai-DeepSeek-V3.1#thinking=true#Hm.‹</think>›Yes.‹<｜tool▁calls▁begin｜>›‹<｜tool▁call▁begin｜>›find‹<｜tool▁sep｜>›{"q": "x"}‹<｜tool▁call▁end｜>›‹<｜tool▁calls▁end｜>›#rtc#‹<think>›
deepseek-ai-DeepSeek-V4-Flash-0731#thinking=true#Hm.‹</think>›Yes.\n\n<‹｜DSML｜›tool_calls>\n<‹｜DSML｜›invoke name="find">\n<‹｜DSML｜›parameter name="q" string="true">x</‹｜DSML｜›parameter>\n</‹｜DSML｜›invoke>\n</‹｜DSML｜›tool_calls>#rtc#‹<think>›
fireworks-ai-llama-3-firefunction-v2#functions="f" datetime="d"# functools[{"name": "find", "arguments": {"q": "x"}}]#c
google-gemma-4-31B-it-interleaved#enable_thinking=true#‹<|channel>›thought\nHm.\n‹<channel|>›Yes.‹<|tool_call>›call:find{q:‹<|"|>›x‹<|"|>›}‹<tool_call|>›#rtc
ibm-granite-granite-3.3-2B-Instruct##<think>Hm.</think><response>Yes.</response>#rt
ibm-granite-granite-3.3-2B-Instruct##‹<|tool_call|>›[{"name": "find", "arguments": {"q": "x"}}]#c
ibm-granite-granite-4.1##Yes.\n«<tool_call>»\n{"name": "find", "arguments": {"q": "x"}}\n«</tool_call>»#tc
meetkai-functionary-medium-v3.2##all\nYes.>>>¦find\n¦{"q": "x"}#tc
meta-llama-Llama-3.2-3B-Instruct##{"name": "find", "parameters": {"q": "x"}}#c
mistralai-Mistral-Nemo-Instruct-2407##‹[TOOL_CALLS]›[{"name": "find", "arguments": {"q": "x"}, "id": "abcdefghi"}]#c
muse-glimmer## to=self‹<|message|>›Hm.‹<|eom|>›‹<|start|>›assistant to=find‹<|message|>›<atem:function_calls>\n<atem:invoke name="find">\n<atem:parameter name="q">x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>‹<|eot|>›#rc
muse-glimmer## to=self‹<|message|>›Hm.‹<|eom|>›‹<|start|>›assistant to=user‹<|message|>›Yes.‹<|eot|>›#rt
openbmb-MiniCPM5-1B#enable_thinking=true#Hm.\n«</think>»\n\nYes.<function name="find"><param name="q"><![CDATA[x]]></param></function>#rtc#«<think>»
poolside-Laguna-XS-2.1#enable_thinking=true#Hm.\n«</think>»\nYes.\n«<tool_call>»find\n«<arg_key>»q«</arg_key>»\n«<arg_value>»x«</arg_value>»\n«</tool_call>»\n#rtc#«<think>»
tencent-Hy3#reasoning_effort="high"#Hm.‹</think:opensource>›Yes.‹<tool_calls:opensource>›\n‹<tool_call:opensource>›find‹<tool_sep:opensource>›\n‹<arg_key:opensource>›q‹</arg_key:opensource>›\n‹<arg_value:opensource>›x‹</arg_value:opensource>›\n‹</tool_call:opensource>›\n‹</tool_calls:opensource>›#rtc#‹<think:opensource>›
unsloth-mistral-Devstral-Small-2507##Yes.‹[TOOL_CALLS]›find‹[ARGS]›{"q": "x"}#tc
TABLE

begin replies_in_the_forms_of_published_templates
templates=$shared/templates
if [ -d "$templates" ]; then
    n=0
    while IFS='#' read -r name variables reply kinds control; do
        [ -f "$templates/$name.jinja" ] || { bad "no template $name"; continue; }
        n=$((n + 1))
        [ -z "$quick" ] || [ $((n % 4)) -eq 0 ] || continue
        model m "$(cat "$templates/$name.jinja")" "$reply" "$control"
        want=''
        case $kinds in r*) want='Hm.' ;; esac
        case $kinds in *t*) want="$want / Yes." ;; *) want="$want / " ;; esac
        case $kinds in *c) want="$want / find{\"q\":\"x\"}" ;; esac
        set -- run --chat -m "$work/m.gguf" -p x --json
        if grep -q '\<tools\>' "$templates/$name.jinja"; then
            set -- "$@" --tools "$work/tools.json"
        fi
        for variable in $variables; do
            set -- "$@" --template-var "$variable"
        done
        infer "$@"
        last="$name"
        [ "$code" -eq 0 ] || bad "$name: status $code: $(cat "$work/err")"
        message "$want"
    done <"$work/table"
    for file in "$templates"/*.jinja; do
        base=$(basename "$file" .jinja)
        case $base in llama-cpp-rwkv-world | microsoft-Phi-3.5-mini-instruct) continue ;; esac # only text
        grep -q "^$base#" "$work/table" || bad "$base has no reply"
    done
else
    skip "no published templates in $templates"
fi

# Formats without a published template: the prompt's end, the reply, what it contains, control tokens
# of the prompt.
cat >"$work/more" <<'TABLE'
<mm:think>{# ]<]minimax[>[ #}#Hm.‹</mm:think>›Yes.‹]<]minimax[>[›<tool_call>\n‹]<]minimax[>[›<invoke name="find">\n‹]<]minimax[>[›<q>x‹]<]minimax[>[›</q>\n‹]<]minimax[>[›</invoke>\n‹]<]minimax[>[›</tool_call>#rtc#‹<mm:think>›
Here are my reasoning steps:{# [BEGIN FINAL RESPONSE] <tool_calls> #}#Hm.\n‹[BEGIN FINAL RESPONSE]›\nYes.\n<tool_calls>[{"name": "find", "arguments": {"q": "x"}}]</tool_calls>#rtc
Here are my reasoning steps:{# [BEGIN FINAL RESPONSE] #}#Hm.\n[BEGIN FINAL RESPONSE]\nYes.\n[END FINAL RESPONSE]#rt
<|start|>assistant#‹<|channel|>›analysis‹<|message|>›Hm.‹<|end|>›‹<|start|>›assistant‹<|channel|>›commentary to=functions.find ‹<|constrain|>›json‹<|message|>›{"q": "x"}‹<|call|>›‹<|return|>›#rc
<|start|>assistant#‹<|channel|>›analysis‹<|message|>›Hm.‹<|channel|>›final‹<|message|>›Yes.‹<|call|>›‹<|return|>›#rt
a#‹<|think|>›Hm.‹<|end|>›‹<|begin|>›assistant‹<|content|>›Yes.‹<|call|>›‹<|return|>›#rt
a#‹[THINK]›Hm.‹[/THINK]›Yes.#rt
a{# <reasoning> #}#<reasoning>Hm.</reasoning>Yes.#rt
a{# <thinking> #}#<thinking>Hm.</thinking>Yes.#rt
a#‹<thought>›Hm.‹</thought>›Yes.#rt
a#‹<seed:think>›Hm.‹</seed:think>›Yes.‹<seed:tool_call>›<function=find><parameter=q>x</parameter></function>‹</seed:tool_call>›#rtc
a{# <function= #}#Yes. <function=find>{"q": "x"}</function>#tc
a#Yes.‹<|tool_call|>›[{"name": "find", "arguments": {"q": "x"}}]‹<|/tool_call|>›#tc
a#Yes.‹<|python_tag|>›{"name": "find", "parameters": {"q": "x"}}‹<|eom_id|>›#tc
a{# ｜DSML｜ #}#Yes.<‹｜DSML｜›function_calls>\n<‹｜DSML｜›invoke name="find">\n<‹｜DSML｜›parameter name="q" string="true">x</‹｜DSML｜›parameter>\n</‹｜DSML｜›invoke>\n</‹｜DSML｜›function_calls>#tc
a{# <function_calls> #}#Yes.<function_calls>find(q="x")</function_calls>#tc
a#Yes.‹<|action_start|>›‹<|plugin|>›\n{"name": "find", "parameters": {"q": "x"}}‹<|action_end|>›#tc
a{# [func_name1( #}#[find(q='x')]#c
a{# <answer> #}#«<think>»\nHm.\n«</think>»\n<answer>\nYes.\n</answer>#rt
TABLE

begin replies_of_other_formats
while IFS='#' read -r prompt comment end reply kinds control; do
    n=$((${n:-0} + 1))
    [ -z "$quick" ] || [ $((n % 3)) -eq 0 ] || continue
    # "{# ... #}" in the prompt contains the separator twice.
    case $prompt in *{) prompt="$prompt#$comment#$end" ;; *) control=$kinds kinds=$end reply=$comment ;; esac
    model m "{{ messages[0].content }}{{ tools }}$prompt" "$reply" "$control"
    want=''
    case $kinds in r*) want='Hm.' ;; esac
    case $kinds in *t*) want="$want / Yes." ;; *) want="$want / " ;; esac
    case $kinds in *c) want="$want / find{\"q\":\"x\"}" ;; esac
    infer run --chat -m "$work/m.gguf" -p x --json --tools "$work/tools.json"
    last="$reply"
    status 0
    message "$want"
done <"$work/more"

begin the_letters_of_a_marker_token_are_text
for reply in '‹<think>›so ¦</think> on‹</think>›Yes.' '«<think>»so ¦</think> on«</think>»Yes.' \
    '‹<think>›so ¦<¦/¦think¦> on‹</think>›Yes.'; do
    model m '{{ messages[0].content }}' "$reply"
    infer run --chat -m "$work/m.gguf" -p x --json
    message 'so </think> on / Yes.'
    infer run --chat -m "$work/m.gguf" -p x
    out 'Yes.'
    printf 'x\n' >"$work/lines"
    input=$work/lines
    infer chat -m "$work/m.gguf" --json
    message 'so </think> on / Yes.'
    printf '{"prompt":"x","chat":true}\n' >"$work/lines"
    infer batch -m "$work/m.gguf"
    message 'so </think> on / Yes.'
    input=''
    infer run --chat -m "$work/m.gguf" -p x --json --json-schema '{"const":12}' # the constraint begins after the token
    message 'so </think> on / 12'
done
model m '{{ messages[0].content }}' 'A ¦<think>b</think> c¦ <tool_call>{"name": "find", "arguments": {}}</tool_call>' '‹<think>›‹</think>›‹<tool_call>›‹</tool_call>›'
infer run --chat -m "$work/m.gguf" -p x --json
message ' / A <think>b</think> c <tool_call>{"name": "find", "arguments": {}}</tool_call>'
infer run --chat -m "$work/m.gguf" -p x --reasoning only
out ''
model m '{{ messages[0].content }}' '‹<tool_call>›find‹<arg_key>›q‹</arg_key>›‹<arg_value>›a ¦</arg_value></tool_call> b‹</arg_value>›‹</tool_call>›'
infer run --chat -m "$work/m.gguf" -p x --json
message ' /  / find{"q":"a </arg_value></tool_call> b"}'
model m '{{ messages[0].content }}<|start|>assistant' '‹<|channel|>›analysis‹<|message|>›a¦<|end|> b‹<|end|>›‹<|start|>›assistant‹<|channel|>›final‹<|message|>›Yes.‹<|call|>›‹<|return|>›' '‹<|start|>›'
infer run --chat -m "$work/m.gguf" -p x --json
message 'a<|end|> b / Yes.'
model m '{{ messages[0].content }}{# <think> #}' '<think>¦Hm.¦</think>¦Yes.' # no tokens: letters are marks
infer run --chat -m "$work/m.gguf" -p x --json
message 'Hm. / Yes.'

begin a_call_ends_reasoning_that_is_not_closed
for reply in '‹<think>›Hm.‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}‹</tool_call>›' \
    '‹<think>›Hm.‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}' \
    '<think>Hm.<tool_call>{"name": "find", "arguments": {"q": "x"}}</tool_call>\n' \
    '‹<think>›Hm.‹<|tool_calls_section_begin|>›‹<|tool_call_begin|>›functions.find:0‹<|tool_call_argument_begin|>›{"q": "x"}‹<|tool_call_end|>›‹<|tool_calls_section_end|>›' \
    '‹[THINK]›Hm.‹[TOOL_CALLS]›find‹[ARGS]›{"q": "x"}' \
    '‹<|inner_prefix|>›Hm.‹<|tools_prefix|>›[{"find": {"q": "x"}}]‹<|tools_suffix|>›' \
    '‹<|channel|>›analysis‹<|message|>›Hm.‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}‹</tool_call>›'; do
    model m '{{ messages[0].content }}{# <think> <tool_call> #}' "$reply"
    infer run --chat -m "$work/m.gguf" -p x --json
    last="$reply"
    message 'Hm. /  / find{"q":"x"}'
done
model m '{{ messages[0].content }}' '‹<think>›Hm.‹<tool_call>›{"name": "a", "arguments": {}}‹</tool_call>› no‹</think>›Yes.'
infer run --chat -m "$work/m.gguf" -p x --json
message 'Hm.<tool_call>{"name": "a", "arguments": {}}</tool_call> no / Yes.'
model m '{{ messages[0].content }}' '‹<think>›Hm.‹<tool_call>›{"name": "a", "arguments": {}}‹</tool_call>› and so on'
infer run --chat -m "$work/m.gguf" -p x --json
message 'Hm.<tool_call>{"name": "a", "arguments": {}}</tool_call> and so on / '
model m '{{ messages[0].content }}' '‹<think>›a ‹<tool_call>› b ‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}‹</tool_call>›'
infer run --chat -m "$work/m.gguf" -p x --json
message 'a <tool_call> b /  / find{"q":"x"}'
model m '{{ messages[0].content }}' '‹<tool_call>›{"name": "find", "arguments": {}}‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}‹</tool_call>›'
infer run --chat -m "$work/m.gguf" -p x --json # no closing mark between two calls
message ' /  / find{} / find{"q":"x"}'

begin a_constraint_holds_after_a_header
harmony='‹<|channel|>›analysis‹<|message|>›Hm. No JSON.‹<|end|>›‹<|start|>›assistant‹<|channel|>›final‹<|message|>›12‹<|call|>›‹<|return|>›'
muse=' to=self‹<|message|>›Hm. No JSON.‹<|eom|>›‹<|start|>›assistant to=user‹<|message|>›12‹<|eot|>›'
kimi='Hm. No JSON.‹<|close|>›think‹<|sep|>›‹<|open|>›response‹<|sep|>›12‹<|close|>›response‹<|sep|>›'
model harmony '{{ messages[0].content }}<|start|>assistant' "$harmony" '‹<|start|>›'
model muse '{{ messages[0].content }}<|start|>assistant{# to=self<|message|> #}' "$muse" '‹<|start|>›'
model kimi '{{ messages[0].content }}<|open|>think<|sep|>' "$kimi" '‹<|open|>›‹<|close|>›‹<|sep|>›'
model final '{{ messages[0].content }}<|start|>assistant' '‹<|channel|>›f¦inal‹<|message|>›12‹<|call|>›‹<|return|>›' '‹<|start|>›'
for name in harmony muse kimi; do
    infer run --chat -m "$work/$name.gguf" -p x --json --json-schema '{"const":12}'
    status 0
    message 'Hm. No JSON. / 12'
done
infer run --chat -m "$work/final.gguf" -p x --json --json-schema '{"const":12}'
message ' / 12'
infer run --chat -m "$work/harmony.gguf" -p x --json --json-schema '{"const":12}' --reasoning-budget 0
message ' / 12'
infer run --chat -m "$work/harmony.gguf" -p x --json --json-schema '{"const":12}' --reasoning-budget 1
message 'Hm. No JSON. / 12'
infer run --chat -m "$work/harmony.gguf" -p x --json-schema '{"const":12}'
out '12'
infer run --chat -m "$work/harmony.gguf" -p x --json --reasoning-budget 0 # a limit without a constraint
message ' / 12'

begin events_name_the_part_of_a_reply
model m '{{ messages[0].content }}' '‹<think>›Hm.‹</think>›Yes.‹<tool_call>›{"name": "find", "arguments": {"q": "x"}}‹</tool_call>›'
infer run --chat -m "$work/m.gguf" -p x --jsonl --reasoning show
status 0
valid run-event.schema.json
got=$(sed -n 's/.*"text":"\(.*\)","part":"\([a-z]*\)".*/\1 \2/p' "$work/out" | tr '\n' ';')
want='<think> mark;Hm. reasoning;</think> mark;Yes. answer; call; call;<tool_call>{\"name\": \"find\", \"arguments\": {\"q\": \"x\"}}</tool_call> call; answer;'
[ "$got" = "$want" ] || bad "$got"
infer run -m "$work/m.gguf" -p x --jsonl
grep -q '"part"' "$work/out" && bad 'a completion has no parts'

begin a_stop_text_that_is_a_control_token_ends_there
model m '{{ messages[0].content }}' 'One‹<|foo|>›two‹<|bar|>›three'
infer run -m "$work/m.gguf" -p x --stop '<|foo|>'
status 0
out 'One'
infer run -m "$work/m.gguf" -p x --stop '<|bar|>' --stop 'One<' --json # text that was held back is shown
out_like '"text":"Onetwo","stop":"stop","stop_text":"<.bar.>"'
infer run -m "$work/m.gguf" -p x --stop '<|foo|>' --special
out 'One'
infer run --chat -m "$work/m.gguf" -p x --stop '<|foo|>'
out 'One'
printf '{"prompt":"x","stop":["<|bar|>"]}\n{"prompt":"x","stop":"none"}\n' >"$work/lines"
input=$work/lines
infer batch -m "$work/m.gguf"
out_like '"line":1,"text":"Onetwo","stop":"stop","stop_text":"<.bar.>"'
out_like '"line":2,"text":"Onetwothree","stop":"eos"'
input=
infer run -m "$work/m.gguf" -p x -l '<|foo|>-inf' -l 'two+1000' --temp 0 -n 1 # a bias of its text reaches it
out 'two'

begin reasoning_is_dimmed_at_a_terminal
if terminals; then
    model m '{{ messages[0].content }}{# enable_thinking #}' '‹<think>›Hm.‹</think>›Yes.'
    unset NO_COLOR
    TERM=xterm python3 test/cli/terminal.py "$work/screen" 'wait:>' 'send:x\r' 'wait:Yes.' 'wait:>' 'send:/set nothink\r' 'wait:>' 'send:/bye\r' -- \
        "$INFER" chat -m "$work/m.gguf" --no-history
    code=$? last='chat at a terminal'
    status 0
    grep -aq "$(printf '\033\\[2m<think>Hm\\.</think>\033\\[0m')" "$work/screen" || bad "$(cat -v "$work/screen")"
    grep -aq "$(printf '\033\\[2mYes')" "$work/screen" && bad 'the answer is dimmed'
    infer run --chat -m "$work/m.gguf" -p x
    out 'Yes.'
else
    skip 'no pseudo-terminal'
fi

finish
