"""A Ray cluster of three nodes, held by a process of its own.

The head runs drivers only; two nodes have a GPU each, in name. Prints one line of JSON
when it stands. A line with a node's address kills that node at once; the end of the
input ends the cluster.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import socket
import sys
from typing import Any

HEAD = "127.0.0.1"
WORKERS = {"127.0.0.2": "machine-2", "127.0.0.3": "machine-3"}
_NEW_HOST_NAME = 0x04000000  # CLONE_NEWUTS


def rename_host(name: str) -> None:
    """Give the processes that are started from now on a host name of their own.

    Only root may; for others all nodes bear the machine's name.
    """
    if os.geteuid() == 0 and ctypes.CDLL(None).unshare(_NEW_HOST_NAME) == 0:
        socket.sethostname(name)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((HEAD, 0))
        port: int = listener.getsockname()[1]
    return port


def main() -> None:
    """Start the nodes, then kill those that are named."""
    from ray.cluster_utils import Cluster

    logging.disable(logging.WARNING)
    client = free_port()
    head: dict[str, Any] = {
        "num_cpus": 0,
        "include_dashboard": True,
        "dashboard_port": free_port(),
        "dashboard_agent_listen_port": free_port(),
        "ray_client_server_port": client,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = {}
    for address, name in WORKERS.items():
        rename_host(name)
        nodes[address] = cluster.add_node(
            node_ip_address=address, num_cpus=1, num_gpus=1
        )
    addresses = {
        "cluster": cluster.address,
        "client": f"ray://{HEAD}:{client}",
        "dashboard": f"http://{cluster.webui_url}",
    }
    print(json.dumps(addresses), flush=True)
    for line in sys.stdin:
        cluster.remove_node(nodes[line.strip()], allow_graceful=False)
        print(line.strip(), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
