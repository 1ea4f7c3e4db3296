-- Threads with messages that are not in the index of words yet. A push adds a row and never waits for who reads them.
CREATE TABLE search_waiting (
    number            bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    space_id          uuid   NOT NULL,
    thread            bigint NOT NULL,   -- threads.number
    version           bigint NOT NULL,
    since             timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX search_waiting_of_thread ON search_waiting (thread, version);
CREATE INDEX search_waiting_of_space ON search_waiting (space_id, number);

-- Up to which version of a thread its messages are in the index.
CREATE TABLE search_progress (
    thread            bigint PRIMARY KEY,
    version           bigint NOT NULL
);
