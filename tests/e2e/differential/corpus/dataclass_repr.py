from dataclasses import dataclass
from enum import Enum
from typing import get_type_hints
@dataclass
class P:
    x: int
    y: "list[P]"
class Color(Enum):
    RED = 1
print(P(1, []), get_type_hints(P), Color.RED, P.__module__, P.__qualname__)
P(1, [P(2, [])])
