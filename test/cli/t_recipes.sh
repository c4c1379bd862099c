# The recipes of docs/recipes.md, unchanged, run by bash in a folder with the files that they name.
. test/cli/lib.sh
if [ -z "$MODEL" ] || ! command -v bash >/dev/null || ! command -v jq >/dev/null; then
    echo 'skip t_recipes.sh: no model, no bash or no jq here'
    finish
    exit
fi
INFER_MODEL=$MODEL
export INFER_MODEL
unset INFER_RAW # users do not set it
page=$PWD/docs/recipes.md
mkdir "$work/bin" "$work/folder"
ln -s "$INFER" "$work/bin/infer"
PATH=$work/bin:$PATH
export PATH

recipe() { # START OF ITS COMMENT: the lines after it up to an empty line
    awk -v title="    # $1" 'index($0, title) == 1 { on = 1; next } on && !NF { exit } on { print substr($0, 5) }' \
        "$page" >"$work/recipe"
    [ -s "$work/recipe" ] || bad "docs/recipes.md has no recipe '$1'"
    (cd "$work/folder" && prompt=${prompt-} bash "$work/recipe") >"$work/out" 2>"$work/err" </dev/null
    code=$? last="recipe: $1"
}
in_folder() { # FILE FORMAT
    # shellcheck disable=SC2059
    printf "$2" >"$work/folder/$1"
}

begin recipe_of_a_line_for_each_file
in_folder a.txt 'What is the capital of France?'
in_folder b.txt 'One, two, three,'
recipe 'one line per file'
status 0
[ "$(wc -l <"$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
out_like 'Paris'
err ''
rm "$work/folder/a.txt" "$work/folder/b.txt"

begin recipe_of_results_sorted_by_status
prompt='Once upon a time'
recipe 'was it cut?'
status 1 # jq -e: it was
out 'false\n'
prompt='A person: '
in_folder schema.json '{"type":"object","required":["name"],"properties":{"name":{"enum":["Ada","Bob"]}}}'
recipe 'JSON that can be relied on'
status 0
out_like '^"(Ada|Bob)"$'
prompt='Is water wet? '
recipe 'one of a few answers'
status 0
out_like '^(agreed|refused)$'

begin recipe_of_a_label_for_each_record
in_folder reviews.csv 'id,review\n1,"Wonderful, I\nlove it"\n2,"No, never again"\n'
recipe 'a label for each record'
status 0
out ''
err ''
sed 's/,positive$/,L/;s/,negative$/,L/' "$work/folder/labelled.csv" >"$work/labelled"
same "$work/labelled" 'id,review,answer\n1,"Wonderful, I\nlove it",L\n2,"No, never again",L\n'

begin recipe_of_many_prompts
in_folder countries.txt 'France\nItaly\nJapan\n'
for again in 1 2; do # the second time all answers exist
    recipe 'a hundred prompts'
    status 0
    err ''
    [ "$(wc -l <"$work/out")" -eq 3 ] || bad "run $again: $(cat "$work/out")"
    out_like '^1:The capital of France is Paris$'
    out_like '^2:'
done
recipe 'the lines in four parts'
status 0
[ "$(jq -c '[.line, .id]' "$work/folder/all.jsonl" | tr '\n' ' ')" = '[1,1] [2,2] [3,3] ' ] ||
    bad "parts: $(cat "$work/folder/all.jsonl")"

begin recipe_of_a_call_for_each_line
in_folder lines.txt 'One\nTwo\n'
recipe 'one call for each line'
status 0
[ "$(wc -l <"$work/out")" -ge 2 ] || bad "$(cat "$work/out")"

begin recipe_of_fields_of_a_text
in_folder letter.txt 'Berlin, 3 May 1923. Dear friend, the weather is fine. Yours, Karl'
recipe 'fields of a text'
status 0
err ''
out_like '^"[^"]*",(19|20|21)[0-9][0-9]$'

begin recipe_of_the_effect_of_a_change
(cd "$work/folder" && git init -q . && echo one >f && git add f && echo two >f) 2>"$work/said"
recipe 'what a change does'
status 0
err ''
[ "$(wc -c <"$work/out")" -gt 10 ] || bad "$(cat "$work/out")"

begin recipe_of_a_long_text_that_is_read_once
yes 'The office opens at nine and closes at five; the dog of the house is called Rex.' | head -n 10 >"$work/folder/handbook.txt"
in_folder questions.txt 'When does the office open?\nWhat is the dog called?\nWhen does it close?\n'
recipe 'many questions on one long text'
status 0
err ''
[ "$(grep -c ' tokens read: ' "$work/out")" -eq 3 ] || bad "$(cat "$work/out")"
[ "$(sed -n '2,$s/^\([0-9]*\) of .*/\1/p' "$work/out" | sort -n | tail -n 1)" -lt 40 ] || bad "it was read again: $(cat "$work/out")"

begin recipe_of_a_long_prefix_that_is_read_once
recipe 'long prefix'
status 0
err "infer: $work/.cache/infer/prefix: 0 entries, 0.0 MB removed\n"
[ "$(sed -n 1p "$work/out")" = 0 ] || bad "$(cat "$work/out")"
[ "$(sed -n 2p "$work/out")" -gt 100 ] || bad "$(cat "$work/out")"

begin recipe_of_a_model_that_waits_for_lines
recipe 'a model that waits'
status 0
err ''
out_like 'Paris'
[ "$(wc -l <"$work/out")" -ge 2 ] || bad "$(cat "$work/out")"

begin recipe_of_the_most_probable_label
in_folder reviews.jsonl '{"id":"a","text":"Wonderful, I love it"}\n{"id":"b","text":"Terrible, a waste of money"}\n'
recipe 'which label does the model find most probable?'
status 0
err ''
[ "$(wc -l <"$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
out_like '^a	(true|false)$'
out_like '^b	(true|false)$'

begin recipe_of_tokens_and_divergence
in_folder prompt.txt 'how many tokens is this?'
recipe 'how many tokens?'
out '6\n'
ln -s "$MODEL" "$work/folder/f16.gguf"
ln -s "$MODEL" "$work/folder/q4.gguf"
head -c 1000 "$page" >"$work/folder/text.txt"
recipe 'does a quantization hurt?'
status 0
out_like '"kl":-?0\.0000'

finish
