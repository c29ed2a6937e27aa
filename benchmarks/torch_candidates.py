"""PyTorch's recurrent layers as candidates of the benchmarks."""

from typing import Any

import numpy as np
from shapes import FEATURES, OUTPUTS, Shape, Steps, data

from keras_ortho.extras import require
from keras_ortho.processors import processor_count


def torch_steps(
    shape: Shape,
    kind: str = "orthogonal",
    precision: str = "float32",
    *,
    resident: bool = False,
) -> Steps:
    """Makes the steps of a PyTorch recurrent layer, on the CPU or a GPU.

    On a GPU, the layer uses cuDNN.
    """
    torch = require("torch", extra="torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(processor_count())
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    layer = torch.nn.LSTM if kind == "LSTM" else torch.nn.RNN
    rnn = layer(FEATURES, shape.units, batch_first=True)
    if kind == "orthogonal":
        torch.nn.utils.parametrizations.orthogonal(rnn, "weight_hh_l0")
    head = torch.nn.Linear(shape.units, OUTPUTS)
    rnn, head = rnn.to(device), head.to(device)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
    x, y = map(torch.from_numpy, data(shape))
    if resident:
        x, y = x.to(device), y.to(device)

    def forward() -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            outputs, _ = rnn(x.to(device))
            return head(outputs[:, -1]).float()

    def train() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(forward(), y.to(device))
        loss.backward()
        optimizer.step()
        return loss.item()  # Waits until the step is complete.

    def infer() -> np.ndarray:
        with torch.no_grad():
            return forward().cpu().numpy()

    return train, infer
