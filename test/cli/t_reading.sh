# Files that are read whole: limits while reading, errors for files that are not text. Models with
# random weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" vocab=512 || exit 1
m="-m $work/m.gguf"

# source NAME: the options that read a source from the file.
# shellcheck disable=SC2086
each_source() { # REGEX FILE
    usage "$1" check --grammar "$2" -p x
    usage "$1" check --json-schema "$2" -p x
    usage "$1" run $m --chat -p x --template "$2"
    usage "$1" run $m --chat -p x --template chatml --messages "$2"
    usage "$1" run $m --chat -p x --template chatml --tools "$2"
}

begin input_that_is_not_text_is_named
each_source '/dev/zero: contains a NUL byte' /dev/zero
for order in '\377\376r\000o\000o\000t\000' '\376\377\000r\000o\000o\000t'; do
    # shellcheck disable=SC2059
    printf "$order" >"$work/wide"
    each_source 'wide: is UTF-16: convert it' "$work/wide"
done
yes '# a comment' | head -c 70000000 >"$work/large"
usage 'large: is larger than 64 MiB' check --grammar "$work/large" -p x

begin a_text_without_end_is_refused
# (A sanitizer's shadow memory reserves terabytes of address space: no limit then.)
(case $INFER in */san-*) ;; *) ulimit -v 4000000 ;; esac; "$INFER" tokenize -m "$work/m.gguf" -f /dev/zero) >"$work/out" 2>"$work/err" </dev/null
code=$? last='tokenize -f /dev/zero'
status 5
err_line '/dev/zero: a text is longer than'

begin a_byte_order_mark_is_removed
mark='\357\273\277'
# shellcheck disable=SC2059
printf "$mark"'root ::= "a"' >"$work/g"
infer check --grammar "$work/g" -p a
status 0
# shellcheck disable=SC2059
printf "$mark"'{"const":1}' >"$work/s"
infer check --json-schema "$work/s" -p 1
status 0
# shellcheck disable=SC2059
printf "$mark"'{{ messages[0].content }}' >"$work/t"
# shellcheck disable=SC2086
infer run $m --chat -p hello --template "$work/t" --show-prompt
status 0
head -n 1 "$work/out" | grep -qx hello || bad "the mark went into the prompt: $(head -n 1 "$work/out" | od -c | head -n 1)"

begin a_descriptor_that_does_not_block_is_waited_for
if python3 -c '' 2>"$work/said"; then
    python3 - "$INFER" "$work/m.gguf" >"$work/out" 2>"$work/err" <<'PYTHON'
import os, subprocess, sys, time
read, write = os.pipe()
back, out = os.pipe()
for fd in (read, out):
    os.set_blocking(fd, False)
child = subprocess.Popen([sys.argv[1], "tokenize", "-m", sys.argv[2], "--json"], stdin=read, stdout=out)
os.close(out)
text = b"some words " * 20000
sent = 0
while sent < len(text):
    sent += os.write(write, text[sent:sent + 30000])
    time.sleep(0.01)
os.close(write)
time.sleep(0.2) # its output exceeds the capacity of a pipe
got = b""
while piece := os.read(back, 65536):
    got += piece
sys.stdout.buffer.write(got[-3:])
sys.exit(child.wait())
PYTHON
    code=$? last='tokenize with pipes that do not block'
    status 0
    err ''
    out ']}\n'
fi

begin two_texts_are_a_usage_error
usage '^infer: -f: given twice' -m "$work/m.gguf" -f "$work/g" -f "$work/s"
usage '^infer: -p: given twice' -m "$work/m.gguf" -p a -p b

begin a_pipe_in_the_cache_is_not_read
mkdir -p "$work/cache"
touch -d '1 hour ago' "$work/m.gguf"
sleep 3 # a file that changed recently may change again, and is not remembered
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
infer run -m "$work/m.gguf" -p x -n 1 --json --hash
status 0
entry=$(ls "$work/cache/infer/sha256")
[ -n "$entry" ] || bad 'nothing was remembered'
rm "$work/cache/infer/sha256/$entry"
mkfifo "$work/cache/infer/sha256/$entry"
timeout 20 "$INFER" run -m "$work/m.gguf" -p x -n 1 --json >"$work/out" 2>"$work/err" </dev/null
code=$? last='a pipe as an entry'
status 0
out_like '"model_sha256":null'

begin a_change_is_detected_with_any_date
rm -r "$work/cache/infer"
infer run -m "$work/m.gguf" -p x -n 1 --json --hash
infer run -m "$work/m.gguf" -p x -n 1 --json
out_like '"model_sha256":"'
printf '\001' | dd of="$work/m.gguf" bs=1 seek=$(($(wc -c <"$work/m.gguf") - 1)) conv=notrunc 2>"$work/said"
touch -d '1 hour ago' "$work/m.gguf"
infer run -m "$work/m.gguf" -p x -n 1 --json
out_like '"model_sha256":null'

begin a_complete_file_may_have_the_name_of_a_part
cp "$work/m.gguf" "$work/m-00002-of-00003.gguf"
infer run -m "$work/m-00002-of-00003.gguf" -p x -n 1
status 0

finish
