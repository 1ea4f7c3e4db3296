-- Words are collected in a short list beside each index and put into it together, which takes a third of the time. A
-- search reads the list as well: so it is short, and emptied when a batch of messages is in.
ALTER INDEX search_rows_words SET (fastupdate = on, gin_pending_list_limit = 256);
ALTER INDEX search_blocks_words SET (fastupdate = on, gin_pending_list_limit = 256);

-- How many threads somebody may read, told from the index alone.
CREATE INDEX search_threads_readable ON search_threads (space, owner_id, is_open) WHERE NOT is_deleted;
