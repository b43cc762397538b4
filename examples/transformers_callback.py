"""A guarded training with the Hugging Face Trainer.

``python -m examples.transformers_callback``. A GPT-2 of two layers, made on the
spot, learns to count. In the second run one of its weights is NaN: the Trainer's log
shows a loss of 0.0, the guard stops it in the first step and names the layer.
Twenty seconds on two cores; nothing is downloaded.
"""

from __future__ import annotations

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from tune_guard import Policy
from tune_guard.transformers import GuardCallback


def model(*, broken: bool) -> GPT2LMHeadModel:
    """Return a tiny GPT-2, with one bad weight if asked for."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2)
    made = GPT2LMHeadModel(config)
    if broken:
        with torch.no_grad():
            made.transformer.h[1].attn.c_proj.weight[0, 0] = float("nan")
    return made


def main() -> None:
    """Train both and print how each ended."""
    counts = [(torch.arange(16) + start) % 32 for start in range(32)]
    rows = [{"input_ids": ids, "labels": ids} for ids in counts]
    for broken in (False, True):
        guard = GuardCallback(Policy.default("eval_loss", "min", patience=20))
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                num_train_epochs=10,
                per_device_train_batch_size=8,
                learning_rate=1e-2,
                eval_strategy="epoch",
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            )
            Trainer(
                model=model(broken=broken),
                args=arguments,
                train_dataset=rows,
                eval_dataset=rows,
                callbacks=[guard],  # the one line
            ).train()
        if guard.guard is not None:
            record = guard.guard.record()
            end = f"{record.reason} at step {record.step}: {record.message}"
            name = "broken" if broken else "sound"
            print(f"{name}: {end if record.reason else 'healthy'}")


if __name__ == "__main__":
    main()
