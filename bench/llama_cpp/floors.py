# SPDX-License-Identifier: Apache-2.0
"""What the project holds itself to, and whether a figure meets it."""

import peers

# Ratios to llama.cpp; (model, figure) before (figure).
FLOORS = {"decode 1": 1.25, "prefill 512": 2.0, ("smollm2-q8_0", "prefill 512"): 3.0,
          ("smollm2-q4_1", "prefill 512"): 3.0, "decode 16": 3.0, "decode 32": 3.0,
          "server tok/s": 3.0, "server ttft p99, s": 3.0, "server memory, MB": 1 / 0.7,
          "prefill 4096": 2.0, "decode at 4096": 2.0,
          ("random-1.1b", "decode 1"): 1.1, ("random-1.1b", "prefill 512"): 1.5, ("random-1.1b", "decode 8"): 2.0}
# Shares of the machine's limit.
SHARES = {"decode 1": 0.85, "prefill 512": 0.5, "decode 8": 0.6, "decode 16": 0.6, "decode 32": 0.6}
SHARES |= {("random-1.1b", figure): None for figure in SHARES}  # held to the ratios alone
FLOORS |= {("random-1.1b", figure): None for figure in ("decode 16", "decode 32")}
# Limits on spud's own figures: at most, at least. (Of 19 pages of a stream 16 are the prefix: stored once
# for 16 streams they take 0.21 of what private ones would, stored twice 0.26.)
CEILINGS = {"prefix p50 hit / cold": 0.15, "prefix pages shared / private": 0.25, "short p99, flooded / alone": 4.0,
            ("smollm2-", "ready, s"): 0.5, ("smollm2-", "ready packed, s"): 0.2,
            "KL change by int8 KV": 0.002, "KL change by int8 KV, upper end": 0.002}
AT_LEAST = {"speculation gain, copied text 1": 1.0, "speculation gain, copied text 16": 0.97,
            "speculation gain, new text 1": 0.97, "speculation gain, new text 16": 0.97}
# Which figures are better when they are smaller.
LOWER_IS_BETTER = ("ttft", "memory", "ready", "/", "p99", "KL", "pages", "start")


def find(table, model, figure):
    """The entry for a figure: of this model, of models that begin so, of all."""
    for key, value in table.items():
        if isinstance(key, tuple) and key[1] == figure and (model.startswith(key[0]) if key[0].endswith("-")
                                                            else model == key[0]):
            return value
    return table.get(figure)


def lower_is_better(figure):
    return "tok/s" not in figure and any(part in figure for part in LOWER_IS_BETTER)


def judge(model, figure, theirs, ours, shares):
    """One row of the report; `theirs` is empty where only spud has the figure."""
    mine, other, share = peers.median(ours), peers.median(theirs), peers.median(shares)
    ratio = None
    if mine and other:
        ratio = other / mine if lower_is_better(figure) else mine / other
    floor = find(FLOORS, model, figure) if theirs else None
    most, least, wanted_share = (find(table, model, figure) for table in (CEILINGS, AT_LEAST, SHARES))
    if share is None:
        wanted_share = None
    misses = []
    if floor and ratio is not None and ratio < floor:
        misses.append(f"ratio {ratio:.2f} is below {floor:.2f}")
    if wanted_share and share < wanted_share:
        misses.append(f"{100 * share:.0f} % of the limit, not {100 * wanted_share:.0f} %")
    if most is not None and mine > most:
        misses.append(f"{peers.short(mine)} is above {peers.short(most)}")
    if least is not None and mine < least:
        misses.append(f"{peers.short(mine)} is below {peers.short(least)}")
    return {"model": model, "what": figure, "llama_cpp": other, "spud": mine, "ratio": ratio, "floor": floor,
            "at_most": most, "at_least": least, "fraction_of_limit": share, "wanted_fraction": wanted_share,
            "misses": misses, "llama_cpp_spread_pct": peers.spread(theirs) if theirs else None,
            "spud_spread_pct": peers.spread(ours)}


def wanted(row):
    """What a row is held to, in words; empty where nothing."""
    words = []
    if row["floor"]:
        words.append(f"ratio >= {row['floor']:.2f}")
    if row["wanted_fraction"]:
        words.append(f"{100 * row['wanted_fraction']:.0f} % of limit")
    if row["at_most"] is not None:
        words.append(f"<= {peers.short(row['at_most'])}")
    if row["at_least"] is not None:
        words.append(f">= {peers.short(row['at_least'])}")
    return ", ".join(words)
