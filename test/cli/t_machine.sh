# What the program says about itself and the machine: man, models, version --json, doctor.
. test/cli/lib.sh

is_json() { # that jq reads; without jq: that it begins and ends like an object
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
is_json '.level and (.levels|length == 5) and .libraries.pcre2'

begin without_a_home_there_is_no_default_model # and no folder at the root of the file system
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

begin models_of_a_folder
infer models
status 0
out ''
err_line 'no model files; .make run. fetches one'
infer models --json
out '[]\n'
infer models "$work/none"
status 2
out ''
err_line 'none: cannot list'
# A tensor of a type that there is not: what is wrong with the file says with which.
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
out_like 'unusable: not a GGUF file.*bad.gguf'
[ "$(wc -l <"$work/out")" -eq 1 ] || bad 'not one line a model'
infer models --json "$work/folder"
is_json '.[0].error and (length == 1)'
if [ -n "$MODEL" ]; then
    mkdir -p "$work/.local/share/infer/models"
    ln -s "$MODEL" "$work/.local/share/infer/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    infer models
    err ''
    out_like '^\* llama +Q4_1 +98.4 MB +135 M weights +context 8192 '
    infer models --json
    is_json '.[0] | .default and .type == "Q4_1" and .bytes == 98362432 and .context == 8192'
fi

begin doctor_looks_at_the_machine
infer doctor -m "$work/none.gguf" -t 1
status 0
err ''
out_like '^level +(scalar|avx2|avxvnni|avx512|avx512bf16): '
out_like '^threads +1; [0-9]+ processors online'
out_like '^bandwidth +[0-9.]+ GB/s'
out_like '^-> .*none.gguf: '
infer doctor --json --isa scalar -t 1
status 0
is_json '.cpu.level == "scalar" and .measured.bytes_per_second > 0 and (.advice|length > 0)'
INFER_ISA=scalar
export INFER_ISA
infer doctor --threads 1
out_like '^level +scalar: '
unset INFER_ISA
usage "'fast' is none of" doctor --isa fast

finish
