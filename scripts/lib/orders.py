"""The 40 messages of the end-to-end run, in two waves: the second is sent when the first is settled."""

import json
from dataclasses import dataclass


@dataclass
class Message:
    body: str
    group: str  # of a FIFO queue
    poison: bool = False


def order(order_id, amount="12.50", **more):
    return json.dumps({"order_id": order_id, "amount": amount, "currency": "EUR", **more})


GOOD = [f"order-{n}" for n in range(18)] + ["flaky-0", "flaky-1"]


def waves():
    """20 good orders, 6 duplicates, 6 resends and 8 poison messages; groups mix them."""
    def group(n):
        return f"customer-{n % 4}"

    good = [Message(order(id), group(n)) for n, id in enumerate(GOOD)]
    duplicates = [Message(order(id), group(n)) for n, id in enumerate(GOOD[:6])]
    malformed = [
        "not json",
        "[]",
        order("order-no-currency").replace("EUR", "XXX"),
        order("order-negative", amount="-1"),
        order("order-precision", amount="1.005"),
        json.dumps({"amount": "1", "currency": "EUR"}),
    ]
    poison = [Message(body, group(n), poison=True) for n, body in enumerate(malformed)]
    # Poison comes between the good ones, so that on a FIFO queue something waits behind it.
    first = good[:8] + poison + good[8:] + duplicates
    resends = [Message(order(id), group(n)) for n, id in enumerate(GOOD[6:12], start=6)]
    other_amount = [Message(order(id, amount="99"), "customer-0", poison=True) for id in GOOD[:2]]
    return first, resends + other_amount
