"""Runs released cuda-core and numba-cuda, unchanged, on the simulated driver: the defects that this
release of cuda-core is known for must be found and named, and what is right must be clean.

Usage: run_clients.py GRANULE WORK. Installs pinned packages into WORK/venv; exits with 77, which
ctest shows as skipped, if the package index cannot be reached.
"""

import json
import pathlib
import subprocess
import sys

PACKAGES = ["cuda-core==1.2.0", "cuda-bindings==13.0.3", "numba-cuda==0.30.4", "pytest==8.4.2"]
HERE = pathlib.Path(__file__).parent

# Script, exit code, ids of findings that must be there.
CASES = [
    ("leak.py", 42, ["leak.handle@leak.py:8"]),
    ("moving_grow.py", 42, ["leak.handle@moving_grow.py:7", "misuse.bad_retain@moving_grow.py:8"]),
    ("second_grow.py", 42, ["misuse.bad_map@second_grow.py:9"]),
    ("unaligned_grow.py", 42, ["misuse.bad_unmap@unaligned_grow.py:9",
                               "leak.mapping@unaligned_grow.py:8"]),
    ("close_under_kernel.py", 42, ["misuse.unmap_under_work@close_under_kernel.py:19",
                                   "leak.handle@close_under_kernel.py:17"]),
    ("right.py", 0, []),
    ("numba_arrays.py", 0, []),
]


def make_environment(work):
    python = work / "venv" / "bin" / "python"
    stamp = work / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(PACKAGES):
        return python
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(work / "venv")])
    if made.returncode != 0:
        print("skipped: this Python makes no virtual environments (python3-venv is missing)")
        sys.exit(77)
    install = subprocess.run([str(python), "-m", "pip", "install", "-q", "--retries", "1",
                              "--timeout", "20", *PACKAGES], capture_output=True, text=True)
    if install.returncode != 0:
        print("skipped: the pinned packages cannot be installed here:")
        print(install.stderr[-400:])
        sys.exit(77)
    stamp.write_text("\n".join(PACKAGES))
    return python


def run_case(granule, python, script, code, wanted):
    report = pathlib.Path(python).parents[2] / (script + ".json")
    ran = subprocess.run([granule, "sim", "--json", str(report), "--", str(python),
                          str(HERE / script)], capture_output=True, text=True)
    found = [f["id"] for f in json.loads(report.read_text())["findings"]]
    missing = [one for one in wanted if one not in found]
    good = ran.returncode == code and not missing and (wanted or not found)
    print(f"{'ok  ' if good else 'FAIL'} {script}: exit {ran.returncode}, "
          f"{len(found)} findings{', missing ' + str(missing) if missing else ''}")
    if not good:
        print(ran.stdout, ran.stderr)
    return good


def run_fixture(granule, python):
    """The pytest fixture: of three tests the one that leaks must get an error when it ends."""
    plugin = HERE.parent.parent / "python"
    ran = subprocess.run([granule, "sim", "--report-only", "--", str(python), "-m", "pytest", "-q",
                          "-p", "granule_sim", "-p", "no:cacheprovider",
                          str(HERE / "fixture_cases.py")],
                         capture_output=True, text=True,
                         env={"PYTHONPATH": str(plugin), "PATH": "/usr/bin:/bin",
                              "PYTHONDONTWRITEBYTECODE": "1"})
    good = "3 passed, 1 error" in ran.stdout and "ERROR at teardown of test_buffers_go" in ran.stdout
    good = good and "leak.handle@fixture_cases.py" in ran.stdout
    print(f"{'ok  ' if good else 'FAIL'} pytest fixture")
    if not good:
        print(ran.stdout, ran.stderr)
    return good


def main():
    granule, work = sys.argv[1], pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    python = make_environment(work)
    results = [run_case(granule, python, *case) for case in CASES]
    results.append(run_fixture(granule, python))
    sys.exit(0 if all(results) else 1)


main()
