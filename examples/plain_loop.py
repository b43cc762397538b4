"""A guarded training loop without any engine: ``python -m examples.plain_loop``.

The same small classifier is trained three times: at a sound learning rate, at one
that is far too high, and with a division by zero in one of its layers. The guard
says in which step the training died, and in which module. Ten seconds on two cores.
"""

from __future__ import annotations

import torch
from torch import nn

from examples.digits import data
from tune_guard import Policy, StopRecord, TrialGuard

EPOCHS = 10
POLICY = Policy.default("val_loss", "min", patience=20)


class Normalised(nn.Module):
    """Divide by the standard deviation; by zero where all features are equal."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return features of unit variance."""
        return features / features.std(0, keepdim=True)


def network(*, normalised: bool) -> nn.Sequential:
    """Return a classifier, with or without the layer that divides by zero."""
    middle: nn.Module = Normalised() if normalised else nn.Identity()
    return nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), middle, nn.Linear(64, 10)
    )  # fmt: skip


def train(model: nn.Module, lr: float) -> StopRecord:
    """Train for some epochs, or until the guard says that it makes no sense."""
    images, labels, val_images, val_labels = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    with TrialGuard(POLICY, trace=True) as guard:
        guard.watch(model)  # traces which layer's output goes bad first
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(labels)).split(64):
                loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                # Before the optimizer steps: dead gradients never reach the weights.
                if guard.check_step(loss, model, optimizer=optimizer).stop:
                    return guard.record()
                optimizer.step()
            with torch.no_grad():
                val_loss = nn.functional.cross_entropy(model(val_images), val_labels)
            if guard.check_epoch(val_loss).stop:
                return guard.record()
        return guard.record()


def main() -> None:
    """Train three times and print how each ended."""
    torch.manual_seed(0)
    runs = {
        "lr=0.05": (network(normalised=False), 0.05),
        "lr=1e9": (network(normalised=False), 1e9),
        "divides by zero": (network(normalised=True), 0.05),
    }
    for name, (model, lr) in runs.items():
        record = train(model, lr)
        end = f"{record.reason} at step {record.step}: {record.message}"
        best = "none" if record.best_value is None else f"{record.best_value:.3f}"
        print(f"{name}: {end if record.reason else 'healthy'} [best val_loss: {best}]")


if __name__ == "__main__":
    main()
