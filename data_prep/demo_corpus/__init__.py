"""A small corpus of synthetic speech, laid out like TIMIT: no license, no download.

`python -m keras_ortho.data_prep.demo_corpus OUT` writes it. From text to files:

    sentences       what each speaker reads
    transcription   text to phones, by the `lexicon`
    prosody         durations, melody and loudness, by the `speakers`
    articulation    timed phones to control values, by the tables `phones`, `vowels`
    synthesizer     control values to sound, by the `filters`
    recording       all of these, and the microphone
    tree            the files, each from its own stream of random numbers (`streams`)
"""
