"""Draws the dashboard of template.yaml from a function's log: python3 scripts/lib/dashboard.py LOG FILE.svg

Widgets, metrics, statistics and titles are the template's; the values are those of the metric lines (EMF) in the log,
which `charge-once local --queue N --log LOG` writes. Colours follow the reader's system, light or dark, and text stays
text.
"""

import collections
import io
import itertools
import json
import re
import sys

import matplotlib.pyplot as plt
import numpy
import yaml
from matplotlib import ticker

# What local mode calls that which the template makes.
NAMES = {
    "AWS::StackName": "charge-once",
    "AWS::Region": "local",
    "Queue": "orders",
    "Dlq": "orders-dlq",
    "ChargeFunction": "charge-once",
    "ChargeFunctionOrders": "orders-mapping",
    "LedgerTable": "charge-once-local",
    "FunctionLogGroup": "charge-once",
}
STATISTICS = {"Sum": numpy.sum, "Maximum": numpy.max, "Minimum": numpy.min, "Average": numpy.mean, "SampleCount": len}
FONT = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
LETTER = 6.3  # pixels, of the widest font
POINTS = 60  # about so many to a curve: a run of minutes has too few of the dashboard's own periods
COLUMN, ROW, GAP = 45, 46, 5  # pixels of a step of the dashboard's grid, and between widgets
# Each colour on light and on dark; the light one is drawn, and the style sheet changes it.
PAGE, CARD, EDGE = ("#f6f8fa", "#0d1117"), ("#ffffff", "#161b22"), ("#d0d7de", "#30363d")
INK, FAINT, GRID = ("#1f2328", "#e6edf3"), ("#59636e", "#9198a1"), ("#e4e8ec", "#262c36")
SERIES = [
    ("#0969da", "#4493f8"), ("#bf5700", "#f0883e"), ("#1a7f37", "#3fb950"), ("#cf222e", "#ff7b72"),
    ("#8250df", "#ab7df8"), ("#9a6700", "#d29922"), ("#bf3989", "#db61a2"), ("#57606a", "#8b949e"),
]  # fmt: skip
ELSEWHERE = "AWS's own: not part of a local run"


class Template(yaml.SafeLoader):
    """Reads a template; of `!Sub`, `!Ref` and their like only the value is kept."""


def untagged(loader, _tag, node):
    kinds = {yaml.ScalarNode: loader.construct_scalar, yaml.SequenceNode: loader.construct_sequence}
    return kinds.get(type(node), loader.construct_mapping)(node)


Template.add_multi_constructor("!", untagged)


def widgets():
    """The widgets of the template's dashboard, with local mode's names in them."""
    with open("template.yaml", encoding="utf-8") as file:
        resources = yaml.load(file, Template)["Resources"]
    text = resources["Dashboard"]["Properties"]["DashboardBody"][0]
    return json.loads(re.sub(r"\$\{([\w:]+)\}", lambda found: NAMES[found[1]], text))["widgets"]


def metrics(widget):
    """Each metric of a widget as (namespace, name, dimensions, statistic): "." and "..." repeat what stands above."""
    before = []
    for row in widget["metrics"]:
        options = row[-1] if isinstance(row[-1], dict) else {}
        cells = [cell for cell in row if cell is not options]
        if cells[:1] == ["..."]:
            cells = before[: len(before) - len(cells) + 1] + cells[1:]
        before = [before[at] if cell == "." else cell for at, cell in enumerate(cells)]
        namespace, name, *pairs = before
        yield namespace, name, tuple(zip(pairs[::2], pairs[1::2])), options.get("stat", widget.get("stat"))


class Log:
    """What the metric lines say, and the other lines."""

    def __init__(self, path):
        self.values = collections.defaultdict(list)  # (namespace, name, dimensions) -> [(milliseconds, values)]
        self.units, self.lines = {}, []
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith("{"):  # not the words of a crash
                    self.read(json.loads(line))
        times = [time for points in self.values.values() for time, _ in points]
        self.begin, self.end = min(times), max(times)
        # A round number of seconds.
        wanted = (self.end - self.begin) / 1000 / POINTS
        self.period = next(step for step in (1, 2, 5, 10, 15, 30, 60, 300, 3600) if step >= wanted)

    def read(self, line):
        if "_aws" not in line:
            self.lines.append(line)
            return
        for directive in line["_aws"]["CloudWatchMetrics"]:
            for definition in directive["Metrics"]:
                name = definition["Name"]
                self.units[directive["Namespace"], name] = definition["Unit"]
                value = line[name] if isinstance(line[name], list) else [line[name]]
                for names in directive["Dimensions"]:
                    key = directive["Namespace"], name, tuple((each, line[each]) for each in names)
                    self.values[key].append((line["_aws"]["Timestamp"], value))

    def curve(self, namespace, name, dimensions, statistic):
        """A statistic of each period: seconds since the begin, and values; `None` if the run has no such metric."""
        if (namespace, name, dimensions) not in self.values:
            return None
        periods = collections.defaultdict(list)
        for time, values in self.values[namespace, name, dimensions]:
            periods[(time - self.begin) // (1000 * self.period)].extend(values)
        every = range(max(0, (self.end - self.begin) // (1000 * self.period)) + 1)
        percentile = re.fullmatch(r"p(\d+)", statistic)
        of = (lambda values: numpy.percentile(values, int(percentile[1]))) if percentile else STATISTICS[statistic]
        return [at * self.period for at in every], [of(periods[at]) if periods[at] else numpy.nan for at in every]

    def table(self, query):
        """What the one form of query that the dashboard has gives."""
        by = re.search(r"filter ispresent\((\w+)\) \| stats count\(\*\) as \w+ by \1 \| sort \1 asc", query)
        if not by:
            sys.exit(f"this query cannot be drawn yet: {query}")
        return sorted(collections.Counter(line[by[1]] for line in self.lines if by[1] in line).items())


def draw_metrics(axes, widget, log):
    """The curves; answers what they count, and for the legend each label with its colour, `None` if it has no curve."""
    legend, units, below = [], set(), 0
    listed = list(metrics(widget))
    mixed = len({statistic for *_, statistic in listed if statistic.startswith("p")}) > 1
    for (colour, _dark), (namespace, name, dimensions, statistic) in zip(itertools.cycle(SERIES), listed):
        label = f"{name} {statistic}" if mixed else name
        curve = log.curve(namespace, name, dimensions, statistic)
        legend.append((label, colour) if curve else (f"{label} *", None))
        if not curve:
            continue
        units.add(log.units[namespace, name])
        times, values = curve
        if widget.get("stacked"):
            values = below + numpy.nan_to_num(values)
            axes.fill_between(times, below, values, color=colour, lw=0)
            below = values
        else:
            axes.plot(times, values, color=colour, lw=1.5)
    axes.set_xlim(0, (log.end - log.begin) / 1000)
    most = max(1, axes.get_ylim()[1])
    axes.set_ylim(-most / 50, most)  # a curve at zero is seen too
    axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds // 60:.0f}:{seconds % 60:02.0f}")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 1.5, 2, 3, 6, 10], integer=True))
    if not units:
        axes.set_axis_off()
        axes.text(0.5, 0.5, ELSEWHERE, transform=axes.transAxes, ha="center", va="center", color=FAINT[0])
    return " and ".join(sorted(units)).lower(), legend


def draw_log(axes, widget, log):
    """Bars, and what they count."""
    counts = log.table(widget["query"])
    axes.bar([value for value, _ in counts], [count for _, count in counts], color=SERIES[0][0], width=0.7)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    return "lines of the log", []


def draw(figure, place, log):
    """One widget at its place: a card, its title, what is counted, the curves and below them the legend."""
    widget = place["properties"]
    left, right = place["x"] * COLUMN + GAP, (place["x"] + place["width"]) * COLUMN - GAP
    top, bottom = place["y"] * ROW + GAP, (place["y"] + place["height"]) * ROW - GAP

    def box(left, top, right, bottom):
        width, height = figure.get_size_inches() * 72
        return left / width, 1 - bottom / height, (right - left) / width, (bottom - top) / height

    def rectangle(left, top, right, bottom, **colours):
        x, y, width, height = box(left, top, right, bottom)
        figure.add_artist(plt.Rectangle((x, y), width, height, transform=figure.transFigure, zorder=-1, **colours))

    def write(x, y, text, colour, **font):
        figure.text(*box(x, y, x, y)[:2], text, color=colour[0], **font)

    axes = figure.add_axes(box(left, top, right, bottom))
    what, legend = (draw_log if place["type"] == "log" else draw_metrics)(axes, widget, log)
    longest = max((len(label) for label, _ in legend), default=0) * LETTER + 30
    across = max(1, min(len(legend), int((right - left - 24) // longest)))
    down = -(-len(legend) // across)
    axes.set_position(box(left + 58, top + 46, right - 16, bottom - 30 - 15 * down))
    rectangle(left, top, right, bottom, fc=CARD[0], ec=EDGE[0], lw=1)
    write(left + 12, top + 20, widget["title"], INK, size=12.5, weight="bold")
    write(left + 12, top + 37, what, FAINT)
    for at, (label, colour) in enumerate(legend):
        x, y = left + 14 + at % across * (right - left - 24) / across, bottom - 10 - 15 * (down - 1 - at // across)
        if colour:
            rectangle(x, y - 8, x + 9, y + 1, fc=colour, lw=0)
        write(x + 14, y, label, INK if colour else FAINT)
    axes.set_facecolor(CARD[0])
    axes.grid(axis="y", color=GRID[0], lw=1)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=FAINT[0])
    axes.tick_params(axis="x", pad=7)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(EDGE[0])


def themed(svg):
    """With the reader's font, and a style sheet that changes each colour on dark."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in (PAGE, CARD, EDGE, INK, FAINT, GRID, *SERIES)
        for kind in ("fill", "stroke")
    )
    style = f"text{{font-family:{FONT}}}@media(prefers-color-scheme:dark){{{rules}}}"
    return re.sub(" font-family: [^;]*;", "", svg).replace("<defs>", f"<style>{style}</style>\n<defs>", 1)


def main():
    path, out = sys.argv[1:]
    log, placed = Log(path), widgets()
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "charge-once", "font.size": 10})
    width = max(place["x"] + place["width"] for place in placed) * COLUMN
    height = max(place["y"] + place["height"] for place in placed) * ROW + 30
    figure = plt.figure(figsize=(width / 72, height / 72))
    for place in placed:
        draw(figure, place, log)
    minutes = (log.end - log.begin) / 60_000
    note = f"A run of {minutes:.1f} minutes, a point every {log.period} s; deployed, every 60 s.   * {ELSEWHERE}"
    figure.text(GAP / width, 10 / height, note, color=FAINT[0])
    svg = io.StringIO()
    figure.savefig(svg, format="svg", facecolor=PAGE[0], metadata={"Date": None, "Creator": None})
    with open(out, "w", encoding="utf-8") as file:
        file.write(themed(svg.getvalue()))


main()
