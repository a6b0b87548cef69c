"""Draws what a command shows on a terminal as an SVG: python3 scripts/lib/picture.py FILE.svg COMMAND...

The command runs behind a pseudo terminal, so that it colours as for a person. Text stays text: it can be searched,
selected and read aloud, and it is dark on light or light on dark as the reader's system is.
"""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios

COLUMNS = 96
CHARACTER, LINE, MARGIN = 7.8, 18, 16
# The terminal's own numbers: 8 to 15 are the bright ones. First on light, then on dark.
COLOURS = {1: ("#b3261e", "#ff7b72"), 2: ("#1a7f37", "#56d364"), 3: ("#8a5a00", "#e3b341"), 6: ("#0b6e8a", "#76e3ea")}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def shown(command):
    """All that the command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    process = subprocess.Popen(command, stdout=theirs, env={**os.environ, "TERM": "xterm-256color"})
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        written += piece
    if process.wait():
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return written.decode().replace("\r\n", "\n").rstrip("\n")


def colour(codes, before):
    """The colour after an escape sequence; `None` is the terminal's own."""
    numbers = [int(code or 0) for code in codes.split(";")]
    if numbers[:2] == [38, 5]:
        return numbers[2] % 8
    if numbers[0] in (0, 39):
        return None
    return numbers[0] % 10 if 30 <= numbers[0] <= 37 or 90 <= numbers[0] <= 97 else before


def lines(text):
    """Lines of (colour, text), broken where a terminal breaks them."""
    now, line, used = None, [], 0
    for number, part in enumerate(ESCAPE.split(text)):
        if number % 2:
            now = colour(part, now)
            continue
        for character in part:
            if character == "\n" or used == COLUMNS:
                yield line
                line, used = [], 0
            if character != "\n":
                line, used = line + [(now, character)], used + 1
    yield line


def spans(line):
    """One `tspan` for each run of a colour."""
    runs = []
    for now, character in line:
        if runs and runs[-1][0] == now:
            runs[-1][1] += character
        else:
            runs.append([now, character])
    for now, text in runs:
        text = html.escape(text, quote=False)
        yield f'<tspan class="c{now}">{text}</tspan>' if now in COLOURS else text


def picture(command, text):
    rows = ["$ " + html.escape(" ".join(command), quote=False), *("".join(spans(line)).rstrip() for line in lines(text))]
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    light = "".join(f".c{number}{{fill:{pair[0]}}}" for number, pair in COLOURS.items())
    dark = "".join(f".c{number}{{fill:{pair[1]}}}" for number, pair in COLOURS.items())
    texts = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + LINE * at + 13}" xml:space="preserve">{row}</text>'
        for at, row in enumerate(rows)
        if row
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>{html.escape(" ".join(command), quote=False)}</title>
<style>
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}}
rect{{fill:#f6f8fa;stroke:#d0d7de}}{light}
@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}rect{{fill:#0d1117;stroke:#30363d}}{dark}}}
</style>
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>
{texts}
</svg>
"""


def main():
    file, command = sys.argv[1], sys.argv[2:]
    text = shown(command)
    with open(file, "w", encoding="utf-8") as out:
        out.write(picture([os.path.basename(command[0]), *command[1:]], text))


main()
