#!/bin/bash
# Helpers for the command-line tests. A test is an executable tests/cli/NAME.sh, called with the sojourn binary and the
# source folder, that reads:
#
#   . "$(dirname "$0")/lib.sh"
#   run check "$SOURCE/packages/hcrmap-table1.toml"     # any arguments; standard input is empty
#   exits 0                                             # the exit status of the last run
#   prints "no problem"                                 # an extended regular expression in its standard output
#   run compare --package nowhere --json out.json
#   exits 2
#   complains "did you mean"                            # the same for standard error
#   json_is out.json "schema" "sojourn.compare/1"       # the value at a path such as runs.0.latency_ps
#   json_holds out.json "all(r['latency_ps'] > 0 for r in d['runs'])"   # a Python expression over the document d
#
# "$PYTHON" is the interpreter to use. Each test works in an empty folder of its own, which goes when it ends. The first
# broken expectation ends the test with status 1 after showing the command and what it printed. skip REASON ends it as
# skipped (77).
# Run as a program, this file tests itself.
set -uo pipefail

lib_setup() {
  SOJOURN=$(realpath -- "$1") SOURCE=$(realpath -- "$2")
  TEST_HOME=$(mktemp -d "${TMPDIR:-/tmp}/sojourn-test.XXXXXX") || exit 1
  trap 'rm -rf -- "$TEST_HOME"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  cd "$TEST_HOME" || exit 1
  # The system's interpreter first: it is the one that the package python3-numpy serves.
  PYTHON=${PYTHON:-$([[ -x /usr/bin/python3 ]] && echo /usr/bin/python3 || echo python3)}
  LAST_COMMAND="nothing has run" LAST_STATUS=0
  mkdir .lib
  OUT=$TEST_HOME/.lib/out ERR=$TEST_HOME/.lib/err
  : >"$OUT" >"$ERR"
  export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
}

run_command() { # any command, for the same expectations
  LAST_COMMAND=$(printf '%q ' "$@") LAST_STATUS=0
  "$@" </dev/null >"$OUT" 2>"$ERR" || LAST_STATUS=$?
}

run() { run_command "$SOJOURN" "$@"; }

fail() {
  {
    echo "FAILED at line $(caller_line): $*"
    echo "  command: $LAST_COMMAND"
    echo "  exit status: $LAST_STATUS"
    echo "  standard output:"; tail -n 40 "$OUT" | sed 's/^/    /'
    echo "  standard error:"; tail -n 40 "$ERR" | sed 's/^/    /'
  } >&2
  exit 1
}

caller_line() { # of the innermost call made outside this file
  local frame
  for ((frame = 1; frame < ${#BASH_SOURCE[@]}; frame++)); do
    if [[ ${BASH_SOURCE[frame]} != "${BASH_SOURCE[0]}" ]]; then printf '%s' "${BASH_LINENO[frame - 1]}"; return; fi
  done
  printf '%s' "${BASH_LINENO[2]:-?}"
}

skip() { echo "skipped: $*"; exit 77; }

exits() { [[ $LAST_STATUS -eq $1 ]] || fail "expected exit status $1"; }
prints() { grep -Eq -- "$1" "$OUT" || fail "standard output lacks /$1/"; }
prints_not() { ! grep -Eq -- "$1" "$OUT" || fail "standard output has /$1/"; }
complains() { grep -Eq -- "$1" "$ERR" || fail "standard error lacks /$1/"; }
silent() { [[ ! -s $ERR ]] || fail "expected an empty standard error"; }
exists() { [[ -s $1 ]] || fail "'$1' is missing or empty"; }
same() { cmp -s -- "$1" "$2" || fail "'$1' and '$2' differ: $(cmp -- "$1" "$2" 2>&1)"; }

# json_get FILE PATH: the value there as JSON, strings without quotes. FILE may be - for the last standard output.
json_get() {
  local file=$1
  [[ $file != - ]] || file=$OUT
  "$PYTHON" -c '
import json, sys
value = json.load(open(sys.argv[1], encoding="utf-8"))
for step in filter(None, sys.argv[2].split(".")):
    value = value[int(step)] if isinstance(value, list) else value[step]
print(value if isinstance(value, str) else json.dumps(value))' "$file" "$2"
}

json_is() {
  local value
  value=$(json_get "$1" "$2" 2>&1) || fail "no '$2' in '$1': ${value##*$'\n'}"
  [[ $value == "$3" ]] || fail "'$2' in '$1' is '$value', not '$3'"
}

json_holds() {
  local file=$1 answer
  [[ $file != - ]] || file=$OUT
  answer=$("$PYTHON" -c '
import json, math, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
print(bool(eval(sys.argv[2], {"d": d, "math": math})))' "$file" "$2" 2>&1) || fail "'$2' on '$1': ${answer##*$'\n'}"
  [[ $answer == True ]] || fail "'$2' does not hold in '$1'"
}

lib_self_test() { # every helper must accept what is right and reject what is wrong
  local good=0 bad=0
  accepts() { if ("$@") 2>/dev/null; then good=$((good + 1)); else echo "rejected: $*"; bad=$((bad + 1)); fi; }
  rejects() { if ! ("$@") 2>/dev/null; then good=$((good + 1)); else echo "accepted: $*"; bad=$((bad + 1)); fi; }
  run_command bash -c 'echo "{\"a\": [{\"b\": 7}], \"s\": \"x y\"}"; echo oops 1>&2; exit 3'
  accepts exits 3;                  rejects exits 0
  accepts prints '"b": [0-9]+';     rejects prints oops
  accepts prints_not oops;          rejects prints_not '"s"'
  accepts complains '^oops$';       rejects complains '"s"'
  rejects silent
  accepts exists "$OUT";            rejects exists nothing
  accepts same "$OUT" "$OUT";       rejects same "$OUT" "$ERR"
  accepts json_is - a.0.b 7;        rejects json_is - a.0.b 8
  accepts json_is - s "x y";        rejects json_is - a.1 7
  accepts json_holds - "d['a'][0]['b'] == 7"; rejects json_holds - "d['a'] == 7"
  rejects json_holds - "d['none']"
  (skip none) >/dev/null
  if [[ $? -eq 77 ]]; then good=$((good + 1)); else echo "skip does not exit with 77"; bad=$((bad + 1)); fi
  run_command true
  accepts silent
  [[ $(fail planted 2>&1) == *"planted"*"command: true"*"exit status: 0"* ]] || { echo "fail says too little"; bad=$((bad + 1)); }
  echo "tests/cli/lib.sh: $good expectations met, $bad not"
  [[ $bad -eq 0 ]]
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  lib_setup /bin/true /
  lib_self_test
  exit $?
fi
[[ $# -ge 2 ]] || { echo "usage: $0 SOJOURN_BINARY SOURCE_FOLDER" >&2; exit 2; }
lib_setup "$1" "$2"
