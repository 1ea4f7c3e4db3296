"""The daemon: raddle at work by itself, for one data folder. It imports what agents write and keeps it in step."""
