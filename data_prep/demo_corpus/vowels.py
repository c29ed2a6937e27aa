"""Formants of the vowels of American English.

Source:
    Hillenbrand, Getty, Clark and Wheeler (1995), "Acoustic characteristics of
    American English vowels", JASA 97(5), table V: vowel formants.
    Klatt (1980), "Software for a cascade/parallel formant synthesizer", JASA 67(3),
    table II: the paths of the diphthongs, and the reduced front vowels.
"""

# Mean ratio of women's to men's F1-F4 over the vowels of Hillenbrand et al.
WOMAN_TO_MAN = 1.16

# F1-F4 in Hz, of men and of women.
VOWELS = {
    "iy": ((342, 2322, 3000, 3657), (437, 2761, 3372, 4352)),
    "ih": ((427, 2034, 2684, 3618), (483, 2365, 3053, 4334)),
    "ey": ((476, 2089, 2691, 3649), (536, 2530, 3047, 4319)),
    "eh": ((580, 1799, 2605, 3677), (731, 2058, 2979, 4294)),
    "ae": ((588, 1952, 2601, 3624), (669, 2349, 2972, 4290)),
    "aa": ((768, 1333, 2522, 3687), (936, 1551, 2815, 4299)),
    "ao": ((652, 997, 2538, 3486), (781, 1136, 2824, 3923)),
    "ow": ((497, 910, 2459, 3384), (555, 1035, 2828, 3927)),
    "uh": ((469, 1122, 2434, 3400), (519, 1225, 2827, 4052)),
    "uw": ((378, 997, 2343, 3357), (459, 1105, 2735, 4115)),
    "ah": ((623, 1200, 2550, 3557), (753, 1426, 2933, 4092)),
    "er": ((474, 1379, 1710, 3334), (523, 1588, 1929, 3914)),
    # Reduced vowels: a uniform tube for "ax", Klatt's targets for the others.
    "ax": ((500, 1500, 2500, 3500), (580, 1740, 2900, 4060)),
    "ix": ((400, 1800, 2570, 3500), (464, 2088, 2981, 4060)),
    "ux": ((350, 1650, 2300, 3400), (406, 1914, 2668, 3944)),
}

# The vowels where a diphthong begins and ends.
DIPHTHONGS = {"ay": ("aa", "ih"), "aw": ("aa", "uh"), "oy": ("ao", "ih")}
DIPHTHONGS |= {"ey": ("ey", "iy"), "ow": ("ow", "uw")}
