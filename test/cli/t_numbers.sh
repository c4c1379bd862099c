# Weights and metadata with extreme numbers: never an invalid file or result with status 0. Models
# with random weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/sound.gguf" vocab=512 type=F32 || exit 1

# last_weight BYTES: the valid model with other last bytes, which are a weight of a matrix.
last_weight() {
    cp "$work/sound.gguf" "$work/m.gguf"
    # shellcheck disable=SC2059
    printf "$1" | dd of="$work/m.gguf" bs=1 seek=$(($(wc -c <"$work/m.gguf") - 4)) conv=notrunc 2>"$work/said"
}

begin quantize_refuses_weights_that_are_not_finite
infer quantize "$work/sound.gguf" "$work/q.gguf" Q8_0
status 0
rm "$work/q.gguf"
for weight in '\000\000\300\177' '\000\000\200\177' '\000\000\200\377'; do # NaN, infinite, -infinite
    last_weight "$weight"
    for type in Q8_0 Q4_K F16 F32; do
        infer quantize "$work/m.gguf" "$work/q.gguf" $type
        status 1
        err_line 'weight: has weights that are not finite'
        [ ! -e "$work/q.gguf" ] || bad "$type: a file was left"
    done
done

begin quantize_refuses_weights_that_a_type_cannot_hold
last_weight '\040\274\276\114' # 1e8
infer quantize "$work/m.gguf" "$work/q.gguf" F16
status 1
err_line 'weight: has weights that are not finite, or would not be as F16'
infer quantize "$work/m.gguf" "$work/q.gguf" BF16
status 0
err ''

begin quantize_says_where_weights_became_smaller
infer quantize "$work/m.gguf" "$work/q.gguf" Q8_0
status 0
err_like '^infer: weights too large for their type became smaller, tensors: 1 \([a-z0-9._]*weight\)$'
infer quantize "$work/sound.gguf" "$work/q.gguf" Q8_0
status 0
err ''

begin logits_that_are_not_finite_are_an_error
last_weight '\000\000\300\177'
infer logits -m "$work/m.gguf" --ids '1 2 3' -o "$work/l.bin"
status 1
err_line 'position 0 has logits that are not numbers'
[ ! -e "$work/l.bin" ] || bad 'a file was left'

# Keys "n": 2^64-1, "a": [[1, 2], ["x"]], "z": 7.
begin inspect_shows_large_numbers_and_skips_nested_arrays
zeros3='\000\000\000' zeros7='\000\000\000\000\000\000\000'
# shellcheck disable=SC2059
{
    printf "GGUF\\003$zeros3\\000$zeros7\\003$zeros7"
    printf "\\001${zeros7}n\\012$zeros3\\377\\377\\377\\377\\377\\377\\377\\377"
    printf "\\001${zeros7}a\\011$zeros3\\011$zeros3\\002$zeros7"
    printf "\\000$zeros3\\002$zeros7\\001\\002\\010$zeros3\\001$zeros7\\001${zeros7}x"
    printf "\\001${zeros7}z\\004$zeros3\\007$zeros3"
    head -c 64 /dev/zero
} >"$work/keys.gguf"
infer inspect "$work/keys.gguf" --json
status 0
out_like '"n":\{"type":"u64","value":18446744073709551615\}'
out_like '"a":\{"type":"array","item":"array","count":2,"first":\[null, null\]\}'
out_like '"z":\{"type":"u32","value":7\}'

finish
