# The seeds of the fuzz targets (test/fuzz.h), whole and truncated at sixteen places: no crash, no
# leak, and no call whose result and error disagree.
. test/cli/lib.sh

programs=${INFER%/*}/test
for folder in test/data/fuzz/*; do
    target=${folder##*/}
    begin "fuzz_seeds_$target"
    if [ ! -x "$programs/fuzz_$target" ]; then
        skip "$programs/fuzz_$target is not built"
        continue
    fi
    "$programs/fuzz_$target" "$folder"/* >"$work/out" 2>"$work/err"
    code=$? last="(fuzz_$target $folder)"
    status 0
    err ''
done
for target in test/fuzz_*.c; do
    target=${target#test/fuzz_}
    [ "$target" = main.c ] || [ -d "test/data/fuzz/${target%.c}" ] || bad "fuzz_$target has no seeds"
done

finish
