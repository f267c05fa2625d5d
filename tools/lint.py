#!/usr/bin/env python3
"""House style that a compiler does not check, over the files git tracks:
  the layers (tools/check_layers.py); at most 600 lines in a file of src/ or include/ (warning, failure beyond 650);
  no to-do markers; every C++ source opens with a comment that says what it is for; clang-format, where it is installed.
Exit status 0 clean, 1 findings.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CXX = {".cc", ".h"}
CODE = CXX | {".py", ".sh", ".cmake"}
NAMED = {"dev", "CMakeLists.txt", ".ci/run"}
MARKERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")
WARN_LINES, FAIL_LINES = 600, 650


def project_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
    else:  # an unpacked archive
        names = [str(p.relative_to(ROOT)) for top in ("src", "include", "tests", "bench", "tools", "cmake")
                 for p in (ROOT / top).rglob("*")] + list(NAMED)
    return sorted(Path(n) for n in set(names) if n and (ROOT / n).is_file())


def main():
    findings, warnings = [], []
    files = project_files()
    code = [f for f in files if f.suffix in CODE or str(f) in NAMED]
    cxx = [f for f in files if f.suffix in CXX]
    for file in code:
        lines = (ROOT / file).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if marker := MARKERS.search(line):
                findings.append(f"{file}:{number}: {marker.group(1)}: do it, or file an issue")
        if file.parts[0] not in ("src", "include"):
            continue
        if len(lines) > WARN_LINES:
            (findings if len(lines) > FAIL_LINES else warnings).append(
                f"{file}:{len(lines)}: {len(lines)} lines; split it (at most {WARN_LINES})")
        if file.suffix in CXX:
            first = next((line.strip() for line in lines if line.strip()), "")
            if not first.startswith(("//", "/*")):
                findings.append(f"{file}:1: open with a comment that says what this file is for")

    for warning in warnings:
        print(f"warning: {warning}")
    for finding in findings:
        print(finding)
    print(f"lint: {len(code)} files, {len(findings)} findings, {len(warnings)} warnings")
    sys.stdout.flush()

    failed = bool(findings)
    failed |= subprocess.run([sys.executable, "tools/check_layers.py"], cwd=ROOT).returncode != 0
    formatter = os.environ.get("CLANG_FORMAT", "clang-format")
    if not shutil.which(formatter):
        print("clang-format: skipped, not installed (apt-get install clang-format)")
    elif cxx:
        run = subprocess.run([formatter, "--dry-run", "--Werror", *map(str, cxx)], cwd=ROOT, capture_output=True, text=True)
        wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", run.stderr, re.MULTILINE)))
        for file in wrong:
            print(f"{file}: not formatted (clang-format -i {file})")
        print(f"clang-format: {len(cxx)} files, {len(wrong)} to format")
        failed |= run.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
