"""The next character of the Penn Treebank, in bits per character.

    python examples/char_ptb.py --model enrnn --preset paper --data-dir DATA --out OUT

Back-propagation through 50 characters at a time, the state carried on. An epoch, of
20 in the paper (Helfrich, dissertation, 2020, section 2.7), takes ENRNN 10 to 20
minutes on two cores. The files in DATA are not downloaded: without them the error says
where to get them. A run that was broken off goes on with --resume. Writes run.json
(settings, versions, curves and figures), curve.png, and the network of the best
validation to run/best.keras.
"""

import functools

from experiments import char_ptb

parse = functools.partial(char_ptb.parse, __doc__)

if __name__ == "__main__":
    char_ptb.main(__doc__)
