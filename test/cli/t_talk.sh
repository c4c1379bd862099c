# infer chat: turns, commands, the cache, a full context; then input at a terminal.
. test/cli/lib.sh
tiny=$work/tiny.gguf
"${INFER%/*}/test/tool_make_model" "$tiny" arch=llama tokens=bpe 2>/dev/null ||
    { echo 'skip t_talk.sh: tool_make_model is not built'; finish; exit; }
INFER_MODEL=$tiny XDG_STATE_HOME=
export INFER_MODEL XDG_STATE_HOME

# The template renders only the roles of messages, so that a prompt has few tokens.
cat >"$work/plain.jinja" <<'END'
{%- for m in messages -%}
{%- if m.content == 'refuse' %}{{ raise_exception('refused') }}{% endif -%}
<|im_start|>{{ m.role[0] }}{{ m.content if m.role != 'assistant' }}<|im_end|>
{%- endfor -%}
<|im_start|>a
END
INFER_TEMPLATE=$work/plain.jinja
export INFER_TEMPLATE

talk() { # LINES OPTIONS...: a conversation through a pipe
    # shellcheck disable=SC2059
    printf "$1" >"$work/lines"
    shift
    input=$work/lines
    infer chat --commands "$@"
}
answers() { # the expected number
    [ "$(wc -l <"$work/json")" -eq "$1" ] || bad "infer $last: $(wc -l <"$work/json") answers, not $1"
}
talk_json() { # the same with one object per line
    talk "$@" --json
    cp "$work/out" "$work/json"
}

begin each_line_gets_an_answer_and_stdout_nothing_else
talk_json 'one\n\n  \ntwo' -n 4
status 0
err ''
answers 2
out_like '^\{"message":\{"role":"assistant","content":"[^"]*"\},"prompt_tokens":[0-9]+,"read_tokens":[0-9]+,"tokens":[0-4],"stop":"[a-z]+","seed":0\}$'
out_like '"seed":1\}$'
valid chat.schema.json
talk '' -n 4
status 0
out ''
err ''

begin fences_make_messages_of_several_lines
talk 'a\\\nb\n"""\nc\n\nd"""\n"""e\n"""\n"""f"""\n//g\n/save '"$work/saved.json\n" -n 1
status 0
err_like '^infer: 10 messages written to '
for text in 'a\\nb' 'c\\n\\nd' e f /g; do
    grep -qF "\"user\",\"content\":\"$(printf '%b' "$text")\"" "$work/saved.json" || bad "no message $text in $(cat "$work/saved.json")"
done

begin commands_change_the_conversation
talk_json "one\n/undo\ntwo\n/system be nice\n/system\n/save $work/saved.json\n/exit\nthree\n" -n 2
status 0
answers 2
err_like '^be nice$'
err_like '^infer: 3 messages written to'
grep -q '"system","content":"be nice"' "$work/saved.json" || bad 'no system message'
grep -q '"one"' "$work/saved.json" && bad 'the first message was not taken back'
talk "/load $work/saved.json\n/system -\nthree\n/save $work/again.json\n" -n 2
status 0
err_like '^infer: 3 messages read from'
grep -q '"system"' "$work/again.json" && bad 'the system message is still there'
grep -q '"two"' "$work/again.json" || bad 'nothing was loaded'
talk "/clear\n/save $work/again.json\n" --messages "$work/saved.json"
err_like '^infer: 1 messages written to'
talk "/save $work/again.json\n" --messages "$work/again.json" # in memory by then
err_like '^infer: 1 messages written to'
talk '/help\n'
status 0
out ''
err_like '^/undo '
infer run --chat --messages "$work/saved.json" --show-prompt # the same form
status 0

begin an_error_ends_a_script
talk '/foo\nmore\n'
status 2
out ''
err_line '/foo: unknown command; /help lists them'
talk '/hepl\n'
err_line 'did you mean /help'
talk '/save\n'
err_line '/save: needs FILE'
talk '/undo\n'
err_line 'there is no message to take back'
talk '/regen\n'
status 2
err_line 'there is no message to answer again'
talk "/load $work/nothing.json\n"
status 2
err_line 'nothing.json: cannot read'
talk '\377\n'
status 2
err_line 'a message must be UTF-8'
talk 'refuse\n'
status 2
err_line 'line 2: .*refused'

begin a_prompt_without_a_token_is_an_error # a letter is missing in the vocabulary, and no special token is added
LC_ALL=C sed 's/\(\x01\x00\x00\x00\x00\x00\x00\x00\)x/\1\x02/' "$tiny" >"$work/hole.gguf"
printf 'x{{ messages[-1].content }}' >"$work/x.jinja"
talk 'x\n' -m "$work/hole.gguf" --template "$work/x.jinja"
status 2
out ''
err_line .
input=
infer run --chat -p x -m "$work/hole.gguf" --template "$work/x.jinja"
status 2
out ''
err_line .

begin lines_of_a_pipe_are_no_commands # piped text must not write files
for text in "/save $work/kept" '/exit' '//x' 'exit'; do
    printf '%s\n%s\n' "$text" two >"$work/lines"
    input=$work/lines
    infer chat -n 3 --ignore-eos --json # the text, and so the answer, differs from run to run
    status 0
    err ''
    [ "$(wc -l <"$work/out")" -eq 2 ] || bad "$text: $(wc -l <"$work/out") answers"
    [ ! -e "$work/kept" ] || bad "$text was obeyed"
done

begin text_between_fences_is_not_a_command
printf '"""\n/save %s\n"""\n"""/exit"""\n' "$work/fenced.json" >"$work/lines"
input=$work/lines
infer chat --commands -n 1 --json
status 0
cp "$work/out" "$work/json"
answers 2
[ ! -e "$work/fenced.json" ] || bad 'a fenced text wrote a file'

begin a_longer_fence_holds_shorter_ones
talk '""""\na\n"""\nb\n""""\n/save '"$work/saved.json\n" -n 1
grep -qF '"content":"a\n\"\"\"\nb"' "$work/saved.json" || bad "$(cat "$work/saved.json")"
talk '""""f"""g""""\n/save '"$work/saved.json\n" -n 1
grep -qF '"content":"f\"\"\"g"' "$work/saved.json" || bad "$(cat "$work/saved.json")"

begin line_ends_of_other_systems_are_read
talk '"""\r\na\r\nb\r\n"""\r\nc\r\n/save '"$work/saved.json\r\n/bye\r\nd\r\n" -n 1
status 0
err_like '^infer: 4 messages written to '
for text in 'a\\nb' c; do
    grep -qF "\"user\",\"content\":\"$(printf '%b' "$text")\"" "$work/saved.json" || bad "no $text in $(cat "$work/saved.json")"
done

begin markers_that_are_ordinary_tokens_are_noted
LC_ALL=C sed 's/\(\x03\x00\x00\x00\)\{3\}/\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00/' "$tiny" >"$work/normal.gguf"
talk 'one\n' -n 1 -m "$work/normal.gguf"
status 0
err_line "the chat template's '<.im_start.>' is not a special token in this file"

begin each_turn_reads_only_what_is_new
talk 'one\ntwo\nthree\n' -n 4 -v
grep '^infer: prompt: ' "$work/err" | sed 's/.*: \([0-9]*\) tokens, \([0-9]*\) from the cache, \([0-9]*\) read.*/\1 \2 \3/' >"$work/turns"
[ "$(wc -l <"$work/turns")" -eq 3 ] || bad "not three turns: $(cat "$work/err")"
awk '$1 != $2 + $3 || (NR > 1 && $2 < held - 1) { exit 1 } { held = $1 }' "$work/turns" ||
    bad "prompt, kept, read: $(cat "$work/turns")"

begin the_cache_changes_nothing
talk_json "one\ntwo\n/save $work/saved.json\nthree\n" -n 6
tail -n 1 "$work/json" | sed 's/.*"content":\("[^"]*"\).*/\1/' >"$work/kept"
talk_json "/load $work/saved.json\nthree\n" -n 6 -s 2 # the third answer has the third seed
tail -n 1 "$work/json" | sed 's/.*"content":\("[^"]*"\).*/\1/' >"$work/fresh"
cmp -s "$work/kept" "$work/fresh" || bad "$(cat "$work/kept") is not $(cat "$work/fresh")"

begin the_same_bytes_always
talk 'one\ntwo\n/regen\n' -n 6 -s 3
cp "$work/out" "$work/first"
talk 'one\ntwo\n/regen\n' -n 6 -s 3 -t 1 -b 2
cmp -s "$work/out" "$work/first" || bad 'other bytes'

begin a_full_context_drops_the_oldest_messages_or_ends
three='one\ntwo\nthree\n'
talk_json "$three" -n 2 -c 24
status 5
answers 2
err_line 'the conversation has [0-9]+ tokens and the context holds 24'
talk_json "$three" -n 2 -c 24 --on-full error
status 5
talk_json "$three" -n 2 -c 24 --on-full shift
status 0
answers 3
err_line 'the context of 24 tokens is full: the 2 oldest messages are not read'
talk_json "$three" -n 2 -c 25 --on-full shift --system S
status 0
answers 3
talk_json 'a message that is too long in every case\n' -n 2 -c 20 --on-full shift
status 5
err_line 'the last message alone has [0-9]+ tokens and the context holds 20: shorten it'
answers 0
talk_json 'one\n' -c 20 --ignore-eos
status 0
out_like '"stop":"context"'
err_line 'the answer was cut: the context of 20 tokens is full'
talk_json 'one\n' -c 20 --ignore-eos --on-full error
status 5
answers 1

if command -v python3 >/dev/null 2>&1; then
    begin a_nonblocking_input_is_waited_for
    printf 'import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(r, False)
child = subprocess.Popen(sys.argv[1:], stdin=r)
time.sleep(0.5)
os.write(w, b"one\\n")
time.sleep(0.2)
os.close(w)
sys.exit(child.wait())
' >"$work/nonblock.py"
    python3 "$work/nonblock.py" "$INFER" chat -n 3 --json >"$work/out" 2>"$work/err"
    code=$? last='chat, O_NONBLOCK'
    status 0
    err ''
    [ "$(wc -l <"$work/out")" -eq 1 ] || bad "$(cat "$work/out")"
fi

begin no_history_without_a_terminal
talk 'one\n' -n 1
[ ! -e "$work/.local/state/infer" ] || bad 'a history was written'

# ---- Input at a terminal ----
# Ctrl-D is sent shortly after the prompt: before the editor reads keys, the terminal's line
# discipline interprets it.

unset NO_COLOR
TERM=xterm
export TERM
person() { # STEPS... -- OPTIONS...: see test/cli/terminal.py
    before=''
    for word; do
        shift
        [ "$word" = -- ] && break
        set -- "$@" "$word"
        before=x
    done
    [ -n "$before" ] || bad 'no steps'
    options=$word
    python3 test/cli/terminal.py "$work/screen" "$@" -- "$INFER" chat $chat_options 2>"$work/err" >"$work/out"
    code=$? last="chat at a terminal $options"
}
screen_like() {
    tr -d '\r' <"$work/screen" | grep -aEq -- "$1" || bad "the screen '$(tail -c 400 "$work/screen" | cat -v)' does not match $1"
}
if terminals; then
    chat_options='-n 3 --no-history'

    begin terminal_lines_are_edited
    person 'wait:>' 'sleep:0.3' 'send:cone\x01\x04b\x05s\r' 'wait:\n' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:written' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"bones"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"
    screen_like '^.\[[?]2004h.\[1;32m>.\[0m '

    begin terminal_commands_of_other_programs_are_known
    person 'wait:random; /help lists commands' 'wait:>' 'send:?\r' 'wait:/undo' 'wait:>' 'send:quit\r' --
    status 0

    begin terminal_pasted_lines_are_one_message # terminals mark pasted text on request
    person 'wait:>' 'sleep:0.3' 'send:see \x1b[200~one\r\ttwo\x1b[31m\r/save no\r\r\x1b[201~' 'wait:no' 'send:!\r' 'wait:\n' 'wait:>' 'sleep:0.3' \
        'send:\x1b[200~"""\ra\rb\r"""\x1b[201~\r' 'wait:\n' 'wait:>' 'sleep:0.3' \
        'send:/save '"$work"'/typed.json\r' 'wait:infer: 4 messages written' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"see one\\n\\ttwo\[31m\\n/save no!"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"
    grep -q '"user","content":"a\\nb"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"
    screen_like '.\[[?]2004l'

    begin terminal_pasted_commands_are_text
    person 'wait:>' 'sleep:0.3' 'send:\x1b[200~/save '"$work"'/pasted.json\rx\x1b[201~\r' 'wait:\n' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    [ ! -e "$work/pasted.json" ] || bad 'a pasted text wrote a file'
    TERM=dumb
    person 'wait:>' 'sleep:0.3' 'send:\x04' --
    grep -aq '2004' "$work/screen" && bad 'a dumb terminal is told to mark what is pasted'
    TERM=xterm

    begin terminal_words_are_not_cut
    words='one two three four five six seven eight nine ten eleven twelve'
    chat_options="-n 100 --no-history"
    INFER_CHOICES=$words
    export INFER_CHOICES
    person 'wait:>' 'size:30' 'send:x\r' 'wait:twelve' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    screen_like '^(.\[[?]2004l)?one two three four five six$'
    screen_like '^seven eight nine ten eleven$'
    screen_like '^twelve$'
    TERMINAL_STDOUT=$work/answers
    export TERMINAL_STDOUT
    person 'wait:>' 'size:30' 'send:x\r' 'wait:\n' 'wait:>' 'sleep:0.3' 'send:\x04' --
    unset TERMINAL_STDOUT
    grep -q "^$words$" "$work/answers" || bad "a file has line ends in it: $(cat "$work/answers")"
    INFER_CHOICES='abcdefghijklmnopqrstuvwxyz0123456789 end' # longer than a line
    person 'wait:>' 'size:30' 'send:x\r' 'wait:end' 'wait:>' 'sleep:0.3' 'send:\x04' --
    screen_like 'abcdefghijklmnopqrstuvwxyz0123456789 end$'
    unset INFER_CHOICES
    INFER_REGEX='(seven words are on each line here ){200}end'
    export INFER_REGEX
    chat_options='-n 20000 -c 32768 --no-history'
    person 'wait:>' 'size:30' 'send:x\r' 'wait:seven' 'wait:seven' 'size:60' 'wait:end' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    screen_like '^[a-z ]{41,60}$' # the width changed within the answer
    grep -aEq '^[a-z ]{61}' "$work/screen" && bad 'a line is longer than the terminal'

    begin terminal_typing_during_an_answer_is_the_next_line
    person 'wait:>' 'size:60' 'send:x\r' 'wait:seven' 'send:ahead\r' 'wait:end' 'wait:end' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:infer: 4 messages' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"ahead"' "$work/typed.json" || bad "typed: $(head -c 600 "$work/typed.json")"
    [ "$(grep -ac ahead "$work/screen")" -eq 1 ] || bad "what was typed is in the answer: $(grep -a ahead "$work/screen" | cat -v)"
    unset INFER_REGEX
    chat_options='-n 3 --no-history'

    begin terminal_commands_of_ollama_are_known
    person 'wait:>' 'send:/?\r' 'wait:/undo' 'wait:>' 'send:/set parameter temperature 0\r' 'wait:>' 'send:/set parameter num_predict 2\r' 'wait:>' \
        'send:/show parameters\r' 'wait:temperature     0' 'wait:predict         2' 'wait:>' 'send:x\r' 'wait:\n' 'wait:>' 'send:/retry\r' 'wait:\n' 'wait:>' \
        'send:/set parameter num_ctx 5\r' 'wait:cannot change in a conversation' 'wait:>' 'send:/set parameter foo 5\r' 'wait:is not an option' 'wait:>' \
        'send:/set parameter top_p 5\r' 'wait:--top-p' 'wait:>' 'send:/set system be kind\r' 'wait:>' 'send:/show system\r' 'wait:be kind' 'wait:>' \
        'send:/set think\r' 'wait:no variable that switches' 'wait:>' 'send:/set\r' 'wait:needs parameter NAME VALUE' 'wait:>' 'send:/show info\r' 'wait:architecture' 'wait:>' \
        'send:/set verbose\r' 'wait:>' 'send:x\r' 'wait:infer: prompt:' 'wait:>' 'send:/quit\r' --
    status 0

    begin terminal_tabs_are_kept
    person 'wait:>' 'sleep:0.3' 'send:a\tb\r' 'wait:\n' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:written' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"a\\tb"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"

    begin terminal_other_scripts_and_history_are_edited
    person 'wait:>' 'send:Zürx\x7fich\r' 'wait:\n' 'wait:>' 'send:\x10\r' 'wait:\n' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:written' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    [ "$(grep -c '"user","content":"Zürich"' "$work/typed.json")" -eq 2 ] || bad "typed: $(cat "$work/typed.json")"

    begin terminal_errors_do_not_end_the_chat
    person 'wait:>' 'send:/foo\r' 'wait:unknown command' 'wait:>' 'send:refuse\r' 'wait:refused' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:infer: 0 messages' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0

    begin terminal_ctrl_c_clears_the_line
    person 'wait:>' 'send:not this' 'wait:not this' 'sleep:0.2' 'send:\x03' 'wait:>' 'send:\x03' 'wait:>' 'send:this\r' 'wait:\n' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:infer: 2 messages' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"this"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"

    begin terminal_ctrl_c_stops_the_answer
    chat_options='--ignore-eos --no-history -n 2000000 -c 200000 --on-full stop'
    person 'wait:>' 'send:one\r' 'sleep:1' 'send:\x03' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:infer: 2 messages' 'wait:>' 'send:/exit\r' --
    status 0
    chat_options='-n 3'

    begin terminal_history_is_kept_in_a_file
    person 'wait:>' 'send:first words\r' 'wait:\n' 'wait:>' 'send:/help\r' 'wait:Ctrl-C' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    printf 'first words\n' >"$work/want"
    cmp -s "$work/.local/state/infer/history" "$work/want" || bad "history: $(cat "$work/.local/state/infer/history")"
    [ "$(stat -c %a "$work/.local/state/infer/history")" = 600 ] || bad 'others may read the history'
    person 'wait:>' 'send:\x10' 'wait:first words' 'send:\r' 'wait:\n' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0

    begin terminal_editing_continues_after_a_stop_and_a_resize
    person 'wait:>' 'send:a' 'wait:a' 'size:40' 'stop' 'sleep:0.3' 'send:b\r' 'wait:\n' 'wait:>' 'send:/save '"$work"'/typed.json\r' 'wait:infer: 2 messages' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -q '"user","content":"ab"' "$work/typed.json" || bad "typed: $(cat "$work/typed.json")"

    begin terminal_prompts_do_not_go_to_stdout_in_a_file # prompts must not be written to the file
    TERMINAL_STDOUT=$work/answers
    export TERMINAL_STDOUT
    person 'wait:>' 'send:one\r' 'wait:\n' 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    unset TERMINAL_STDOUT
    grep -aq '>' "$work/answers" && grep -aq "$(printf '\033')" "$work/answers" && bad 'prompts in the answers'
    [ "$(wc -l <"$work/answers")" -ge 1 ] || bad 'no answer'

    begin no_colour_when_asked
    NO_COLOR=1
    export NO_COLOR
    person 'wait:>' 'sleep:0.3' 'send:\x04' --
    status 0
    grep -aq "$(printf '\033\\[1;32m')" "$work/screen" && bad 'colour in spite of NO_COLOR'
    unset NO_COLOR
else
    echo 'skip terminal tests of t_talk.sh: no pseudo-terminal or no python3 here'
fi

if [ -n "$MODEL" ]; then
    begin a_real_model_reuses_its_answers_from_the_cache
    unset INFER_TEMPLATE
    INFER_MODEL=$MODEL
    talk 'What is 2+2?\nThank you.\n' --temp 0 -n 20 -v
    status 0
    [ "$(head -n 1 "$work/out")" = 'The answer to this classic math problem is 4.' ] || bad "it says $(cat "$work/out")"
    err_like '^infer: prompt: 37 tokens, 0 from the cache, 37 read'
    err_like '^infer: prompt: 6[0-9] tokens, 48 from the cache, 1[0-9] read'
fi

finish
