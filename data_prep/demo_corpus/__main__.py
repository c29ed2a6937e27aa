"""The command line of `python -m keras_ortho.data_prep.demo_corpus`."""

import argparse
import sys
from collections.abc import Sequence

from . import MAX_SENTENCES, MAX_SPEAKERS, write_corpus


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python -m keras_ortho.data_prep.demo_corpus",
        description="Synthesizes a small corpus of speech and writes it like TIMIT: "
        "TRAIN/DR1/FAAA0/SA1.WAV, .TXT and .PHN. It needs no license and no download.",
    )
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    for name, default, meaning in (
        ("speakers", 12, f"number of speakers, 1 to {MAX_SPEAKERS}"),
        ("sentences", 10, f"of each speaker, 1 to {MAX_SENTENCES}"),
        ("seed", 0, "of voices, texts and variation"),
    ):
        text = f"{meaning} (default: {default})"
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    options = parser.parse_args(arguments)
    try:
        written = write_corpus(**vars(options), progress=True)
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    count = options.speakers * options.sentences
    print(f"{'Wrote' if written else 'Kept'} {count} sentences in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
