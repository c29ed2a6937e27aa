"""The commands of `data_prep/README.md` that make lists, in folders laid out so."""

import re
import subprocess
from pathlib import Path

import pytest

from keras_ortho.data_prep.listed import list_corpus

README = Path(__file__).parents[2] / "data_prep" / "README.md"
PART = re.compile(r"^### (.+?)$(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
PARTS = dict(PART.findall(README.read_text("utf-8")))

# The files of a corpus, and of those that the list must have: id, speaker, split.
LAYOUTS = {
    "LibriSpeech": {
        "train-clean-100/103/1240/103-1240-0000.flac": "103-1240-0000 103 train",
        "dev-other/116/288045/116-288045-0001.flac": "116-288045-0001 116 valid",
        "test-clean/61/70968/61-70968-0012.flac": "61-70968-0012 61 test",
        "train-clean-100/103/1240/103-1240.trans.txt": None,
        "SPEAKERS.TXT": None,
    },
    "VCTK": {
        "wav48_silence_trimmed/p225/p225_001_mic1.flac": "p225_001_mic1 p225 None",
        "wav48_silence_trimmed/p225/p225_001_mic2.flac": None,
        "wav48_silence_trimmed/s5/s5_002_mic1.flac": "s5_002_mic1 s5 None",
        "wav48_silence_trimmed/log.txt": None,
    },
    "Your own": {
        "anna/monday/1.wav": "anna_monday_1 anna None",
        "anna/new year.wav": "anna_new_year anna None",
        "ben/1.wav": "ben_1 ben None",
        "ben/1.txt": None,
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_list_made_as_the_page_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = block(name, "sh")
    *making, command = shell.splitlines()
    corpus, made = re.match(r"keras-ortho-data (\S+) .*--list (\S+)", command).groups()
    for path in LAYOUTS[name]:
        Path(corpus, path).parent.mkdir(parents=True, exist_ok=True)
        Path(corpus, path).touch()
    exec(compile(block(name, "python"), str(README), "exec"), {})
    for line in making:
        subprocess.run(["sh", "-c", line], check=True)
    utterances = list_corpus(corpus, [made]).utterances
    found = [f"{u.id} {u.speaker} {u.part}" for u in utterances]
    assert sorted(found) == sorted(filter(None, LAYOUTS[name].values()))


def block(name, language):
    """The code of a section of the page; none if it has none in a language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return "".join(re.findall(pattern, PARTS[name], re.MULTILINE | re.DOTALL))
