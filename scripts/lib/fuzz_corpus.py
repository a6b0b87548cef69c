"""Picks what is kept of a corpus: `fuzz_corpus.py CONTROL_FILE FOLDER` reads what libFuzzer's merge found out about each
input, and copies the few inputs that cover most code into FOLDER."""

import hashlib
import pathlib
import shutil
import sys

KEPT = 40  # of each target: seven targets stay under 300 files


def coverage(control_file):
    """Each input with the places in the code that it reaches."""
    lines = iter(pathlib.Path(control_file).read_text().splitlines())
    count = int(next(lines))
    next(lines)  # how many of them are in the folder that is merged into
    inputs = [pathlib.Path(next(lines)) for _ in range(count)]
    reached = {}
    for line in lines:
        kind, number, *places = line.split()
        if kind == "FT":
            reached.setdefault(inputs[int(number)], set()).update(places)
    return reached


def pick(reached):
    covered, picked = set(), []
    while len(picked) < KEPT and reached:
        best = max(reached, key=lambda file: (len(reached[file] - covered), -file.stat().st_size, file.name))
        if not reached[best] - covered:
            break
        covered |= reached.pop(best)
        picked.append(best)
    return picked


folder = pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
for file in pick(coverage(sys.argv[1])):
    data = file.read_bytes()
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
