# `infer pull` from a local hub with every fault (hub.py): what is fetched, resumed, checked and
# refused, and which files remain. Needs no model.
. test/cli/lib.sh

infer pull u/r --hub http://127.0.0.1:1 --retries 0
if grep -q 'without libcurl\|libcurl cannot be loaded' "$work/err"; then
    begin pull_without_libcurl_is_an_error
    status 1
    out ''
    err_line 'libcurl'
    finish
    exit 0
fi

unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY HF_TOKEN HF_TOKEN_PATH HF_HOME HF_ENDPOINT
mkdir "$work/hub"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout "$work/hub/key.pem" -out "$work/hub/cert.pem" 2>/dev/null &&
    cat "$work/hub/key.pem" >>"$work/hub/cert.pem" || rm -f "$work/hub/cert.pem"
"$test_python" -S test/cli/hub.py "$work/hub" 2>/dev/null &
hub=$!
trap 'kill $hub; rm -rf "$work"' EXIT
n=0
until [ -e "$work/hub/ready" ] || [ $n -ge 100 ]; do
    sleep 0.1
    n=$((n + 1))
done
[ -e "$work/hub/ready" ] || { echo "skip: the hub does not start"; finish; exit 0; }
"$test_python" -S -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)' \
    "$(cat "$work/hub/main_port")" 2>/dev/null || { echo "skip: 127.0.0.1 cannot be reached"; finish; exit 0; }
here=http://127.0.0.1:$(cat "$work/hub/main_port")
other=http://127.0.0.1:$(cat "$work/hub/other_port")
INFER_HUB=$here
export INFER_HUB
models=$work/.local/share/infer/models

pull() { # into an empty folder; more ARGS...
    rm -rf "$models"
    : >"$work/hub/log"
    infer pull "$@"
}
holds() { # NAME..: all that is in the folder, in order
    [ "$(ls -A "$models" 2>/dev/null | tr '\n' ' ')" = "$*${*:+ }" ] || bad "infer $last: there is '$(ls -A "$models" | tr '\n' ' ')'"
}
got() { # the file is MODEL of the hub: NAME MODEL
    status 0
    err ''
    cmp -s "$models/$1" "$work/hub/$2.gguf" || bad "infer $last: $1 is not $2"
    holds "$1" "$1.origin"
}
refused() { # STATUS REGEX LEFT..
    status "$1"
    out ''
    err_line "$2"
    shift 2
    holds "$@"
}
asked() { # REGEX: some request matches
    grep -Eq "$1" "$work/hub/log" || bad "infer $last: no request is $1: $(head -c 600 "$work/hub/log")"
}

begin a_model_is_fetched_and_its_path_printed
pull u/plain
got m-Q4_K_M.gguf model
out "$models/m-Q4_K_M.gguf\n"
asked '^main GET /api/models/u/plain/tree/main\?recursive=1 range=None .*token=no$'
asked '^main GET /u/plain/resolve/main/m-Q4_K_M.gguf range=bytes=0-0 '
[ "$(grep -c 'range=bytes=[1-9]' "$work/hub/log")" -eq 3 ] || bad "not four pieces: $(cat "$work/hub/log")"
infer inspect m-q4_k_m # all commands find it by name
status 0

begin a_model_that_is_present_needs_no_network
there() { # FILE ARGS..: its path is printed, and no server asked
    : >"$work/hub/log"
    file=$1
    shift
    infer pull "$@"
    status 0
    out "$models/$file\n"
    err ''
    [ ! -s "$work/hub/log" ] || bad "infer $last: asked $(cat "$work/hub/log")"
}
for name in u/plain "$here/u/plain" "$here/u/plain/tree/main" "${here#*//}/u/plain"; do there m-Q4_K_M.gguf "$name"; done
pull u/plain:q4_k_m
for name in u/plain:Q4_K_M u/plain@main:q4_k_m u/plain:m-Q4_K_M.gguf http://127.0.0.1:1/u/plain/blob/main/m-Q4_K_M.gguf?x=1#y; do
    there m-Q4_K_M.gguf "$name" --hub http://127.0.0.1:1
done
there m-Q4_K_M.gguf u/plain # the hub would choose this one
pull u/several:Q6_K
infer pull u/several # the hub decides which file that is
asked '/api/models/u/several/tree/main'
pull u/split:q8
there s-00001-of-00003.gguf u/split:q8
touch "$models/s-00002-of-00003.gguf" # may have another content: its sum is compared
: >"$work/hub/log"
infer pull u/split:q8
status 0
asked '/api/models/u/split/'
there s-00001-of-00003.gguf u/split:q8
rm "$models/s-00003-of-00003.gguf"
infer pull u/split:q8
status 0
[ -e "$models/s-00003-of-00003.gguf" ] || bad 'a part is missing'
pull "$here/cdn/plain/file.gguf?key=secret"
there file.gguf "$here/cdn/plain/file.gguf"
grep -q secret "$models/file.gguf.origin" && bad 'the record has a secret'
mv "$models/file.gguf" "$work/other.gguf"
ln -s "$work/other.gguf" "$models/linked.gguf.origin"
: >"$models/linked.gguf"
infer pull "$here/cdn/plain/file.gguf" --as linked.gguf # a record is not read or written through a link
refused 1 'linked.gguf: is there already: ' file.gguf.origin linked.gguf linked.gguf.origin
cmp -s "$work/other.gguf" "$work/hub/model.gguf" || bad 'written through a link'

begin another_file_of_the_name_is_an_error
pull u/plain
printf 'x' >"$models/m-Q4_K_M.gguf"
infer pull u/plain
refused 1 'm-Q4_K_M.gguf: is there already, and is another file: remove it \(infer models --remove\)' \
    m-Q4_K_M.gguf m-Q4_K_M.gguf.origin
infer pull u/plain --as mine # the suffix may be left out
status 0
out "$models/mine.gguf\n"
infer models --remove mine
out "$models/mine.gguf\n$models/mine.gguf.origin\n"

begin a_model_is_used_by_the_name_of_the_pull
pull u/plain:q4_k_m
for name in u/plain u/plain:Q4_K_M hf.example/u/plain https://hf.example/u/plain/blob/main/m-Q4_K_M.gguf m-q4; do
    infer inspect "$name"
    status 0
    err ''
done
infer inspect u/plain:Q8_0
status 3
err_line 'u/plain:Q8_0: there is no such file, and no model of that name has been pulled: .infer pull u/plain:Q8_0.'
infer run -p x -m hf.example/u/none
status 3
err_line 'hf.example/u/none: .*: .infer pull u/none.$'
for name in hf.example/u/none/blob/main/x.gguf https://hf.example/u/none/blob/main/x.gguf; do
    infer run -p x -m "$name"
    status 3
    err_line 'no model of that name has been pulled: .infer pull u/none:x.gguf.$'
done
infer run -p x -m dir/none.gguf
err_line 'dir/none.gguf: cannot open: No such file'
infer pull u/several:Q6_K
status 0
infer pull u/several:Q4_0
infer inspect u/several
status 3
err_line 'u/several: several files came from it: m-(Q4_0|q6_k).gguf, m-(Q4_0|q6_k).gguf'
infer run -p x -m ''
status 3
err_line 'the name of the model is empty'

begin revisions_are_named
pull u/plain@v1.0
got m-Q4_K_M.gguf model
asked '^main GET /api/models/u/plain/tree/v1.0\?recursive=1 '
asked '^main GET /u/plain/resolve/v1.0/m-Q4_K_M.gguf '
pull u/several@refs/pr/1:q6_k
asked '^main GET /api/models/u/several/tree/refs%2Fpr%2F1\?'
asked '^main GET /u/several/resolve/refs%2Fpr%2F1/sub/m-q6_k.gguf '
pull "$here/u/several/blob/refs%2Fpr%2F1/sub/m-q6_k.gguf"
got m-q6_k.gguf small
asked '^main GET /u/several/resolve/refs%2Fpr%2F1/sub/m-q6_k.gguf '

begin addresses_of_pages_are_understood_or_named
for name in "$here/u/plain" "$here/u/plain/" "${here#*//}/u/plain:Q4_K_M" "$here/u/plain/tree/main" \
    "$here/u/plain?library=x" "$here/u/plain/blob/main/m-Q4_K_M.gguf" "$here/u/plain/resolve/main/m-Q4_K_M.gguf"; do
    pull "$name"
    got m-Q4_K_M.gguf model
done
for name in hf.example/u/r:Q8_0 https://hf.example/u/r:Q8_0 https://hf.example/u/r/blob/main/x-Q8_0.gguf; do
    pull "$name"
    refused 2 ': not an address of the hub or of a .gguf file; for a model of the hub write u/r:(x-)?Q8_0(.gguf)?$'
done
pull "$other/x/model.bin"
refused 2 'for a model of the hub write x/model.bin$'
pull "$other/x/"
refused 2 'for a model of the hub write USER/REPO\[@REVISION\]\[:QUANT\]$'

begin a_broken_transfer_is_resumed
pull u/break
got m-Q4_K_M.gguf model
asked 'range=bytes=1200000-'
pull u/break --connections 1
got m-Q4_K_M.gguf model
asked 'range=bytes=3600000-5243007 if-range="[0-9a-f]+"'
pull u/norange_break
got m-Q4_K_M.gguf model
pull u/once500
got m-Q4_K_M.gguf model
pull u/once416
got m-Q4_K_M.gguf model
pull u/never --retries 1
refused 1 'answered with status 416'
tries=${quick:+2} tries=${tries:-3}
for fault in cut early; do # what is not kept is no progress
    pull u/$fault --retries $((tries - 1))
    status 1
    err_line 'transfer closed with [0-9]+ bytes remaining'
    [ "$(grep -c "resolve/main/m-Q4_K_M.gguf range=None" "$work/hub/log")" -eq $tries ] || bad "not $tries tries: $(cat "$work/hub/log")"
done

begin the_next_call_resumes_an_interrupted_pull
for signal in INT KILL $([ -n "$quick" ] || echo TERM); do
    rm -rf "$models"
    # `env` leaves no shell in between, which would ignore SIGINT in the background
    python3 -c 'import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
path = sys.argv[2] + "/m-Q4_K_M.gguf.part.state"
end = time.time() + 20
while time.time() < end:
    try:
        if int(open(path).read().split("\n")[1]) >= 4 << 20: break
    except (OSError, ValueError, IndexError): pass
    time.sleep(0.02)
p.send_signal(getattr(signal, "SIG" + sys.argv[1]))
sys.exit(p.wait() % 256)' $signal "$models" "$INFER" pull u/slow --connections 1 2>"$work/err"
    code=$?
    last="pull u/slow (SIG$signal)"
    case $signal in INT) status 130 ;; TERM) status 241 ;; KILL) status 247 ;; esac # 256 - the number
    err ''
    holds m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
    : >"$work/hub/log"
    infer pull u/plain --connections 1
    got m-Q4_K_M.gguf model
    asked 'range=bytes=[45][0-9]{6}-5243007 if-range='
done

begin process_1_of_a_container_ends_by_signals
rm -rf "$models"
if unshare --user --pid --fork true 2>/dev/null; then
    unshare --user --pid --fork --kill-child "$INFER" pull u/slow --connections 1 >"$work/out" 2>"$work/err" &
    pid=$! n=0 last='pull u/slow (process 1, TERM)'
    until [ -s "$models/m-Q4_K_M.gguf.part.state" ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
    kill "$(cat /proc/$pid/task/$pid/children)"
    wait $pid
    code=$?
    status 143
else
    skip 'no namespace of processes here'
fi

begin another_version_is_fetched_from_its_beginning
pull u/short --retries 0 --connections 1
refused 1 'transfer closed' m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
: >"$work/hub/change"
infer pull u/plain
got m-Q4_K_M.gguf changed
rm "$work/hub/change"
pull u/once_restless # while it is fetched
got m-Q4_K_M.gguf model
pull u/restless --retries 2
refused 1 'the file changed while it was fetched'
pull u/short --retries 0 --connections 1
echo 'infer pull 1' >"$models/m-Q4_K_M.gguf.part.state" # an invalid state
infer pull u/plain
got m-Q4_K_M.gguf model
pull u/short --retries 0 --connections 1
printf 'xxxx' | dd of="$models/m-Q4_K_M.gguf.part" bs=1 seek=50 conv=notrunc 2>/dev/null # other bytes
infer pull u/plain
refused 3 'm-Q4_K_M.gguf.part: its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}: it was removed'
infer pull u/plain
got m-Q4_K_M.gguf model

begin servers_without_ranges_lengths_or_tags_are_enough
for fault in norange nolength chunked noetag weak relative; do
    pull u/$fault
    got m-Q4_K_M.gguf model
done

begin wrong_sizes_ranges_and_sums_are_refused
pull u/lies
refused 1 'it says that the file has 5243008 bytes, and the list 5242880'
pull u/longer --connections 1
refused 1 'it sends more bytes than the file has' m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
pull u/short --retries 1 --connections 1
refused 1 'transfer closed with [0-9]+ bytes remaining' m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
pull u/shifted --connections 2
status 1
err_line 'it sends another part of the file'
pull u/sum
refused 3 'its sha256 is [0-9a-f]{64}, not 0{64}: it was removed'
pull u/page
refused 3 'm-Q4_K_M.gguf: not a GGUF file: it begins with "<!DO"'
pull u/broken
refused 3 'm-Q4_K_M.gguf.part: .*damaged or truncated'
pull u/nojson
refused 1 'list of files is not JSON: line 1, column 1'
pull u/object
refused 1 "the hub's answer is not a list of files"
pull u/deep
refused 1 'list of files is not JSON: line 1, column 2049: maximum parsing depth'
pull u/flood
refused 1 'longer than 16 MiB'
pull u/bighead
refused 1 'the head of its answer is longer than 65536 bytes'
for fault in longline longfile; do
    pull u/$fault --retries 0
    refused 1 '127.0.0.1: a line in the head of its answer is too long|larger than allowed'
done
pull u/bigpage
got m-Q4_K_M.gguf model
pull u/manyparts:00/s-00001-of-00900.gguf --retries 0
refused 1 'it says that the file has'

begin a_list_of_several_pages_is_read_to_its_end
pull u/pages:s
status 0
[ "$(grep -c '^main GET /api/models/u/pages/tree/main?recursive=1' "$work/hub/log")" -eq 3 ] || bad 'not three pages'
for i in 1 2 3; do
    [ -s "$models/s-0000$i-of-00003.gguf" ] || bad "part $i is not there"
done
rm -f "$models"/s-0000*
pull u/elsewhere:s
refused 1 '127.0.0.1: its list of files goes on elsewhere'
pull u/endless:s
refused 1 "the hub's list of files has more than 100 pages"

begin redirects_are_followed_only_to_safe_addresses
pull u/cdn
got m-Q4_K_M.gguf model
asked '^other GET /cdn/plain/m-Q4_K_M.gguf\?secret=1 '
pull u/loop
refused 1 '127.0.0.1: more than 10 redirects'
pull u/tofile
refused 1 'it redirects to what is not an http or https address'
pull u/tohttp
refused 1 '192.0.2.1: http to another machine can be read and changed on its way'
pull u/nowhere
refused 1 'it redirects without an address'

begin certificates_are_checked
if [ -s "$work/hub/tls_port" ]; then
    secure=https://localhost:$(cat "$work/hub/tls_port")
    pull u/plain --hub "$secure" --retries 0
    refused 1 'localhost: .*certificate'
    CURL_CA_BUNDLE=$work/hub/cert.pem
    export CURL_CA_BUNDLE
    pull u/plain --hub "$secure"
    got m-Q4_K_M.gguf model
    pull u/cdn --hub "$secure" # to http
    refused 1 'localhost: it redirects from https to http'
    pull u/plain --hub "https://127.0.0.1:$(cat "$work/hub/tls_port")" --retries 0 # another name
    refused 1 '127.0.0.1: .*(certificate|SSL)'
    unset CURL_CA_BUNDLE
else
    skip 'no openssl to make a certificate'
fi

begin the_token_is_sent_only_to_the_hub
HF_TOKEN=hf_secret
export HF_TOKEN
pull u/private
got m-Q4_K_M.gguf model
asked '^main GET /u/private/.*token=yes$'
asked '^other '
grep '^other' "$work/hub/log" | grep -q 'token=yes' && bad 'another host got the token'
pull "$other/cdn/plain/m.gguf"
status 0
grep -q 'token=yes' "$work/hub/log" && bad 'another host got the token'
HF_TOKEN='hf secret'
pull u/plain
refused 2 '^infer: HF_TOKEN: is no token$'
HF_TOKEN=hf_secret
http_proxy=$other all_proxy=$other HTTP_PROXY=$other ALL_PROXY=$other
export http_proxy all_proxy HTTP_PROXY ALL_PROXY
pull u/private
got m-Q4_K_M.gguf model
grep -q 'http://' "$work/hub/log" && bad 'a proxy was asked'
grep '^other' "$work/hub/log" | grep -q 'token=yes' && bad 'a proxy got the token'
unset http_proxy all_proxy HTTP_PROXY ALL_PROXY HF_TOKEN

# The file of the hub's own tools is for the hub itself, and not for one that --hub names.
unset INFER_HUB
HF_ENDPOINT=$here
export HF_ENDPOINT
mkdir -p "$work/.cache/huggingface" "$work/home"
printf 'hf_secret\n' >"$work/.cache/huggingface/token"
cp "$work/.cache/huggingface/token" "$work/home/token"
pull u/private
got m-Q4_K_M.gguf model
asked '^main GET /u/private/.*token=yes$'
pull u/private --hub "$here"
refused 3 'no access \(status 401\)'
grep -q 'token=yes' "$work/hub/log" && bad 'another hub got the token of the file'
mv "$work/.cache/huggingface" "$work/cached"
pull u/private
refused 3 'no access \(status 401\)'
for place in HF_HOME=$work/home HF_TOKEN_PATH=$work/home/token; do
    export "${place?}"
    pull u/private
    got m-Q4_K_M.gguf model
    unset "${place%%=*}"
done
printf 'no token\n' >"$work/home/token"
HF_TOKEN_PATH=$work/home/token pull u/plain
refused 2 'home/token: is no token'
unset HF_ENDPOINT
INFER_HUB=$here
export INFER_HUB
pull u/private
refused 3 '127.0.0.1: no access \(status 401\): it does not exist, or needs a token \(HF_TOKEN\)'

begin each_kind_of_failure_has_its_status
pull u/missing
refused 3 'u/missing: 127.0.0.1: not found \(status 404\)'
pull u/gone
refused 3 '127.0.0.1: not found \(status 404\)'
pull u/server --retries 1
refused 1 'answered with status 500'
for fault in listbusy listbreak; do
    pull u/$fault
    got m-Q4_K_M.gguf model
    [ "$(grep -c ' /api/' "$work/hub/log")" -eq 3 ] || bad "not three lists: $(cat "$work/hub/log")"
done
pull u/listdown --retries 1
refused 1 'u/listdown: 127.0.0.1: answered with status 500'
[ "$(grep -c ' /api/' "$work/hub/log")" -eq 2 ] || bad 'not two lists'
pull u/longbusy
refused 1 'status 429\): try again in 5000 seconds'
pull u/busy
got m-Q4_K_M.gguf model
infer pull u/plain --hub http://127.0.0.1:1 --retries 0
status 1
err_line '127.0.0.1: .*connect'

begin a_stalled_transfer_is_an_error
for fault in trickle $([ -n "$quick" ] || echo stuck); do
    pull u/$fault --timeout 1 --retries 0 --connections 1
    refused 1 'too slow|timed out' m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
done

begin the_file_is_chosen_by_its_name
pull u/several
refused 2 'Q8_0 fits several files; give one by its name: b-Q8_0.gguf, a-Q8_0.gguf'
pull u/several:a-Q8_0.gguf
got a-Q8_0.gguf small
pull u/several:q4_0 # and not m-mmproj-Q4_0.gguf
got m-Q4_0.gguf small
pull u/several:Q6_K
got m-q6_k.gguf small
pull u/several:Q2_K
refused 3 'no file is Q2_K; there are: b-Q8_0.gguf, a-Q8_0.gguf, m-Q4_0.gguf, sub/m-q6_k.gguf'
pull u/several:Q8
refused 3 'no file is Q8; '
pull u/first
got c-F16.gguf small
pull u/none
refused 3 'u/none: the repository has no GGUF file'

begin all_parts_of_a_split_model_are_fetched
pull u/split:q8
status 0
out "$models/s-00001-of-00003.gguf\n"
holds s-00001-of-00003.gguf s-00001-of-00003.gguf.origin s-00002-of-00003.gguf s-00003-of-00003.gguf
infer inspect -v s
status 0
out_like 't102 '
pull "$here/u/split/resolve/main/q8/s-00001-of-00003.gguf?download=true"
status 0
holds s-00001-of-00003.gguf s-00001-of-00003.gguf.origin s-00002-of-00003.gguf s-00003-of-00003.gguf
sed -n 's|.*/\(s-0000.\)-of-.*|\1|p' "$work/hub/log" | uniq | tr '\n' ' ' >"$work/order" # -m finds the first, which is the last
same "$work/order" 's-00002 s-00003 s-00001 '
pull u/splitcut --retries 0 --connections 1
refused 1 'transfer closed' s-00002-of-00003.gguf s-00003-of-00003.gguf.part s-00003-of-00003.gguf.part.state
infer inspect -v s
status 3
infer models --remove s-00001-of-00003
status 0
holds
pull u/gap
refused 3 's-00001-of-00003.gguf: part 2 of 3 is not in the repository'
pull u/split --as x.gguf
refused 2 '--as: is for one file, and this model has 3'

begin names_from_the_network_stay_in_the_folder
for fault in hostile invisible; do
    pull u/$fault
    refused 3 "u/$fault: the repository has no GGUF file"
done
for name in ..%2f..%2fup.gguf .hidden.gguf a%00b.gguf a%1bb.gguf a%5cb.gguf '%e2%80%aex.gguf' '%d8%9cx.gguf' .gguf; do
    pull "$other/x/$name"
    refused 2 'is not the name of a model file: give one that ends in .gguf \(--as NAME\)'
done
for name in ../x.gguf /tmp/x.gguf -x.gguf ../x ''; do
    pull u/plain --as "$name"
    refused 2 'is not the name of a model file'
done
for name in u u/ /r ../r u/.. u/r/x u/r: 'u/r:../x' 'u/r?x' 'u r/x' u/r@ u/r@../x u/r@a..%2f 'u/r@x y'; do
    pull "$name"
    refused 2 'is neither USER/REPO\[@REVISION\]\[:QUANT\] nor an address'
done

begin addresses_are_fetched_and_compared_with_a_sum
sum=$(sha256sum "$work/hub/model.gguf" | cut -d ' ' -f 1)
pull "$here/cdn/plain/file.gguf?key=secret" --sha256 "$sum"
got file.gguf model
infer pull "$here/cdn/plain/file.gguf" --sha256 "$sum" # already present
got file.gguf model
rm "$models/file.gguf.origin"
infer pull "$here/cdn/plain/file.gguf"
refused 1 'file.gguf: is there already: ' file.gguf
pull "$here/cdn/plain/file.gguf" --sha256 "$(echo "$sum" | tr '0-9a-f' '1-9a-f0')"
refused 3 'its sha256 is'
pull "$here/cdn/plain/download" --as named.gguf
got named.gguf model
pull "$here/cdn/chunked/file.gguf" # of unknown size
got file.gguf model
pull "$here/cdn/plain/file.gguf" --sha256 123
refused 2 '--sha256: is no sum'
pull u/plain --sha256 "$sum"
refused 2 '--sha256: is for addresses'
pull file:///etc/passwd.gguf
refused 2 'file:///etc/passwd.gguf is not an http or https address'
pull http://192.0.2.1/x.gguf
refused 2 '192.0.2.1: http to another machine can be read'
pull http://127.evil.test/x.gguf
refused 2 '127.evil.test: http to another machine'
pull u/plain --hub nonsense://x
refused 2 'is not an http or https address'

begin two_pulls_of_one_file_are_refused
rm -rf "$models"
landlock=$("$INFER" doctor 2>/dev/null | grep -c 'Landlock [0-9]')
"$INFER" pull u/slow --connections 1 >/dev/null 2>&1 &
first=$!
n=0
until [ -s "$models/m-Q4_K_M.gguf.part.state" ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
infer pull u/plain
status 1
err_line 'm-Q4_K_M.gguf.part: another process fetches it'
if [ "$landlock" -gt 0 ]; then
    grep -q '^NoNewPrivs:.*1' "/proc/$first/status" || bad 'no sandbox'
fi
kill $first
wait $first
infer pull u/plain
got m-Q4_K_M.gguf model

begin partial_files_of_others_are_not_continued
pull u/short --retries 0 --connections 1
for change in 'chmod 666' 'chmod 620' "ln $models/link" 'mv'; do
    part=$models/m-Q4_K_M.gguf.part
    rm -rf "$models" && mkdir -p "$models"
    case $change in
    chmod*) : >"$part" && $change "$part" ;;
    ln*) : >"$part" && ln "$part" "$models/other" ;;
    mv) : >"$part.state" && chmod 666 "$part.state" ;;
    esac
    ls -A "$models" | tr '\n' ' ' >"$work/before"
    infer pull u/plain
    status 1
    out ''
    err_line 'm-Q4_K_M.gguf.part(.state)?: belongs to another user, has another name, or others can write to it: remove it$'
done
for name in part part.state; do # of another program
    rm -rf "$models" && mkdir -p "$models"
    echo mine >"$models/m-Q4_K_M.gguf.$name"
    infer pull u/plain
    status 1
    err_line "m-Q4_K_M.gguf.$name: was not written by .infer pull.: remove it, or give another name"
    [ "$(cat "$models/m-Q4_K_M.gguf.$name")" = mine ] || bad "$name was changed"
done
rm -rf "$models"
(umask 002 && exec "$INFER" pull u/short --retries 0 --connections 1 >"$work/out" 2>"$work/err" </dev/null)
(umask 002 && exec "$INFER" pull u/plain >"$work/out" 2>"$work/err" </dev/null)
code=$? last='pull (umask 002)'
got m-Q4_K_M.gguf model

begin a_full_disk_keeps_what_was_fetched
pull "$here/cdn/huge/x.gguf"
refused 1 'models: [0-9.]+ MB more are needed, and the disk has [0-9.]+ MB'
rm -rf "$models"
(ulimit -f 2000 && exec "$INFER" pull u/plain --connections 1 >"$work/out" 2>"$work/err" </dev/null)
code=$? last='pull (with a limit of a file'"'"'s size)'
refused 1 'm-Q4_K_M.gguf.part: cannot write: File too large' m-Q4_K_M.gguf.part m-Q4_K_M.gguf.part.state
infer pull u/plain
got m-Q4_K_M.gguf model
rm -rf "$models"
mkdir -p "$models/m-Q4_K_M.gguf.part"
infer pull u/plain
status 1
err_line 'm-Q4_K_M.gguf.part: cannot write: Is a directory'

begin exhausted_memory_is_an_error
library=${INFER%/*}/test/fail_alloc.so
if [ -r "$library" ]; then
    rm -rf "$models"
    FAIL_ALLOC_COUNT=$work/count LD_PRELOAD=$library "$INFER" pull u/several:q6_k >/dev/null 2>&1
    n=${quick:+8}
    step=$(($(cat "$work/count") / ${n:-24}))
    at=1
    while [ $at -le "$(cat "$work/count")" ]; do
        rm -rf "$models"
        FAIL_ALLOC_AT=$at LD_PRELOAD=$library "$INFER" pull u/several:q6_k >"$work/out" 2>"$work/err"
        code=$? last="pull (FAIL_ALLOC_AT=$at)"
        if [ $code -eq 0 ]; then # a library of libcurl may report a failure on stderr and continue
            cmp -s "$models/m-q6_k.gguf" "$work/hub/small.gguf" || bad "infer $last: another file, status 0"
        else
            [ $code -eq 1 ] || status 4 # libcurl reports some failures as other errors
            out ''
            tail -n 1 "$work/err" | grep -q '^infer: .' || bad "infer $last: status $code without a line"
        fi
        if [ $at -lt 8 ]; then at=$((at + 1)); else at=$((at + step)); fi
    done
else
    skip "$library is not built"
fi

begin progress_is_on_a_terminal_only
if terminals; then
    rm -rf "$models"
    python3 -c 'import os, pty, sys
def read(fd):
    data = os.read(fd, 4096)
    os.write(2, data)
    return data
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], read)))' "$INFER" pull u/slow --connections 1 >/dev/null 2>"$work/err"
    code=$?
    last='pull u/slow (on a terminal)'
    status 0
    tr '\r' '\n' <"$work/err" >"$work/lines"
    like "$work/lines" '^fetching: [0-9.]+ of 5.2 MB, [0-9.]+ MB/s(, 0:0[0-9] left)?, m-Q4_K_M.gguf'
else
    skip 'no pseudo-terminal or python3 here'
fi

finish
