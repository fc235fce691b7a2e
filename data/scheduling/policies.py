"""Policies by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from data.scheduling.config import SchedulerConfig
from data.scheduling.fifo_policy import FifoPolicy, one_lane, two_lanes
from data.scheduling.policy import Policy
from data.scheduling.uniun_policy import UniunPolicy

POLICIES: Mapping[str, Callable[[SchedulerConfig], Policy]] = MappingProxyType(
    {
        "uniun": UniunPolicy,
        "fifo": lambda config: FifoPolicy(one_lane),
        "two-lane": lambda config: FifoPolicy(two_lanes),
    }
)
