import itertools

import keras
import numpy as np
import pytest
from keras import ops

from experiments import runs
from experiments.catalog import UCR
from experiments.layers import LAYERS, make_layer, trained_parameters
from experiments.optimizers import make_optimizer
from experiments.options import TASKS, read_task
from experiments.presets import PRESETS, find
from keras_ortho.tasks import ucr
from tests.examples.modules import load_example
from tests.experiments.facts import ARCHITECTURES, EQUATIONS, ROWS, UCR_COUNTS

# Features of a step, and outputs. Of UCR those of ArrowHead, of MNIST in 28 steps.
SHAPES = {
    "copying": (10, 9),
    "adding": (2, 1),
    "mnist": (1, 10),
    "permuted-mnist": (1, 10),
    "sequence-mnist": (28, 10),
    "pixel-cifar10": (3, 10),
    "noise-padded-cifar10": (96, 10),
    "timit": (129, 129),
    "ucr": (1, 3),
    "char-ptb": (50, 50),
}
UPDATES = 100  # In a pass over the data.
WITH_PRESETS = [task for task in TASKS if any(row.task == task for row in PRESETS)]
text_network = load_example("char_ptb").network


def facts_of(preset):
    found = [
        row
        for row in ROWS
        if preset.task in ([row.task] if isinstance(row.task, str) else row.task)
        and (preset.model, preset.units) == (row.model, row.units)
        and row.lengths == preset.lengths
    ]
    assert len(found) == 1
    return found[0]


def text(preset):
    return preset.task == "char-ptb"


def build(preset):
    """The network as the examples make it, and its optimizer."""
    features, outputs = SHAPES[preset.task]
    keras.utils.set_random_seed(0)
    kwargs = {"return_sequences": True, "return_state": True} if text(preset) else {}
    layer = make_layer(preset.model, preset.units, preset.arguments, **kwargs)
    if text(preset):
        model = text_network(layer, outputs, (2, 3))
    else:
        model = keras.Sequential(
            [keras.Input((4, features)), layer, keras.layers.Dense(outputs)]
        )
    optimizer = make_optimizer(preset.rates, UPDATES)
    optimizer.build(model.trainable_variables)
    return model, layer, optimizer


def name(variable):
    return variable.path.rpartition("/")[2]


def sizes(preset, layer):
    """Inputs of the layer, and its units, for the formulas of the facts."""
    m, _ = SHAPES[preset.task]
    if text(preset) and preset.model in ("lstm", "gru"):  # Behind a table.
        m = preset.units
    return m, sum(preset.units) if preset.model == "enrnn" else preset.units


def blocks_of(entries):
    """The entries (2j, 2j + 1) of a skew matrix, and all others."""
    size = int((1 + (1 + 8 * entries.size) ** 0.5) / 2)
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = entries
    even = np.arange(0, size - 1, 2)
    blocks = matrix[even, even + 1].copy()
    matrix[even, even + 1] = 0
    return blocks, matrix


def unpacked(values, n):
    """Packed reflectors, the longest first."""
    lengths = itertools.takewhile(lambda k: k > 0, itertools.count(n, -1))
    ends = np.cumsum([0, *lengths])
    ends = ends[: np.searchsorted(ends, values.size) + 1]
    assert ends[-1] == values.size
    return [values[a:b] for a, b in itertools.pairwise(ends)]


def check_uniform(values, low, high):
    """Between its bounds, with its mean and variance to five standard errors."""
    slack = 1e-5 * max(abs(low), abs(high))  # Of pi, written with six figures.
    assert values.min() >= low - slack
    assert values.max() <= high + slack
    width, count = high - low, values.size
    assert abs(values.mean() - (low + high) / 2) < 5 * width / (12 * count) ** 0.5
    # The variance of (x - mean)^2 is width^4 / 180.
    error = 5 * width**2 / (180 * count) ** 0.5
    assert abs(np.mean((values - (low + high) / 2) ** 2) - width**2 / 12) < error


def check_start(values, law, m, n):
    kind, *numbers = law
    numbers = [number(m, n) if callable(number) else number for number in numbers]
    if kind == "uniform":
        check_uniform(values.ravel(), *numbers)
    elif kind == "normal":
        scaled = values.ravel() / numbers[0]
        # Also those of the truncated ones, whose variance Keras mends.
        assert abs(scaled.mean()) < 5 / scaled.size**0.5
        assert abs(np.mean(scaled**2) - 1) < 5 * (2 / scaled.size) ** 0.5
        assert scaled.max() > 1.8 or scaled.size < 200  # Not uniform.
    elif kind == "constant":
        np.testing.assert_allclose(values, numbers[0], rtol=1e-6)
    elif kind == "angles":
        blocks, others = blocks_of(values)
        assert not others.any()
        check_uniform(2 * np.arctan(blocks), *numbers)
    elif kind == "scaled rotations":
        moduli = np.abs(np.linalg.eigvals(values.astype("float64")))
        angles = np.angle(np.linalg.eigvals(values.astype("float64") + 0j))
        check_uniform(np.sort(moduli)[::2], 0, 1)
        assert moduli.max() < 1
        assert np.abs(angles).max() <= np.pi
        even = np.arange(0, len(values) - 1, 2)
        apart = values.copy()
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            apart[even + i, even + j] = 0
        assert not apart.any()
    elif kind == "unit reflectors":
        lengths = [np.linalg.norm(reflector) for reflector in unpacked(values, n)]
        np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    elif kind == "unitary":
        # Float32 sums of n products.
        unitary = values[0].astype("float64") + 1j * values[1]
        error = np.abs(unitary @ unitary.conj().T - np.eye(n)).max()
        assert error < 10 * n**0.5 * np.finfo("float32").eps
    elif kind == "orthogonal":
        error = np.abs(values.T @ values - np.eye(values.shape[1])).max()
        assert error < 10 * values.shape[0] ** 0.5 * np.finfo("float32").eps
    else:
        assert kind == "forget bias"
        np.testing.assert_array_equal(values, np.repeat([0, *numbers, 0, 0], n))


def rule_of(optimizer):
    """Its kind, its rate at first, and its other numbers."""
    config = optimizer.get_config()
    return {
        **config,
        "kind": type(optimizer).__name__,
        "rate": float(ops.convert_to_numpy(optimizer.learning_rate)),
    }


def check_optimizers(preset, row, optimizer):
    seen = set()
    for each in getattr(optimizer, "optimizers", [optimizer]):
        found = rule_of(each)
        for variable in each._trainable_variables:
            expected = row.optimizers.get(name(variable), row.optimizers[""])
            seen.add(name(variable))
            for key, value in expected.items():
                if isinstance(value, float):
                    # Rates are float32.
                    assert found[key] == pytest.approx(value, rel=1e-6), key
                else:
                    assert found[key] == value, key
            assert found.get("clipvalue") == expected.get("clipvalue")
        if row.schedule is None:
            assert not isinstance(found["learning_rate"], dict)
            assert not hasattr(each, "plateau")
        elif row.schedule[0] == "decay":
            schedule = found["learning_rate"]["config"]
            wanted = {"decay_rate": row.schedule[1], "decay_steps": UPDATES}
            assert wanted.items() <= schedule.items()
            assert schedule["staircase"]
        else:
            assert each.plateau[1] == row.schedule[1]
    assert set(row.optimizers) - {""} <= seen


def check_penalties(row, layer):
    found = {}
    for variable in layer.trainable_variables:
        if variable.regularizer is not None:
            threes = np.full(variable.shape, 3.0, "float32")
            found[name(variable)] = float(variable.regularizer(threes)) / threes.size
    # A float32 sum of half a million terms.
    assert found == pytest.approx(row.penalties, rel=1e-3)


def check_settings(row, cell):
    for key, value in row.settings.items():
        found = getattr(cell, key)
        if key == "activation" and isinstance(value, float):  # A slope.
            x = np.array([-2.0, 3.0], "float32")
            np.testing.assert_allclose(found(x), [-2 * value, 3], rtol=1e-6)
        elif key == "activation":
            assert found is getattr(keras.activations, value)
        else:
            assert found == value


def check_parameters(preset, row, model):
    m, p = SHAPES[preset.task]
    n = preset.units
    names = {"enrnn": ["coupling"], "eurnn": ["style", "capacity"]}
    names |= {model: ["reflections"] for model in ("ornn", "svdrnn")}
    more = {
        key: row.settings[key]
        for key in names.get(preset.model, [])
        if key in row.settings
    }
    if row.trained_state and preset.model != "ornn":
        more["h"] = 1
    if text(preset) and preset.model in ("lstm", "gru"):
        own = EQUATIONS[preset.model](n, n, p) + m * n
    else:
        own = EQUATIONS[preset.model](m, n, p, **more)
    assert trained_parameters(model) == own
    if preset.parameters is not None:
        assert row.published is not None
        # The row of the preset has thousands.
        assert abs(1000 * preset.parameters - row.published) <= 500
    if row.published is None:
        return
    reading = row.reading(own, m, n, p) if row.reading else own
    if row.reading:  # It is needed.
        assert row.because
        assert abs(own - row.published) > row.rounded / 2
    fits = abs(reading - row.published) <= row.rounded / 2
    assert fits != row.unexplained


@pytest.mark.parametrize(
    "preset", PRESETS, ids=lambda p: f"{p.task}-{p.model}-{p.units}-{p.lengths}"
)
def test_is_what_the_paper_says(preset):
    row = facts_of(preset)
    facts = ARCHITECTURES[preset.model]
    assert row.source
    assert facts.source
    assert preset.source
    assert row.duration == (preset.steps or preset.epochs)
    assert (preset.epochs is None) != (preset.steps is None)
    assert row.batch_size == preset.batch_size
    model, layer, optimizer = build(preset)
    inner = getattr(layer, "layer", layer)
    cell = getattr(inner, "cell", inner)
    m, n = sizes(preset, layer)
    values = {name(w): ops.convert_to_numpy(w) for w in layer.trainable_variables}
    for weight, (law, source) in {**facts.weights, **row.weights}.items():
        assert source
        check_start(values[weight], law, m, n)
    # The last layer reads what the paper's does.
    assert model.layers[-1].kernel.shape[0] == facts.read_out * n
    trained = any(weight.startswith("initial_state") for weight in values)
    wanted = facts.trained_state if row.trained_state is None else row.trained_state
    assert trained == wanted
    if row.negative_ones is not None:
        signs = ops.convert_to_numpy(cell.recurrent_signs)
        expected = np.ones(signs.size)
        expected[signs.size - row.negative_ones :] = -1  # The last ones.
        np.testing.assert_array_equal(signs, expected)
    check_settings(row, cell)
    check_penalties(row, layer)
    check_optimizers(preset, row, optimizer)
    check_parameters(preset, row, model)


def trained_by(model, optimizer):
    """The trained variables of a network, with the rule of each."""
    optimizer.build(model.trainable_variables)
    return {
        name(variable): (rule_of(each)["kind"], rule_of(each)["rate"])
        for each in getattr(optimizer, "optimizers", [optimizer])
        for variable in each._trainable_variables
    }


@pytest.mark.slow
@pytest.mark.parametrize("task", WITH_PRESETS)
def test_the_examples_make_these_networks(task, tmp_path, monkeypatch):
    preset = next(preset for preset in PRESETS if preset.task == task)
    made = []
    monkeypatch.setattr(runs, "fit", lambda model, *args, **kwargs: made.append(model))
    example = load_example(task.replace("-", "_"))
    small = TASKS[task].smoke(tmp_path / "data")
    arguments = ["--preset", "paper", "--model", preset.model]
    for key in {"data_dir", "name", "train_size", "valid_size", "test_size"} & {*small}:
        arguments += [f"--{key.replace('_', '-')}", str(small[key])]
    if task == "char-ptb":  # The text is too short for the paper's batches.
        arguments += ["--batch-size", "2", "--unroll", "3"]
    settings = read_task(task, "", [*arguments, "--out", str(tmp_path / "out")])
    example.main.__wrapped__(settings)  # The function below the command.
    model, layer, optimizer = build(preset)
    assert trained_by(made[0], made[0].optimizer) == trained_by(model, optimizer)
    layer = getattr(layer, "layer", layer)  # Of a trained initial state.
    layers = [each for each in made[0]._flatten_layers() if type(each) is type(layer)]
    own = {"name": None, "return_sequences": task == "copying" or text(preset)}
    assert layers[0].get_config() | {"name": None} == layer.get_config() | own


def test_every_row_of_the_facts_has_a_preset():
    rows = [id(facts_of(preset)) for preset in PRESETS]
    assert {id(row) for row in ROWS} == set(rows)
    assert {preset.model for preset in PRESETS} <= LAYERS.keys()


@pytest.mark.parametrize("model", ["rnn", "lstm", "ornn", "svdrnn"])
def test_parameters_of_ucr(model):
    """Built for one data set, and by the equations for all."""
    place = ["rnn", "lstm", "ornn", "svdrnn"].index(model)
    more = {"reflections": 16} if model in ("ornn", "svdrnn") else {}
    more |= {} if model == "ornn" else {"h": 1}
    for name, (length, width, outputs, counts) in UCR_COUNTS.items():
        assert EQUATIONS[model](width, 32, outputs, **more) == counts[place], name
        # Of FiftyWords the paper has another width than its rule gives.
        assert (ucr.step_width(length) == width) != (name == "FiftyWords")
    assert UCR.keys() == UCR_COUNTS.keys()
    _, width, outputs, counts = UCR_COUNTS["CBF"]
    layer = make_layer(model, 32, find("ucr", model).arguments)
    network = keras.Sequential(
        [keras.Input((4, width)), layer, keras.layers.Dense(outputs)]
    )
    assert trained_parameters(network) == counts[place]


@pytest.mark.parametrize("name", UCR_COUNTS)
def test_outputs_and_classes_of_ucr(name, data_dir):
    """The published outputs go up to the highest label: some are no class."""
    if not (data_dir / "ucr" / name / f"{name}_TEST.tsv").exists():
        pytest.skip(f"There is no whole {name}")
    labels = [series.labels for series in ucr._read(name, data_dir / "ucr")]
    _, _, outputs, _ = UCR_COUNTS[name]
    assert max(labels[0]) + 1 == outputs or name == "FiftyWords"
    if name in ("ECG200", "Lightning2"):
        assert set(labels[0]) == {-1, 1}
        share = np.mean(np.array(labels[1]) == 1)
        published = {"ECG200": 0.640, "Lightning2": 0.541}[name]
        assert share == pytest.approx(published, abs=5e-4)


def test_finds_the_row_of_a_length_and_of_units():
    assert find("adding", "scornn", length=200).arguments == {"negative_ones": 85}
    assert find("adding", "scornn", length=750).arguments == {"negative_ones": 119}
    assert find("mnist", "scornn", units=512).parameters == 137
    assert find("mnist", "scornn").arguments == {"negative_ones": 0.1}
    assert find("permuted-mnist", "scornn").arguments == {"negative_ones": 0.5}


@pytest.mark.parametrize(
    "wanted", [{"model": "goru"}, {"units": 3}, {"length": 300}, {"task": "chess"}]
)
def test_says_what_there_is(wanted):
    with pytest.raises(ValueError, match=r"Available: .*Received: "):
        find(**{"task": "adding", "model": "scornn"} | wanted)
