"""The GPU that a process trains on, read through NVML."""
