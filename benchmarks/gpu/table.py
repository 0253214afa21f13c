"""The rows of `run.py` as a table in Markdown."""

import itertools

PEERS = ("keras_vit", "timm compile", "Flax")


def table(rows, known_peak):
    """Returns lines: images a second of each peer, ours as a share of the peak that is known, or was measured."""
    rows = [row for row in rows if "error" not in row]
    measured = max((row["tflops"] for row in rows if row["peer"].startswith("GEMM")), default=float("nan"))
    device = next((row["device"] for row in rows), "")
    peak = known_peak.get(device, measured)
    lines = [f"{device}: {measured:.4g} TFLOP/s in a large product of matrices; shares are of {peak:.4g} TFLOP/s.", ""]
    lines += ["| model | step | images | " + " | ".join(PEERS) + " | of peak | to timm | to Flax |", "|---" * 9 + "|"]

    def cell(row):
        more = [name for name in ("flash", "remat", "steps", "pooling") if name in row and not row.get("rehearse")]
        more = [f"{name} {row[name]}".lower() for name in more] + (["fit"] if row["peer"].endswith("fit") else [])
        step = ", ".join(["training" if row["training"] else "inference", *more])
        return f"{row['variant']} {row['image']}", step, row["images"]

    speeds = [row for row in rows if "variant" in row]
    for key, group in itertools.groupby(sorted(speeds, key=cell), cell):
        found = {row["peer"].removesuffix(" fit"): row for row in group}
        ours = found.get("keras_vit")
        words = [f"{found[peer]['images_per_s']:,.0f}" if peer in found else "" for peer in PEERS]
        words += [f"{ours['tflops'] / peak:.2f}" if ours else ""]
        for peer in PEERS[1:]:
            both = ours and peer in found
            words += [f"{ours['images_per_s'] / found[peer]['images_per_s']:.2f}" if both else ""]
        lines.append("| " + " | ".join([*map(str, key), *words]) + " |")
    for row in rows:
        if row["peer"] == "CIFAR-10":
            lines += [
                "",
                f"CIFAR-10: {row['test_accuracy']:.2%} after {row['epochs']} epochs in {row['minutes']} minutes.",
            ]
    return lines
