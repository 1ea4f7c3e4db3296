"""`python -m raddle.examples.ml_train`: a line is fitted to points, as the phase `train` of a run.

The memory needs the phases train and eval: `raddle store init NAME --phases train,eval,present`.
"""

from __future__ import annotations

import json
import math

import raddle
from raddle.examples.as_program import run
from raddle.examples.line_chart import line_chart

Point = tuple[float, float]


def points(number: int, *, begin: int = 0) -> list[Point]:
    """What there is to be learned from: a line with a ripple on it."""
    return [
        (step / 20, 3.0 * step / 20 + 1.0 + 0.2 * math.sin(7.0 * step))
        for step in range(begin, begin + number)
    ]


def train(*, epochs: int = 60, learning_rate: float = 0.2, fails_at: int | None = None) -> str:
    """The id of the run. `fails_at`: the epoch in which the power goes, to see what is left of it."""
    with raddle.PhaseAdapter("train", batch=20) as phase:
        phase.decision(f"a learning rate of {learning_rate}: the first that does not swing")
        slope = intercept = 0.0
        data = points(40)
        losses = []
        for epoch in range(epochs):
            if epoch == fails_at:
                raise RuntimeError(f"out of memory in epoch {epoch}")
            errors = [slope * x + intercept - y for x, y in data]
            loss = sum(error * error for error in errors) / len(data)
            slope -= (
                learning_rate * 2 * sum(e * x for e, (x, _) in zip(errors, data, strict=True)) / len(data)
            )
            intercept -= learning_rate * 2 * sum(errors) / len(data)
            losses.append(loss)
            phase.metric(epoch=epoch, loss=loss)
            if epoch % 20 == 0:
                phase.summary(f"Epoch {epoch} of {epochs}: loss {loss:.4f}.")
        weights = json.dumps({"slope": slope, "intercept": intercept}).encode()
        model = phase.artifact(weights, artifact_id="model", kind="checkpoint")
        figure = phase.artifact(line_chart(losses), artifact_id="loss-curve", kind="figure")
        phase.summary(f"Trained for {epochs} epochs; the loss ends at {losses[-1]:.4f}.")
        phase.publish_handoff(
            f"The loss fell from {losses[0]:.2f} to {losses[-1]:.4f}",
            results={
                "epochs": epochs,
                "final loss": losses[-1],
                "weights": {"slope": slope, "intercept": intercept},
            },
            best_artifacts=[model],
            figures=[figure],
            decisions=[f"Learning rate {learning_rate}"],
            open_questions=["Does it hold on points that it has not seen?"],
        )
        return phase.run_id


if __name__ == "__main__":
    run(train)
