"""A result as JSON, under the names of the command line's contract."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bystander.result import Bound


def dumps(result: Bound) -> str:
    """One JSON object; what is not a finite number becomes null, since JSON has no NaN."""
    text = json.dumps(_finite(result.as_dict()), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
