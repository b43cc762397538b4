"""A guarded Lightning training: ``python -m examples.lightning_callback``.

One line in the trainer's callbacks. The learning rate is far too high; the guard
stops the trainer in the step in which the loss dies. Fifteen seconds on two cores.
"""

from __future__ import annotations

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from examples.digits import data
from tune_guard import Policy
from tune_guard.lightning import GuardCallback


class Classifier(pl.LightningModule):
    """A small classifier of handwritten digits."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(
        self, batch: tuple[torch.Tensor, torch.Tensor], _batch_idx: int
    ) -> torch.Tensor:
        """Return the loss of a batch."""
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(
        self, batch: tuple[torch.Tensor, torch.Tensor], _batch_idx: int
    ) -> None:
        """Log the validation loss."""
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("val_loss", loss)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return SGD with momentum."""
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


def main() -> None:
    """Train at two learning rates and print how each ended."""
    images, labels, val_images, val_labels = data()
    batches = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    validation = DataLoader(TensorDataset(val_images, val_labels), batch_size=512)
    for lr in (0.05, 1e20):
        torch.manual_seed(0)
        guard = GuardCallback(Policy.default("val_loss", "min", patience=20))
        trainer = pl.Trainer(
            max_epochs=5,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[guard],  # the one line
        )
        trainer.fit(Classifier(lr), batches, validation)
        if guard.guard is not None:
            record = guard.guard.record()
            end = f"{record.reason} at step {record.step}: {record.message}"
            print(f"lr={lr:g}: {end if record.reason else 'healthy'}")


if __name__ == "__main__":
    main()
