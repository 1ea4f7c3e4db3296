-- What one hub is known to hold. Losing this file costs a merge, nothing else.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE threads (
  no INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL,
  hub_epoch TEXT NOT NULL,
  -- The state of the thread's files in which nothing was pending.
  file TEXT,
  after INTEGER,
  is_private INTEGER NOT NULL DEFAULT 0,
  -- A digest of this device's list of source segments, as the hub was told it last.
  sources TEXT NOT NULL DEFAULT ''
);
-- Digests of the forms of messages (kind 0, by id) and registers (kind 1, by path) there.
CREATE TABLE parts (
  thread INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, digest INTEGER NOT NULL,
  PRIMARY KEY (thread, kind, name)
) WITHOUT ROWID;
CREATE TABLE notes (
  id TEXT PRIMARY KEY, code TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL, is_final INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE blobs (sha256 TEXT PRIMARY KEY) WITHOUT ROWID;
