"""Files of a store as the peer writes them (its 0.14), one of each kind."""

from __future__ import annotations

PROJECT = """\
schema_version: 1
project_id: my-project
name: null
phases:
- build
- test
- present
created_ts: '2026-11-30T19:41:16.226877Z'
publish: null
"""
RUN = """\
schema_version: 1
run_id: 01M8PZKM3KMAB0SYRHJ485PAMY
status: active
parent_run_id: null
phases:
  build: done
  test: pending
  present: pending
nodes:
- node_id: node-6f7ea912bd3c
  host: vm
  joined: '2026-11-30T19:41:16.275077Z'
  left: null
created_ts: '2026-11-30T19:41:16.275077Z'
"""
ENTRY = """\
{
  "schema_version": 1,
  "entry_id": "01M8PZKM3QH82B3EHB38JW5D7M",
  "run_id": "01M8PZKM3KMAB0SYRHJ485PAMY",
  "phase": "build",
  "type": "metric",
  "ts": "2026-11-30T19:41:16.279740Z",
  "provenance": {
    "node_id": "node-6f7ea912bd3c",
    "host": "vm",
    "agent": null,
    "project_git_sha": null
  },
  "payload": {
    "x": 1.5,
    "y": [
      1,
      {
        "z": null
      }
    ],
    "t": "ünïcode"
  },
  "tags": [],
  "links": [
    "l"
  ]
}"""
INDEX = """\
{
  "schema_version": 1,
  "run_id": "01M8PZKM3KMAB0SYRHJ485PAMY",
  "artifacts": {
    "conf": {
      "schema_version": 1,
      "artifact_id": "conf",
      "kind": "config",
      "sha256": "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
      "size_bytes": 6,
      "backend": "inline",
      "uri": "runs/01M8PZKM3KMAB0SYRHJ485PAMY/phases/build/artifacts/conf.txt",
      "produced_by_phase": "build",
      "created_ts": "2026-11-30T19:41:16.286029Z"
    }
  }
}"""
HANDOFF = """\
{
  "schema_version": 1,
  "from_phase": "build",
  "run_id": "01M8PZKM3KMAB0SYRHJ485PAMY",
  "headline": "head",
  "key_results": {
    "a": 1,
    "b": {
      "c": [
        1,
        2
      ]
    }
  },
  "best_artifacts": [
    "conf"
  ],
  "decisions": [
    "d"
  ],
  "open_questions": [],
  "figures": []
}"""
MARKER = """\
schema_version: 1
store:
  mode: worktree
  path: ./st
  branch: redthread-store
  url: null
"""
MEMORY = """\
---
description: 'a: desc'
tags:
- a
- z
---

# Body

text
"""

FILES = {
    "project": PROJECT,
    "run": RUN,
    "entry": ENTRY,
    "index": INDEX,
    "handoff": HANDOFF,
    "marker": MARKER,
}
