"""What the guard costs where there is much: results, trials, finished studies.

``python -m tests.benchmarks.scale [controller] [study] [sweep]`` prints each part and
exits with 1 where a limit is not kept.
"""
