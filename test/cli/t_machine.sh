# Reports about the program and the machine: man, models, version --json, doctor.
. test/cli/lib.sh

is_json() { # jq reads it; without jq: it begins and ends like an object
    if command -v jq >/dev/null; then
        jq -e "${1:-.}" "$work/out" >/dev/null || bad "infer $last: not as expected: ${1:-JSON}"
    else
        out_like '^[[{]'
    fi
}

begin the_man_page_lists_every_option
infer man
status 0
err ''
out_like '^\.TH INFER 1 '
cp "$work/out" "$work/infer.1"
options=$("$INFER" run --help | sed -n 's/^ .*--\([a-z0-9-]*\) .*/\1/p')
[ "$(echo "$options" | wc -w)" -ge 40 ] || bad "options in the help: $options"
for option in $options; do
    case $option in help | version) # they have no variable
        grep -q "fB.-.-$option.fR\$" "$work/infer.1" || bad "--$option is not in the manual"
        continue ;;
    esac
    grep -q "Variable: INFER_$(echo "$option" | tr a-z- A-Z_)" "$work/infer.1" ||
        bad "--$option is not in the manual"
done
if command -v groff >/dev/null; then
    groff -man -ww -Tascii -P-cbou "$work/infer.1" >"$work/page" 2>"$work/err"
    err ''
    grep -q 'EXIT STATUS' "$work/page" || bad 'groff shows no exit statuses'
fi
if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$work/infer.1" >"$work/out" || true
    out ''
fi
if command -v man >/dev/null && man -l "$work/infer.1" >/dev/null 2>&1; then
    man -l "$work/infer.1" 2>"$work/err" | grep -q 'infer completion' || bad 'man shows too little'
    err ''
fi

begin version_json_names_the_commit_and_the_levels
infer version --json
status 0
commit=null
[ "$(git rev-parse --show-cdup 2>&1)" ] || commit='"[0-9a-f]+(-dirty)?"' # built in a checkout
out_like '^\{"version":"0.1.0","commit":'"$commit"',"compiler":"(gcc|clang) '
is_json '.level and (.levels|length == 6) and .libraries.pcre2'

begin without_a_home_there_is_no_default_model # and no folder is created in /
home=$HOME
unset HOME
infer models
status 0
out ''
err_line 'no folder to look in: name one, or set HOME'
infer models --json
out '[]\n'
infer -p x
status 3
err_line '^infer: no model: give -m FILE or set INFER_MODEL; .*neither HOME nor XDG_DATA_HOME is set'
infer doctor --json
status 0
is_json '.model.path == null and (.model.error | test("neither HOME"))'
HOME=$home
export HOME

begin models_lists_a_folder
infer models
status 0
out ''
err_line 'no model files; .infer pull USER/REPO:Q4_K_M. .in a checkout .make run.. fetches one'
infer models --json
out '[]\n'
infer models "$work/none"
status 2
out ''
err_line 'none: cannot list'
# A tensor of an unknown type: the message names the file and the problem.
mkdir "$work/broken"
printf 'GGUF\003\0\0\0\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\005\0\0\0\0\0\0\0thing\001\0\0\0\040\0\0\0\0\0\0\0\377\0\0\0\0\0\0\0\0\0\0\0' \
    >"$work/broken/x.gguf"
infer models "$work/broken" --json
status 0
is_json '.[0].error | test("^(tensor )?.?thing.?: ")'
infer models "$work/broken"
out_like 'unusable: .*thing.*: '
infer doctor -m "$work/broken/x.gguf" --json
is_json '.model.error | test("thing")'
mkdir "$work/folder"
echo nonsense >"$work/folder/bad.gguf"
echo text >"$work/folder/notes.txt"
touch "$work/folder/x-00002-of-00003.gguf"
infer models "$work/folder"
status 0
out "  NAME  ARCHITECTURE  TYPE    SIZE  WEIGHTS  CONTEXT  DATE
  bad                       0.0 MB                    $(date -r "$work/folder/bad.gguf" +%Y-%m-%d)
    unusable: not a GGUF file: it does not begin with \"GGUF\" (at byte 0)
1 model, 0.0 MB in $work/folder\n"
infer models --json "$work/folder"
is_json '.[0].error and (length == 1)'
if [ -n "$MODEL" ]; then
    mkdir -p "$work/.local/share/infer/models"
    ln -s "$MODEL" "$work/.local/share/infer/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    infer models
    err ''
    day=$(date -r "$MODEL" +%Y-%m-%d)
    out "  NAME                        ARCHITECTURE  TYPE     SIZE  WEIGHTS  CONTEXT  DATE
* SmolLM2-135M-Instruct.Q4_1  llama         Q4_1  98.4 MB    135 M     8192  $day
1 model, 98.4 MB in $work/.local/share/infer/models\n"
    if terminals; then # a line fits the terminal
        last='models (on a terminal of 60 columns)'
        python3 test/cli/terminal.py "$work/shown" size:60 wait:"in " -- sh -c 'sleep 0.3; exec "$0" models' "$INFER"
        tr -d '\r' <"$work/shown" >"$work/out"
        out_like "^\* SmolLM2-135M-Instruct.Q4_1  Q4_1  98.4 MB  $day$"
    fi
    infer models --json
    is_json '.[0] | .default and .type == "Q4_1" and .bytes == 98362432 and .context == 8192 and .modified > 1e9'
fi

begin a_model_that_cannot_run_has_an_error # and no recommendations on speed
if command -v jq >/dev/null && "$make_model" "$work/tiny.gguf" arch=llama tokens=bpe 2>"$work/said"; then
    mkdir "$work/other"
    python3 - "$work/tiny.gguf" "$work/other/other.gguf" <<'PYTHON'
import sys

data = open(sys.argv[1], "rb").read()
assert b"llama." in data
open(sys.argv[2], "wb").write(data.replace(b"\5\0\0\0\0\0\0\0llama", b"\5\0\0\0\0\0\0\0nonsu").replace(b"llama.", b"nonsu."))
PYTHON
    cut=$(($(wc -c <"$work/tiny.gguf") - 40000))
    head -c $cut "$work/tiny.gguf" >"$work/other/part.gguf"
    sed 's/blk\.1\.attn_q\./blk.1.attn_x./' "$work/tiny.gguf" >"$work/other/tensor.gguf"
    for file in other part tensor; do
        infer run -p x -m "$work/other/$file.gguf" # models reports the message of run
        status 3
        said=$(sed "s/^infer: //; s|^$work/other/$file.gguf: ||" "$work/err")
        infer models "$work/other" --json
        status 0
        printf '%s' "$said" >"$work/said"
        jq -e --rawfile said "$work/said" ".[] | select(.path | endswith(\"$file.gguf\")) | .error == \$said and (has(\"name\") | not)" \
            "$work/out" >"$work/judged" || bad "$file: run says '$said', models $(cat "$work/out")"
        infer doctor -m "$work/other/$file.gguf" --json -t 1
        status 0
        is_json '.model.error != null and .model.weight_bytes == null and (.advice | all(test("a token reads|free memory") | not))'
    done
    infer models "$work/other"
    out_like '^  other  .* [0-9-]{10}$'
    out_like '^    unusable: general.architecture: .*nonsu. is not supported '
else
    skip 'no jq or tool_make_model'
fi

begin a_context_above_that_of_training_is_a_note # but not one that the file extends by scaling
if "$make_model" "$work/tiny.gguf" arch=llama tokens=bpe ctx=64 2>"$work/said"; then
    long='the context of 65 tokens is longer than the 64 that the model was trained with'
    for command in "run -p x -n 1 -c 65" "run -p x -c 65 --plan" "run -p x -n 1 -c 65 --json" \
        "bench -p 0 -n 65 -r 1" "logits -p x -c 65" "perplexity -f docs/chat.md --chunk 65"; do
        # shellcheck disable=SC2086
        infer $command -m "$work/tiny.gguf"
        status 0
        err_line "^infer: $long; "
    done
    infer run -p x -n 1 -c 65 -v -m "$work/tiny.gguf"
    [ "$(grep -c "$long" "$work/err")" -eq 1 ] || bad "$(cat "$work/err")"
    infer run -p x -n 1 -c 64 -m "$work/tiny.gguf"
    err ''
    infer run -p x -n 100 --ignore-eos -m "$work/tiny.gguf" # the default context is that of training
    err ''
    python3 - "$work/tiny.gguf" "$work/scaled.gguf" <<'PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read() # 96 bytes more keep the alignment to 32
key = b"llama.rope.scaling.factor"
more = struct.pack("<Q", len(key)) + key + struct.pack("<If", 6, 4.0)
size = 96 - len(more) - 24
more += struct.pack("<Q", 4) + b"note" + struct.pack("<IQ", 8, size) + b"." * size
assert len(more) == 96
count = struct.unpack("<Q", data[16:24])[0]
open(sys.argv[2], "wb").write(data[:16] + struct.pack("<Q", count + 2) + more + data[24:])
PYTHON
    infer run -p x -n 1 -c 256 -m "$work/scaled.gguf"
    status 0
    err ''
    infer run -p x -n 1 -c 257 -m "$work/scaled.gguf"
    err_line 'is longer than the 64'
else
    skip 'no tool_make_model'
fi

begin a_model_is_found_by_its_name
models=$work/.local/share/infer/models
mkdir -p "$models"
for name in alpha.Q8_0 alpha beta-1b beta-2b-00001-of-00002 beta-2b-00002-of-00002; do
    printf 'none' >"$models/$name.gguf"
done
called() { # NAME FILE: the error of inspect names the file
    infer inspect "$1"
    status 3
    err_line "^infer: .*/infer/models/$2: not a GGUF file"
    infer run -p x -m "$1"
    status 3
    err_line "^infer: .*/infer/models/$2: not a GGUF file"
}
called alpha.Q8_0.gguf alpha.Q8_0.gguf # a listed name
called alpha.Q8_0 alpha.Q8_0.gguf
called alpha alpha.gguf # an exact name precedes a prefix of another
called ALPHA.q alpha.Q8_0.gguf
called beta-1 beta-1b.gguf
called beta-2 beta-2b-00001-of-00002.gguf # parts of a model count as one
infer run -p x -m beta
status 3
out ''
err_line '^infer: beta: begins the names of 2 models: beta-1b.gguf, beta-2b-00001-of-00002.gguf$'
infer run -p x -m gamma
status 3
err_line '^infer: gamma: there is no such file, and no model of that name in .*/infer/models; .infer models. lists'
INFER_MODEL=beta-1
export INFER_MODEL
infer run -p x
err_line 'beta-1b.gguf: not a GGUF file'
infer models
out_like '^\* beta-1b  '
unset INFER_MODEL
(
    cd "$work" || exit
    printf 'other' >alpha
    "$INFER" inspect alpha 2>err </dev/null # a file precedes a name
)
err_line '^infer: alpha: not a GGUF file'
rm "$models"/alpha* "$models"/beta*

begin doctor_describes_the_machine
infer doctor -m "$work/none.gguf" -t 1
out_like '^sandbox +(no )?seccomp.*Landlock'
status 0
err ''
out_like '^level +[a-z0-9]+: '
out_like '^threads +1; [0-9]+ processors online'
out_like '^bandwidth +[0-9.]+ GB/s'
out_like '^-> .*none.gguf: '
out_like '^GPU code +(not )?built in'
fake=${INFER%/*}/test/libcuda.so.1 # on the emulator (test/fake_cuda.h)
if [ -r "$fake" ]; then
    LD_LIBRARY_PATH=${fake%/*}
    export LD_LIBRARY_PATH
    infer doctor -t 1
    out_like '^GPU +emulated GPU, compute capability 8.0, 0.1 GB, 0.1 GB free \(--gpu\)$'
    infer doctor -t 1 --json
    is_json '.gpu.name == "emulated GPU" and .gpu.memory == 67108864 and .gpu.free == 67108864 and .gpu.error == null'
    unset LD_LIBRARY_PATH
fi
infer doctor --json --isa scalar -t 1
status 0
is_json '.cpu.level == "scalar" and .measured.bytes_per_second > 0 and (.advice|length > 0)'
INFER_ISA=scalar
export INFER_ISA
infer doctor --threads 1
out_like '^level +scalar: '
unset INFER_ISA
usage "'fast' is none of" doctor --isa fast

# In a mount namespace, where other folders can stand in for /proc and /sys. elsewhere COMMANDS...
elsewhere() {
    INFER=$INFER work=$work unshare -m sh -c "$1" >"$work/out" 2>"$work/err"
    code=$? last="in a namespace: $1"
}
# The versions of control groups that this machine has.
versions() {
    ! grep -q ':memory:' /proc/self/cgroup || echo 1
    ! grep -q '^0::' /proc/self/cgroup || echo 2
}
# limited VERSION BYTES COMMAND: elsewhere, with this limit of memory.
limited() {
    case $1 in
    1) file=/sys/fs/cgroup/memory/memory.limit_in_bytes ;;
    *) file=/sys/fs/cgroup/memory.max ;;
    esac
    elsewhere "mount -t tmpfs none /sys/fs/cgroup && mkdir -p ${file%/*} && echo $2 >$file && $3"
}
begin what_the_system_does_not_report_is_unknown
"$make_model" "$work/m.gguf" vocab=512 ctx=65536 heads=8 kv_heads=8 >/dev/null
if [ ! -r "${INFER%/*}/test/fail_alloc.so" ]; then
    skip 'a sanitizer reads /proc'
elif unshare -m true 2>"$work/said"; then
    without='mount -t tmpfs none /sys && mount -t tmpfs none /proc && "$INFER"'
    elsewhere "$without"' doctor -m "$work/m.gguf" -t 1'
    status 0
    for line in 'processor +not known' 'features +not known' 'threads .*CPU quota not known' 'clock +governor not known' \
        'memory +free memory not known, limits not known' 'huge pages +not known'; do
        out_like "^$line"
    done
    elsewhere "$without"' doctor -m "$work/m.gguf" -t 1 --json'
    is_json '.cpu.name == null and .cpu.features == null and .memory.total == null and .memory.free == null'
    elsewhere "$without"' run --plan -m "$work/m.gguf" -t 1'
    status 0
    out_like '^program +not known'
    out_like '^total .*without the program; free memory not known'
    elsewhere "$without"' run --plan -m "$work/m.gguf" -t 1 --json'
    is_json '.bytes.program == null and .bytes.total == null and .free == null and .fits == null'
else
    skip 'no mount namespaces'
fi

begin defaults_are_sized_by_the_limit_of_the_container
if unshare -m true 2>"$work/said"; then
    printf '{"prompt":"a"}\n' >"$work/lines"
    infer run --plan -c 4096 -m "$work/m.gguf" -t 1 --json
    cache=$(sed 's/.*"cache":\([0-9]*\).*/\1/' "$work/out")
    for version in $(versions); do
        # Half of the limit is ten and a half caches: 8 for texts and 2 for beginnings.
        limited "$version" $((cache * 21)) '"$INFER" batch -m "$work/m.gguf" -c 4096 -n 1 -t 1 -v <"$work/lines"'
        status 0
        like "$work/err" '^infer: 8 texts together'
        limited "$version" $((cache * 21)) '"$INFER" run --plan -m "$work/m.gguf" -t 1 --json'
        out_like "\"free\":$((cache * 21)),"
    done
else
    skip 'no mount namespaces'
fi

begin experts_are_read_from_the_disk_if_a_mixture_is_larger_than_the_memory
if unshare -m true 2>"$work/said"; then
    "$make_model" "$work/mixture.gguf" arch=qwen3moe vocab=300 embd=64 ff=512 experts=8 experts_used=2 || bad 'no model'
    bytes=$(stat -c %s "$work/mixture.gguf")
    infer -m "$work/mixture.gguf" -p hello -n 8 -t 1
    mv "$work/out" "$work/alone"
    infer run --plan -m "$work/mixture.gguf" -t 1 --json
    out_like '"fits":true' && ! grep -q '"streams"' "$work/out" || bad 'experts of a file that fits are read from the disk'
    limit=$((bytes / 2))
    for version in $(versions); do
        limited "$version" $limit '"$INFER" run --plan -m "$work/mixture.gguf" -t 1 --json'
        status 0
        is_json "$limit as \$limit | .streams | .chosen == .experts / 4 and
            .read_per_token > 0 and .read_per_token < .chosen and .experts > \$limit"
        limited "$version" $limit '"$INFER" run --plan -m "$work/mixture.gguf" -t 1'
        out_like '^experts +[0-9.]+ MB  read from the disk as tokens choose them: of [0-9.]+ MB for a token$'
        out_like '^ +about [0-9.]+ MB, so 10 tokens/s need [0-9.]+ MB/s$'
        limited "$version" $limit '"$INFER" inspect --plan "$work/mixture.gguf" -t 1'
        out_like '^experts +[0-9.]+ MB  read from the disk as tokens choose them: of [0-9.]+ MB for a token$'
        limited "$version" $limit '"$INFER" -m "$work/mixture.gguf" -p hello -n 8 -t 1'
        cmp "$work/out" "$work/alone" >"$work/said" 2>&1 || bad "$(cat "$work/said")"
        limited "$version" $limit '"$INFER" bench -m "$work/mixture.gguf" -p 0 -n 2 -r 1 -t 1 --json'
        # Rates are not known where the file system cannot read past its cache.
        has=true
        dd if="$work/mixture.gguf" of="$work/said" bs=1M count=1 iflag=direct 2>"$work/direct" || has=false
        is_json ".results[0] | has(\"disk_bytes_per_second\") == $has and has(\"disk_read_bytes_per_second\") == $has"
        infer split "$work/mixture.gguf" "$work/part" --no-tensor-first-split # the first part has no experts
        status 0
        limited "$version" $limit '"$INFER" bench -m "$work"/part-00001-of-*.gguf -p 0 -n 2 -r 1 -t 1 --json'
        is_json ".results[0] | has(\"disk_bytes_per_second\") == $has"
        rm "$work"/part-*
    done
else
    skip 'no mount namespaces'
fi

begin copies_of_interleaved_rows_that_do_not_fit_are_an_error
if unshare -m true 2>"$work/said" && command -v python3 >/dev/null 2>&1; then
    "$make_model" "$work/rows.gguf" type=Q8_0 vocab=304 embd=256 heads=4 kv_heads=4 head_dim=64 ff=512 || bad 'no model'
    python3 - "$work/rows.gguf" <<'PYTHON' # a matrix in Q8_0 becomes Q8_0_R8, with the same bytes
import re, sys
data = open(sys.argv[1], "rb").read()
form = rb"(blk\.0\.attn_q\.weight\x02\0\0\0.{16})\x08\0\0\0"
data = re.sub(form, lambda found: found[1] + b"\xd0\0\0\0", data, flags=re.DOTALL)
open(sys.argv[1], "wb").write(data)
PYTHON
    infer run --plan -m "$work/rows.gguf" -t 1 --json
    is_json '.bytes.copies == 256 * 256 / 32 * 34'
    for version in $(versions); do
        limited "$version" 40000 '"$INFER" -m "$work/rows.gguf" -p hello -n 8 -t 1'
        status 4
        err_line 'rows.gguf: copies of interleaved rows need 0.1 MB, of 0.0 MB that are free \(infer quantize IN OUT COPY makes a file without\)$'
    done
else
    skip 'no mount namespaces, or no Python'
fi

begin nothing_is_read_ahead_without_experts_or_if_everything_fits
if unshare -m true 2>"$work/said"; then
    infer bench -m "$work/mixture.gguf" -p 0 -n 2 -r 1 -t 1 --json
    is_json '.results[0] | has("disk_bytes_per_second") | not'
    for version in $(versions); do
        limited "$version" $((bytes + bytes / 8)) '"$INFER" run --plan -m "$work/mixture.gguf" -t 1 --json'
        is_json 'has("streams") | not'
        limited "$version" $(($(stat -c %s "$work/m.gguf") / 2)) '"$INFER" run --plan -m "$work/m.gguf" -c 64 -t 1 --json'
        is_json '.fits == false and (has("streams") | not)'
    done
else
    skip 'no mount namespaces'
fi

# On any machine, because a family decides only how rows are distributed and data is prefetched.
begin a_variable_sets_the_family_of_the_processor
family=${INFER_TEST_FAMILY-}
"$make_model" "$work/family.gguf" vocab=300 embd=256 head_dim=64 ff=512 type=Q4_K || bad 'no model'
rm -f "$work/same"
# shellcheck disable=SC2046
for INFER_TEST_FAMILY in icelake Zen5 arm $([ -n "$quick" ] || echo intel zen4 zen3); do # doctor measures this machine
    export INFER_TEST_FAMILY
    infer doctor -m "$work/none.gguf" -t 1
    status 0
    out_like "^family +$(echo $INFER_TEST_FAMILY | tr Z z) \\("
    infer logits -m "$work/family.gguf" -p 'some words' -o - # as floats
    status 0
    [ -s "$work/same" ] || cp "$work/out" "$work/same"
    cmp "$work/out" "$work/same" >"$work/said" 2>&1 || bad "$INFER_TEST_FAMILY: $(cat "$work/said")"
done
INFER_TEST_FAMILY=zen
usage "^infer: INFER_TEST_FAMILY: 'zen' is not a family of processors: icelake, .*, zen3$" version
INFER_TEST_FAMILY=$family
export INFER_TEST_FAMILY

finish
