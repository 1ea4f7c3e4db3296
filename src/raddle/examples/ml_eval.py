"""`python -m raddle.examples.ml_eval`: the line that `ml_train` fitted is held against other points (phase `eval`).

It reads the handoff of `train`, and of its artifacts the one that is named there.
"""

from __future__ import annotations

import json

import raddle
from raddle.examples.as_program import run
from raddle.examples.ml_train import points


def evaluate() -> str:
    """The id of the run."""
    with raddle.PhaseAdapter("eval") as phase:
        upstream = phase.upstream("train")
        weights = json.loads(phase.artifact_bytes(upstream.best_artifacts[0]))
        errors = []
        for x, y in points(20, begin=40):
            error = abs(weights["slope"] * x + weights["intercept"] - y)
            errors.append(error)
            phase.metric(x=x, error=error)
        accuracy = sum(error < 0.5 for error in errors) / len(errors)
        phase.summary(f"Accuracy {accuracy:.0%} on {len(errors)} points that it had not seen.")
        phase.publish_handoff(
            f"{accuracy:.0%} of the points it had not seen are within 0.5",
            results={"accuracy": accuracy, "worst error": max(errors), "points": len(errors)},
            best_artifacts=upstream.best_artifacts,
            decisions=["Good enough to be shown"] if accuracy > 0.9 else ["Train it for longer"],
        )
        return phase.run_id


if __name__ == "__main__":
    run(evaluate)
