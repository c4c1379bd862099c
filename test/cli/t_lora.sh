# --lora, --control-vector and merge-lora: adapters with random factors of models with random weights.
. test/cli/lib.sh
make_adapter=${INFER%/*}/test/tool_make_adapter
[ -x "$make_model" ] && [ -x "$make_adapter" ] || { echo "skip: $make_adapter is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" vocab=320 ctx=512 tied=1 seed=4 || exit 1
"$make_adapter" "$work/m.gguf" "$work/a.gguf" rank=4 alpha=8 || exit 1
"$make_adapter" "$work/m.gguf" "$work/b.gguf" rank=2 alpha=2 seed=2 type=F16 only=attn || exit 1
m="-m $work/m.gguf"
a=$work/a.gguf b=$work/b.gguf
long='one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'

# text N: that of line N of the output. answer ARGS..: the text of an answer, into $got.
text() { sed -En "$1s/.*\"text\":(\"([^\"\\\\]|\\\\.)*\").*/\\1/p" "$work/out"; }
answer() {
    infer run --temp 0 -n 6 --json "$@"
    status 0
    got=$(text 1)
    [ -n "$got" ] || bad "infer $last: no text"
}
equal() { [ "$1" = "$2" ] || bad "infer $last: $1, not $2"; }
other() { [ "$1" != "$2" ] || bad "infer $last: $1 is not another answer"; }
# logits FILE ARGS..; near FILE FILE: their normalized squared difference is below 1e-9.
logits() {
    file=$1
    shift
    infer logits --ids '1 2 3 4 5 6 7 8' -o "$file" "$@"
    status 0
}
near() {
    od -An -v -tf4 -w4 "$1" >"$work/1"
    od -An -v -tf4 -w4 "$2" >"$work/2"
    paste "$work/1" "$work/2" | awk '{ d += ($1 - $2) ^ 2; w += $2 ^ 2 } END { exit !(NR > 0 && d < w * 1e-9) }' ||
        bad "infer $last: the logits differ"
}

# shellcheck disable=SC2086 # $m is several words
{
begin an_adapter_acts_with_its_scale
answer $m -p "$long"
base=$got
answer $m -p "$long" --lora "$a"
with_a=$got
other "$with_a" "$base"
answer $m -p "$long" --lora "$a:0"
equal "$got" "$base"
answer $m -p "$long" --lora-scaled "$a:1.0"
equal "$got" "$with_a"
answer $m -p "$long" --lora "$a:0.5" --lora "$b:-2"
both=$got
other "$both" "$with_a"
cp "$a" "$work/x:0.5"
answer $m -p "$long" --lora "$work/x:0.5" # a file of that name
equal "$got" "$with_a"
infer run $m -p x -n 1 -v --lora "$a:0.5" --lora "$b"
err_like '^infer: adapter .*/a.gguf, scale 0.5, [0-9]+ matrices$'

begin the_bytes_do_not_depend_on_threads_batch_and_level
logits "$work/l1" $m --lora "$a" --lora "$b:0.5"
logits "$work/l2" $m --lora "$a" --lora "$b:0.5" -t 3 -b 3 --isa scalar
cmp -s "$work/l1" "$work/l2" || bad 'other logits'
logits "$work/l3" $m --lora "$b:0.5" --lora "$a" # added in another order
near "$work/l3" "$work/l1"

begin merge_lora_writes_what_is_evaluated
infer merge-lora "$work/m.gguf" "$work/merged.gguf" --lora "$a" --lora "$b:0.5"
status 0
out ''
logits "$work/l2" -m "$work/merged.gguf"
near "$work/l2" "$work/l1"
logits "$work/l0" $m
infer merge-lora "$work/m.gguf" "$work/same.gguf" --lora "$a:0"
status 0
infer diff "$work/m.gguf" "$work/same.gguf" # the output matrix is separate from the embeddings
out_like '^\+ output.weight'
infer merge-lora "$work/m.gguf" "$work/q.gguf" Q8_0 --lora "$b"
status 0
infer inspect "$work/q.gguf"
out_like '^Type +Q8_0;'
infer merge-lora "$work/m.gguf" "$work/x.gguf"
status 2
err_line 'no adapter: name one with --lora FILE'
infer merge-lora "$work/m.gguf" "$work/x.gguf" Q9 --lora "$a"
status 2
err_line "'Q9' is not a type"
[ ! -e "$work/x.gguf" ] || bad 'merge-lora left a file'

begin lines_of_batch_choose_among_the_adapters
line() { printf '{"prompt":"%s"%s}\n' "$long" "$1"; }
{
    line ''
    line ',"lora":[]'
    line ',"lora":"a"'
    line ',"lora":["a.gguf:0.5","b:-2"]'
    line ",\"lora\":\"$a\""
    line ',"lora":["b:0"]'
} >"$work/lines"
input=$work/lines
for np in 1 4; do
    infer batch $m --temp 0 -n 6  -np $np --lora "$a" --lora "$b:0"
    status 0
    err ''
    n=0
    for want in "$with_a" "$base" "$with_a" "$both" "$with_a" "$base"; do
        n=$((n + 1))
        equal "$(text $n)" "$want"
    done
done
line ',"lora":"c:2"' >"$work/lines"
infer batch $m --temp 0 -n 6 --lora "$a"
out_like "'c:2' is no adapter of the command line"

begin other_commands
input=
for command in "score -p one --continuation two" "perplexity -f $work/text --chunk 32 --json"; do
    printf '%s\n' "$long" "$long" "$long" "$long" "$long" "$long" >"$work/text"
    infer $command $m
    status 0
    cp "$work/out" "$work/base"
    infer $command $m --lora "$a"
    status 0
    ! cmp -s "$work/out" "$work/base" || bad "infer $last: no effect"
    infer $command $m --lora "$a:0"
    # Times differ.
    sed 's/"[a-z_]*seconds":[0-9.e-]*//g' "$work/out" >"$work/1"
    sed 's/"[a-z_]*seconds":[0-9.e-]*//g' "$work/base" >"$work/2"
    cmp -s "$work/1" "$work/2" || bad "infer $last: a scale of 0 has an effect"
done
infer bench $m -p 8 -n 2 -r 1 --lora "$a"
status 0
printf '%s\n' "$long" '/set parameter lora a:0' "$long" >"$work/talk"
input=$work/talk
infer chat $m --commands --temp 0 -n 6 --lora "$a" --template chatml
status 0
[ "$(sed -n 1p "$work/out")" != "$(sed -n 2p "$work/out")" ] || bad 'chat: /set has no effect'
printf '%s\n' '/set parameter lora c' >"$work/talk"
infer chat $m --commands --lora "$a" --template chatml
err_like "'c' is no adapter of the command line"

begin the_prefix_cache_knows_adapters
input=
cached() {
    n=$(sed -n 's/.*"cached_tokens":\([0-9]*\).*/\1/p' "$work/out")
    [ "$n" -ge "$1" ] && [ "$n" -le "${2-$1}" ] || bad "infer $last: $n tokens from the cache"
}
answer $m -p "$long" --cache "$work/cache"
answer $m -p "$long" --cache "$work/cache" --lora "$a"
cached 0
equal "$got" "$with_a"
answer $m -p "$long" --cache "$work/cache" --lora "$a"
cached 32 999
equal "$got" "$with_a"
answer $m -p "$long" --cache "$work/cache" --lora "$a:0.5" --lora "$b:-2"
cached 0
equal "$got" "$both"
answer $m -p "$long" --cache "$work/cache"
cached 32 999
equal "$got" "$base"
line ',"lora":[]' >"$work/lines" # not the adapters of the key
input=$work/lines
infer batch $m --temp 0 -n 6  --lora "$a" --cache "$work/cache"
equal "$(text 1)" "$base"

begin an_activated_adapter_acts_from_its_invocation_on
input=
call=$("$INFER" tokenize $m --no-bos -p 'fifteen' </dev/null)
"$make_adapter" "$work/m.gguf" "$work/alora.gguf" rank=4 alpha=8 invocation="$call"
answer $m -p 'one two three'
plain=$got
answer $m -p 'one two three' --lora "$work/alora.gguf"
equal "$got" "$plain" # it is not invoked
answer $m -p "$long" --lora "$work/alora.gguf"
active=$got
other "$active" "$base"
other "$active" "$with_a"
# What precedes the invocation is in the cache of the model alone; what follows is not stored.
answer $m -p "$long" --cache "$work/cache" --lora "$work/alora.gguf"
equal "$got" "$active"
before=$("$INFER" tokenize $m -p "${long%fifteen*}" </dev/null | wc -w)
cached 32 "$before"
answer $m -p "$long" --cache "$work/cache" --lora "$work/alora.gguf"
equal "$got" "$active"
cached 32 "$before"
printf '%s\n' "{\"prompt\":\"$long\"}" '{"prompt":"one two three"}' "{\"prompt\":\"$long\",\"lora\":[]}" >"$work/lines"
input=$work/lines
infer batch $m --temp 0 -n 6  -np 3 --lora "$work/alora.gguf"
equal "$(text 1)" "$active"
equal "$(text 2)" "$plain"
equal "$(text 3)" "$base"
input=
for prompt in 'one two three' "$long"; do
    infer score $m -p "$prompt" --continuation two --continuation seven
    cp "$work/out" "$work/base"
    infer score $m -p "$prompt" --continuation two --continuation seven --lora "$work/alora.gguf"
    status 0
    invoked=no
    cmp -s "$work/out" "$work/base" || invoked=yes
    case $prompt in
    *fifteen*) equal "$invoked" yes ;;
    *) equal "$invoked" no ;;
    esac
done
infer merge-lora "$work/m.gguf" "$work/x.gguf" --lora "$work/alora.gguf"
status 2
err_line 'an activated adapter'

begin embeddings_and_scores
"$make_model" "$work/bert.gguf" arch=bert ctx=64 keys=pooling_type=1 with='cls.weight=64 cls.output.weight=1' || exit 1
"$make_adapter" "$work/bert.gguf" "$work/c.gguf" rank=4 alpha=8 without=token_types || exit 1
"$make_adapter" "$work/bert.gguf" "$work/cls.gguf" rank=4 alpha=8 only=cls. || exit 1
e="-m $work/bert.gguf"
row() { sed -n "$1s/.*\"tokens\"/\"tokens\"/p" "$work/out"; } # that of line N of the output
infer embed $e -p 'one two'
base_row=$(row 1)
infer embed $e -p 'one two' --lora "$work/c.gguf"
status 0
with_c=$(row 1)
other "$with_c" "$base_row"
infer embed $e -p 'one two' --lora "$work/c.gguf:0.5"
half=$(row 1)
other "$half" "$with_c"
infer embed $e -p 'one two' --lora "$work/c.gguf:0"
equal "$(row 1)" "$base_row"
printf '%s\n' '"one two"' '{"text":"one two","lora":[]}' '{"text":"one two","lora":"c:0.5"}' '"three"' \
    '{"text":"one two","lora":["c.gguf"],"id":7}' '{"text":"one two","lora":null}' >"$work/lines"
input=$work/lines
for way in '-np 1' '-np 4 -t 3 --isa scalar'; do
    infer embed $e --lora "$work/c.gguf" $way
    status 0
    n=0
    for want in "$with_c" "$base_row" "$half" '' "$with_c" "$with_c"; do
        n=$((n + 1))
        [ -z "$want" ] || equal "$(row $n)" "$want"
    done
done
for wrong in '"d"' '3' '["c",3]'; do
    echo "{\"text\":\"one\",\"lora\":$wrong}" >"$work/lines"
    infer embed $e --lora "$work/c.gguf"
    status 2
    err_line '^infer: line 1: .*lora'
done
printf '%s\n' one 'two three' four >"$work/lines"
infer rerank $e 'one?' --in-order
cp "$work/out" "$work/base"
for name in c cls; do
    infer rerank $e 'one?' --in-order --lora "$work/$name.gguf"
    status 0
    ! cmp -s "$work/out" "$work/base" || bad "rerank: $name has no effect"
done
infer rerank $e 'one?' --in-order --lora "$work/cls.gguf:0"
cmp -s "$work/out" "$work/base" || bad 'rerank: a scale of 0 has an effect'
infer similar $e one
cp "$work/out" "$work/base"
infer similar $e one --lora "$work/c.gguf" -o "$work/idx"
status 0
! cmp -s "$work/out" "$work/base" || bad 'similar: no effect'
cp "$work/out" "$work/base"
infer similar $e one --lora "$work/c.gguf" --index "$work/idx"
cmp -s "$work/out" "$work/base" || bad 'similar: other lines from the index'
for other in '' "--lora $work/c.gguf:0.5" "--lora $work/cls.gguf"; do
    infer similar $e one --index "$work/idx" $other
    status 2
    err_line 'made with another model, other adapters or other settings'
done
input=

begin what_does_not_fit_the_model
"$make_model" "$work/wide.gguf" vocab=320 embd=96 ctx=512 || exit 1
"$make_model" "$work/qwen.gguf" arch=qwen2 vocab=320 || exit 1
for command in 'run -p x' 'batch' 'score -p a --continuation b' 'logits --ids 1' 'perplexity -f README.md'; do
    infer $command -m "$work/wide.gguf" --lora "$a"
    status 3
    err_line 'a.gguf: .*\.weight\.lora_[ab]: shape \[.*\] does not fit the model'
done
infer run -m "$work/qwen.gguf" -p x --lora "$a"
status 3
err_line 'a.gguf: general.architecture: "llama", not "qwen2": the adapter is of another model'
infer run $m -p x --lora "$work/m.gguf"
status 3
err_line 'm.gguf: general.type: .*the file is no adapter'
infer run $m -p x --lora "$work/none.gguf:2"
status 3
err_line 'none.gguf: cannot open'
for scale in x nan 1:2-3 0.5x; do
    infer run $m -p x --lora "$a:$scale"
    status 2
    err_line "a.gguf:$scale: what follows the file is no :SCALE\$"
done
infer run $m -p x --control-vector "$a:0.1:5"
status 2
err_line 'a.gguf:0.1:5: what follows the file is no :SCALE\[:FROM-TO\]$'

begin control_vectors_are_added_to_layers
if command -v python3 >/dev/null 2>&1; then
    python3 - "$work" <<'PYTHON'
import struct, sys
def text(s): return struct.pack("<Q", len(s)) + s
def write(name, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1)
    head += text(b"general.architecture") + struct.pack("<I", 8) + text(b"controlvector")
    data = b""
    for tensor, values in tensors:
        head += text(tensor) + struct.pack("<IQIQ", 1, len(values), 0, len(data))
        data += struct.pack("<%df" % len(values), *values)
        data += bytes(-len(data) % 32)
    open(sys.argv[1] + "/" + name, "wb").write(head + bytes(-len(head) % 32) + data)
write("v.gguf", [(b"direction.1", [(i * 7 % 9 - 4) / 4 for i in range(64)])])
write("v0.gguf", [(b"direction.0", [0.0] * 64)])
write("v9.gguf", [(b"direction.9", [0.0] * 64)])
write("vw.gguf", [(b"direction.1", [0.0] * 96)])
PYTHON
    answer $m -p "$long" --control-vector "$work/v.gguf"
    steered=$got
    other "$steered" "$base"
    answer $m -p "$long" --control-vector "$work/v.gguf:0.5:1-1" --control-vector-scaled "$work/v.gguf:0.5"
    equal "$got" "$steered"
    answer $m -p "$long" --control-vector "$work/v.gguf:2-7"
    equal "$got" "$base"
    usage 'v.gguf:1:3-2: no layer is in the range 3 to 2' run $m -p x --control-vector "$work/v.gguf:1:3-2"
    infer run $m -p x --control-vector "$work/v.gguf:1:-1-2" # no range
    status 2
    answer $m -p "$long" --control-vector "$work/v.gguf" --cache "$work/cache"
    cached 0
    infer embed $e -p 'one two' --control-vector "$work/v.gguf"
    status 0
    other "$(row 1)" "$base_row"
    for wrong in 'v0:direction.0: not "direction.N" for a layer' 'v9:direction.9: the model has no layer' \
        'vw:direction.1: not F32 of the length of the model' 'a:.*: not "direction.N"'; do
        infer run $m -p x --control-vector "$work/${wrong%%:*}.gguf"
        status 3
        err_line "${wrong%%:*}.gguf: ${wrong#*:}"
    done
else
    skip 'no python3'
fi
}

finish
