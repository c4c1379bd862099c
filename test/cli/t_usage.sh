# Help, versions, usage errors, environment variables. Needs no model.
. test/cli/lib.sh
unset INFER_THREADS # -v names it

commands=$("$INFER" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

begin version_is_one_line
for form in version --version; do
    infer $form
    status 0
    out 'infer 0.1.0\n'
    err ''
done

begin version_is_printed_among_other_options # whose values are not checked
infer -p x --version
status 0
out 'infer 0.1.0\n'
INFER_VERSION=on INFER_TEMP=hot
export INFER_VERSION INFER_TEMP
infer bench --version
out 'infer 0.1.0\n'
unset INFER_TEMP
infer models "$work" # that variable has no meaning here
status 0
out ''
unset INFER_VERSION

begin short_help_fits_a_screen # of 24 lines, including the shell prompt; --help has the rest
for command in '' $commands; do
    # shellcheck disable=SC2086
    infer $command -h
    status 0
    [ "$(wc -l <"$work/out")" -le 23 ] || bad "infer $command -h has $(wc -l <"$work/out") lines"
    awk 'length > 80 { exit 1 }' "$work/out" || bad "$command: -h is wider than 80 columns"
done
infer run -h
out_like '^  -p, --prompt TEXT '
out_like '^[0-9]+ more: infer run --help$'
n=$(sed -n 's/^\([0-9]*\) more: .*/\1/p' "$work/out")
here=$(grep -c '^ .*--[a-z]' "$work/out")
infer run --help
[ $((n + here)) -eq "$(grep -c '^ .*--[a-z]' "$work/out")" ] || bad "$here here and $n more are not all"
infer bench -h
out_like '^  -r, --repetitions N '

begin every_command_stands_in_the_readme
for command in $commands; do
    case $command in completion | man | version | help) continue ;; esac # about the program
    grep -q "^| commands |.* \`$command\`" README.md || bad "README.md lacks $command"
done

begin help_goes_to_stdout
for form in help --help -h; do
    infer $form
    status 0
    out_like '^Usage: infer'
    err ''
done

begin every_command_has_help
for command in $commands; do
    infer $command --help
    status 0
    out_like '^Usage: infer'
    out_like '^  -h, --help'
    err ''
    cp "$work/out" "$work/help"
    infer help $command
    cmp -s "$work/out" "$work/help" || bad "infer help $command differs from $command --help"
    awk 'length > 80 { exit 1 }' "$work/out" || bad "$command: help is wider than 80 columns"
done

begin help_lists_each_option_once_with_default
infer run --help
out_like '^ +--top-k N .* \[40\]$'
out_like '^  -n, --predict N '
[ "$(grep -c -- '--top-p' "$work/out")" -eq 1 ] || bad 'top-p is not listed once'

begin help_needs_no_other_argument # llama.cpp 17973: a completion script asked for a model
INFER_TOP_K=nonsense
export INFER_TOP_K
infer run --top-p 0.5 --help
status 0
unset INFER_TOP_K

begin an_unknown_option_has_a_suggestion
usage '--tmep: unknown option; did you mean --temp\?' --tmep 0
usage '--qqqqqqqq: unknown option; see infer run --help' --qqqqqqqq

begin no_option_is_accepted_without_effect
usage '--temp: is an option of .infer run., not of .infer tokenize.' tokenize --temp 0 -p x
usage '--special: goes with --decode' tokenize --special -p x
usage '--plan: is an option of .infer run., not of .infer bench.' bench --plan
usage '--decode: contradicts --no-bos' tokenize --decode --no-bos -p 1

begin options_of_other_programs_are_named # each with its name here, or why it does not exist
usage '^infer: -hf: unknown option; here it is infer pull USER/REPO' -hf u/r -p x
usage '^infer: --control-vector-layer-range: unknown option; here it is --control-vector FILE' --control-vector-layer-range=x -p x
usage '^infer: -r: unknown option; here it is --stop TEXT' tokenize -r x # which has no --stop
usage '^infer: llama-cli: unknown command; here it is infer -p TEXT' llama-cli -p x
usage '^infer: gguf-split: unknown command; here it is infer split' gguf-split x
usage '^infer: push: unknown command; not here: ' push llama3
usage '^infer: -ins: unknown option; here it is infer chat' -ins -p x
usage '^infer: -cml: unknown option; here it is --template chatml' -cml
usage '^infer: --prune-layers: unknown option; not here' quantize a b --prune-layers 3
usage '^infer: list: unknown command; here it is infer models$' list
infer help coming-from --format md
status 0
sed -n '/^<!-- coming-from -->$/,/^<!-- .coming-from -->$/p' docs/coming-from.md | sed '1d;$d' >"$work/want"
cmp -s "$work/out" "$work/want" || bad 'docs/coming-from.md has another table than `infer help coming-from --format md`'
grep '^| `' "$work/out" | sed 's/ | .*//; s/[|`]//g' | tr -s ' ' '\n' | grep . >"$work/words"
[ "$(wc -l <"$work/words")" -ge 150 ] || bad "$(wc -l <"$work/words") words only"
sort "$work/words" | uniq -d | grep . && bad 'a word stands twice in the table'
[ -z "$quick" ] || sed -i -n '1~4p' "$work/words"
while read -r word; do
    case $word in
    -*) # refused with a hint, passed over with or without a value, or understood
        infer run -m "$work/none" "$word" 1
        grep -q 'see infer run --help' "$work/err" && bad "$word: $(cat "$work/err")"
        infer run "$word"
        grep -Eq '^infer: [^ ]*: (unknown option; (here it is|not here:)|needs a value)|none.gguf|no model' "$work/err" ||
            [ "$code" -eq 3 ] || [ "$word" = -V ] || bad "$word: $code, $(cat "$work/err")" ;;
    *) usage "^infer: $word: unknown command; (here it is|not here:) " "$word" ;; esac
done <"$work/words"

begin all_unknown_options_are_named_at_once
usage '^infer: -qq: unknown option; see infer run --help; --none: unknown option; see infer run --help$' -qq --none 3 -p x
usage '^infer: unknown options: -hf, -qq, --one, --two, --three, --four, --five, --six, --seven; see infer run --help' \
    -hf x -qq --one --two --three --four --five --six --seven

begin options_that_change_nothing_are_passed_over
none="-m $work/none.gguf"
for words in '-fa' '-fa on' '--flash-attn=auto' '--no-mmap' '--mlock' '-t 2 -tb 2' '-ub 512' '--jinja' '-st' \
    '-no-cnv' '-cnv' '--log-disable' '--numa distribute' '-lv 1' '--color auto' '--poll 50' '-ncmoe 9 --no-warmup'; do
    infer $none $words -p x
    status 3
    err_line 'none.gguf: '
done
infer $none -ts 1,1 -fa off --n_predict 3 -p x -v
status 3
err_like '^infer: options: --model .*, --prompt x, --raw \(INFER_RAW\), --predict 3$'
err_like "^infer: -ts: not needed: --gpu places whole layers, with the same bytes$"
err_like '^infer: -fa: not needed: attention has one form$'
usage '-cnv: contradicts -no-cnv|-no-cnv: contradicts -cnv' -cnv -no-cnv -p x
usage '--max-tokens: .x. is not a whole number' -p x --max-tokens x

begin a_value_may_be_attached_to_a_short_option
infer $none -n3 -t2 -s-1 -pHi -v
status 3
err_like '^infer: options: --model .*, --prompt Hi, --raw \(INFER_RAW\), --predict 3, --seed -1, --threads 2$'
infer bench $none -p128,512 -n0 -r1
status 3
usage '^infer: -n3x: unknown option' -n3x
usage '^infer: -modle: unknown option; did you mean --model' -modle x
infer "-m$work/none.gguf" -p x
status 3

begin a_text_may_stand_alone
for words in 'Hello_there' 'run Hello' 'tokenize Hello' 'chat Hello' 'logits Hello'; do
    infer $words $none
    status 3
done
infer "What is this?" $none
status 3
: >"$work/file"
for command in '' run chat tokenize; do
    usage 'file: is a file: -f reads a text from it, -m takes it as the model' $command "$work/file"
done
usage '-f: given twice|unexpected argument' batch -f "$work/file" "$work/file"
infer bench "$work/none.gguf"
status 3

begin unknown_variables_are_noted
INFER_TMEP=0 INFER_TEST_X=1 INFER_FOO=2
export INFER_TMEP INFER_TEST_X INFER_FOO
infer models "$work"
status 0
err 'infer: no variable of infer, ignored: INFER_FOO, INFER_TMEP (INFER_TEMP?)\n'
infer version
unset INFER_TMEP INFER_TEST_X INFER_FOO
INFER_TEMP=0
export INFER_TEMP
infer $none -p x -v
err_like '^infer: options: .*--temp 0 \(INFER_TEMP\)'
unset INFER_TEMP

begin unknown_short_options_have_no_suggestion # each is similar to another
for word in -xy -ct --xyz -qz; do
    usage "^infer: $word: unknown option; see infer run --help$" $word
done

begin constraints_are_compiled_before_the_model_is_loaded
usage "line 1, column 10: rule 'b' is not defined" -m "$work/none" -p x --grammar 'root ::= b'
usage 'line 1, column 16: .*dynamicRef. is not supported' -m "$work/none" -p x \
    --json-schema '{"$dynamicRef":"#a"}'
usage 'line 1, column 3: a .\(. is not closed|not closed' -m "$work/none" -p x --regex 'a(b'
usage '--grammar: contradicts --regex' -p x --grammar 'root ::= "a"' --regex a
usage '--schema-lenient: needs --json-schema' -p x --regex a --schema-lenient not
infer -m "$work/none" -p x --json-object
status 3

begin an_unknown_command_has_a_suggestion
usage 'tokenise: unknown command; did you mean tokenize\?' tokenise
usage 'nothing: unknown command' help nothing
usage 'tokenize: unexpected argument; a command comes first' -m x tokenize
usage 'world: unexpected argument; a text of several words needs quotes' -p hello world
usage 'world: unexpected argument; a text of several words needs quotes' hello world
usage 'two: unexpected argument; too many' perplexity one two
usage 'd: unexpected argument; too many' quantize a b Q8_0 d
usage "quantize: 'b' is not a type. Usage: infer quantize IN.gguf \[OUT.gguf\] TYPE" quantize a b

begin a_missing_value_is_named
usage '^infer: -p: needs a value: TEXT' -p
usage '^infer: -t: needs a value: N' -p x -t
usage '^infer: --batch: needs a value: N' -p x --batch

begin wrong_numbers_are_refused
for bad_number in '' x 3x ' 3' 3.5 1e3 0x10 99999999999999999999 -2; do
    usage "^infer: -n: '$bad_number' is not a whole number from -1 to 2147483647" -p x -n "$bad_number"
done
for bad_number in '' x 0.5x ' 1' nan inf 0x1 -0.1 1001 1e400; do
    usage "--temp: '$bad_number' is not a number from 0 to 1000" -p x --temp "$bad_number"
done
usage "--top-p: '1.01' is not a number from 0 to 1" -p x --top-p=1.01
usage "^infer: -b: '0' is not a whole number" -p x -b 0
for bad_list in '' , 1, ,1 1,,2 1.5 -1 '1, 2' 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
    usage "^infer: -p: '$bad_list' is not one to 16 whole numbers from 0" bench -p "$bad_list"
done
usage "^infer: -np: '0' is not one to 16" bench -np 0
usage "^infer: -s: '-2' is not a whole number" -p x -s -2

begin empty_words_are_visible # of a variable that is not set
usage "^infer: '': cannot read: No such file" -f ''
usage "^infer: '': cannot read: No such file" score ''
usage "^infer: '': unexpected argument" -p x ''

begin a_value_that_is_no_choice_is_named
usage "--isa: 'sse' is none of scalar\|avx2" -p x --isa sse
usage "--isa: 'avx' is none of" -p x --isa avx
usage "--format: 'xml' is none of md\|json\|csv\|jsonl" bench --format xml
usage "^infer: -ctk: 'q9' is none of" -p x -ctk q9
usage "--echo: 'maybe' is neither on nor off" -p x --echo=maybe

begin options_that_exclude_each_other_are_refused
usage '^infer: -p: contradicts --ids; give one of them' logits -p x --ids 1
usage '^infer: -p: contradicts -f; give one of them' score -p x -f y --heat
usage '^infer: --ctx=128: |^infer: --ctx: contradicts --kl' perplexity --ctx=128 --kl x
usage '^infer: --schema: contradicts --choices' --schema x --choices y -p x
usage '--echo: contradicts --json' -p x --echo --json
usage '-o: contradicts --top' logits --ids 1 -o x --top 3
usage '-f: contradicts --kl' perplexity -f x --kl y
usage '--metadata: contradicts --tensors' inspect --metadata --tensors x

begin lists_of_json_may_be_texts
usage '^infer: --messages: message 1: it is not an object' -m "$work/none" -p x --messages '[1]'
usage '^infer: --tools: it is not a list of tools' -m "$work/none" -p x --tools '["f"]'
infer -m "$work/none.gguf" -p x --messages '[{"role":"user","content":"Hi"}]' --tools '[{"type":"function","function":{"name":"f"}}]'
status 3
err_line 'none.gguf'

begin an_empty_stop_text_is_refused
usage '--stop: is empty' -p x --stop ''

begin a_picture_as_an_argument_has_an_option
usage '^infer: a/b.svg: a picture' score --heat a/b.svg

begin a_bench_of_nothing_is_refused
usage 'nothing to measure' bench -p 0 -n 0,0
usage '--plot: goes with --format md only' bench --plot --format json

begin a_missing_text_at_a_terminal_is_an_error # an unexpected prompt would block
if terminals && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "'$INFER' -m x; echo status \$?" /dev/null </dev/null >"$work/out" 2>&1
    last='-m x (on a terminal)'
    out_like 'no text: give -p TEXT or -f FILE, or pipe it in'
    out_like 'status 2'
else
    skip 'no pseudo-terminal, python3 or script here'
fi

begin variables_give_defaults
INFER_TEMP=hot
export INFER_TEMP
usage "^infer: INFER_TEMP: 'hot' is not a number from 0 to 1000" -p x
infer -m "$work/none.gguf" -p x --temp 0 # the option wins
status 3
infer tokenize -m "$work/none.gguf" -p x # another command's variable
status 3
unset INFER_TEMP
INFER_ECHO=maybe
export INFER_ECHO
usage "INFER_ECHO: 'maybe' is neither on nor off" -p x
unset INFER_ECHO
INFER_MODEL=$work/from_environment.gguf
export INFER_MODEL
infer -p x
status 3
err_line 'from_environment.gguf: '
infer -p x -m "$work/from_line.gguf"
err_line 'from_line.gguf: '
INFER_FILE=$work/nothing.txt
export INFER_FILE
infer -p x # options override contradicting variables
status 3
unset INFER_MODEL INFER_FILE
INFER_TOP_K=
export INFER_TOP_K
infer -p x -m "$work/none.gguf" # an empty variable counts as unset
status 3
unset INFER_TOP_K

begin a_wrong_variable_is_named # also if the error occurs after parsing
with() { # VARIABLE VALUE REGEX ARGS...
    export "$1=$2"
    name=$1
    shift 2
    usage "$@"
    unset "$name"
}
with INFER_CHOICES a,,b '^infer: INFER_CHOICES: choice 2 is empty' -p x
with INFER_GRAMMAR 'root ::= b' '^infer: INFER_GRAMMAR: line 1, column 10: ' -p x
with INFER_REGEX '(' '^infer: INFER_REGEX: line 1, column 2: ' -p x
with INFER_SAMPLERS nonsense '^infer: INFER_SAMPLERS: ' -p x
with INFER_PLOT 1 '^infer: INFER_PLOT: goes with --format md' bench --format json
with INFER_GRAMMAR 'root ::= "a"' '^infer: --choices: choice 1 is empty' -p x --choices ,

begin a_variable_that_does_not_apply_is_ignored # variables are defaults, not part of this call
INFER_LOGPROBS=3 INFER_SYSTEM=x INFER_SCHEMA_LENIENT=format
export INFER_LOGPROBS INFER_SYSTEM INFER_SCHEMA_LENIENT
infer -p x -m "$work/none.gguf"
status 3
unset INFER_LOGPROBS INFER_SYSTEM INFER_SCHEMA_LENIENT
usage '--system: contradicts --raw' -p x --system y --raw
usage '--logprobs: needs --json or --jsonl' -p x --logprobs 2

begin double_dash_ends_options
infer inspect -- -m
status 3
err_line '^infer: -m: '
usage '--top-k: unexpected argument' -p x -- --top-k

begin saved_logits_need_a_file
usage "--save-logits: needs a file" perplexity -f x --save-logits -

finish
