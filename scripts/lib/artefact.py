"""Checks that Lambda can start a zip, and prints its size. usage: artefact.py ZIP x86_64|arm64"""

import re
import sys
import zipfile

GLIBC = (2, 34)  # of provided.al2023
MACHINES = {"x86_64": 0x3E, "arm64": 0xB7}  # e_machine in the ELF header


def main():
    path, architecture = sys.argv[1:]
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["bootstrap"], f"{path} holds {archive.namelist()}, not bootstrap at its root"
        entry = archive.getinfo("bootstrap")
        binary = archive.read(entry)
    mode = entry.external_attr >> 16 & 0o777
    assert mode & 0o555 == 0o555, f"bootstrap has mode {mode:o}: Lambda could not execute it"
    machine = int.from_bytes(binary[18:20], "little")
    assert machine == MACHINES[architecture], f"bootstrap is for ELF machine {machine:#x}, not {architecture}"
    versions = {tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(\d+\.\d+(?:\.\d+)?)\0", binary)}
    newest = max(versions)
    assert newest[:2] <= GLIBC, f"bootstrap needs glibc {newest}, provided.al2023 has {GLIBC}"
    print(f"{path}: {entry.compress_size / 2**20:.2f} MiB, {len(binary) / 2**20:.2f} MiB unpacked, mode {mode:o}, glibc {'.'.join(map(str, newest))}")


main()
