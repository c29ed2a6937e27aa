"""A small pronouncing dictionary of American English, made by hand.

Phones are TIMIT's, with a stop written as its release (the closure follows from it)
and a "1" after the vowel that carries the word's stress. Words that carry no accent
in a sentence have none.
"""

_ENTRIES = """
a: ax; about: ax b aw1 t; above: ax b ah1 v; across: ax k r ao1 s; all: ao1 l;
and: ix n d; apples: ae1 p ax l z; around: ax r aw1 n d; asked: ae1 s t; at: ix t;
back: b ae1 k; bag: b ae1 g; basket: b ae1 s k ix t; beans: b iy1 n z;
before: b ix f ao1 r; behind: b ix hh ay1 n d; beyond: b iy aa1 n d; birds: b er1 d z;
blue: b l uw1; boat: b ow1 t; book: b uh1 k; box: b aa1 k s; bread: b r eh1 d;
bridge: b r ih1 jh; bring: b r ih1 ng; brother: b r ah1 dh axr; carried: k ae1 r iy d;
chair: ch eh1 r; chairs: ch eh1 r z; cheese: ch iy1 z; chose: ch ow1 z;
city: s ih1 dx iy; clean: k l iy1 n; closer: k l ow1 s axr; coffee: k ao1 f iy;
cold: k ow1 l d; corn: k ao1 r n; could: k uh d; did: d ih d; doctor: d aa1 k t axr;
door: d ao1 r; drew: d r ux1; drink: d r ih1 ng k; early: er1 l iy;
evening: iy1 v n ix ng; every: eh1 v r iy; farmer: f aa1 r m axr; father: f aa1 dh axr;
fell: f eh1 l; few: f y ux1; first: f er1 s t; five: f ay1 v; for: f axr;
found: f aw1 n d; garden: g aa1 r d ix n; good: g uh1 d; gray: g r ey1;
green: g r iy1 n; hand: hh ae1 n d; he: hh iy; hear: hh ih1 r; heavy: hh eh1 v iy;
her: hh axr; his: hh ix z; home: hh ow1 m; horse: hh ao1 r s; house: hh aw1 s; in: ix n;
is: ix z; island: ay1 l ax n d; jacket: jh ae1 k ix t; joins: jh oy1 n z;
jumped: jh ah1 m p t; keeps: k iy1 p s; kitchen: k ih1 ch ix n; lake: l ey1 k;
lamp: l ae1 m p; late: l ey1 t; lay: l ey1; leads: l iy1 d z; lesson: l eh1 s ix n;
letter: l eh1 dx axr; long: l ao1 ng; lost: l ao1 s t; low: l ow1; map: m ae1 p;
me: m iy; measured: m eh1 zh axr d; mill: m ih1 l; morning: m ao1 r n ix ng;
moves: m ux1 v z; my: m ay; narrow: n ae1 r ow; near: n ih1 r; neighbor: n ey1 b axr;
night: n ay1 t; nobody: n ow1 b ax dx iy; noon: n ux1 n; of: ax v; old: ow1 l d;
on: aa n; one: w ah1 n; open: ow1 p ix n; our: aw axr; over: ow1 v axr; paid: p ey1 d;
pain: p ey1 n; painted: p ey1 n t ix d; paper: p ey1 p axr; park: p aa1 r k;
pass: p ae1 s; please: p l iy1 z; put: p uh1 t; quiet: k w ay1 ax t; rain: r ey1 n;
rice: r ay1 s; river: r ih1 v axr; road: r ow1 d; roofs: r ux1 f s; rose: r ow1 z;
round: r aw1 n d; she: sh iy; ship: sh ih1 p; shirt: sh er1 t; shop: sh aa1 p;
shoulder: sh ow1 l d axr; show: sh ow1; silver: s ih1 l v axr; simple: s ih1 m p ax l;
sing: s ih1 ng; singer: s ih1 ng axr; sister: s ih1 s t axr; slowly: s l ow1 l iy;
small: s m ao1 l; smoke: s m ow1 k; snow: s n ow1; sold: s ow1 l d; song: s ao1 ng;
soon: s ux1 n; stars: s t aa1 r z; stone: s t ow1 n; strong: s t r ao1 ng;
table: t ey1 b ax l; tables: t ey1 b ax l z; teacher: t iy1 ch axr; the: dh ax;
their: dh eh r; they: dh ey; thick: th ih1 k; three: th r iy1; through: th r uw;
to: t ax; today: t ax d ey1; together: t ax g eh1 dh axr; tools: t ux1 l z;
train: t r ey1 n; tree: t r iy1; turned: t er1 n d; turns: t er1 n z; twice: t w ay1 s;
two: t ux1; under: ah1 n d axr; usually: y ux1 zh ax l iy; very: v eh1 r iy;
village: v ih1 l ix jh; visited: v ih1 z ix dx ix d; walked: w ao1 k t; wall: w ao1 l;
warm: w ao1 r m; watched: w aa1 ch t; water: w ao1 dx axr; we: w iy; when: w ix n;
which: w ih1 ch; wind: w ih1 n d; window: w ih1 n d ow; with: w ix th;
wooden: w uh1 d ix n; worker: w er1 k axr; wrote: r ow1 t; yellow: y eh1 l ow;
you: y ux; young: y ah1 ng
"""

LEXICON = dict(entry.strip().split(": ") for entry in _ENTRIES.split(";"))
