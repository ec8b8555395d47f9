"""Line and branch coverage of core and model, from what the tests of the preset `coverage` left.

    cmake --preset coverage && cmake --build --preset coverage && ctest --preset coverage
    proptests/coverage/report.py [--build build-coverage] [--missed]

A branch is a condition of the source, or an operand of && and ||, that was true and was false
(clang's source-based coverage: edges that only exceptions take are none). Every branch of core/src
must be covered, or named in uncovered.txt with a reason. Exit code 1: one is not, or one that is
named is covered or not there any more.
"""
import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHOWN = ("core/src", "core/include", "core/backend_api", "model/src", "model/include")
COMPLETE = "core/src"  # where every branch has to be covered


def tool(name):
    found = shutil.which(name) or shutil.which(name + "-14")
    if not found and pathlib.Path("/usr/lib/llvm-14/bin", name).exists():
        found = "/usr/lib/llvm-14/bin/" + name
    return found or sys.exit(name + " is not installed (package llvm)")


def exported(build):
    """What llvm-cov says of all instrumented programs of the build, as JSON."""
    raw = sorted(str(path) for path in (build / "profiles").glob("*.profraw"))
    if not raw:
        sys.exit("no profiles in %s: run the tests of the preset first" % (build / "profiles"))
    merged = build / "coverage.profdata"
    listed = build / "profiles.txt"
    listed.write_text("\n".join(raw) + "\n")
    subprocess.run([tool("llvm-profdata"), "merge", "--sparse", "-f", str(listed), "-o",
                    str(merged)], check=True)
    programs = [str(build / name) for name in ("proptests/granule", "core/core_tests",
                                                "model/model_tests") if (build / name).exists()]
    command = [tool("llvm-cov"), "export", "--instr-profile", str(merged), programs[0]]
    for program in programs[1:]:
        command += ["--object", program]
    command += [str(ROOT / folder) for folder in SHOWN]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["data"][0]["files"]


class Coverage:
    """Counts of one file: lines, and how often each condition was true and false."""

    def __init__(self, entry):
        self.path = pathlib.Path(entry["filename"]).resolve().relative_to(ROOT)
        lines = entry["summary"]["lines"]
        self.lines, self.lines_hit = lines["count"], lines["covered"]
        self.source = (ROOT / self.path).read_text().splitlines()
        self.conditions = collections.defaultdict(lambda: [0, 0])
        for first, column, last, end, true, false, *_ in entry["branches"]:
            counts = self.conditions[(first, column, last, end)]  # instances of templates add up
            counts[0] += true
            counts[1] += false

    def text(self, place):
        first, column, last, end = place
        if first == last:
            return self.source[first - 1][column - 1 : end - 1]
        middle = self.source[first : last - 1]
        parts = [self.source[first - 1][column - 1 :], *middle, self.source[last - 1][: end - 1]]
        return " ".join(part.strip() for part in parts)

    def missed(self):
        """(line, key) of each branch that was never taken. Equal keys are counted."""
        seen, found = collections.Counter(), []
        for place in sorted(self.conditions):
            for count, way in zip(self.conditions[place], ("true", "false")):
                key = "%s | %s | never %s" % (self.path, self.text(place), way)
                seen[key] += 1
                if seen[key] > 1:
                    key += " | %d" % seen[key]
                if count == 0:
                    found.append((place[0], key))
        return found

    def branches(self):
        taken = sum((counts[0] != 0) + (counts[1] != 0) for counts in self.conditions.values())
        return taken, 2 * len(self.conditions)


def reasons():
    """uncovered.txt: `= reason`, which may go on in lines that begin with blanks, and its keys."""
    listed, reason = {}, ""
    for line in (HERE / "uncovered.txt").read_text().splitlines():
        if line.startswith("= "):
            reason = line[2:]
        elif line.startswith("  "):
            reason += line[1:]
        elif line and not line.startswith("#"):
            listed[line] = reason
    return listed


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    arguments.add_argument("--missed", action="store_true", help="also list those of the model")
    options = arguments.parse_args()
    files = sorted((Coverage(entry) for entry in exported(options.build)), key=lambda f: f.path)
    print("%-48s %14s %8s %14s %8s" % ("file", "lines", "", "branches", ""))
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    listed, missed = reasons(), {}
    for file in files:
        taken, branches = file.branches()
        show(str(file.path), file.lines_hit, file.lines, taken, branches)
        total = sums["/".join(file.path.parts[:2])]
        for i, value in enumerate((file.lines_hit, file.lines, taken, branches)):
            total[i] += value
        if str(file.path).startswith(COMPLETE):
            missed.update({key: line for line, key in file.missed()})
        elif options.missed:
            for line, key in file.missed():
                print("    line %d: %s" % (line, key))
    for folder, total in sums.items():
        show(folder, *total)
    wrong = ["not covered: line %d, %s" % (line, key) for key, line in missed.items()
             if key not in listed]
    wrong += ["listed, but covered or gone: " + key for key in listed if key not in missed]
    for line in wrong:
        print(line)
    print("%s: %d branches not covered, %d of them with a reason" % (
        COMPLETE, len(missed), len(missed.keys() & listed.keys())))
    sys.exit(1 if wrong else 0)


def show(name, lines_hit, lines, taken, branches):
    def percent(part, whole):
        return "%7.1f%%" % (100.0 * part / whole) if whole else ""
    print("%-48s %6d of %-5d %8s %6d of %-5d %8s" % (
        name, lines_hit, lines, percent(lines_hit, lines), taken, branches,
        percent(taken, branches)))


if __name__ == "__main__":
    main()
