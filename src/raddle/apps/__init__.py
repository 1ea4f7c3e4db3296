"""The ways in. Each is a thin call on `raddle.actions`, through `raddle.wiring`."""
