# scripts/score-tasks with a small model: multiple-choice tasks by `infer score`. Values marked (reference) are
# those of llama-perplexity on the same file; ours are within rounding of them.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_tasks.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL INFER
if ! python3 -c '' 2>"$work/said"; then
    begin tasks_are_scored_with_python
    skip 'no python3'
    finish
    exit
fi
# near A B T: whether two numbers are at most T apart.
near() { awk "BEGIN { d = $1 - ($2); exit !(d <= $3 && -d <= $3) }" || bad "score-tasks $last: $1 is not $2"; }
tasks() { # ARGS..
    scripts/score-tasks "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$? last="score-tasks $*"
}
wrong() { # REGEX ARGS..
    like=$1
    shift
    tasks "$@"
    status 1
    out ''
    err_like "^score-tasks: .*$like"
}

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
begin tasks_of_six_lines
tasks hellaswag "$work/lines" -ctk f32 -ctv f32
status 0
err ''
out 'accuracy 66.6667 %% +/- 33.3333 %% (2 of 3 tasks)\n95 %% interval 20.7660 %% to 93.8508 %%, chance 25.0000 %%\n' # (reference)
tasks hellaswag "$work/lines" --json
out_like '"tasks":3,"right":2,"accuracy":0\.666667,"standard_error":0\.333333,"interval":\[0\.207660,0\.938508\],"chance":0\.250000\}$'
tasks hellaswag "$work/lines" -v -t 1 -b 3
status 0
err_like '^task 1: choice 3 \(-[0-9.]+\), right; 100\.0000 % so far$'
err_like '^task 3: choice 2 \(-[0-9.]+\), wrong; 66\.6667 % so far$'
head -n 8 "$work/lines" >"$work/cut"
wrong 'cut: has 8 lines, which is not a multiple of 6' hellaswag "$work/cut"
sed '8s/0/x/' "$work/lines" >"$work/cut"
wrong 'cut: line 8 is not the number of an ending, 0 to 3' hellaswag "$work/cut"
wrong 'null: has no task' hellaswag /dev/null

# The seven tasks of a file in the order in which N of them are drawn, by GNU C++'s random numbers
# with seed 1.
begin the_selection_is_the_references
if [ -z "$quick" ]; then # the second half draws in the same way
    i=1
    while [ $i -le 7 ]; do
        printf 'Task %d: say the number\n%d\nx\nx\nx\nx\n' $i $((i % 4))
        i=$((i + 1))
    done >"$work/seven"
    tasks hellaswag "$work/seven" -v
    grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/scores"
    tasks hellaswag "$work/seven" -v --tasks 5
    grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/drawn"
    for i in 3 7 5 6 1; do sed -n ${i}p "$work/scores"; done | cmp -s - "$work/drawn" || bad "$(cat "$work/drawn")"
fi
i=1
while [ $i -le 7 ]; do
    echo "$i,In town $i they met and the _ of them was tall and old,first,second,1"
    i=$((i + 1))
done >"$work/seven"
tasks winogrande "$work/seven" -v
grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/scores"
tasks winogrande "$work/seven" -v --tasks 5
grep 'task [0-9]' "$work/err" | sed 's/.*(\(.*\)),.*/\1/' >"$work/drawn"
for i in 3 6 4 5 1; do sed -n ${i}p "$work/scores"; done | cmp -s - "$work/drawn" || bad "$(cat "$work/drawn")"

begin tasks_as_csv
cat >"$work/csv" <<'END'
0,Sarah was a much better surgeon than Maria so _ always got the easier cases.,Sarah,Maria,2
1,The trophy does not fit into the brown suitcase because the _ is too large for it.,trophy,suitcase,1

2,no hole,a,b,1
3,"Tom helped Bob with the homework, and _ said thank you to his friend for it.",Tom,Bob,2
4,a _ b,c,d,3
5,The dog chased the cat until the _ was tired.,dog,cat,1
END
tasks winogrande "$work/csv" -ctk f32 -ctv f32 -v
status 0
out_like '^accuracy 75\.0000 % \+/- 25\.0000 % \(3 of 4 tasks\)$' # (reference)
out_like 'chance 50\.0000 %$'
err_like '^score-tasks: 2 lines are not tasks and were skipped; the first is line 4$'
sed -n 's/^task [0-9]*: choice \([0-9]\) (\(.*\)),.*/\1 \2/p' "$work/err" >"$work/scores"
i=1
for want in -4.839 -1.628 -2.855 -3.222; do # (reference): its own roundings of activations differ
    near "$(sed -n "${i}s/.* //p" "$work/scores")" $want 0.15
    i=$((i + 1))
done

begin tasks_as_bytes
python3 - "$work/bytes" <<'END'
import struct, sys
tasks = [("Question: What is the capital of France? Answer:", ["Paris", "London", "Berlin"], [1, 0, 0]),
         ("Question: Which animal barks? Answer:", ["The cat", "The dog"], [0, 1])]
text = lambda t: struct.pack("<I", len(t)) + t.encode()
body = [text(q) + struct.pack("<I", len(a)) + b"".join(map(text, a)) + struct.pack("<%di" % len(l), *l) +
        struct.pack("<I", 0) for q, a, l in tasks]
places = [4 + 4 * len(body) + sum(map(len, body[:i])) for i in range(len(body))]
open(sys.argv[1], "wb").write(struct.pack("<%dI" % (1 + len(body)), len(body), *places) + b"".join(body))
END
tasks multiple-choice "$work/bytes" -ctk f32 -ctv f32
status 0
err ''
out 'accuracy 50.0000 %% +/- 50.0000 %% (1 of 2 tasks)\n95 %% interval 9.4531 %% to 90.5469 %%, chance 40.0000 %%\n'
size=$(wc -c <"$work/bytes")
for n in 1 8 40 $((size - 5)); do
    head -c "$n" "$work/bytes" >"$work/cut"
    wrong 'cut: (task [12] of 2 is damaged|is not a file of tasks|has no task)' multiple-choice "$work/cut"
done
wrong 'lines: (is not a file of tasks, or is damaged|task 1 of)' multiple-choice "$work/lines"
tasks hellaswag "$work/lines" -m "$work/lines" # as infer score ends
status 3
err_line 'lines: not a GGUF file'

finish
