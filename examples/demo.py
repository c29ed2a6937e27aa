"""The whole way, from recordings to scored sound, on speech that it makes itself.

    python examples/demo.py --out out/demo

Synthesizes a small corpus in TIMIT's form, prepares it as TIMIT is prepared, and runs
`examples/timit.py` on it with settings that need minutes. Started again it goes on
where it was.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Runs the command."""
    options = parse()
    # Relative, as the record names them; the commands run in the checkout.
    out = Path(os.path.relpath(options.out.resolve(), ROOT))
    corpus, records = str(out / "corpus"), str(out / "records")
    timit = ["--records", records, "--out", str(out), "--units", "128"]
    timit += ["--batch-size", "8"]
    for command in (
        ["-m", "keras_ortho.data_prep.demo_corpus", corpus],
        ["-m", "keras_ortho.data_prep", corpus, records],
        [str(ROOT / "examples/timit.py"), *timit, "--epochs", str(options.epochs)],
    ):
        print("$ python", *command, flush=True)
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
        result = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment)
        if result.returncode:
            sys.exit(result.returncode)


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="(out/demo)")
    parser.add_argument("--epochs", type=int, default=300, help="(300)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
