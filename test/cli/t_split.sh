# split, merge and quantize --keep-split, with models of random weights.
. test/cli/lib.sh

m=$work/m.gguf
"$make_model" "$m" type=F16 layers=4 embd=64 heads=4 kv_heads=2 head_dim=16 ff=128 vocab=320 tied=0 >/dev/null ||
    { echo 'FAIL t_split.sh: no model'; finish; exit; }
n=$("$INFER" inspect "$m" --tensors --json | grep -c '^{"name":')

# parts PREFIX COUNT: exactly these files exist.
parts() {
    i=0
    for file in "$1"-0*.gguf; do
        i=$((i + 1))
        [ "$file" = "$(printf '%s-%05d-of-%05d.gguf' "$1" $i "$2")" ] || bad "infer $last: there is ${file##*/}"
    done
    [ $i -eq "$2" ] || bad "infer $last: $i parts, not $2"
}
nothing_left() {
    for left in "$work"/*.part; do
        [ ! -e "$left" ] || bad "infer $last: left ${left##*/}"
    done
}
# has FILE KEY KIND VALUE
has() {
    python3 - "$1" "$2" <<'PYTHON' >"$work/value" 2>"$work/said" || { bad "$(cat "$work/said")"; return; }
import struct, sys
data = open(sys.argv[1], "rb").read()
key = sys.argv[2].encode()
at = data.index(struct.pack("<Q", len(key)) + key) + 8 + len(key)
kind, = struct.unpack_from("<I", data, at)
print(kind, *struct.unpack_from({2: "<H", 5: "<i"}[kind], data, at + 4))
PYTHON
    [ "$(cat "$work/value")" = "$3" ] || bad "${1##*/}: $2 is '$(cat "$work/value")', not '$3'"
}

begin split_by_tensors_and_merge_give_the_same_bytes
infer split "$m" "$work/a" --max-tensors 7
status 0
out ''
err ''
count=$(((n + 6) / 7))
parts "$work/a" $count
last_part=$work/a-$(printf %05d $count)-of-$(printf %05d $count).gguf
infer merge "$work/a-00001-of-$(printf %05d $count).gguf" "$work/b.gguf"
status 0
out ''
cmp -s "$m" "$work/b.gguf" || bad 'the merged file has other bytes'
infer merge "$last_part" "$work/b.gguf" # any part names the model
status 0
cmp -s "$m" "$work/b.gguf" || bad 'merged by its last part it has other bytes'
infer logits -m "$m" --ids '1 2 3' -o "$work/one"
infer logits -m "$last_part" --ids '1 2 3' -o "$work/parts"
cmp -s "$work/one" "$work/parts" || bad 'other logits'
nothing_left

begin parts_have_their_numbers # with the types that llama.cpp reads
if command -v python3 >/dev/null 2>&1; then
    has "$last_part" split.no "2 $((count - 1))"
    has "$last_part" split.count "2 $count"
    has "$last_part" split.tensors.count "5 $n"
else
    skip 'no Python'
fi

begin parts_have_at_most_the_given_size
infer split "$m" "$work/s.gguf" --split-max-size 1M --dry-run
status 0
out_like "^part 1: $n tensors, [0-9]* bytes$"
[ ! -e "$work/s-00001-of-00001.gguf" ] || bad 'a dry run writes'
"$make_model" "$work/l.gguf" type=F32 layers=2 embd=512 ff=1024 vocab=512 heads=4 kv_heads=2 head_dim=128 >/dev/null
infer split "$work/l.gguf" "$work/s.gguf" --max-size 4M
status 0
for file in "$work"/s-0*.gguf; do
    infer inspect "$file" >/dev/null
    status 0
    [ "$(wc -c <"$file")" -lt 4100000 ] || bad "${file##*/} has $(wc -c <"$file") bytes"
done
infer merge "$file" "$work/b.gguf"
cmp -s "$work/l.gguf" "$work/b.gguf" || bad 'other bytes'
infer split "$work/l.gguf" "$work/t" --max-size 1M # below the size of the largest tensors, which get their own parts
status 0
infer merge "$work"/t-00001-of-*.gguf "$work/b.gguf"
cmp -s "$work/l.gguf" "$work/b.gguf" || bad 'other bytes of small parts'
usage "max-size: '4' is not a size" split "$m" "$work/x" --max-size 4
usage "max-size: '0M' is not a size" split "$m" "$work/x" --max-size 0M
usage "max-size: '-1M' is not a size" split "$m" "$work/x" --max-size -1M
usage "max-size: '4MB' is not a size" split "$m" "$work/x" --max-size 4MB
usage "max-size: '99999999999999G' is not a size" split "$m" "$work/x" --max-size 99999999999999G
usage 'contradicts' split "$m" "$work/x" --max-size 4M --max-tensors 2
usage 'split: missing argument' split "$m"
usage "^infer: '$work/': parts need the beginning of a name, as in $work/part\$" split "$m" "$work/"
usage "^infer: '': parts need the beginning of a name, as in part\$" split "$m" ''

begin too_many_parts_are_refused
if command -v python3 >/dev/null 2>&1; then
    python3 - "$work/many.gguf" <<'PYTHON'
import struct, sys
n, key, arch = 65536, b"general.architecture", b"none"
head = [b"GGUF", struct.pack("<IQQ", 3, n, 1), struct.pack("<Q", len(key)), key, struct.pack("<IQ", 8, len(arch)), arch]
for i in range(n):
    name = b"t%d" % i
    head += [struct.pack("<Q", len(name)), name, struct.pack("<IQIQ", 1, 1, 0, 32 * i)]
head = b"".join(head)
open(sys.argv[1], "wb").write(head + bytes(-len(head) % 32 + 32 * n))
PYTHON
    usage 'max-tensors: needs more than 65535 parts' split "$work/many.gguf" "$work/many" --max-tensors 1
    usage 'max-tensors: needs more than 65535 parts' split "$work/many.gguf" --dry-run --max-tensors 1
    [ ! -e "$work/many-00001-of-65535.gguf" ] || bad 'a part was written'
    rm "$work/many.gguf"
else
    skip 'no Python'
fi

begin all_parts_may_be_named # as a glob does
infer split "$m" "$work/glob" --max-tensors 7
infer merge "$work"/glob-0*.gguf "$work/b.gguf"
status 0
cmp -s "$m" "$work/b.gguf" || bad 'other bytes'
cp "$last_part" "$work/foreign.gguf"
usage 'foreign.gguf: is not a part of the model' merge "$work"/glob-0*.gguf "$work/foreign.gguf" "$work/x.gguf"
usage 'glob-00002-of-0000..gguf: is given twice' merge "$work"/glob-0*.gguf "$work"/glob-00002-of-*.gguf "$work/x.gguf"
usage 'glob-00001-of-0000..gguf: is given twice' merge "$work"/glob-00001-of-*.gguf "$work"/glob-00001-of-*.gguf "$work/x.gguf"
usage 'is the input too' merge "$work"/glob-0*.gguf
infer merge "$work"/glob-0*.gguf "$work/none.gguf" "$work/x.gguf"
status 3
err_line 'none.gguf: cannot open'
usage 'merge: missing argument' merge "$work/glob-00001-of-$(printf %05d $count).gguf"
infer merge "$last_part" --dry-run
status 0
out_like '^part 1: 7 tensors, [0-9]+ bytes$'
out_like "^together: $n tensors, [0-9]+ bytes\$"
[ "$(wc -l <"$work/out")" -eq $((count + 1)) ] || bad 'other lines'
infer split "$m" --dry-run --max-tensors 7
sed '$d' "$work/out" >"$work/plan" # the last part has its padding too
infer merge "$last_part" "$work/x.gguf" --dry-run
head -n $((count - 1)) "$work/out" | cmp -s - "$work/plan" || bad 'other parts than split plans'
[ ! -e "$work/x.gguf" ] || bad 'a file was written'

begin the_first_part_may_have_only_metadata
infer split "$m" "$work/f" --max-tensors 100 --no-tensor-first-split
status 0
parts "$work/f" 2
[ $(($(wc -c <"$work/f-00001-of-00002.gguf") % 32)) -eq 0 ] || bad 'no padding, which llama-gguf-split writes'
infer merge "$work/f-00001-of-00002.gguf" "$work/b.gguf"
status 0
cmp -s "$m" "$work/b.gguf" || bad 'other bytes'

begin parts_can_be_split_again
infer split "$work/f-00001-of-00002.gguf" "$work/g" --max-tensors 20
status 0
infer split "$m" "$work/h" --max-tensors 20
for file in "$work"/g-0*; do
    cmp -s "$file" "$work/h${file#"$work/g"}" || bad "${file##*/} is not as if split at once"
done

begin keep_split_keeps_the_parts
infer quantize "$work/a-00001-of-$(printf %05d $count).gguf" "$work/k.gguf" Q8_0 --keep-split
status 0
parts "$work/k" $count
infer merge "$work/k-00001-of-$(printf %05d $count).gguf" "$work/b.gguf"
infer quantize "$m" "$work/c.gguf" Q8_0
cmp -s "$work/b.gguf" "$work/c.gguf" || bad 'other bytes than in one file'
infer quantize "$work/f-00001-of-00002.gguf" "$work/e" Q8_0 --keep-split # a part without tensors
parts "$work/e" 2
infer merge "$work/e-00001-of-00002.gguf" "$work/b.gguf"
cmp -s "$work/b.gguf" "$work/c.gguf" || bad 'other bytes with a first part without tensors'
infer quantize "$m" "$work/one.gguf" Q8_0 --keep-split
status 0
parts "$work/one" 1

begin a_part_that_is_read_is_not_overwritten
sum=$(cat "$work"/f-0* | cksum)
usage 'f-00002-of-00002.gguf: is the input too' merge "$work/f-00001-of-00002.gguf" "$work/f-00002-of-00002.gguf"
usage 'f-00001-of-00002.gguf: is the input too' split "$work/f-00002-of-00002.gguf" "$work/f" --max-tensors 100 --no-tensor-first-split
usage 'f-00001-of-00002.gguf: is the input too' quantize "$work/f-00001-of-00002.gguf" "$work/f.gguf" Q8_0 --keep-split
ln "$m" "$work/z-00002-of-00002.gguf"
usage 'z-00002-of-00002.gguf: is the input too' split "$m" "$work/z" --max-tensors 100 --no-tensor-first-split
[ "$(cat "$work"/f-0* | cksum)" = "$sum" ] || bad 'parts were changed'
[ ! -e "$work/z-00001-of-00002.gguf" ] || bad 'a part was written'
nothing_left

begin parts_of_different_models_are_refused
"$make_model" "$work/other.gguf" type=F16 layers=4 embd=64 heads=4 kv_heads=2 head_dim=16 ff=128 vocab=320 tied=0 seed=7 >/dev/null
infer split "$work/other.gguf" "$work/o" --max-tensors 7
rm "$work/o-00002-of-$(printf %05d $count).gguf"
infer merge "$work/o-00001-of-$(printf %05d $count).gguf" "$work/b.gguf"
status 3
err_line "part 2 of $count of this split model is missing"
infer split "$m" "$work/o" --max-tensors 100 --no-tensor-first-split
cp "$work/o-00001-of-00002.gguf" "$work/o-00002-of-00002.gguf"
infer merge "$work/o-00001-of-00002.gguf" "$work/b.gguf"
status 3
err_line "part 1 [(]from 0[)] according to the file's name, 0 in the file"
usage 'm.gguf: is not a part of a split model' merge "$m" "$work/b.gguf"

# set_is MODEL: the parts in set/ open as this model; none: they do not open.
set_is() {
    infer logits -m "$work/set/p-00001-of-00003.gguf" --ids '1 2 3' -o "$work/parts"
    if [ "$1" = none ]; then
        status 3
        err_line 'split.id: part [23] is not of the same split'
    else
        status 0
        cmp -s "$work/parts" "$work/$1.logits" || bad "$how: the parts are not those of $1"
    fi
}
# replacing STATUS VARIABLE=VALUE...: splits another model onto the parts of m, with the library.
replacing() {
    want=$1
    shift
    how=$* last="split onto other parts ($*)"
    rm -rf "$work/set"
    mkdir "$work/set"
    "$INFER" split "$m" "$work/set/p" --max-tensors $(((n + 2) / 3)) </dev/null
    env "$@" LD_PRELOAD="$library" "$INFER" split "$work/other.gguf" "$work/set/p" \
        --max-tensors $(((n + 2) / 3)) </dev/null >"$work/out" 2>"$work/err"
    code=$?
    status "$want"
    [ "$want" -eq 137 ] || [ "$(ls "$work/set" | wc -l)" -eq 3 ] || bad "$how: left $(ls "$work/set")"
}
begin parts_are_replaced_together
library=${INFER%/*}/test/fail_alloc.so
for model in m other; do
    "$INFER" logits -m "$work/$model.gguf" --ids '1 2 3' -o "$work/$model.logits" </dev/null
done
if [ -r "$library" ]; then
    for at in 1 2 3; do
        to=FAIL_RENAME_TO=p-0000$at-of-00003.gguf
        before=m
        [ $at -eq 1 ] || before=none
        replacing 1 $to
        err_line 'cannot write: Permission denied'
        set_is m
        replacing 143 $to FAIL_RENAME_BY=15
        set_is other
        replacing 129 $to FAIL_RENAME_BY=1
        set_is other
        replacing 137 $to FAIL_RENAME_BY=9
        set_is $before
        replacing 1 $to FAIL_SWAP=1
        set_is $before
        replacing 143 $to FAIL_SWAP=1 FAIL_RENAME_BY=15
        set_is other
    done
    mkdir "$work/new"
    env FAIL_RENAME_TO=p-00002-of-00003.gguf LD_PRELOAD="$library" "$INFER" split "$m" "$work/new/p" \
        --max-tensors $(((n + 2) / 3)) </dev/null >"$work/out" 2>"$work/err"
    code=$?
    status 1
    [ -z "$(ls "$work/new")" ] || bad "left $(ls "$work/new")"
else
    skip 'the library is not built'
fi

begin parts_without_an_id_are_opened # those of other programs
rm -rf "$work/set"
mkdir "$work/set"
"$INFER" split "$work/other.gguf" "$work/set/p" --max-tensors $(((n + 2) / 3)) </dev/null
if command -v python3 >/dev/null 2>&1; then
    infer split "$m" "$work/set/p" --max-tensors $(((n + 2) / 3))
    python3 - "$work/set/p-0000"*.gguf <<'PYTHON'
import sys
for name in sys.argv[1:]: # renames the key to one that is not read
    data = open(name, "rb").read()
    open(name, "wb").write(data.replace(b"split.id", b"split.ix", 1))
PYTHON
    set_is m
    infer split "$m" "$work/set/p" --max-tensors $(((n + 2) / 3))
    python3 - "$work/set/p-00003-of-00003.gguf" <<'PYTHON'
import sys
data = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(data.replace(b"split.id", b"split.ix", 1))
PYTHON
    set_is none
else
    skip 'no Python'
fi

begin what_cannot_be_written_leaves_nothing
mkdir "$work/full"
(ulimit -f 100; exec "$INFER" split "$m" "$work/full/p" --max-tensors 3) </dev/null >"$work/out" 2>"$work/err"
code=$? last='split with a limit'
status 1
err_line 'p-000[0-9]*-of-[0-9]*.gguf: cannot write: File too large'
[ -z "$(ls "$work/full")" ] || bad "left $(ls "$work/full")"
for i in 1 2; do # old parts remain until all new ones are complete
    printf old >"$work/full/p-0000$i-of-00002.gguf"
done
(ulimit -f 200; exec "$INFER" split "$m" "$work/full/p" --max-tensors 30) </dev/null >"$work/out" 2>"$work/err"
code=$? last='split onto parts with a limit'
status 1
[ "$(cat "$work"/full/*)" = oldold ] || bad 'an old part is gone'
infer split "$m" "$work/full/p" --max-tensors 30
status 0
infer merge "$work/full/p-00001-of-00002.gguf" "$work/b.gguf"
cmp -s "$m" "$work/b.gguf" || bad 'other bytes'

begin a_signal_leaves_no_part
"$make_model" "$work/big.gguf" layers="$([ -n "$quick" ] && echo 4 || echo 8)" embd=1024 ff=4096 vocab=8192 type=F32 >/dev/null
mkdir "$work/cut"
"$INFER" split "$work/big.gguf" "$work/cut/r" --max-tensors 3 </dev/null >"$work/out" 2>"$work/err" &
pid=$! i=0
while [ $i -lt 1000 ] && [ "$(ls "$work/cut" | wc -l)" -lt 3 ]; do sleep 0.005; i=$((i + 1)); done
kill -TERM $pid 2>"$work/said"
wait $pid 2>"$work/said"
code=$? last='split ended by TERM'
status 143
[ -z "$(ls "$work/cut")" ] || bad "left $(ls "$work/cut" | head -n 3)"

finish
