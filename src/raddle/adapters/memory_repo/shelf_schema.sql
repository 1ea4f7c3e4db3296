-- The index of a store's folder. Derived: it is made again from the files whenever it is missing or of another format.
-- A change here, or of the cut of words, is a change of the format number in shelf_database.py.

-- A folder as it looked when it was last gone through (nanoseconds), and when that was (microseconds; 0: whatever it
-- looks like, it is gone through once more). `files`: what each file in it looked like before it was read; `changed`,
-- there and here, is -1 where it may have changed since. All in one: of ten thousand rows, each look would read each.
CREATE TABLE folders (
  path TEXT PRIMARY KEY,
  inode INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  looked INTEGER NOT NULL,
  files BLOB NOT NULL
) WITHOUT ROWID;

-- What a list shows (`line`: msgpack, of memories) and what narrows a search down. `at`: microseconds. `tags`: one a
-- line.
CREATE TABLE documents (
  number INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  run_id TEXT NOT NULL,
  phase TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  at INTEGER,
  tags TEXT NOT NULL,
  line BLOB
);
-- With what a list shows, so that it is read in one go.
CREATE INDEX documents_of_memory ON documents (namespace, key, kind, line) WHERE namespace <> '';
CREATE INDEX documents_found ON documents (kind, namespace, number, at, tags);

-- The texts that are searched (msgpack), for snippets and for what words alone cannot say.
CREATE TABLE texts (number INTEGER PRIMARY KEY, names BLOB NOT NULL, texts BLOB NOT NULL);

-- Entries as their files hold them, in the order in which they are read.
CREATE TABLE entries (
  run_id TEXT NOT NULL,
  phase TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  path TEXT NOT NULL,
  thread_id TEXT,
  data BLOB NOT NULL,
  PRIMARY KEY (run_id, phase, entry_id, path)
) WITHOUT ROWID;
CREATE INDEX entries_on_thread ON entries (thread_id) WHERE thread_id IS NOT NULL;

-- Files that stand where an entry should and cannot be read as one, and why.
CREATE TABLE damaged (path TEXT PRIMARY KEY, why TEXT NOT NULL) WITHOUT ROWID;

-- Words that model/threads/search_text.py cut: this tokenizer decides nothing.
CREATE VIRTUAL TABLE words USING fts5 (names, texts, name_pieces, text_pieces, tokenize = 'ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
