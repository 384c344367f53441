"""Messages between ranks as arrows below the switch tree, coloured by a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagegen.report.pictures.canvas import Canvas, text_width
from stagegen.report.pictures.colours import SOFT, scale
from stagegen.report.pictures.network import SIDE, Network
from stagegen.schedule import Message

_SHALLOWEST = 0.14
_LEGEND_MOST = 8


def room_for(
    places: Mapping[int, int], messages: Mapping[Message, int], most: float = 2.4
) -> float:
    """Return how much height the arrows of these messages get, at most `most` inches."""
    widest = max((abs(places[a] - places[b]) for a, b in messages), default=0)
    return min(most, 0.45 + 0.09 * widest) if messages else 0.0


@dataclass(frozen=True)
class Arrows:
    """Messages, each with a number that gives it its colour.

    Attributes:
        messages: the ones to draw.
        meaning: of number 1, and of others, with a place for the number.
    """

    messages: Mapping[Message, int]
    meaning: tuple[str, str]

    def colour(self, number: int) -> tuple[float, float, float]:
        """Return the colour of a number."""
        return scale(number, min(self.messages.values()), max(self.messages.values()))

    def draw(self, canvas: Canvas, network: Network) -> None:
        """Draw the arrows, and a legend of their colours."""
        places = network.layout.place
        widest = max((abs(places[a] - places[b]) for a, b in self.messages), default=1)
        for (one, other), number in self.messages.items():
            span = places[other] - places[one]
            depth = max(_SHALLOWEST, (network.arrows - 0.2) * (abs(span) / widest) ** 0.6)
            # Arrows to the left begin and end between those to the right, and go deeper.
            aside = 0.4 * network.radius if span > 0 else 0.0
            depth += 0.0 if span > 0 else 0.1
            y = network.base - network.radius * 0.95
            canvas.arc(
                (network.x(places[one]) + aside, y),
                (network.x(places[other]) - aside, y),
                depth,
                color=self.colour(number),
                gid=f"message-{one}-{other}",
            )
        if self.messages:
            self._legend(canvas)

    def _legend(self, canvas: Canvas) -> None:
        """Explain the colours at the bottom; for many numbers, every second, third, ..."""
        numbers = sorted(set(self.messages.values()))
        numbers = numbers[:: -(-len(numbers) // _LEGEND_MOST)]
        x = SIDE
        for number in numbers:
            canvas.line((x, x + 0.22), (0.2, 0.2), color=self.colour(number), linewidth=2.5)
            text = self.meaning[number != 1].format(number)
            canvas.text(x + 0.29, 0.2, text, 7.5, color=SOFT, va="center_baseline")
            x += 0.29 + text_width(text, 7.5) + 0.2
