# infer perplexity with a small model: strides, saved logits in both forms, tasks. Values marked
# (reference) are those of llama-perplexity on the same file; ours are within rounding of them.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_perplexity.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
i=0
while [ $i -lt 12 ]; do
    echo "Line $i: the quick brown fox jumps over the lazy dog, and the dog sleeps on."
    i=$((i + 1))
done >"$work/text"
# number MEMBER: that number of the JSON object.
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$work/out"; }
# near A B T: whether two numbers are at most T apart.
near() { awk "BEGIN { d = $1 - ($2); exit !(d <= $3 && -d <= $3) }" || bad "infer $last: $1 is not $2"; }

begin chunks_are_counted
infer perplexity -f "$work/text" --chunk 64 --json
status 0
all=$(number chunks)
[ "$all" -gt 2 ] || bad "$all chunks"
infer perplexity -f "$work/text" --chunk 64 --json --chunks 2
[ "$(number chunks)" -eq 2 ] && [ "$(number positions)" -eq 62 ] || bad "$(cat "$work/out")"
two=$(number nll)
infer perplexity -f "$work/text" --chunk 64 --json --chunks -1
[ "$(number chunks)" -eq "$all" ] || bad "$(cat "$work/out")"

begin a_stride_scores_the_ends_of_chunks
infer perplexity -f "$work/text" --chunk 64 --stride 32 --json
status 0
out_like ',"positions":[0-9]+,"chunk":64,"chunks":[0-9]+,"unused_ids":[0-9]+,"stride":32\}$'
infer tokenize -f "$work/text"
n=$(wc -w <"$work/out")
infer perplexity -f "$work/text" --chunk 64 --ppl-stride 32 --json
[ "$(number chunks)" -eq $(((n - 64 + 31) / 32)) ] || bad "$n tokens: $(cat "$work/out")"
[ "$(number positions)" -eq $(($(number chunks) * 32)) ] || bad "$(cat "$work/out")"
# A stride of half a chunk scores the tokens of a chunk, and the token before them.
infer perplexity -f "$work/text" --chunk 64 --stride 31 --chunks 1 --json
stride=$(number nll)
infer perplexity -f "$work/text" --chunk 64 --chunks 1 --json
[ "$(number nll)" = "$stride" ] || bad "$(number nll) and $stride"
infer perplexity -f "$work/text" --chunk 8 --stride 7 --json -v
status 0
usage '--stride: 64 is not below --chunk 64' perplexity -f "$work/text" --chunk 64 --stride 64
usage 'with --stride it needs more than --chunk 512' perplexity -f "$work/text" --stride 8
usage '--stride: contradicts --kl|--kl: contradicts --stride' perplexity --stride 8 --kl x

begin both_forms_of_saved_logits_are_read
infer perplexity -f "$work/text" --chunk 64 --chunks 2 --save-logits "$work/f32"
infer perplexity -f "$work/text" --chunk 64 --chunks 2 --save-logits "$work/u16" --logits-format u16
status 0
[ "$(head -c 8 "$work/u16")" = _logits_ ] || bad 'another beginning'
[ "$(wc -c <"$work/u16")" -eq $((20 + 2 * 64 * 4 + 2 * 31 * (8 + 2 * 49152))) ] || bad 'another size'
infer perplexity --kl "$work/u16" --json
status 0
err ''
near "$(number kl)" 0 0.00001
near "$(number nll)" "$two" 0
near "$(number base_perplexity)" "$(number perplexity)" 0.001
infer perplexity --kl "$work/u16"
out_like '^same top token 100\.000 % '
head -c 1000 "$work/u16" >"$work/cut"
usage 'cut: damaged: its size does not fit' perplexity --kl "$work/cut"
usage '--logits-format: needs --save-logits' perplexity -f x --logits-format u16
usage 'is none of f32' perplexity -f x --save-logits y --logits-format f16

begin another_model_is_compared
infer quantize "$MODEL" "$work/other.gguf" Q4_0
infer perplexity -m "$work/other.gguf" --kl "$work/f32" --json
status 0
kl=$(number kl)
near "$(number base_perplexity)" "$(awk "BEGIN { print exp($two) }")" 0.001
for member in kl_standard_error kl_smallest kl_largest kl_quantiles same_top same_top_standard_error \
    shift shift_rms shift_rms_standard_error shift_smallest shift_largest shift_quantiles \
    base_standard_error log_ratio log_ratio_standard_error correlation; do
    out_like "\"$member\":[-0-9{]"
done
awk "BEGIN { exit !($kl > 0.01 && $kl < 1 && $(number kl_smallest) >= 0) }" || bad "KL $kl"
infer perplexity -m "$work/other.gguf" --kl "$work/u16" --json
near "$(number kl)" "$kl" 0.001
infer perplexity -m "$work/other.gguf" --kl "$work/f32"
out_like '^perplexity [0-9.]+ \+/- [0-9.]+ \(62 positions\)$'
out_like '^KL divergence [0-9.]+ \+/- [0-9.]+, largest [0-9.]+$'
out_like '^probability shift -?[0-9.]+ % \+/- [0-9.]+ %, RMS [0-9.]+ % \+/- [0-9.]+ %$'
out_like '^base perplexity [0-9.]+ \+/- [0-9.]+, ratio [0-9.]+ \+/- [0-9.]+, difference -?[0-9.]+ \+/- [0-9.]+, correlation [0-9.]+ %$'
out_like '^median +[0-9.]+ +-?[0-9.]+ %$'

# Six lines per task.
cat >"$work/lines" <<'END'
Cooking: A man puts a pot of water on the stove and turns on the heat. He
2
sings a song to the car.
throws the moon into the pot.
waits until the water boils and adds the pasta.
reads a river in the garage.
Football: The player runs towards the ball. She
0
kicks it into the goal.
eats it with a spoon.
paints the wall in blue and green.
asks the ball for a loan.
Gardening: The woman digs a hole in the ground. Then she
3
flies to the window of the bank.
puts a small tree into the hole.
drives the hole to work.
writes a letter to the hole, which answers.
END
begin tasks_of_six_lines_have_the_reference_accuracy
infer perplexity --hellaswag -f "$work/lines" -ctk f32 -ctv f32
status 0
err ''
out 'accuracy 66.6667 %% +/- 33.3333 %% (2 of 3 tasks)\n95 %% interval 20.7660 %% to 93.8508 %%, chance 25.0000 %%\n' # (reference)
infer perplexity --hellaswag -f "$work/lines" --json
out_like '"tasks":3,"right":2,"accuracy":0\.666667,"standard_error":0\.333333,"interval":\[0\.207660,0\.938508\],"chance":0\.250000\}$'
infer perplexity --hellaswag -f "$work/lines" -v -t 1 -b 3
status 0
err_like '^infer: task 1: choice 3 \(-[0-9.]+\), right; 100\.0000 % so far$'
err_like '^infer: task 3: choice 2 \(-[0-9.]+\), wrong; 66\.6667 % so far$'
head -n 8 "$work/lines" >"$work/cut"
usage 'cut: has 8 lines, which is not a multiple of 6' perplexity --hellaswag -f "$work/cut"
sed '8s/0/x/' "$work/lines" >"$work/cut"
usage 'cut: line 8 is not the number of an ending, 0 to 3' perplexity --hellaswag -f "$work/cut"
usage 'null: has no task' perplexity --hellaswag -f /dev/null
usage '--tasks: needs --hellaswag' perplexity -f "$work/lines" --tasks 3
usage 'contradicts' perplexity --hellaswag --winogrande -f "$work/lines"

# The seven tasks of a file in the order in which N of them are drawn, by GNU C++'s random numbers
# with seed 1.
begin tasks_are_selected_as_by_the_reference
if [ -z "$quick" ]; then # the second half draws in the same way
    i=1
    while [ $i -le 7 ]; do
        printf 'Task %d: say the number\n%d\nx\nx\nx\nx\n' $i $((i % 4))
        i=$((i + 1))
    done >"$work/seven"
    infer perplexity --hellaswag -f "$work/seven" -v
    grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/scores"
    infer perplexity --hellaswag -f "$work/seven" -v --hellaswag-tasks 5
    grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/drawn"
    for i in 3 7 5 6 1; do sed -n ${i}p "$work/scores"; done | cmp -s - "$work/drawn" || bad "$(cat "$work/drawn")"
fi
i=1
while [ $i -le 7 ]; do
    echo "$i,In town $i they met and the _ of them was tall and old,first,second,1"
    i=$((i + 1))
done >"$work/seven"
infer perplexity --winogrande -f "$work/seven" -v
grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/scores"
infer perplexity --winogrande -f "$work/seven" -v --tasks 5
grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/drawn"
for i in 3 6 4 5 1; do sed -n ${i}p "$work/scores"; done | cmp -s - "$work/drawn" || bad "$(cat "$work/drawn")"

begin tasks_in_csv_have_the_reference_accuracy
cat >"$work/csv" <<'END'
0,Sarah was a much better surgeon than Maria so _ always got the easier cases.,Sarah,Maria,2
1,The trophy does not fit into the brown suitcase because the _ is too large for it.,trophy,suitcase,1

2,no hole,a,b,1
3,"Tom helped Bob with the homework, and _ said thank you to his friend for it.",Tom,Bob,2
4,a _ b,c,d,3
5,The dog chased the cat until the _ was tired.,dog,cat,1
END
infer perplexity --winogrande -f "$work/csv" -ctk f32 -ctv f32 -v
status 0
out_like '^accuracy 75\.0000 % \+/- 25\.0000 % \(3 of 4 tasks\)$' # (reference)
out_like 'chance 50\.0000 %$'
err_like '^infer: 2 lines are not tasks and were skipped; the first is line 4$'
sed -n 's/^infer: task [0-9]*: choice \([0-9]\) (\(.*\)),.*/\1 \2/p' "$work/err" >"$work/scores"
i=1
for want in -4.839 -1.628 -2.855 -3.222; do # (reference): its own roundings of activations differ
    near "$(sed -n "${i}s/.* //p" "$work/scores")" $want 0.15
    i=$((i + 1))
done

begin tasks_in_a_binary_file_are_read
python3 - "$work/bytes" <<'END' || skip 'no python3'
import struct, sys
tasks = [("Question: What is the capital of France? Answer:", ["Paris", "London", "Berlin"], [1, 0, 0]),
         ("Question: Which animal barks? Answer:", ["The cat", "The dog"], [0, 1])]
text = lambda t: struct.pack("<I", len(t)) + t.encode()
body = [text(q) + struct.pack("<I", len(a)) + b"".join(map(text, a)) + struct.pack("<%di" % len(l), *l) +
        struct.pack("<I", 0) for q, a, l in tasks]
places = [4 + 4 * len(body) + sum(map(len, body[:i])) for i in range(len(body))]
open(sys.argv[1], "wb").write(struct.pack("<%dI" % (1 + len(body)), len(body), *places) + b"".join(body))
END
if [ -s "$work/bytes" ]; then
    infer perplexity --multiple-choice -f "$work/bytes" -ctk f32 -ctv f32
    status 0
    err ''
    out 'accuracy 50.0000 %% +/- 50.0000 %% (1 of 2 tasks)\n95 %% interval 9.4531 %% to 90.5469 %%, chance 40.0000 %%\n'
    size=$(wc -c <"$work/bytes")
    for n in 1 8 40 $((size - 5)); do
        head -c "$n" "$work/bytes" >"$work/cut"
        usage 'cut: (task [12] of 2 is damaged|is not a file of tasks|has no task)' perplexity --multiple-choice -f "$work/cut"
    done
fi
usage 'lines: (is not a file of tasks, or is damaged|task 1 of)' perplexity --multiple-choice -f "$work/lines"

finish
