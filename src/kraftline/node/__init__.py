"""A node as people start, stop and use it: broker and controller in one process."""

from kraftline.node.node import Node
from kraftline.node.standalone import standalone_config

__all__ = ["Node", "standalone_config"]
