# The seeds of the fuzz targets (test/fuzz.h), whole and truncated at sixteen places: no crash, no
# leak, and no call whose result and error disagree.
. test/cli/lib.sh

doors=${INFER%/*}/test
for folder in test/data/fuzz/*; do
    door=${folder##*/}
    begin "fuzz_seeds_$door"
    if [ ! -x "$doors/fuzz_$door" ]; then
        skip "$doors/fuzz_$door is not built"
        continue
    fi
    "$doors/fuzz_$door" "$folder"/* >"$work/out" 2>"$work/err"
    code=$? last="(fuzz_$door $folder)"
    status 0
    err ''
done
for door in test/fuzz_*.c; do
    door=${door#test/fuzz_}
    [ "$door" = main.c ] || [ -d "test/data/fuzz/${door%.c}" ] || bad "fuzz_$door has no seeds"
done

finish
