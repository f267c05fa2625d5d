#!/usr/bin/env python3
"""Checks that includes follow the layers, and that no files include each other in a circle.

The order of the layers is read from the sojourn_layer(...) calls of CMakeLists.txt, bottom first. The rules:
  include/sojourn/   "sojourn/..." and system headers only
  src/<layer>/       its own layer, layers below it, "sojourn/..."
  src/cli, src/server, src/python   anything, and nothing else may include them
Prints file:line: message for each violation; exit status 0 clean, 1 violations, 2 wrong usage.

usage: tools/check_layers.py [--root DIR]
       tools/check_layers.py --self-test     plants every kind of violation in a scratch tree and expects it to be found
"""
import re
import sys
import tempfile
from pathlib import Path

TOPS = ("cli", "server", "python")  # executables and bindings: they see every layer
SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".inc"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
# What may hide an include from, or fake one to, a line-by-line reader. Plain strings and characters are matched only so
# that a comment opener inside them is not taken for one.
TOKENS = re.compile(
    r'R"(?P<delim>[^()\\\s]{0,16})\((?:.*?)\)(?P=delim)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
    re.DOTALL)


def read_layers(cmake_lists):
    """Names of the layers, bottom first."""
    text = re.sub(r"#[^\n]*", "", cmake_lists.read_text(encoding="utf-8"))
    return re.findall(r"^\s*sojourn_layer\s*\(\s*(\w+)", text, re.MULTILINE)


def includes(text):
    """(line, is_quoted, path) of every include outside comments and raw strings."""
    def blank(match):
        token = match.group(0)
        return token if token[0] in "\"'" else "\n" * token.count("\n") or " "
    bare = TOKENS.sub(blank, text)
    for match in INCLUDE.finditer(bare):
        yield bare.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


class Checker:
    def __init__(self, root):
        self.root = root
        self.layers = read_layers(root / "CMakeLists.txt")
        self.rank = {name: self.layers.index(name) for name in self.layers}
        self.violations = []
        self.edges = {}  # file -> [(line, included file)], all relative to the root
        self.include_count = 0

    def report(self, file, line, message):
        self.violations.append(f"{file}:{line}: {message}")

    def resolve(self, file, quoted, target):
        """The file of this project that an include names, relative to the root, or None."""
        candidates = [Path("src") / target, Path("include") / target]
        if quoted:
            candidates.insert(0, file.parent / target)
        return next((c for c in candidates if (self.root / c).is_file()), None)

    def check_include(self, file, owner, line, quoted, target):
        if ".." in Path(target).parts:
            self.report(file, line, f'"{target}": write the path from src/ or include/, without ".."')
            return
        found = self.resolve(file, quoted, target)
        if found is None:
            head = target.split("/")[0]
            if quoted and "/" in target and (head in self.rank or head in TOPS or head == "sojourn"):
                self.report(file, line, f'"{target}" does not exist')
            return
        self.edges.setdefault(file, []).append((line, found))
        other = "sojourn" if found.parts[0] == "include" else found.parts[1]
        if other == "sojourn" or owner in TOPS or other == owner:
            return
        if owner == "sojourn":
            self.report(file, line, f'the public headers may include only "sojourn/...", not "{target}"')
        elif other not in self.rank:
            self.report(file, line, f'layer "{owner}" may not include "{target}": "{other}" is no layer')
        elif self.rank[other] > self.rank[owner]:
            self.report(file, line, f'layer "{owner}" may not include "{target}": "{other}" is above it')

    def find_cycles(self):
        state = {}  # file -> "open" or "done"
        for start in sorted(self.edges):
            if start in state:
                continue
            state[start] = "open"
            path, pending = [start], [iter(self.edges[start])]
            while path:
                for line, target in pending[-1]:
                    if state.get(target) == "open":
                        circle = path[path.index(target):] + [target]
                        self.report(path[-1], line, "include circle: " + " -> ".join(map(str, circle)))
                    elif target not in state:
                        state[target] = "open"
                        path.append(target)
                        pending.append(iter(self.edges.get(target, ())))
                        break
                else:
                    state[path.pop()] = "done"
                    pending.pop()

    def run(self):
        if not self.layers:
            self.report("CMakeLists.txt", 1, "no sojourn_layer(...) call found")
        repeated = {name for name in self.layers if self.layers.count(name) > 1}
        for name in sorted(repeated):
            self.report("CMakeLists.txt", 1, f'layer "{name}" is declared twice')
        files = sorted(path.relative_to(self.root) for top in ("src", "include/sojourn")
                       for path in (self.root / top).rglob("*") if path.suffix in SUFFIXES and path.is_file())
        self.file_count = len(files)
        for file in files:
            if file.parts[0] == "include":
                owner = "sojourn"
            elif len(file.parts) == 2:
                self.report(file, 1, "a source file must live in a layer's folder, not in src/ itself")
                continue
            else:
                owner = file.parts[1]
                if owner not in self.rank and owner not in TOPS:
                    self.report(file, 1, f'"{owner}" is no layer: declare sojourn_layer({owner}) in CMakeLists.txt')
                    continue
            text = (self.root / file).read_text(encoding="utf-8", errors="replace")
            for line, quoted, target in includes(text):
                self.include_count += 1
                self.check_include(file, owner, line, quoted, target)
        self.find_cycles()
        return self.violations


def self_test():
    """Each case is a tree and the violations it must give, as (file:line, words); an empty list means clean."""
    cmake = "sojourn_layer(base)\n# sojourn_layer(ghost)\nsojourn_layer(trace PLUGINS formats)\nsojourn_layer(engine)\n"
    base = {"CMakeLists.txt": cmake, "src/base/a.h": "// a\n", "src/trace/t.h": '#include "base/a.h"\n',
            "include/sojourn/u.h": "#include <vector>\n"}
    cases = {
        "a clean tree": ({"src/engine/e.cc": '#include "engine/e.h"\n#include "trace/t.h"\n#include "sojourn/u.h"\n',
                          "src/engine/e.h": "#include <map>\n#include <fmt/core.h>\n",
                          "src/cli/main.cc": '#include "engine/e.h"\n#include "cli/x.h"\n', "src/cli/x.h": ""}, []),
        "an upward include": ({"src/base/b.cc": '// b\n#include "trace/t.h"\n'}, [("src/base/b.cc:2", "above it")]),
        "an upward include in angle brackets": ({"src/base/b.cc": "#include <trace/t.h>\n"},
                                                [("src/base/b.cc:1", "above it")]),
        "an upward include from a plug-in folder": (
            {"src/trace/formats/f.cc": '#include "engine/e.h"\n', "src/engine/e.h": ""},
            [("src/trace/formats/f.cc:1", "above it")]),
        "a layer that includes the command line": ({"src/engine/e.cc": '#include "cli/x.h"\n', "src/cli/x.h": ""},
                                                   [("src/engine/e.cc:1", "no layer")]),
        "a public header that includes a layer": ({"include/sojourn/v.h": '#include "base/a.h"\n'},
                                                  [("include/sojourn/v.h:1", "public headers")]),
        "a folder that is no layer": ({"src/ghost/g.cc": ""}, [("src/ghost/g.cc:1", "is no layer")]),
        "a source outside any layer": ({"src/stray.cc": ""}, [("src/stray.cc:1", "must live in")]),
        "a path with dots": ({"src/trace/p.cc": '#include "../base/a.h"\n'}, [("src/trace/p.cc:1", "without")]),
        "a missing header": ({"src/trace/p.cc": '#include "base/none.h"\n'}, [("src/trace/p.cc:1", "does not exist")]),
        "a circle of two": ({"src/base/x.h": '#include "base/y.h"\n', "src/base/y.h": '\n#include "base/x.h"\n'},
                            [("src/base/y.h:2", "include circle: src/base/x.h -> src/base/y.h -> src/base/x.h")]),
        "a circle of three reached from outside": (
            {"src/base/0.cc": '#include "base/p.h"\n', "src/base/p.h": '#include "q.h"\n',
             "src/base/q.h": '#include "base/r.h"\n', "src/base/r.h": '#include "base/p.h"\n'},
            [("src/base/r.h:1", "src/base/p.h -> src/base/q.h -> src/base/r.h -> src/base/p.h")]),
        "a file that includes itself": ({"src/base/s.h": '#include "base/s.h"\n'}, [("src/base/s.h:1", "circle")]),
        "includes in comments and raw strings": (
            {"src/base/c.cc": '// #include "trace/t.h"\n/*\n#include "trace/t.h"\n*/\nauto s = R"x(\n'
                              '#include "trace/t.h"\n)x";\nchar q = \'"\'; auto g = "/*";\nint n = 1\'000\'000;\n'}, []),
        "an include after a string that looks like a comment": (
            {"src/base/c.cc": 'auto g = "/*";\n#include "trace/t.h"\nauto h = "*/";\n'},
            [("src/base/c.cc:2", "above it")]),
        "a layer declared twice": ({"CMakeLists.txt": cmake + "sojourn_layer(base)\n"},
                                   [("CMakeLists.txt:1", "twice")]),
        "no layers at all": ({"CMakeLists.txt": "project(x)\n", "src/base/a.h": None, "src/trace/t.h": None},
                             [("CMakeLists.txt:1", "no sojourn_layer")]),
    }
    failures = 0
    for name, (files, expected) in cases.items():
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            for path, text in {**base, **files}.items():
                if text is not None:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text, encoding="utf-8")
            found = Checker(root).run()
        matched = len(found) == len(expected) and all(
            any(line.startswith(place + ":") and words in line for line in found) for place, words in expected)
        if not matched:
            failures += 1
            print(f"check_layers self-test: {name}: expected {expected}, found {found}")
    print(f"check_layers self-test: {len(cases) - failures} of {len(cases)} cases as expected")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = Path(__file__).resolve().parent.parent
    if len(arguments) == 2 and arguments[0] == "--root":
        root = Path(arguments[1]).resolve()
    elif arguments:
        print(__doc__.strip(), file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    checker = Checker(root)
    violations = checker.run()
    for violation in violations:
        print(violation)
    print(f"check_layers: {checker.file_count} files, {checker.include_count} includes, "
          f"{len(checker.layers)} layers, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
