from __future__ import annotations

import pytest

from tune_guard.worker.gpu.identity import UnknownGpu, uuid_of

A = "GPU-aaaa1111-0000-0000-0000-000000000000"
B = "GPU-bbbb2222-0000-0000-0000-000000000000"
SLICE = "MIG-5f5f5f5f-1111-2222-3333-444444444444"
ALIKE = ["NVIDIA H200", "NVIDIA H200"]
UNLIKE = ["NVIDIA T400", "NVIDIA H200"]
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def asked(
    index: int,
    visible: str | None = None,
    models: list[str] = ALIKE,
    **environment: str,
) -> str:
    """Return the UUID of a device of a machine with two GPUs."""
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    return uuid_of(index, environment, [A, B], models)


@pytest.mark.parametrize(
    ("visible", "uuid"),
    [
        (B, B),
        ("GPU-bbbb", B),
        (f"GPU-bbbb,{A}", B),
        ("1", B),
        (" 1 , 0 ", B),
        ("0,1", A),
        (SLICE, SLICE),
        (f"MIG-{B}/3/0", B),
    ],
)
def test_the_first_visible_device_is_found(visible: str, uuid: str) -> None:
    """By number, by UUID in full or shortened, by slice."""
    assert asked(0, visible) == uuid


def test_the_second_visible_device_is_found() -> None:
    """CUDA's number counts within the list."""
    assert asked(1, "1,0") == A
    assert asked(1, f"{A},GPU-bbbb") == B


def test_without_the_variable_all_are_visible() -> None:
    """In the order of the bus, where the GPUs are alike."""
    assert asked(1) == B


@pytest.mark.parametrize(
    "visible", ["GPU-zzzz", "GPU-", "7", "", "-1", "none", "x,0", "MIG-GPU-zz/1/0"]
)
def test_what_cannot_be_matched_is_unknown(visible: str) -> None:
    """Never device 0, and never an error of another kind."""
    with pytest.raises(UnknownGpu):
        asked(0, visible)


def test_entries_behind_a_wrong_one_are_invisible() -> None:
    """CUDA stops reading there, too."""
    assert asked(0, "0,oops,1") == A
    with pytest.raises(UnknownGpu, match="shows 1 GPUs, and none numbered 1"):
        asked(1, "0,oops,1")


def test_numbers_among_unlike_gpus_need_the_order_of_the_bus() -> None:
    """CUDA counts the fastest first, NVML the first on the bus."""
    with pytest.raises(UnknownGpu, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        asked(0, models=UNLIKE)
    with pytest.raises(UnknownGpu):
        asked(0, "0", models=UNLIKE)
    assert asked(0, models=UNLIKE, **BY_BUS) == A
    assert asked(0, "1", models=UNLIKE, **BY_BUS) == B


def test_uuids_need_no_order() -> None:
    """They name the GPU, whatever stands where."""
    assert asked(0, "GPU-bbbb", models=UNLIKE) == B


def test_unknown_models_are_not_alike() -> None:
    """Two GPUs that do not say what they are may differ."""
    with pytest.raises(UnknownGpu):
        asked(0, models=["", ""])


def test_a_lost_gpu_has_no_number() -> None:
    """Its UUID cannot be read any more."""
    with pytest.raises(UnknownGpu):
        uuid_of(0, BY_BUS, ["", B], UNLIKE)


def test_one_gpu_needs_no_order() -> None:
    """There is nothing to mix up."""
    assert uuid_of(0, {}, [A], ["NVIDIA T400"]) == A
