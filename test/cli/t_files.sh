# Files that are missing, damaged or of another kind: status 3 and one line that names the file.
# Needs no model.
. test/cli/lib.sh
unset INFER_THREADS # -v names it

u32() { # N < 256, little-endian
    # shellcheck disable=SC2059
    printf "\\$(printf %03o "$1")\000\000\000"
}
u64() {
    u32 "$1"
    printf '\000\000\000\000'
}

# A whole GGUF file with two keys and no tensors; the value holds an escape sequence.
{
    printf 'GGUF'
    u32 3
    u64 0
    u64 2
    u64 20; printf 'general.architecture'; u32 8; u64 5; printf 'llama'
    u64 12; printf 'general.name'; u32 8; u64 5; printf 'a\033[1m'
    head -c 64 /dev/zero
} >"$work/empty_model.gguf"

printf '<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n' >"$work/page.gguf"
: >"$work/empty.gguf"
mkdir "$work/folder.gguf"
printf 'secret' >"$work/locked.gguf"
chmod 000 "$work/locked.gguf"

begin every_command_names_the_file_that_it_cannot_read
for file in none page empty folder; do
    f=$work/$file.gguf
    for command in "run -p x" "tokenize -p x" "logits --ids 1" "perplexity -f /dev/null" "bench" \
        "inspect"; do
        # shellcheck disable=SC2086
        infer $command -m "$f"
        status 3
        out ''
        err_line "^infer: (\.\.\.)?.*$file\.gguf: "
    done
    infer quantize "$f" "$work/quantized.gguf" Q8_0
    status 3
    out ''
    err_line "$file\.gguf: "
    [ ! -e "$work/quantized.gguf" ] || bad 'an output was left'
done

begin an_unreadable_file_is_status_3
if ! cat "$work/locked.gguf" >/dev/null 2>&1; then
    infer -p x -m "$work/locked.gguf"
    status 3
    err_line 'locked\.gguf: '
else
    skip 'this user reads every file'
fi

begin a_web_page_is_named # ggml 1505: a saved HTML page as the model
infer -p x -m "$work/page.gguf"
status 3
err_line 'page\.gguf: .*(web page|GGUF)'

begin a_file_truncated_at_every_byte_is_status_3
size=$(wc -c <"$work/empty_model.gguf")
n=0
while [ $n -lt $((size - 64)) ]; do
    head -c $n "$work/empty_model.gguf" >"$work/cut.gguf"
    infer inspect "$work/cut.gguf"
    status 3
    out ''
    err_line 'cut\.gguf: '
    n=$((n + 1))
done

begin no_model_says_how_to_get_one
infer -p x
status 3
out ''
err_line 'no model: give -m FILE or set INFER_MODEL, .*make run.*scripts/fetch-model'
err_line 'SmolLM2-135M-Instruct.Q4_1.gguf: '

begin a_model_without_weights_can_be_inspected
infer inspect -v "$work/empty_model.gguf"
status 0
err ''
out_like 'general.architecture +string "llama"'
out_like 'a\\u001b\[1m' # a terminal must not interpret it
infer inspect "$work/empty_model.gguf" --json
status 0
out_like '"general.name":\{"type":"string","value":"a\\u001b\[1m"\}'
infer -p x -m "$work/empty_model.gguf"
status 3
out ''
err_line 'empty_model\.gguf: '

begin quantize_refuses_its_input_as_output
ln -s empty_model.gguf "$work/other_name.gguf"
for other in empty_model other_name; do
    infer quantize "$work/empty_model.gguf" "$work/$other.gguf" Q8_0
    status 2
    err_line "$other\.gguf: is the input too"
done
infer inspect "$work/empty_model.gguf"
status 0

begin quantize_refuses_unknown_types
usage "TYPE: 'Q9_9' is not a type" quantize "$work/empty_model.gguf" "$work/q.gguf" Q9_9
usage "TYPE: I8 cannot be written" quantize "$work/empty_model.gguf" "$work/q.gguf" i8
[ ! -e "$work/q.gguf" ] || bad 'an output was left'

begin quantize_reports_a_full_disk
if full_disk; then
    infer quantize "$work/empty_model.gguf" /dev/full Q8_0
    status 1
    err_line '/dev/full'
else
    skip 'no /dev/full here'
fi

begin quantize_into_a_missing_folder_is_an_error
infer quantize "$work/empty_model.gguf" "$work/no/such/folder.gguf" Q8_0
status 1
err_line 'folder\.gguf'

begin a_missing_input_is_a_usage_error # whichever option names it
plain="-m $work/none.gguf --chat -p x"
for file in none.txt .; do
    usage 'cannot read: ' -f "$work/$file" -m "$work/none.gguf"
    usage 'cannot read: ' check --regex a -f "$work/$file"
    # shellcheck disable=SC2086
    usage 'cannot read: ' $plain --messages "$work/$file"
    # shellcheck disable=SC2086
    usage 'cannot read: ' $plain --tools "$work/$file"
    # shellcheck disable=SC2086
    usage 'cannot read: ' chat -m "$work/none.gguf" --messages "$work/$file"
done
usage 'none.gbnf. is no file that can be read' check --grammar "$work/none.gbnf" -p x
usage "grammar: cannot read: Is a directory|$work: cannot read" check --grammar "$work" -p x
usage 'none: cannot list: ' models "$work/none"
input=$work
infer -m "$work/none.gguf" -f -
status 2
err_line 'standard input: cannot read: '

# The file itself is named, not a key that it lacks.
begin files_that_are_not_language_models_are_named
if [ -x "$make_model" ]; then
    "$make_model" "$work/a.gguf" vocab=320 >/dev/null
    printf '1 2 3 4 5 6 7 8' >"$work/ids"
    infer imatrix -m "$work/a.gguf" --ids "$work/ids" --no-bos -o "$work/i.gguf"
    status 0
    infer run -p x -m "$work/i.gguf"
    status 3
    err_line 'i.gguf: no language model: the file is an importance matrix'
    infer quantize "$work/i.gguf" "$work/iq.gguf" Q8_0
    status 3
    err_line 'i.gguf: is an importance matrix, not a model: --imatrix takes it'
    infer inspect "$work/i.gguf"
    out_like '^Model +i\.gguf$'
    if command -v python3 >/dev/null 2>&1; then
        python3 - "$work" <<'PYTHON'
import struct, sys
def text(s): return struct.pack("<Q", len(s)) + s
def key(name, value): return text(name) + struct.pack("<I", 8) + text(value)
def write(name, *keys):
    open(sys.argv[1] + "/" + name, "wb").write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys))
write("clip.gguf", key(b"general.architecture", b"clip"))
write("whisper.gguf", key(b"general.architecture", b"whisper"))
write("lora.gguf", key(b"general.architecture", b"llama"), key(b"general.type", b"adapter"))
write("vocab.gguf", key(b"general.architecture", b"llama"), key(b"tokenizer.ggml.model", b"gpt2"))
write("eagle3.gguf", key(b"general.architecture", b"eagle3"))
write("none.gguf", key(b"general.architecture", b"llama"))
write("proj.gguf", key(b"general.architecture", b"llama"), key(b"general.type", b"mmproj"), key(b"tokenizer.ggml.model", b"gpt2"))
open(sys.argv[1] + "/old.gguf", "wb").write(b"alggxxxxxxxxxxxxxxxxxxxxxxxxxx")
PYTHON
        for case in 'clip:an encoder for images' 'whisper:a model for recognizing speech' 'lora:an adapter .LoRA.' 'proj:the encoder for images' \
            'vocab:a vocabulary without weights' 'eagle3:a drafter' 'none:metadata without weights'; do
            for command in 'run -p x' 'logits -p x' 'score -p a --continuation b' 'perplexity -f README.md'; do
                # shellcheck disable=SC2086
                infer $command -m "$work/${case%%:*}.gguf"
                status 3
                err_line "${case%%:*}.gguf: no language model: the file is ${case#*:}"
            done
        done
        infer run -p x -m "$work/old.gguf"
        status 3
        err_line 'this is a LoRA adapter in the format from before GGUF'
    fi
else
    skip "$make_model is not built"
fi

finish
