# The examples in a container, on NVIDIA GPUs or on the CPU:
#
#   docker build --tag keras-ortho .
#   docker build --tag keras-ortho --build-arg DEVICE=cpu .
#
# CUDA comes with the image; the host brings the driver and the NVIDIA Container
# Toolkit. Without a GPU leave out `--gpus all`. This shows what TensorFlow sees:
#
#   docker run --rm --gpus all keras-ortho python -c \
#       "import tensorflow as tf; print(tf.config.list_physical_devices())"
#
# Without a command the container runs the demonstration. `--user` lets it write into
# the caller's folder, which must exist, as docker would make it for root:
#
#   mkdir -p out
#   docker run --rm --gpus all --user "$(id -u):$(id -g)" \
#       --volume "$PWD/out:/app/out" keras-ortho
#
# Training on TIMIT takes the command of `make timit`, with one more volume:
#
#   docker run ... --volume /path/to/TIMIT:/timit:ro keras-ortho \
#       python examples/timit_splits.py --corpus /timit --out out/timit

FROM debian:trixie-slim AS builder
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        gcc libc6-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/venv
WORKDIR /build
# The dependencies alone: the source may change without installing them anew.
COPY setup.cfg pyproject.toml ./
COPY keras_ortho/version.py keras_ortho/
COPY data_prep/__init__.py data_prep/
ARG DEVICE=gpu
# setup.cfg bounds the versions.
# hadolint ignore=DL3013
RUN case "$DEVICE" in \
        gpu) extras=speech,plot,cuda ;; \
        cpu) extras=speech,plot ;; \
        *) echo "DEVICE must be gpu or cpu. Received: '$DEVICE'" >&2; exit 1 ;; \
    esac \
    && pip install ".[$extras]"
COPY . .
RUN pip install --no-deps --force-reinstall .

FROM debian:trixie-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --no-create-home keras \
    && install -d -o keras /app/out
COPY --from=builder /opt/venv /opt/venv
WORKDIR /app
COPY LICENSE README.md ./
COPY benchmarks benchmarks
COPY examples examples
COPY experiments experiments
# Caches go to HOME, which any `--user` must be able to write.
ENV HOME=/tmp \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    NVIDIA_VISIBLE_DEVICES=all \
    PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 1000
CMD ["python", "examples/denoise.py", "--out", "out/demo"]
