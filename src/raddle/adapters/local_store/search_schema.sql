-- The local search index. Derived: `raddle doctor --reindex` makes it again from the thread files.
-- A change here, or of the cut (CUT_VERSION), is a change of the format number in search_database.py.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- `id` is null while an import has not yet said which thread its rows belong to: nobody sees such a thread.
CREATE TABLE threads (
  no INTEGER PRIMARY KEY,
  id TEXT UNIQUE,
  activity INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  summary BLOB NOT NULL
);

CREATE INDEX threads_by_activity ON threads (activity DESC, id, flags);

-- 1,024 places for messages of one thread: message row = slot * 1024 + place. Small, since all of it is read
-- at once; what belongs to single messages is in `marks`. Times in microseconds, null where the time of any of its messages is unknown.
CREATE TABLE slots (
  slot INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL,
  used INTEGER NOT NULL,
  live INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  first_time INTEGER,
  last_time INTEGER
);
CREATE INDEX slots_of_thread ON slots (thread);

CREATE TABLE marks (slot INTEGER PRIMARY KEY, bits BLOB NOT NULL, orders BLOB NOT NULL, keys BLOB NOT NULL);

-- Texts of up to 64 messages in a row, zstd; `size` before compression.
CREATE TABLE blocks (first INTEGER PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);

-- What each file of a thread looked like when the thread was last read (search_sweep.py; times in nanoseconds): of
-- deleted threads too, and of such as cannot be read, or they would be read again and again.
CREATE TABLE files (
  name TEXT PRIMARY KEY,
  inode INTEGER NOT NULL,
  size INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  changed INTEGER NOT NULL
) WITHOUT ROWID;

-- The vocabulary: every token of the index, one a line, in parts (a token may be in several).
-- A part never changes and its number is never used again: who has read it need not read it again.
CREATE TABLE book (part INTEGER PRIMARY KEY AUTOINCREMENT, terms BLOB NOT NULL);

-- The columns are in the order of search_tokens.py, which says why.
-- `ascii` leaves the tokens as they are. No prefix option: it doubles the index (docs/adr/0010).
CREATE VIRTUAL TABLE words USING fts5 (
  output, user, assistant, thinking, tools,
  output_pieces, user_pieces, assistant_pieces, thinking_pieces, tools_pieces,
  content = '', columnsize = 0, tokenize = 'ascii'
);
-- What was said and thought in messages that have other fields too: where a hit weighs more (ranking only).
CREATE VIRTUAL TABLE said USING fts5 (
  words, content = '', columnsize = 0, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE headers USING fts5 (
  title, tags, branches, remote, shas, pieces, repository, agent,
  content = '', columnsize = 0, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE word_terms USING fts5vocab (words, row);
CREATE VIRTUAL TABLE header_terms USING fts5vocab (headers, row);
