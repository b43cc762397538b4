from ._pruner import GuardPruner
from ._pruner import HardwareFault
from ._pruner import Policy


__all__ = ["GuardPruner", "HardwareFault", "Policy"]
