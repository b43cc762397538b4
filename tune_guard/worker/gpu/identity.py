"""Which GPU of the machine a process trains on: by UUID, or not at all.

NVML counts all GPUs of the machine in the order of the bus and knows nothing of
``CUDA_VISIBLE_DEVICES``; CUDA counts the visible ones, by default the fastest
first. Where the two cannot be matched for sure, the answer is none: watching the
wrong GPU is worse than watching none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"


class UnknownGpu(LookupError):  # noqa: N818 - it says what is the case
    """It cannot be told for sure which GPU is meant; the text says why."""


def uuid_of(
    index: int,
    environment: Mapping[str, str],
    uuids: Sequence[str],
    models: Sequence[str],
) -> str:
    """Return the UUID of the GPU that CUDA calls ``index`` in this process.

    Args:
        index: CUDA's number of the device, from 0.

        environment: Holds ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER``.

        uuids: UUIDs of all GPUs in NVML's order.

        models: Their models: among equal ones the fastest first is the order of
            the bus.

    Returns:
        The UUID of a GPU, or that of a MIG slice as it stands in the variable.

    Raises:
        UnknownGpu: If that is not certain.

    Example:
        >>> uuid_of(0, {"CUDA_VISIBLE_DEVICES": "GPU-b"}, ["GPU-aa", "GPU-bb"], [])
        'GPU-bb'
    """
    listed = environment.get(VISIBLE)
    if listed is None:
        return _in_order(index, environment, uuids, models)
    entries = _visible(listed)
    if not 0 <= index < len(entries):
        shown = f"{VISIBLE}={listed!r} shows {len(entries)} GPUs"
        msg = f"{shown}, and none numbered {index}"
        raise UnknownGpu(msg)
    entry = entries[index]
    if entry.startswith("MIG-"):
        return _of_slice(entry, uuids)
    if entry.lstrip("+-").isdigit():
        return _in_order(int(entry), environment, uuids, models)
    return _by_prefix(entry, uuids)


def _visible(listed: str) -> list[str]:
    """Return the entries up to the first that is none: CUDA stops there, too."""
    entries = []
    for entry in listed.split(","):
        name = entry.strip()
        is_number = name.lstrip("+-").isdigit() and int(name) >= 0
        if not is_number and not name.startswith(("GPU-", "MIG-")):
            break
        entries.append(name)
    return entries


def _in_order(
    number: int,
    environment: Mapping[str, str],
    uuids: Sequence[str],
    models: Sequence[str],
) -> str:
    """Return the GPU of a number, if NVML and CUDA count in the same order."""
    if not 0 <= number < len(uuids) or not uuids[number]:
        msg = f"NVML shows {len(uuids)} GPUs, and none numbered {number}"
        raise UnknownGpu(msg)
    by_bus = environment.get(ORDER, "").strip().upper() == "PCI_BUS_ID"
    if not by_bus and len(uuids) > 1 and (len(set(models)) != 1 or not models[0]):
        msg = (
            "the GPUs of this machine differ, and CUDA counts the fastest first: set"
            f" {ORDER}=PCI_BUS_ID"
        )
        raise UnknownGpu(msg)
    return uuids[number]


def _by_prefix(entry: str, uuids: Sequence[str]) -> str:
    found = [uuid for uuid in uuids if uuid.startswith(entry)]
    if len(found) != 1:
        what = "no GPU" if not found else f"{len(found)} GPUs"
        msg = f"{VISIBLE} names {entry!r}, which is the beginning of {what}"
        raise UnknownGpu(msg)
    return found[0]


def _of_slice(entry: str, uuids: Sequence[str]) -> str:
    """Return the UUID to ask NVML for: older names of slices hold their GPU's."""
    if entry.startswith("MIG-GPU-"):
        return _by_prefix(entry.removeprefix("MIG-").partition("/")[0], uuids)
    return entry
