"""The dependencies chart: fetched, verified and packed; and the images that a stack's nodes pull.

It installs nothing: the program passes the package to the engine, whose plugin installs it.
"""

from hpkit.program.charts.images import MirroredImage, Tool, copy_commands, copying_tool, images_in, mirror, mirrored
from hpkit.program.charts.package import Package, cache_folder, ensure_package, kept_package, rendered

__all__ = [
    "MirroredImage",
    "Package",
    "Tool",
    "cache_folder",
    "copy_commands",
    "copying_tool",
    "ensure_package",
    "images_in",
    "kept_package",
    "mirror",
    "mirrored",
    "rendered",
]
