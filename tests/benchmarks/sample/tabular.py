"""Real trainings on tables that ship with scikit-learn, by ``tabular_mlp.yaml``."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from sklearn.datasets import load_breast_cancer, load_wine
from torch import nn

TABLES = {"wine": load_wine, "breast_cancer": load_breast_cancer}
_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}
_NORMS = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


@functools.cache
def data(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return standardised features, labels, and which rows are held out."""
    table = TABLES[name]()
    features = torch.tensor(table.data, dtype=torch.float32)
    features = (features - features.mean(0)) / features.std(0)
    labels = torch.tensor(table.target)
    return features, labels, torch.arange(len(labels)) % 3 == 0


def train(
    name: str, config: Mapping[str, Any], epochs: int
) -> Iterator[dict[str, float]]:
    """Train under a configuration and yield one report an epoch.

    Args:
        name: ``wine`` or ``breast_cancer``.

        config: A sample of ``search_spaces/tabular_mlp.yaml``.

        epochs: How long to train.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, labels, held_out = data(name)
    model = _model(config, features.shape[1], int(labels.max()) + 1)
    optimizer = _optimizer(config, model)
    for _ in range(epochs):
        loss, norm = _one_epoch(
            model,
            optimizer,
            features[~held_out],
            labels[~held_out],
            config["batch_size"],
        )
        model.eval()
        with torch.no_grad():
            logits, truth = model(features[held_out]), labels[held_out]
            val_loss = nn.functional.cross_entropy(logits, truth).item()
            accuracy = (logits.argmax(1) == truth).float().mean().item()
        model.train()
        yield {
            "loss": loss,
            "val_loss": val_loss,
            "val_accuracy": accuracy,
            "grad_norm": norm,
        }


def _model(config: Mapping[str, Any], inputs: int, classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(config["layers"]):
        layers.append(nn.Linear(inputs, config["width"]))
        if config["normalization"] in _NORMS:
            layers.append(_NORMS[config["normalization"]](config["width"]))
        layers += [_ACTIVATIONS[config["activation"]](), nn.Dropout(config["dropout"])]
        inputs = config["width"]
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


def _optimizer(config: Mapping[str, Any], model: nn.Module) -> torch.optim.Optimizer:
    common = {"lr": config["lr"], "weight_decay": config["weight_decay"]}
    momentum = config.get("momentum") or 0.0
    if config["optimizer"] == "adam":
        return torch.optim.Adam(model.parameters(), **common)
    if config["optimizer"] == "rmsprop":
        return torch.optim.RMSprop(model.parameters(), momentum=momentum, **common)
    nesterov = bool(config.get("nesterov")) and momentum > 0
    return torch.optim.SGD(
        model.parameters(), momentum=momentum, nesterov=nesterov, **common
    )


def _one_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    features: torch.Tensor,
    labels: torch.Tensor,
    batch_size: int,
) -> tuple[float, float]:
    """Return the mean loss and the largest gradient norm of the epoch."""
    losses, norms = [], []
    for batch in torch.randperm(len(labels)).split(batch_size):
        if len(batch) < 2:
            continue  # a batch norm needs two
        loss = nn.functional.cross_entropy(model(features[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item(), torch.stack(norms).max().item()
