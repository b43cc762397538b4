"""A real training to sweep over: a small classifier of handwritten digits.

The data set ships with scikit-learn (1,797 images of 8 by 8 pixels), so that
nothing is downloaded. Nothing is made to fail here: what breaks, breaks because
of the hyperparameters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = 40


@functools.cache
def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return training images and labels, then validation images and labels.

    Images have shape (n, 64), float32 in 0..1; labels have shape (n,), int64.
    Every fifth image is kept for validation.
    """
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    held_out = torch.arange(len(labels)) % 5 == 0
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def train(
    config: Mapping[str, Any], epochs: int = EPOCHS
) -> Iterator[dict[str, float]]:
    """Train under a configuration and yield one report an epoch.

    Args:
        config: A sample of ``search_spaces/image_classifier.yaml``.

        epochs: How long to train.

    Yields:
        ``epoch`` (from 1), ``loss``, ``val_loss`` and ``val_accuracy`` (ratio),
        ``grad_norm`` (largest of the epoch, before clipping) and ``lr``.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels, val_images, val_labels = data()
    model = _model(config)
    optimizer = _optimizer(config, model)
    for epoch in range(1, epochs + 1):
        lr = config["lr"] * _lr_factor(config, epoch - 1, epochs)
        optimizer.param_groups[0]["lr"] = lr
        loss, grad_norm = _one_epoch(
            model, optimizer, images, labels, config["batch_size"]
        )
        with torch.no_grad():
            logits = model(val_images)
            val_loss = nn.functional.cross_entropy(logits, val_labels).item()
            accuracy = (logits.argmax(1) == val_labels).float().mean().item()
        yield {
            "epoch": epoch,
            "loss": loss,
            "val_loss": val_loss,
            "val_accuracy": accuracy,
            "grad_norm": grad_norm,
            "lr": lr,
        }


def _model(config: Mapping[str, Any]) -> nn.Module:
    width = config["hidden"]
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )  # fmt: skip


def _optimizer(config: Mapping[str, Any], model: nn.Module) -> torch.optim.Optimizer:
    decay = config["weight_decay"]
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(
            model.parameters(),
            lr=config["lr"],
            momentum=config["momentum"],
            weight_decay=decay,
        )
    return torch.optim.Adam(model.parameters(), lr=config["lr"], weight_decay=decay)


def _lr_factor(config: Mapping[str, Any], epoch: int, epochs: int) -> float:
    """Return the share of the learning rate at an epoch, at least a thousandth."""
    warmup = config["warmup_epochs"]
    if epoch < warmup:
        return (epoch + 1) / (warmup + 1)
    age = epoch - warmup
    if config["schedule"] == "cosine":
        factor = 0.5 + 0.5 * math.cos(math.pi * age / (epochs - warmup))
    elif config["schedule"] == "exponential":
        factor = config["decay"] ** age
    else:
        factor = 1.0
    return max(factor, 1e-3)


def _one_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
    batch_size: int,
) -> tuple[float, float]:
    """Return the mean loss and the largest gradient norm of the epoch."""
    losses, norms = [], []
    for batch in torch.randperm(len(labels)).split(batch_size):
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item(), torch.stack(norms).max().item()
