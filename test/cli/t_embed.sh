# infer embed, rerank and similar, with tiny encoders of random weights.
. test/cli/lib.sh
bert="with=token_types.weight=2 token_embd_norm.bias post_attention_norm.bias post_ffw_norm.bias"
"$make_model" "$work/all-minilm.gguf" arch=bert ctx=32 keys=pooling_type=1 || exit 1
"$make_model" "$work/bge-ranker.gguf" arch=bert ctx=48 \
    "$bert cls.weight=64 cls.bias cls.output.weight=1 cls.output.bias" || exit 1
"$make_model" "$work/e5-small.gguf" arch=bert ctx=64 || exit 1
"$make_model" "$work/qwen3.gguf" arch=qwen3 ctx=512 "with=cls.output.weight=2" || exit 1
"$make_model" "$work/random.gguf" arch=llama || exit 1
INFER_MODEL=$work/all-minilm.gguf
export INFER_MODEL
lines=$work/lines
long='a text that is longer than the thirty two tokens of the model'
with_lines() { # infer ARGS with $lines as standard input
    input=$lines
    infer "$@"
    input=''
}

begin a_line_is_a_text_or_an_object_with_an_id
printf '%s\n' '"hello"' '' '{"text": "a b", "id": {"n": 2e0}}' '{"id": "c", "text": "hello"}' >"$lines"
with_lines embed --dimensions 3
status 0
err ''
[ "$(wc -l <"$work/out")" -eq 3 ] || bad "not three lines: $(cat "$work/out")"
out_like '^\{"line":1,"tokens":5,"embedding":\[-?[0-9.e-]+,-?[0-9.e-]+,-?[0-9.e-]+\]\}$'
out_like '^\{"line":3,"id":\{"n": 2e0\},"tokens":3,"embedding":\['
out_like '^\{"line":4,"id":"c","tokens":5,"embedding":\['
[ "$(sed -n '1s/.*tokens/tokens/p' "$work/out")" = "$(sed -n '3s/.*tokens/tokens/p' "$work/out")" ] ||
    bad 'the same text has another row'
echo '"a"' >"$lines"
with_lines embed --dimensions 3
cp "$work/out" "$work/alone"
for line in '{"text": 1}' '[]' '{"text": "a", "prompt": "b"}' '{"id": 1}' '{'; do
    printf '"a"\n%s\n"b"\n' "$line" >"$lines"
    with_lines embed --dimensions 3
    status 2
    err_line 'line 2: '
    [ "$(wc -l <"$work/out")" -eq 1 ] || bad "not the line before the error: $(cat "$work/out")"
    cmp -s "$work/out" "$work/alone" || bad "another row before the error: $(cat "$work/out")"
done

begin rows_do_not_depend_on_what_is_beside_them
i=0
while [ $i -lt 40 ]; do
    echo "line $i of a few words $((i * i * 7919 % 1000))"
    i=$((i + 1))
done >"$lines"
with_lines embed --lines
cp "$work/out" "$work/first"
[ "$(wc -l <"$work/out")" -eq 40 ] || bad 'not forty rows'
for way in '-np 1' '-np 3 -b 33' '-t 1 -np 200 -b 4096' '-t 3' '--isa scalar' '--no-sandbox' "-f $lines"; do
    # shellcheck disable=SC2086
    with_lines embed --lines $way
    cmp -s "$work/out" "$work/first" || bad "other bytes with $way"
done
sed -n 7p "$lines" | tr -d '\n' >"$work/one"
infer embed -p "$(cat "$work/one")"
[ "$(sed 's/.*tokens/tokens/' "$work/out")" = "$(sed -n '7s/.*tokens/tokens/p' "$work/first")" ] ||
    bad 'another row alone'
infer embed "$work/one" "$lines" --truncate
status 0
out_like "^\{\"line\":1,\"id\":\"$work/one\",\"tokens\":"
out_like "^\{\"line\":2,\"id\":\"$work/lines\",\"tokens\":32,"

begin forms_of_the_output
printf 'one\ntwo\none\n' >"$lines"
with_lines embed --lines --format json --dimensions 2
out_like '^\{"object":"list","data":\[$'
out_like '^\{"object":"embedding","index":2,"embedding":\[[-0-9.e]+,[-0-9.e]+\]\}$'
out_like '^\],"model":"random","usage":\{"prompt_tokens":9,"total_tokens":9\}\}$'
with_lines embed --lines --format f32
[ "$(wc -c <"$work/out")" -eq $((3 * 64 * 4)) ] || bad "f32 has $(wc -c <"$work/out") bytes"
cp "$work/out" "$work/floats"
with_lines embed --lines --format npy
[ "$(wc -c <"$work/out")" -eq $((128 + 3 * 64 * 4)) ] || bad "npy has $(wc -c <"$work/out") bytes"
tail -c $((3 * 64 * 4)) "$work/out" | cmp -s - "$work/floats" || bad 'npy has other numbers'
head -c 128 "$work/out" | tail -c 118 | grep -q "^{'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), } *$" ||
    bad 'another header of npy'
with_lines embed --lines --matrix
[ "$(sed -n 1p "$work/out")" = "$(sed -n 3p "$work/out")" ] || bad 'equal texts, other cosines'
out_like '^1\.000000	-?0\.[0-9]{6}	1\.000000$'
with_lines embed --lines --format f32 -o "$work/file"
out ''
cmp -s "$work/file" "$work/floats" || bad '-o has other bytes'
echo "$long" >"$work/long"
infer embed "$work/one" "$work/long" --format json
status 5
out ''
: >"$lines"
with_lines embed --lines --format json
out '{"object":"list","data":[\n],"model":"random","usage":{"prompt_tokens":0,"total_tokens":0}}\n'

begin pooling_norm_and_dimensions
infer embed -p hi --pooling none --dimensions 1 --normalize 0
out_like '^\{"line":1,"tokens":2,"embeddings":\[\[-?32760\],\[-?32760\]\]\}$'
infer embed -p hi --dimensions 1 --normalize taxicab
out_like ',"embedding":\[-?1\]\}$'
infer embed -p hi --normalize=-1
cp "$work/out" "$work/first"
infer embed -p hi --normalize none
cmp -s "$work/out" "$work/first" || bad 'none is not -1'
infer embed -p hi --normalize big
status 2
err_line "^infer: --normalize: 'big' is not none \(-1\), max \(0\)"
infer embed -p hi --dimensions 65
status 2
err_line '^infer: --dimensions: a row has 64 numbers$'
infer embed -p hi --pooling rank
status 2
err_line 'the model has no classifier'

begin long_texts_are_errors_cut_or_divided
printf '%s\n' short "$long" x >"$lines"
with_lines embed --lines
status 5
err_line '^infer: line 2: the text has [0-9]+ tokens and the model reads 32: --truncate cuts it, --chunk 32,4'
printf '%s\n' "$long" >"$work/much"
infer embed "$work/one" "$work/much"
status 5
err_line "^infer: $work/much: the text has [0-9]+ tokens"
out_like "\"id\":\"$work/one\""
with_lines embed --lines --truncate
status 0
[ "$(grep -c '"tokens":32' "$work/out")" -eq 1 ] || bad 'not cut to 32 tokens'
with_lines embed --lines --chunk 20,5
status 0
[ "$(grep -c '^{"line":2,' "$work/out")" -ge 3 ] || bad 'not several rows'
out_like '^\{"line":2,"part":1,"tokens":20,'
out_like '^\{"line":3,"part":0,"tokens":1,'
with_lines embed --lines --chunk 20,20
status 2
err_line '^infer: --chunk: N,OVERLAP'
with_lines embed --lines --chunk 33
status 2
with_lines embed --lines -c 33
status 2
err_line 'a context of 33, but the model has positions for 32 tokens'

begin prefixes_of_known_models
infer embed -m "$work/e5-small.gguf" -p 'query: hi'
cp "$work/out" "$work/first"
infer embed -m "$work/e5-small.gguf" -p hi --as query
cmp -s "$work/out" "$work/first" || bad '--as query is not its prefix'
infer embed -m "$work/e5-small.gguf" -p hi --prefix 'query: '
cmp -s "$work/out" "$work/first" || bad '--prefix is not the text before'
infer embed -m "$work/random.gguf" -p hi --as query
status 2
err_like '^infer: --as: the prefixes of this model are not known: give one with --prefix$'

begin decoders_make_embeddings_too
infer embed -m "$work/random.gguf" -p hi
status 0
err_like 'no pooling_type: a model that writes texts'
cp "$work/out" "$work/first"
infer embed -m "$work/random.gguf" -p hi --pooling last
cmp -s "$work/out" "$work/first" || bad 'the usual row of a decoder is not the last'

begin texts_come_from_one_place
echo one >"$lines"
for other in '-p hi' "-f $lines" --lines; do
    # shellcheck disable=SC2086
    infer embed "$work/one" $other
    status 2
    err_line "one: a file is one text, which contradicts ${other%% *}; give one of them"
done
echo hello >"$lines"
with_lines embed
status 2
err_line '^infer: line 1: JSON: .*; --lines reads plain text$'

begin encoders_write_no_text
infer -p hi
status 3
err_line 'it makes embeddings of texts \(infer embed\) and writes none'
infer inspect "$work/all-minilm.gguf"
out_like '^Embeds +64 numbers for a text'
infer inspect "$work/bge-ranker.gguf"
out_like '^Scores +1 for a query and a text'

begin lines_are_ranked_by_a_classifier
printf 'one\ntwo words\n\nthree\n' >"$lines"
with_lines rerank -m "$work/bge-ranker.gguf" 'q?'
status 0
err ''
[ "$(wc -l <"$work/out")" -eq 3 ] || bad 'not three lines'
sort -rn "$work/out" | cmp -s - "$work/out" || bad 'not best first'
cut -f 1 "$work/out" | sort >"$work/scores"
with_lines rerank -m "$work/bge-ranker.gguf" 'q?' --in-order
[ "$(cut -f 2 "$work/out" | tr '\n' ,)" = 'one,two words,three,' ] || bad 'not the order of the lines'
cut -f 1 "$work/out" | sort | cmp -s - "$work/scores" || bad 'other scores'
with_lines rerank -m "$work/bge-ranker.gguf" -p 'q?' --top 1 --json
[ "$(wc -l <"$work/out")" -eq 1 ] || bad 'not one line'
out_like '^\{"line":[124],"score":-?[0-9.]+,"text":"[a-z ]+"\}$'
with_lines rerank -m "$work/qwen3.gguf" 'q?' --in-order # probabilities
status 0
out_like '^0\.[0-9]{6}	two words$'
with_lines rerank 'q?'
status 2
err_line 'the model has no classifier'
echo "$long" >"$lines"
with_lines rerank -m "$work/bge-ranker.gguf" 'q?'
status 5
err_line '^infer: line 1: query and line have [0-9]+ tokens and the model reads 48: --truncate'
with_lines rerank -m "$work/bge-ranker.gguf" 'q?' --truncate
status 0
for no_query in 'rerank' "similar --index $work/index"; do
    # shellcheck disable=SC2086
    infer $no_query
    status 2
    # shellcheck disable=SC2086
    infer $no_query ''
    status 2
    err_line 'no query: infer '
done

begin similar_lines_and_their_index
printf 'one\ntwo words\n\none\nthree\n' >"$lines"
with_lines similar one
status 0
out_like '^1\.000000	one$'
[ "$(head -n 2 "$work/out" | cut -f 2 | uniq)" = one ] || bad 'equal texts are not first'
cp "$work/out" "$work/first"
with_lines similar -o "$work/index"
status 0
out ''
infer similar one --index "$work/index"
cmp -s "$work/out" "$work/first" || bad 'other lines from the index'
infer similar one --index "$work/index" -m "$work/e5-small.gguf"
status 2
err_line 'made with another model, other adapters or other settings'
infer similar one --index "$lines"
status 2
err_line 'no index'
infer similar one --index "$work/none"
status 2
err_line 'none: cannot read: No such file'
infer similar one --index "$work/index" --override-kv bert.pooling_type=int:2
status 2
err_line 'or other settings'
for cut in 300 $(($(wc -c <"$work/index") - 1)); do
    head -c "$cut" "$work/index" >"$work/cut"
    infer similar one --index "$work/cut"
    status 2
    err_line 'damaged: its checksum is another'
done
cp "$work/index" "$work/cut"
printf x | dd of="$work/cut" bs=1 seek=200 conv=notrunc 2>"$work/said" # a byte of a row
infer similar one --index "$work/cut"
status 2
err_line 'damaged: its checksum is another'
with_lines similar -o "$work/index" -f /dev/null
infer similar one --index "$work/index"
status 0
out ''
finish
