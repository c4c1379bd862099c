# infer bench: lists of options, formats, comparison with earlier results, charts. No figure is
# tested, only which rows there are and what is computed from figures of the files here. Each row
# measures this machine, which takes longer than the model: runs have the rows that they need.
. test/cli/lib.sh
if ! "$make_model" "$work/a.gguf" arch=llama tokens=bpe 2>/dev/null ||
    ! "$make_model" "$work/b.gguf" arch=llama tokens=bpe layers=1 2>/dev/null; then
    echo 'skip t_bench.sh: no tool_make_model here'
    finish
    exit
fi
INFER_MODEL=$work/a.gguf
export INFER_MODEL
bench() { infer bench -p 4 -n 2 -r 1 -t 1 "$@"; }
rows() { # N: lines of CSV, without the header
    [ "$(sed 1d "$work/out" | wc -l)" -eq "$1" ] || bad "infer $last: not $1 rows: $(cat "$work/out")"
}

begin every_combination_of_lists_is_a_row
lists='-p 4,8 -t 1,2 -b 2,4 -ctk f16,f32 -ctv f16,bf16' n_rows=32
[ -z "$quick" ] || lists='-p 4 -t 1 -b 2,4 -ctk f16,f32' n_rows=4
# shellcheck disable=SC2086
infer bench $lists -n 0 -r 1 --format csv
status 0
rows $n_rows
[ "$(sed 1d "$work/out" | cut -d, -f7-13 | sort -u | wc -l)" -eq $n_rows ] || bad 'two rows are the same test'
infer bench -m "$work/a.gguf" -m "$work/b.gguf" -p 4 -n 0 -r 1 -t 1 --format csv
rows 2
[ "$(sed 1d "$work/out" | cut -d, -f2 | tr '\n' ' ')" = 'a.gguf b.gguf ' ] ||
    bad "not a row of each file: $(cat "$work/out")"
INFER_THREADS=1,2 bench -n 0 --format csv
rows 1 # the option overrides the variable
usage '^infer: -t: .1,x. is not one to 16 whole numbers' bench -t 1,x
usage '^infer: -ctk: .f16,q9. is no list, separated by commas, of f32' bench -ctk f16,q9
usage '^infer: -ctv: .f16,. is no list' bench -ctv f16,
infer bench -m "$work/a.gguf" -m "$work/none.gguf"
status 3
err_line 'none.gguf'

begin columns_name_model_file_version_and_options
bench -n 0 -r 2 --format csv
[ "$(head -n 1 "$work/out")" = "model,file,version,weight_bytes,parameters,isa,threads,gpu_layers,batch_size,cache_type_k,cache_type_v,test,tokens,depth,sequences,tokens_per_second,lowest,highest,samples,gpu,share_of_bandwidth,bandwidth_bytes_per_second,share_of_int8,int8_macs_per_second" ] ||
    bad "$(head -n 1 "$work/out")"
out_like '^random,a.gguf,[0-9.]+,[0-9]+,[0-9]+,[a-z0-9]+,1,0,512,f16,f16,prompt,4,0,1,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+ [0-9.]+,,[0-9.]+,[0-9]+,[0-9.]+,[0-9]+$'
bench -r 2 --format jsonl
[ "$(wc -l <"$work/out")" -eq 2 ] || bad 'not a line each'
out_like '^\{"model":"random","file":"a.gguf","version":"[0-9.]+",.*"threads":1,"gpu_layers":0,"batch_size":512,"cache_type_k":"f16","cache_type_v":"f16","test":"generate","tokens":2,"depth":0,"sequences":1,"tokens_per_second":[0-9.]+,"lowest":[0-9.]+,"highest":[0-9.]+,"samples":\[[0-9.]+,[0-9.]+\],'
bench -r 2 --format json
out_like '^\{"version":"[0-9.]+","results":\[$'
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert len(d["results"]) == 2 and d["results"][0]["test"] == "prompt" and len(d["results"][1]["samples"]) == 2' "$work/out" ||
    bad "$(cat "$work/out")"

begin the_table_shows_what_varies
infer bench -p 4 -n 0 -r 1 -t 1,2 -ctk f16,bf16
out_like '^\| -t \| -ctk \| test     \| tokens \| depth \| tokens/s \|'
out_like '^\| 2  \| bf16 \| prompt   \|      4 \|'
out_like '^limits with 2 threads: reading '
bench -n 0
out_like '^random, [0-9.]+ MiB, [a-z0-9]+, 1 thread, batch 512$'
out_like '^\| test     \| tokens \| depth \|'

begin rows_come_as_they_are_measured
: >"$work/rows" # the loop may read before the program's shell has emptied the file
"$INFER" bench -p 4,100000 -n 0 -r 20 -t 1 --format csv >"$work/rows" 2>"$work/err" &
pid=$! n=0
while [ "$(wc -l <"$work/rows")" -lt 2 ] && [ $n -lt 300 ]; do
    sleep 0.1
    n=$((n + 1))
done
kill $pid
wait $pid 2>"$work/said"
[ "$(wc -l <"$work/rows")" -eq 2 ] || bad "not the first row: $(cat "$work/rows")"

# as RATE..: a file of results with these samples of a prompt of 4 tokens, and others.
as() {
    printf '{"results":[{"file":"a.gguf","threads":1,"gpu_layers":0,"batch_size":512,"cache_type_k":"f16","cache_type_v":"f16","test":"prompt","tokens":4,"depth":0,"sequences":1,"tokens_per_second":%s,"samples":[%s]}]}\n' \
        "$1" "$1,$1,$1,$1" >"$work/old.json"
}

begin compare_shows_ratios_to_earlier_results
as 0.001
bench --compare "$work/old.json"
status 0
out_like '^\| prompt   \|      4 \|     0 \| +0.0 \| [0-9.]+ \| [0-9.]+-[0-9.]+ \| faster       \|$'
out_like '^\| generate \|      2 \|     0 \|       - \|     - \|         - \| not there    \|$'
as 1e12
bench -n 0 --compare "$work/old.json"
out_like '\| slower       \|$'
for format in csv $([ -n "$quick" ] || echo json jsonl); do
    bench --format $format
    cp "$work/out" "$work/old.$format"
    bench --compare "$work/old.$format" --format csv
    status 0
    rows 2
    [ "$(sed 1d "$work/out" | cut -d, -f23-26 | grep -c '^[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*$')" -eq 2 ] ||
        bad "no ratios with $format: $(cat "$work/out")"
    bench -n 0 --compare "$work/old.$format" --format json
    python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["results"]:
    assert r["ratio_low"] <= r["ratio"] <= r["ratio_high"] and r["before"] > 0' "$work/out" || bad "$(cat "$work/out")"
done
bench -n 0 --compare "$work/old.csv" -t 2 # one value on each side is what was changed
status 0
out_like '^threads: 1 -> 2$'
infer bench -m "$work/b.gguf" -p 4 -n 0 -r 1 -t 1 --compare "$work/old.csv"
out_like '^file: a.gguf -> b.gguf$'
usage 'old.csv: has none of these tests' bench -p 5 -n 0 --compare "$work/old.csv"
usage 'chat.md: has no results of `infer bench' bench -p 4 --compare docs/chat.md
usage 'no/such: cannot read' bench --compare "$work/no/such"
# A name with a comma and quotes comes back from CSV.
cp "$work/a.gguf" "$work/a,\"b\".gguf"
INFER_MODEL=$work/a,\"b\".gguf
bench -n 0 --format csv
cp "$work/out" "$work/old.csv"
bench -n 0 --compare "$work/old.csv"
status 0
[ "$(grep -c 'not there' "$work/out")" -eq 0 ] || bad "$(cat "$work/out")"
INFER_MODEL=$work/a.gguf

begin charts_are_drawn_over_what_varies
infer bench -p 4 -n "$([ -n "$quick" ] && echo 0 || echo 2)" -d 0,16 -r 1 -t 1,2 --plot
status 0
sed -n 4,5p "$work/out" | awk 'length > 80 || !/^\|/ { exit 1 }' || bad 'wider than 80 columns'
out_like '^prompt 4 tokens: tokens/s over depth$'
out_like '^  2 threads$'
out_like '^ +16 \|█'
infer bench -p 0 -n 2 -r 1 -t 1,2 --plot
out_like '^generate 2 tokens: tokens/s over threads$'
infer bench -p 4 -n 0 -r 1 -t 1 --plot
out_like '^shares of the limit, tokens/s$'
usage '--plot: goes with --format md only' bench --plot --format csv

begin the_chart_of_results_has_a_line_for_each_setting
for test in prompt,4 generate,2; do
    for row in 0,1,100 16,1,50 0,2,200 16,2,75; do
        IFS=, read -r name tokens depth threads rate <<EOF
$test,$row
EOF
        printf '{"model":"a<b","file":"a.gguf","isa":"avx2","threads":%s,"gpu_layers":0,"batch_size":512,"cache_type_k":"f16","cache_type_v":"f16","test":"%s","tokens":%s,"depth":%s,"sequences":1,"tokens_per_second":%s,"lowest":%s,"highest":%s,"share_of_bandwidth":0.5,"bandwidth_bytes_per_second":1e9,"share_of_int8":null,"int8_macs_per_second":null}\n' \
            "$threads" "$name" "$tokens" "$depth" "$rate" "$rate" "$rate"
    done
done >"$work/rows.jsonl"
scripts/bench-chart "$work/rows.jsonl" >"$work/chart.svg" || bad 'no picture'
python3 - "$work/chart.svg" <<'PYTHON' >"$work/said" 2>&1 || bad "$(cat "$work/said")"
import sys
import xml.etree.ElementTree as tree
name = "{http://www.w3.org/2000/svg}"
picture = tree.parse(sys.argv[1])
texts = [t.text for t in picture.iter(f"{name}text")]
for text in ("a<b", "prompt 4 tokens: tokens/s over depth", "generate 2 tokens: tokens/s over depth", "1 thread", "2 threads", "16"):
    assert text in texts, (text, texts)
lines = [line.get("points").split() for line in picture.iter(f"{name}polyline")]
assert [len(line) for line in lines] == [2] * 4, lines
falls = [float(last.split(",")[1]) - float(first.split(",")[1]) for first, last in lines]
assert falls == [50, 125] * 2, falls # of 200 pixels for 0 to 200 tokens/s
PYTHON
head -n 1 "$work/rows.jsonl" | scripts/bench-chart >"$work/chart.svg"
grep -q '>50% of bandwidth<' "$work/chart.svg" || bad 'no share of the limit'
bench -n 0 --format json # what the program writes has all that the script reads
scripts/bench-chart <"$work/out" >"$work/chart.svg" || bad 'no picture of the results'
scripts/bench-chart docs/chat.md >"$work/chart.svg" 2>"$work/said" && bad 'a picture of no results'
grep -q 'no results' "$work/said" || bad "$(cat "$work/said")"

begin scripts_name_a_file_that_is_missing
missing() { # SCRIPT ARGS..
    script=$1
    shift
    "scripts/$script" "$@" >"$work/out" 2>"$work/said" && bad "$script: status 0"
    [ "$(cat "$work/said")" = "$script: $work/no: No such file or directory" ] || bad "$(cat "$work/said")"
}
missing bench-chart "$work/no"
missing bench-turns m "$work/no -n 0" "$work/no -n 0"
missing bench-peers --infer "$work/no" m

if terminals; then
    begin charts_fit_the_terminal
    for columns in 50 $([ -n "$quick" ] || echo 80 120); do
        # shellcheck disable=SC2016
        python3 test/cli/terminal.py "$work/screen" "size:$columns" 'send:\r' 'wait:ready' -- \
            sh -c 'read -r line; echo ready; exec "$@"' sh "$INFER" bench -p 4 -n 0 -d 0,8 -r 1 -t 1 --plot 2>"$work/err"
        tr -d '\r' <"$work/screen" | sed '1,/tokens.s over depth/d' | python3 -c 'import sys
widest = max(len(line.rstrip("\n").split("\r")[-1]) for line in sys.stdin)
sys.exit(widest > int(sys.argv[1]))' "$columns" || bad "wider than $columns: $(cat "$work/screen")"
    done
fi

# A control group of BYTES for the command.
group=/sys/fs/cgroup/memory/infer-test-$$ limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/infer-test-$$ limit=memory.max; }
within() {
    echo "$1" >"$group/$limit"
    shift
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" >"$work/out" 2>"$work/err"
}

begin the_limit_of_a_control_group_counts # also in the sandbox, where its files cannot be read
if ! mkdir "$group" 2>/dev/null; then
    skip 'no control group can be made'
elif [ ! -w "$group/$limit" ]; then
    rmdir "$group"
    skip 'control groups do not limit memory'
else
    within 100M "$INFER" bench -p 4 -n 2 -r 1 -t 1 || bad "100 MB: $(cat "$work/err")"
    grep -q '^limits with 1 thread: ' "$work/out" || bad 'no limits'
    within 18M "$INFER" bench -p 4 -n 2 -r 1 -t 1
    [ $? -eq 4 ] || bad "18 MB: $(cat "$work/err")"
    grep -q 'batches of 4 tokens, the cache and what measures the limits need .* MB that are free' "$work/err" ||
        bad "$(cat "$work/err")"
    rmdir "$group"
fi

finish
