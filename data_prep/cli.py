"""The command `keras-ortho-data`."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from keras_ortho.executors import processor_count

from .pipeline import NUM_SHARDS, REPORT, Outcome, list_unused, prepare
from .splits import COMPLETE, MODES, SPLITS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    options = _parser().parse_args(arguments)
    workers = processor_count() if options.workers is None else options.workers
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            outcome = prepare(
                options.corpus,
                options.out,
                lists=options.lists,
                mode=options.splits,
                seed=options.seed,
                num_shards=dict(zip(SPLITS, options.shards, strict=True)),
                strict=options.strict,
                workers=workers,
                scheduler=options.scheduler,
                progress=True,
            )
    except BrokenExecutor as error:
        print(
            f"error: a worker process was killed; run again. {error}", file=sys.stderr
        )
        return 1
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; run again to go on", file=sys.stderr)
        return 130
    print(_summarize(outcome))
    return 0


def _summarize(outcome: Outcome) -> str:
    splits = outcome.manifest["splits"]
    complete = COMPLETE.get(outcome.manifest["parameters"]["splits"], {})
    lines = []
    for name, split in splits.items():
        utterances = split["num_utterances"]
        line = (
            f"{name}: {utterances} utterances, {split['seconds'] / 60:.1f} minutes, "
            f"at most {split['max_frames']} frames"
        )
        if utterances != complete.get(name, utterances):
            line += f" (the complete corpus has {complete[name]} utterances)"
        lines.append(line)
    unchanged = sum(len(s["shards"]) for s in splits.values()) - outcome.written
    lines.append(f"shards: {outcome.written} written, {unchanged} unchanged")
    if outcome.passed_over:
        lines.append(
            f"passed over: {len(outcome.passed_over)} copies or files that are no "
            f"utterances; see {REPORT}"
        )
    if outcome.rejected:
        files = list_unused(outcome.rejected)
        lines.append(f"rejected: {len(outcome.rejected)}{files}")
    return "\n".join(lines)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="keras-ortho-data",
        description="Makes records of 8 kHz audio and log power from a copy of TIMIT, "
        "or from any recordings that a list names. "
        "Run again, it redoes what changed and continues what was cut off.",
    )
    parser.add_argument("corpus", metavar="CORPUS", help="the folder of the corpus")
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--list",
        dest="lists",
        metavar="[SPLIT=]LIST",
        action="append",
        default=[],
        help="the files of a corpus that is not TIMIT: a CSV file with the columns "
        "file, speaker and maybe split and id; files are relative to CORPUS. May be "
        "given more than once, for example for each split, "
        f"{', '.join(f'{name}=LIST' for name in SPLITS)}",
    )
    parser.add_argument(
        "--splits",
        choices=("auto", *MODES),
        default="auto",
        help="timit: the corpus's own; wisdom: as Wisdom et al. (2016) filter it; "
        "speakers: by --seed; auto (the default): timit, if its test speakers are "
        "there, else speakers; with --list its splits, if it has any, else speakers",
    )
    parser.add_argument("--seed", type=int, default=0, help="for --splits speakers")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=_positive,
        help="number of processes (default: one a core); 1: this one alone",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="that of a Dask cluster that is to make the shards, such as "
        "tcp://host:8786; CORPUS and OUT are on a file system that its workers share",
    )
    parser.add_argument(
        "--shards",
        type=_positive,
        nargs=len(SPLITS),
        metavar=tuple(name.upper() for name in SPLITS),
        default=tuple(NUM_SHARDS[name] for name in SPLITS),
        help="number of shards of each split (default: %(default)s)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail if a file cannot be used, and leave the earlier result as it was",
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number, at least 1, not {text!r}")
    return int(text)
