"""Transfer functions: what each canonical operator does to shadows.  Importing this package registers all of them."""

import importlib
import pkgutil

from wirelint.shadow.transfer.registry import REGISTRY, Context, Transfer

__all__ = ["REGISTRY", "Context", "Transfer"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
