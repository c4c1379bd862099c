# Names of models: how -m resolves one in the user's folder, and `infer models --remove`. Needs no model.
. test/cli/lib.sh

models=$work/.local/share/infer/models
mkdir -p "$models"
# A whole GGUF file without keys and tensors.
{ printf 'GGUF\003\000\000\000'; head -c 64 /dev/zero; } >"$work/empty"
fill() { # NAME..: the folder gets exactly these files
    rm -rf "$models"
    mkdir -p "$models"
    for name; do cp "$work/empty" "$models/$name"; done
}
holds() {
    [ "$(ls -A "$models" | tr '\n' ' ')" = "$*${*:+ }" ] || bad "infer $last: there is '$(ls -A "$models" | tr '\n' ' ')'"
}

begin a_name_finds_its_model
fill Alpha-Q8_0.gguf alpine.gguf beta.gguf beta-long.gguf s-00001-of-00002.gguf s-00002-of-00002.gguf
cd "$work" || exit 1
for name in Alpha-Q8_0.gguf alpha-q8_0 alph beta BETA beta.gguf beta-l s s-00001-of-00002; do
    infer -p x -m "$name"
    status 3
    err_line '/(Alpha-Q8_0|beta|beta-long|s-0000[12]-of-00002).gguf: '
done
infer inspect alp
status 3
err_line '^infer: alp: begins the names of 2 models: Alpha-Q8_0.gguf, alpine.gguf$'
infer diff beta beta-l
status 0
infer verify alph
status 3
err_line '/Alpha-Q8_0.gguf: '
infer split alp "$work/p"
status 3
err_line '^infer: alp: begins the names of 2 models: Alpha-Q8_0.gguf, alpine.gguf$'
for name in Alpha-Q8_0 alpha-q8 beta-l; do # a model in place of the text, as `ollama run` has it
    for command in "run $name" "$name" "chat $name" "run $name Hi" "tokenize $name"; do
        infer $command
        status 2
        err_line "^infer: $name: is a model: -m takes it"
    done
done
infer tokenize -m "$work/none.gguf" beta # which is a word too
status 3
err_line 'none.gguf'
for command in inspect verify 'split --dry-run' 'merge --dry-run' 'run -p x -m'; do
    infer $command "./al*.gguf"
    status 3
    err_line '^infer: ./al\*.gguf: a pattern of names: '
done
infer models -m nothing
status 0
out_like '^  beta '
err_line '^infer: nothing: there is no such file, and no model of that name in '
infer inspect nothing
status 3
err_line 'nothing: there is no such file, and no model of that name in .*/infer/models; `infer models` lists'
infer run -m . -p x
status 3
err_line '\.: this is a directory, and no model of that name in '

begin the_short_name_of_a_split_model_is_exact
fill s-00001-of-00002.gguf s-00002-of-00002.gguf s-more.gguf
infer -p x -m s
status 3
err_line '/s-0000[12]-of-00002.gguf: '

begin a_lone_model_is_the_default
fill only-Q8_0.gguf
infer -p x
status 3
err_line '/only-Q8_0.gguf: '
infer models
out_like '^\* only-Q8_0 '
fill a.gguf s-00001-of-00002.gguf s-00002-of-00002.gguf
infer -p x
status 3
err_line '^infer: no model: give -m NAME or set INFER_MODEL; there are: a.gguf, s-00001-of-00002.gguf$'
fill
infer -p x
status 3
err_line '/SmolLM2-135M-Instruct.Q4_1.gguf: no model: give -m FILE or set INFER_MODEL, or fetch'

begin a_file_of_that_name_comes_first
printf 'no model' >"$work/beta"
infer inspect beta
status 3
err_line '^infer: beta: not a GGUF file'
rm "$work/beta"

begin the_exact_name_comes_before_another_case
fill Gamma.gguf gamma.gguf
infer -p x -m gamma.gguf
err_line '/gamma.gguf: '
infer inspect gamma
status 3
err_line 'gamma: begins the names of 2 models'

begin quantize_finds_models_by_name
fill alpha.gguf alto.gguf
infer quantize al "$work/q.gguf" Q8_0
status 3
err_line '^infer: al: begins the names of 2 models: alpha.gguf, alto.gguf$'
infer quantize alph "$work/q.gguf" Q8_0
grep -q 'no such file' "$work/err" && bad "infer $last: $(cat "$work/err")"
cd "$OLDPWD" || exit 1

begin remove_deletes_all_parts_of_a_model
fill alpha.gguf beta.gguf s-00001-of-00003.gguf s-00002-of-00003.gguf s-00003-of-00003.gguf s2.gguf
infer models --remove bet
status 0
err ''
out "$models/beta.gguf\n"
holds alpha.gguf s-00001-of-00003.gguf s-00002-of-00003.gguf s-00003-of-00003.gguf s2.gguf
infer models --remove s-
status 0
out "$models/s-00001-of-00003.gguf\n$models/s-00002-of-00003.gguf\n$models/s-00003-of-00003.gguf\n"
holds alpha.gguf s2.gguf
infer models --remove ALPHA.GGUF
status 0
holds s2.gguf

begin remove_deletes_the_files_of_an_unfinished_pull
left() { # NAME..: a pull has left a part of it
    for name; do
        cp "$work/empty" "$models/$name.part"
        printf 'infer pull 1\n' >"$models/$name.part.state"
    done
}
fill
left x.gguf
cp "$work/empty" "$models/other.gguf.part"
infer models --remove x
status 0
out "$models/x.gguf.part\n$models/x.gguf.part.state\n"
holds other.gguf.part
fill x.gguf other.gguf.part
left x.gguf
printf 'infer origin 1\n' >"$models/x.gguf.origin"
infer models --remove x
status 0
out "$models/x.gguf\n$models/x.gguf.part\n$models/x.gguf.part.state\n$models/x.gguf.origin\n"
fill x.gguf x.gguf.part x.gguf.part.state x.gguf.origin # of another program
infer models --remove x
status 0
out "$models/x.gguf\n"
holds x.gguf.origin x.gguf.part x.gguf.part.state
fill s-00002-of-00003.gguf other.gguf.part
left s-00003-of-00003.gguf
infer models --remove s-00002-of-00003 # no model's name
status 3
infer models --remove s-00001-of-00003.gguf
status 0
out "$models/s-00002-of-00003.gguf\n$models/s-00003-of-00003.gguf.part\n$models/s-00003-of-00003.gguf.part.state\n"
infer models --remove oth # a prefix is not enough
status 3
holds other.gguf.part

begin remove_refuses_an_ambiguous_name
fill alpha.gguf alto.gguf
infer models --remove al
status 3
out ''
err_line '^infer: al: begins the names of 2 models: alpha.gguf, alto.gguf$'
infer models --remove nothing
status 3
for name in '' . .. ../models/alpha.gguf "$models/alpha.gguf" .hidden; do
    usage '--remove: .* is not the name of a model in the folder' models --remove "$name"
done
usage '--remove: removes only from the folder of models' models --remove alpha "$work"
usage '--remove: contradicts --json' models --remove alpha --json
INFER_REMOVE=alpha # no variable removes anything
export INFER_REMOVE
infer models
status 0
unset INFER_REMOVE
holds alpha.gguf alto.gguf
ln -s "$work/empty" "$models/link.gguf"
infer models --remove link
status 0
[ -e "$work/empty" ] || bad 'the file behind a link was removed'

finish
