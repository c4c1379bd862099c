# tokenize, logits, perplexity, bench, inspect, quantize with a small model.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_tools.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
france='The capital of France is'
ids='504 3575 282 4649 314'

begin tokenize_prints_the_reference_ids
infer tokenize -p "$france"
status 0
out "$ids\n"
err ''
infer tokenize -p '<|im_end|>'
out '2\n'
infer tokenize -p '<|im_end|>' --no-special
out_like '^[0-9]+ [0-9]+ '
infer tokenize -p "$france" --json
out_like '^\{"count":5,"ids":\[504,3575,282,4649,314\],"tokens":\["The",'
printf 'The\n\nThe\n' >"$work/lines"
infer tokenize --lines -f "$work/lines"
out '504\n\n504\n'

begin decode_prints_the_text
infer tokenize --decode -p "$ids"
status 0
out "$france"
infer tokenize --decode -p '2 504'
out 'The'
infer tokenize --decode --special -p '2,504'
out '<|im_end|>The'
infer tokenize --decode -p '504 x'
status 2
out ''
err_line "ids: 'x' is not a token id"
infer tokenize --decode -p '504 49152'
status 2
err_line 'ids: 49152 is outside the vocabulary of 49152 tokens'

begin decode_gives_back_any_text
printf 'caf\303\251 \360\237\230\200  two  spaces\n\ttab <html> 12345\n\344\270' >"$work/text"
infer tokenize -f "$work/text"
cp "$work/out" "$work/ids"
infer tokenize --decode -f "$work/ids"
cmp -s "$work/out" "$work/text" || bad 'the text did not come back'

begin logits_are_written_as_bytes
infer logits --ids "$ids" -o "$work/logits"
status 0
out ''
err ''
[ "$(wc -c <"$work/logits")" -eq $((5 * 49152 * 4)) ] || bad 'not 5 rows of float32'
for batch in 1 2 3; do
    infer logits --ids "$ids" -b $batch -o "$work/other"
    cmp -s "$work/logits" "$work/other" || bad "other bytes with -b $batch"
done
infer logits --ids "$ids" -o -
cmp -s "$work/logits" "$work/out" || bad 'other bytes on standard output'
infer logits -p "$france" -o "$work/other"
cmp -s "$work/logits" "$work/other" || bad 'other bytes from the text'

begin top_logits_are_written_as_json
infer logits --ids "$ids" --top 2
status 0
err ''
out_like '"ids":5,"vocabulary":49152,"top":\[$'
out_like '^\{"id":7042,"text":" Paris","logit":[0-9.]+,"logprob":-[0-9.]+\},$'
[ "$(grep -c '^{"id"' "$work/out")" -eq 2 ] || bad 'not two tokens'

begin ids_are_checked
usage "ids: 'a' is not a token id \(at byte 2\)" logits --ids '1 a'
usage 'ids: 49152 is outside the vocabulary' logits --ids 49152
usage 'ids: .9999999999.* is not a token id' logits --ids 9999999999999999999999
usage 'no tokens' logits --ids ' '
infer logits --ids "$ids" -c 4
status 5
err_line '5 tokens do not fit the context of 4'

begin logits_to_a_full_disk_are_an_error
if full_disk; then
    infer logits --ids "$ids" -o /dev/full
    status 1
    err_line '/dev/full: cannot write: '
else
    skip 'no /dev/full here'
fi

begin logits_into_a_missing_folder_are_an_error
infer logits --ids "$ids" -o "$work/no/folder"
status 1
err_line 'no/folder: cannot write: '

begin perplexity_counts_each_token
i=0
lines=40
[ -z "$quick" ] || lines=4 # sanitizers: less text
while [ $i -lt $lines ]; do
    echo "Line $i: the quick brown fox jumps over the lazy dog, and the dog sleeps on."
    i=$((i + 1))
done >"$work/corpus"
infer perplexity -f "$work/corpus" --chunk 64
status 0
err ''
out_like '^perplexity [0-9.]+ \+/- [0-9.]+ \([0-9]+ positions\)$'
cp "$work/out" "$work/first"
infer tokenize -f "$work/corpus"
cp "$work/out" "$work/ids"
infer perplexity --ids "$work/ids" --chunk 64 -b 7 -t 1
cmp -s "$work/out" "$work/first" || bad 'other bytes from ids in batches of 7'
infer perplexity -f /dev/null
status 2
err_line 'has 0 tokens; at least 4 are needed'

begin kl_divergence_of_a_model_to_itself_is_zero
head -n 8 "$work/corpus" >"$work/short"
infer perplexity -f "$work/short" --chunk 32 --save-logits "$work/saved"
status 0
infer perplexity --kl "$work/saved"
status 0
err ''
out_like '^KL divergence 0\.000000 \+/- 0\.000000, largest 0\.000000$'
out_like '^same top token 100\.000 %'
infer perplexity --kl "$work/saved" --json
out_like '"kl":0\.0*,'
head -c 1000 "$work/saved" >"$work/cut"
infer perplexity --kl "$work/cut"
status 2
err_line 'cut: damaged: its size does not fit'
infer perplexity --kl "$work/corpus"
status 2
err_line 'corpus: not logits saved by'

begin quantize_writes_a_model_that_runs
infer quantize "$MODEL" "$work/q8.gguf" q8_0
status 0
out ''
err ''
infer inspect -v "$work/q8.gguf"
out_like 'general.file_type +u32 7$'
out_like '^  Q8_0 +211 tensors'
out_like '^  F32 +61 tensors'
INFER_MODEL=$work/q8.gguf
infer perplexity --kl "$work/saved"
status 0
out_like '^KL divergence 0\.0[0-3]'
infer -p "$france" -n 2 --temp 0
out ' Paris.'
INFER_MODEL=$MODEL
[ "$(ls "$work" | grep -c q8)" -eq 1 ] || bad 'temporary files were left'
infer quantize "$MODEL" "$work/one_thread.gguf" Q8_0 -t 1
cmp -s "$work/q8.gguf" "$work/one_thread.gguf" || bad 'other bytes with one thread'
rm -f "$work/one_thread.gguf"

begin types_are_chosen_by_the_role_of_a_tensor
if [ -n "$quick" ]; then
    skip 'quick run; t_quantize.sh does it with a small model'
else
    infer quantize "$MODEL" "$work/mixed.gguf" Q4_0 --embedding-type f16 --output-type q8_0
    status 0
    infer inspect "$work/mixed.gguf" --tensors
    out_like '^  token_embd.weight +F16 '
    out_like '^  blk.0.ffn_down.weight +Q4_0 '
    out_like '^  blk.0.attn_norm.weight +F32 '
fi

begin inspect_begins_with_a_summary
infer inspect
status 0
err ''
out_like '^Model      Smollm2 135M 8k Lc100K Mix1 Ep2 \(llama\)$'
out_like '^File       .*, 98\.4 MB, GGUF version 3$'
out_like '^Type       Q4_1; 134\.5 M weights, 5\.74 bits each: 61 F32, 210 Q4_1, 1 Q8_0$'
out_like '^Context    8192 tokens in its training$'
out_like '^Vocabulary 49152 tokens, gpt2$'
out_like '^Template   368 bytes$'
out_like '^Memory +[0-9.]+ MB with a context of 4096 tokens, (fits|does not fit)$'
out_like '^ +[0-9.]+ MB with a context of 32768 tokens, .*\(beyond its training\)$'
[ "$(wc -l <"$work/out")" -le 12 ] || bad "$(wc -l <"$work/out") lines"
infer inspect --json
out_like '"summary":\{"name":"Smollm2 135M 8k Lc100K Mix1 Ep2","architecture":"llama","type":"Q4_1","weights":134515008,'
out_like '"memory":\[\{"context":4096,"bytes":[0-9]+,"fits":(true|false)\}'

begin inspect_plans_memory
infer inspect --plan -c 64 -t 1 -ctk f32 -ctv f32 --json
status 0
out_like '"prompt_tokens":64,"context":64,"threads":1,.*"weights":96576768,"cache":2949120,'
infer inspect --plan
out_like '^cache .* for 4096 tokens'
infer inspect --fit 200M --json
status 0
n=$(sed 's/.*"context":\([0-9]*\).*/\1/' "$work/out")
[ "$(sed 's/.*"total":\([0-9]*\).*/\1/' "$work/out")" -le 200000000 ] || bad 'it needs more'
infer inspect --plan -c $((n + 100)) --json
[ "$(sed 's/.*"total":\([0-9]*\).*/\1/' "$work/out")" -gt 200000000 ] || bad "not the largest context: $n"
infer inspect --fit 400G --json
out_like '"context":8192,' # never more than that of its training
for command in 'inspect' 'run -m'; do # what fits by one call fits by the others
    infer $command "$MODEL" --plan --json -c "$n"
    [ "$(sed 's/.*"total":\([0-9]*\).*/\1/' "$work/out")" -le 200000000 ] || bad "$command: $(cat "$work/out")"
done
infer inspect --fit 20M
status 1
err_line 'fit: [0-9.]+ MB are needed even for a context of one token'
usage "fit: '4' is not a size" inspect --fit 4
head -c 3000000 "$MODEL" >"$work/begun.gguf"
infer inspect --plan "$work/begun.gguf"
status 0

begin inspect_lists_keys_and_tensors
infer inspect -v
status 0
err_line 'options: --model .* \(INFER_MODEL\)'
out_like '^  general.architecture +string "llama"$'
out_like '^  tokenizer.ggml.tokens +string\[49152\] \["<\|endoftext\|>", .*, \.\.\.\]$'
out_like '^  model      gpt2, pre-tokenizer smollm$'
out_like '^  token_embd.weight +Q8_0 +28\.688 MiB  \[49152, 576\]$'
infer inspect "$MODEL" --tensors
if grep -q general.name "$work/out"; then bad '--tensors shows metadata'; fi
infer inspect --metadata
if grep -q token_embd "$work/out"; then bad '--metadata shows tensors'; fi
infer inspect --json
out_like '^"tokenizer":\{"model":"gpt2","pre":"smollm","vocabulary":49152,'
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out" || bad 'not JSON'
fi

begin bench_prints_a_row_for_each_test
infer bench -p 16 -n 2 -r 1 --profile
status 0
awk 'length > 80 { exit 1 }' "$work/out" || bad "wider than 80 columns: $(cat "$work/out")"
out_like '^\| prompt +\| +16 \|'
out_like '^\| generate +\| +2 \|'
err_like '^\| mul_mat[^|]*\| (panels|panels-k|packed|rows) +\|'
err_like '^\| mul_mat[^|]*\| gemv(-strided)? +\|'
# Every combination; sequences only generate. (Each row measures this machine.)
prompts=4,8 depths=0,3
[ -z "$quick" ] || prompts=4 depths=3
infer bench -p $prompts -n 2 -d $depths -np 1,3 -r 1 --format csv
cut -d, -f12-15 <"$work/out" | tail -n +2 | tr '\n' ' ' >"$work/tests"
for depth in $(echo $depths | tr , ' '); do
    for row in "prompt,4,$depth,1" $([ -n "$quick" ] || echo "prompt,8,$depth,1") "generate,2,$depth,1" "generate,2,$depth,3"; do
        printf '%s ' "$row"
    done
done >"$work/rows"
cmp -s "$work/tests" "$work/rows" || bad "tests: $(cat "$work/tests")"
infer bench -p 8 -n 2 -np 2 -d 4 -r 1 --plot
status 0
err ''
out_like '^\| generate +\| +2 \| +4 \| +2 \|'
out_like '^ +generate 2 tokens, 2 sequences, depth 4( |$)'
out_like '\|.* [0-9.]+ +[0-9.]+ % of (bandwidth|int8)$'

begin no_command_writes_notes_to_stdout
for command in "tokenize -p a" "logits --ids 1 -o -" "inspect --json"; do
    # shellcheck disable=SC2086
    infer $command
    status 0
    err ''
done

finish
