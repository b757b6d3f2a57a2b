"""What a check yields."""
from dataclasses import dataclass


@dataclass
class Violation:
    invariant: str  # a letter of docs/FAULTS.md, `left`, or `json`
    at: int  # ns; 0 where only the server's clock is known
    text: str

    def __str__(self):
        return f"{self.invariant}: {self.text}"
