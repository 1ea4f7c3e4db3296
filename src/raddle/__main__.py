"""`python -m raddle` is the command `raddle`."""

from raddle.apps.cli.main import run

if __name__ == "__main__":
    run()
