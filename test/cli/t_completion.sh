# Completions: commands, options, values and files in each shell, by the scripts that the program prints.
. test/cli/lib.sh

infer_path=$(dirname "$INFER")
PATH=$infer_path:$PATH
for shell in bash zsh fish; do "$INFER" completion $shell >"$work/$shell"; done

begin completion_is_printed_for_three_shells
for shell in bash zsh fish; do
    infer completion $shell
    status 0
    err ''
    out_like "$shell completion for infer"
done
usage 'tcsh: is none of bash, zsh and fish' completion tcsh
usage 'completion: missing argument' completion
usage 'bash: is none of' completion bash zsh

mkdir "$work/files" && touch "$work/files/a b.gguf" "$work/files/c.txt"

# Names of models in the user's folder.
data=$work/data
mkdir -p "$data/infer/models"
touch "$data/infer/models/tiny-Q8_0.gguf" "$data/infer/models/big-00001-of-00012.gguf" \
    "$data/infer/models/big-00002-of-00012.gguf" "$data/infer/models/big-00012-of-00012.gguf" \
    "$data/infer/models/tiny-Q8_0.gguf.origin"
XDG_DATA_HOME=$data
export XDG_DATA_HOME

# offers WHAT WORDS...: whether the words (the last is being typed) complete to exactly WHAT.
bash_offers() {
    last="completion bash: $*"
    want=$1
    shift
    bash -c '. "$0"; cd "$1"; shift
             COMP_WORDS=(infer "$@") COMP_CWORD=$#; _infer; printf "%s|" "${COMPREPLY[@]}"' \
        "$work/bash" "$work/files" "$@" >"$work/out" 2>"$work/err"
    [ "$(cat "$work/out")" = "$want" ] || bad "infer $last: '$(cat "$work/out")', not '$want'"
}
if command -v bash >/dev/null; then
    begin bash_completes
    bash -n "$work/bash" || bad 'syntax'
    bash_offers 'tokenize|' tok
    bash_offers 'completion|' com
    bash_offers '--min-p|' --min
    bash_offers '--min-p|' run --min
    bash_offers '--top|' logits --top
    bash_offers 'avx2|avxvnni|avx512|avx512bf16|' run --isa av
    bash_offers 'avx2|avxvnni|avx512|avx512bf16|' run --isa = av
    bash_offers 'scalar|avx2|avxvnni|avx512|avx512bf16|amx|neon|dotprod|i8mm|' -p x --isa ''
    bash_offers 'md|json|csv|jsonl|' bench --format ''
    bash_offers 'q8_0|q4_0|q4_1|q5_0|q5_1|' run -ctk q
    bash_offers 'a b.gguf|' run -m a
    bash_offers 'tiny-Q8_0|' run -m t
    bash_offers 'big|tiny-Q8_0|a b.gguf|c.txt|' bench --model ''
    bash_offers 'big|' -p x --draft b
    XDG_DATA_HOME=$work/none
    bash_offers 'a b.gguf|c.txt|' run -m ''
    XDG_DATA_HOME=$data
    bash_offers 'a b.gguf|c.txt|' inspect ''
    bash_offers 'Q4_K|Q4_K_M|Q4_K_S|' quantize in.gguf out.gguf Q4_K
    bash_offers 'a b.gguf|' quantize -t 2 a
    bash_offers 'bash|zsh|fish|' completion ''
    bash_offers 'perplexity|' help per
    bash_offers 'chatml|' run --template chatm
    bash_offers 'c.txt|' run --template c.
    bash_offers 'chatglm4|chatml|command-r|c.txt|' chat --template c
    bash_offers '|' run -n ''
    bash_offers '|' run -p --to
else
    echo 'skip bash completion: no bash'
fi

# zsh completes only at a terminal: this examines the calls of its completion functions instead.
if command -v zsh >/dev/null; then
    begin zsh_completes
    zsh -n "$work/zsh" || bad 'syntax'
    zsh -fc 'compdef() { print -r -- "compdef $*" }; . "$0"
             _describe() { print -rl -- ${(P)2} }
             _files() { print -r -- "files $*" }
             compset() { print -r -- "compset $*" }
             words=(infer ""); CURRENT=2; _infer
             words=(infer -p x --to); CURRENT=4; _infer
             words=(infer bench --format=m); CURRENT=3; _infer
             words=(infer quantize a b Q4); CURRENT=5; _infer
             words=(infer run -m b); CURRENT=4; _infer
             words=(infer run --template ""); CURRENT=4; _infer
             words=(infer models ""); CURRENT=3; _infer' "$work/zsh" >"$work/out" 2>"$work/err"
    last='completion zsh'
    err ''
    for line in '^compdef _infer infer$' '^tokenize:print the token ids' '^--top-k:draw from' '^compset -P \*=$' '^md:?$' \
        '^Q4_K_M:?$' '^big:?$' '^chatml:?$' '^files $' '^files -/$'; do
        out_like "$line"
    done
else
    echo 'skip zsh completion: no zsh'
fi

fish_offers() { # REGEX LINE
    fish --no-config -c 'source $argv[1]; cd $argv[2]; complete -C $argv[3]' \
        "$work/fish" "$work/files" "$2" >"$work/out" 2>"$work/err"
    last="completion fish: $2"
    like "$work/out" "$1"
    err ''
}
if command -v fish >/dev/null; then
    begin fish_completes
    fish -n "$work/fish" || bad 'syntax'
    fish_offers '^tokenize.print the token ids' 'infer tok'
    fish_offers '^--top-k.draw from' 'infer run --top'
    fish_offers '^--top-k.draw from' 'infer -p x --top'
    fish_offers '^--top.how many' 'infer logits --top'
    ! grep -q top-k "$work/out" || bad 'an option of another command'
    fish_offers '^avx512bf16' 'infer run --isa av'
    fish_offers '^a b.gguf|^a\\ b.gguf' 'infer run -m a'
    fish_offers '^tiny-Q8_0' 'infer run -m t'
    fish_offers '^big$|^big.' 'infer run -m b'
    [ "$(wc -l <"$work/out")" -eq 1 ] || bad "fish: $(cat "$work/out")"
    fish_offers '^chatml' 'infer run --template cha'
    fish_offers '^c.txt' 'infer run --template c'
    fish_offers '^Q4_K_M' 'infer quantize a b Q4'
    fish_offers '^zsh' 'infer completion '
else
    echo 'skip fish completion: no fish'
fi

begin completion_and_quantize_agree # on the types that can be written
types=$("$INFER" completion words -- quantize a b '')
[ "$(echo "$types" | wc -w)" -ge 10 ] || bad "types in the completion: $types"
for type in $types; do
    infer quantize "$work/none.gguf" "$work/x.gguf" "$type"
    status 3
done
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000' \
    >"$work/empty.gguf"
for type in $types; do
    infer quantize "$work/empty.gguf" "$work/x.gguf" "$type"
    ! grep -q 'is not a type\|cannot be written' "$work/err" || bad "$type: $(cat "$work/err")"
done

finish
