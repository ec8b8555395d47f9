"""Mutation score of the core: runs the quick suite once for each mutant, and says which survive.

    cmake --preset mutation && cmake --build --preset mutation --target granule core_tests
    python3 proptests/mutation/run.py [--jobs 2] [--every N] [--file grow.cpp] [--again] [--report]

The suite (SUITE below) is ordered from cheap and strong to dear; it ends at the first command that
fails, crashes or hangs: the mutant is killed. Results are added to mutation.jsonl in the build
folder as they come, and a mutant that has one is not run again, so an interrupted run goes on
where it was. `--again` runs the survivors once more, `--report` prints the table only.

Survivors must be listed in survivors.txt with a reason. Exit code 1: one is not listed, or a listed
one does not survive any more, or fewer than GOAL percent are killed.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOAL = 95.0
MEMORY = 6 << 30  # a mutant that asks for endless memory is killed by it

# (name, command, seconds that it may take; without a mutant each takes a tenth of that or less)
GRANULE = "{build}/proptests/granule"
ONE = ("--no-shrink", "--in-process", "--jobs", "1")
SUITE = [
    ("tests", ["{build}/core/core_tests", "--gtest_brief=1"], 10),
    ("replay", [GRANULE, "replay", "--strict", "--quiet", "{programs}", "{corpus}"], 8),
    ("enumerate", [GRANULE, "enumerate", "--length", "2", "--faults", *ONE], 10),
    ("check", [GRANULE, "check", "--seed", "1", "--programs", "1500", *ONE], 20),
    ("strict driver", [GRANULE, "check", "--driver", "adversarial", "--seed", "2", "--programs",
                       "1500", *ONE], 20),
    # Every interleaving of the corpus's threads with few pre-emptions.
    ("threads", [GRANULE, "replay", "--strict", "--quiet", "--explore", "{threads}"], 20),
    ("sweep corpus", [GRANULE, "sweep", "--quiet", "--first", "--pairs", "0", "{corpus}", *ONE],
     30),
    ("sweep", [GRANULE, "sweep", "--quiet", "--first", "--pairs", "0", "{programs}", *ONE], 90),
]


def filled(command, build, out):
    places = {"build": build, "programs": ROOT / "proptests/programs",
              "corpus": ROOT / "proptests/corpus"}
    threads = [str(path) for path in sorted(places["corpus"].glob("threads-*.granule"))]
    words = []
    for word in command:
        words += threads if word == "{threads}" else [word.format(**places)]
    if words[0].endswith("granule") and words[1] in ("check", "sweep", "enumerate"):
        words += ["--out", str(out)]
    return words


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempt(number, build, suite, out):
    """Runs the suite with the mutant: (name of what killed it, how), or (None, "")."""
    environment = dict(os.environ, GRANULE_MUTANT=str(number))
    for name, command, seconds in suite:
        try:
            done = subprocess.run(filled(command, build, out), env=environment, timeout=seconds,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  preexec_fn=limited, check=False)
        except subprocess.TimeoutExpired:
            return name, "hang"
        if done.returncode < 0:
            return name, "crash"
        if done.returncode != 0:
            return name, "exit %d" % done.returncode
    return None, ""


class Results:
    """Outcome by key, kept in a file of JSON lines. The last line of a key counts."""

    def __init__(self, path):
        self.path, self.by_key = path, {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    one = json.loads(line)
                except json.JSONDecodeError:  # the last line of a run that was cut off
                    continue
                self.by_key[one["key"]] = one

    def add(self, one):
        self.by_key[one["key"]] = one
        with self.path.open("a") as file:
            file.write(json.dumps(one) + "\n")


def run(mutants, results, options):
    suite = [stage for stage in SUITE if not options.suite or stage[0] in options.suite]
    out = options.build / "mutation-out"
    for name, command, seconds in suite:
        began = time.monotonic()
        who, how = attempt(0, options.build, [(name, command, seconds * 10)], out)
        if who:
            sys.exit("%s fails without a mutant (%s)" % (name, how))
        print("%s: %.1f s without a mutant" % (name, time.monotonic() - began), flush=True)
    began, killed = time.monotonic(), 0

    def one(mutant):
        start = time.monotonic()
        who, how = attempt(mutant["number"], options.build, suite, out)
        return {"key": mutant["key"], "killed_by": who, "how": how,
                "seconds": round(time.monotonic() - start, 2)}

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(one, mutant) for mutant in mutants]
        try:
            for count, task in enumerate(concurrent.futures.as_completed(tasks), 1):
                result = task.result()
                results.add(result)
                killed += result["killed_by"] is not None
                if not result["killed_by"]:
                    print("\nsurvives: " + result["key"], flush=True)
                if count % 20 == 0 or count == len(tasks):
                    spent = time.monotonic() - began
                    print("\r%d of %d, %d killed, %.0f s, %.0f s left" % (
                        count, len(tasks), killed, spent, spent / count * (len(tasks) - count)),
                        end="", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            sys.exit("\ninterrupted: the next run goes on from here")
    print()


def reasons():
    """survivors.txt: `= reason` holds for the keys below it. A key may end in * for all behind."""
    listed, reason = {}, ""
    for line in (HERE / "survivors.txt").read_text().splitlines():
        if line.startswith("= "):
            reason = line[2:]
        elif line.startswith("  "):
            reason += line[1:]
        elif line and not line.startswith("#"):
            listed[line] = reason
    return listed


def reason_of(key, listed):
    if key in listed:
        return key
    for pattern in listed:
        if pattern.endswith("*") and key.startswith(pattern[:-1]):
            return pattern
    return None


def report(mutants, results):
    """Prints the table; returns what is wrong."""
    listed, used, wrong = reasons(), set(), []
    table, survivors = {}, []
    for mutant in mutants:
        result = results.by_key.get(mutant["key"])
        if not result:
            continue
        row = table.setdefault(mutant["file"], [0, 0, 0])
        row[0] += 1
        if result["killed_by"]:
            row[1] += 1
            continue
        survivors.append(mutant)
        pattern = reason_of(mutant["key"], listed)
        if pattern:
            row[2] += not listed[pattern].startswith("Open")
            used.add(pattern)
        else:
            wrong.append("survives and is not listed: line %d, %s" % (mutant["line"],
                                                                       mutant["key"]))
    print("%-22s %8s %8s %10s %10s" % ("file", "mutants", "killed", "explained", "percent"))
    total = [sum(row[i] for row in table.values()) for i in range(3)]
    for name, row in sorted(table.items()) + [("all", total)]:
        print("%-22s %8d %8d %10d %9.1f%%" % (name, *row, 100.0 * row[1] / max(row[0], 1)))
    ran = {mutant["key"] for mutant in mutants if mutant["key"] in results.by_key}
    for pattern in sorted(set(listed) - used):
        if pattern in ran:
            wrong.append("listed, but killed: " + pattern)
        elif not pattern.endswith("*") and pattern not in {mutant["key"] for mutant in mutants}:
            wrong.append("listed, but there is no such mutant: " + pattern)
    if total[0] and 100.0 * total[1] / total[0] < GOAL:
        wrong.append("fewer than %.0f %% are killed" % GOAL)
    by = {}
    for mutant in mutants:
        result = results.by_key.get(mutant["key"])
        if result and result["killed_by"]:
            by[result["killed_by"]] = by.get(result["killed_by"], 0) + 1
    print("killed by " + ", ".join("%s %d" % item for item in sorted(by.items())))
    return wrong


def chosen(mutant, every):
    """A fixed part of the mutants, which edits elsewhere do not change."""
    digest = hashlib.sha256(mutant["key"].encode()).digest()
    return int.from_bytes(digest[:4], "big") % every == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutation")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--every", type=int, default=1, help="run one mutant in so many")
    arguments.add_argument("--file", action="append", help="only mutants of this file")
    arguments.add_argument("--number", type=int, action="append", help="only this mutant")
    arguments.add_argument("--suite", action="append", help="only this part of the suite")
    arguments.add_argument("--again", action="store_true", help="run survivors once more")
    arguments.add_argument("--report", action="store_true", help="run nothing")
    options = arguments.parse_args()
    mutants = json.loads((options.build / "core/mutants/mutants.json").read_text())
    mutants = [mutant for mutant in mutants if chosen(mutant, options.every)]
    if options.file:
        mutants = [mutant for mutant in mutants if mutant["file"] in options.file]
    if options.number:
        mutants = [mutant for mutant in mutants if mutant["number"] in options.number]
    results = Results(options.build / "mutation.jsonl")
    if not options.report:
        def pending(mutant):
            known = results.by_key.get(mutant["key"])
            return not known or (options.again and not known["killed_by"]) or options.number
        todo = [mutant for mutant in mutants if pending(mutant)]
        # Spread over the files, so that what is done so far is a fair picture.
        todo.sort(key=lambda mutant: hashlib.sha256(mutant["key"].encode()).digest())
        run(todo, results, options)
    wrong = report(mutants, results)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
