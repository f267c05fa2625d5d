#!/bin/bash
# Wrong input of every kind: exit status 2, a place and a remedy on standard error, nothing on standard output, no crash.
. "$(dirname "$0")/lib.sh"
cases=0
bad() { # PLACE-AND-PROBLEM REMEDY ARGUMENTS...
  local problem=$1 remedy=$2
  shift 2
  run "$@"
  exits 2
  complains "$problem"
  complains "$remedy"
  [[ ! -s $OUT ]] || fail "wrote to standard output"
  cases=$((cases + 1))
}
cl='<command line>'

# The command line.
bad "$cl: sojourn: unknown command 'compar'" "did you mean compare" compar
bad "$cl: sojourn: unknown command 'zzz'" "known: compare" zzz
bad "$cl: sojourn trace: unknown command 'imprt'" "did you mean import" trace imprt
bad "$cl: --windws: unknown option" "did you mean --windows" compare --windws 3
bad "$cl: --zzzzzz: unknown option" "sojourn compare --help" compare --zzzzzz
bad "$cl: --windows: 'x' is not a whole number" "give a whole number from 1" compare --windows x
bad "$cl: --windows: '0' is out of range" "give a whole number" compare --windows 0
bad "$cl: --windows: '-5' is out of range" "give a whole number" compare --windows -5
bad "$cl: --windows: '1.5' is not a whole number" "give a whole number" compare --windows 1.5
bad "$cl: --windows: '99999999999999999999' is out of range" "give a whole number" compare --windows 99999999999999999999
bad "$cl: --windows" "sojourn compare --help" compare --windows
bad "$cl: --warmup: 'a'" "give a whole number" compare --warmup a
bad "$cl: --threads: '0' is out of range" "from 1 to 256" compare --threads 0
bad "$cl: --seed: '-1' is out of range" "give a whole number" compare --seed -1
bad "$cl: --seed: '1e3'" "give a whole number" compare --seed 1e3
bad "$cl: --context: '0'" "give a whole number" compare --context 0
bad "$cl: --copies: 'nan'" "give a number" compare --copies nan
bad "$cl: --copies: '0.5' is out of range" "from 1 to 64" compare --copies 0.5
bad "$cl: --link-threshold: '2'" "from 0 to 1" compare --link-threshold 2
bad "$cl: --modes: unknown word 'prefil'" "did you mean prefill" compare --modes prefil
bad "$cl: --modes: 'decode' is named twice|$cl: --modes: .*twice" "name it once" compare --modes decode,decode
bad "$cl: --models: .mixtral-8x7b. is named twice" "name it once" compare --models mixtral-8x7b,mixtral-8x7b
bad "$cl: --timeline: cannot go to standard output" "give a file" compare --models mixtral-8x7b --timeline -
bad "$cl: --modes: .*empty part" "single commas" compare --modes prefill,,decode
bad "$cl: --mix: unknown word 'drfit'" "give one of mixed, by-domain, drift" compare --mix drfit
bad "$cl: --network: unknown word 'paket'" "did you mean packet" compare --network paket
bad "$cl: --capacity-scope: unknown word 'chip'" "give one of package, layer" compare --capacity-scope chip
bad "$cl: --policies: unknown policy 'hydrra'" "did you mean hydra" compare --policies static,hydrra
bad "$cl: --policies: .*empty part" "single commas" compare --policies static,
bad "$cl: --set: 'alpha' is not NAME=VALUE" "write it as --set" compare --set alpha
bad "$cl: --set: 'alpha' does not name" "POLICY.PARAMETER=VALUE" compare --set alpha=1
bad "$cl: --set: policy 'eplb' is not among" "add it to --policies" compare --policies static --set eplb.x=1
bad "$cl: --set static: ?.*nosuch|$cl: --set static.nosuch" "know|take|parameter|describe" compare --policies static --set static.nosuch=1 --models mixtral-8x7b
bad "$cl: --models.*mixtral-8x7" "did you mean mixtral-8x7b" compare --models mixtral-8x7
bad "hcrmap-tabel1" "did you mean hcrmap-table1" compare --package hcrmap-tabel1
bad "$cl: --trace: nowhere.npz: there is no such file" "trace import" compare --trace nowhere.npz
bad "$cl: --trace: '=x' names no model" "MODEL=FILE" compare --trace =x
for effort in nodes evaluations; do # work that would take hours, in one call
  bad "$cl: --set makespan.$effort: 1000001: more than the most" "from 0 to 1000000" compare --models mixtral-8x7b \
    --policies makespan --set makespan.$effort=1000001
done
shapes="surrogate-64x6: trace: has 64 experts, top-6, but model mixtral-8x7b has 8 experts, top-2"
bad "$shapes" "same shape" compare --models mixtral-8x7b --trace "mixtral-8x7b=$SOURCE/traces/surrogate-64x6.npz"
bad "$shapes" "same shape" reproduce hcrmap --quick --models mixtral-8x7b --report wrong \
  --trace "mixtral-8x7b=$SOURCE/traces/surrogate-64x6.npz"
[[ ! -e wrong ]] || fail "made the report folder"
bad "$cl: describe: nothing is called 'polices'" "did you mean policies" describe polices
bad "$cl: describe policies: there is no 'hydr'" "did you mean hydra" describe policies hydr
bad "nowhere.json: cannot be read" "sojourn compare --json" replay nowhere.json
echo '{"schema": "x"}' >x.json
bad "x.json: schema: is not a manifest" "sojourn compare --json" replay x.json
echo 'not json' >y.json
bad "y.json: schema: is not a manifest" "sojourn compare --json" replay y.json
bad "nowhere.toml" "check the path" check nowhere.toml
echo hello >a.txt
bad "a.txt: cannot tell what" "\\.toml" check a.txt
bad "$cl: FORMAT: unknown .*'vllm'" "known: " trace import vllm a.txt -o o.npz
bad "$cl: sojourn trace import" "sojourn trace import --help" trace import auto a.txt
bad "$cl: --tokens: '-3'" "give a whole number" trace synth --tokens -3 -o o.npz
bad "$cl: --model" "did you mean dbrx" trace synth --model dbrxx -o o.npz
bad "config.json" "[a-z]" model import config.json

# Configurations.
printf 'name = "x"\n[topology\n' >broken.toml
bad "broken.toml:2:" "[a-z]" check broken.toml
echo 'colour = "red"' >odd.toml
bad "odd.toml:1:1: is neither a package" "sojourn describe packages" check odd.toml
: >empty.toml
bad "empty.toml:1:1: is neither" "sojourn describe" check empty.toml
head -c 4096 /dev/urandom >noise.toml
bad "noise.toml" "[a-z]" check noise.toml
sed 's/^layers *=.*/layers = -3/' "$SOURCE/models/dbrx.toml" >m1.toml
bad "m1.toml:[0-9]+:[0-9]+: layers" "[0-9]" check m1.toml
sed 's/^hidden/hiden/' "$SOURCE/models/dbrx.toml" >m2.toml
bad "m2.toml:[0-9]+:[0-9]+: hiden" "did you mean hidden" check m2.toml
sed 's/^experts *=.*/experts = "many"/' "$SOURCE/models/dbrx.toml" >m3.toml
bad "m3.toml:[0-9]+:[0-9]+: experts" "[a-z]" check m3.toml
sed 's/^\[topology\]/[topolgy]/' "$SOURCE/packages/hcrmap-table1.toml" >p1.toml
bad "p1.toml:[0-9]+:[0-9]+: topolgy" "did you mean topology" check p1.toml
sed '0,/ \(GB\|GiB\|MiB\|MB\)"/s// GBs"/' "$SOURCE/packages/hcrmap-table1.toml" >p2.toml
bad "p2.toml:[0-9]+:[0-9]+: .*GBs" "did you mean" check p2.toml

# Traces: truncated, hostile, misshapen.
"$PYTHON" - "$(ls "$SOURCE"/traces/*.npz | head -n 1)" <<'P'
import io, json, struct, sys, zipfile
data = open(sys.argv[1], "rb").read()
open("cut.npz", "wb").write(data[: len(data) // 2])
open("empty.npz", "wb").write(b"")
open("text.npz", "wb").write(b"this is not a zip file\n" * 20)
def npy(descr, shape, payload, head=None):
    h = head or "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    h += " " * (64 - (len(h) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + payload
def npz(name, **members):
    with zipfile.ZipFile(name, "w") as z:
        for k, v in members.items():
            z.writestr(k + ".npy", v)
i32 = lambda n: npy("<i4", (n,), struct.pack("<%di" % n, *([0] * n)))
npz("none.npz", other=i32(4))
npz("ids_only.npz", topk_ids=npy("<u2", (1, 2, 1), b"\0" * 4))
npz("short.npz", topk_ids=npy("<u2", (2, 100, 2), b"\0" * 8), sequence_id=i32(100), position=i32(100))
npz("huge.npz", topk_ids=npy("<u2", (1 << 40, 1 << 40, 8), b"\0" * 8), sequence_id=i32(4), position=i32(4))
npz("negative.npz", topk_ids=npy("<u2", (-1, 2, 2), b"\0" * 8), sequence_id=i32(2), position=i32(2))
npz("object.npz", topk_ids=npy("|O", (2, 2, 2), b"\x80\x04." * 4), sequence_id=i32(2), position=i32(2))
npz("evil.npz", topk_ids=npy("", "", b"", "{'descr': __import__('os').system('true')}"), sequence_id=i32(2))
P
for name in cut empty text none ids_only short huge negative object evil; do
  bad "$name.npz" "[a-z]" check "$name.npz"
  bad "$name.npz" "[a-z]" compare --models mixtral-8x7b --trace "mixtral-8x7b=$name.npz"
done

# Not the input's fault: exit status 3 before any work.
mkdir dir
for options in "--json $PWD/dir" "--report /proc/none" "--timeline /proc/x.json" "--json a.txt/b.json"; do
  run compare --models mixtral-8x7b $options
  exits 3
  complains "$cl: ${options%% *}: cannot write"
done
[[ $cases -ge 40 ]] || fail "only $cases cases"
echo "$cases bad inputs refused"
