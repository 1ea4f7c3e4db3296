-- name: thread
SELECT t.space_id, t.id, t.owner_id, t.has_removed, s.number, i.space, i.format, i.has_removed
FROM threads AS t
LEFT JOIN search_spaces AS s ON s.space_id = t.space_id
LEFT JOIN search_threads AS i ON i.number = t.number
WHERE t.number = %(thread)s

-- name: number_space
INSERT INTO search_spaces (space_id) VALUES (%(space_id)s)
ON CONFLICT (space_id) DO UPDATE SET space_id = excluded.space_id
RETURNING number

-- name: put_thread
INSERT INTO search_threads (number, space, owner_id, activity, is_open, is_deleted, is_pinned, is_archived,
  has_removed, format)
VALUES (%(thread)s, %(space)s, %(owner)s, %(activity)s, %(is_open)s, %(is_deleted)s, %(is_pinned)s, %(is_archived)s,
  %(has_removed)s, %(format)s)
ON CONFLICT (number) DO UPDATE
SET space = excluded.space, owner_id = excluded.owner_id, activity = excluded.activity, is_open = excluded.is_open,
  is_deleted = excluded.is_deleted, is_pinned = excluded.is_pinned, is_archived = excluded.is_archived,
  has_removed = excluded.has_removed, format = excluded.format

-- name: put_header
INSERT INTO search_headers (number, space, stream, facts) VALUES (%(thread)s, %(space)s, %(stream)s, %(facts)s)
ON CONFLICT (number) DO UPDATE SET space = excluded.space, stream = excluded.stream, facts = excluded.facts
WHERE (search_headers.space, search_headers.stream, search_headers.facts)
  <> (excluded.space, excluded.stream, excluded.facts)

-- name: whole_thread
SELECT body FROM messages WHERE space_id = %(space_id)s AND thread_id = %(thread_id)s

-- name: erase_message_rows
WITH gone AS (
  DELETE FROM search_texts WHERE thread = %(thread)s AND message_id = ANY(%(ids)s)
  RETURNING number, block, stream
), rows AS (
  DELETE FROM search_rows WHERE number IN (SELECT number FROM gone)
)
SELECT block, stream FROM gone

-- name: erase_rows
WITH gone AS (
  DELETE FROM search_texts WHERE thread = %(thread)s RETURNING number, stream
), rows AS (
  DELETE FROM search_rows WHERE number IN (SELECT number FROM gone)
), blocks AS (
  DELETE FROM search_blocks WHERE thread = %(thread)s
)
SELECT stream FROM gone

-- name: block_numbers
SELECT nextval(pg_get_serial_sequence('public.search_blocks', 'number'))
FROM generate_series(1, %(count)s)

-- name: put_blocks
INSERT INTO search_blocks (number, thread, messages)
SELECT row.number, %(thread)s, row.messages
FROM unnest(%(numbers)b::bigint[], %(messages)b::integer[]) AS row(number, messages)

-- name: renew_blocks
WITH gone AS (
  DELETE FROM search_blocks WHERE number = ANY(%(blocks)s)
)
UPDATE search_texts AS x SET block = CASE WHEN r.is_shown THEN %(number)s::bigint END
FROM search_rows AS r
WHERE x.block = ANY(%(blocks)s) AND r.number = x.number
RETURNING r.is_shown

-- name: small_blocks
SELECT number, messages FROM search_blocks WHERE thread = %(thread)s AND messages < %(most)s
ORDER BY number DESC LIMIT 64

-- name: mark_blocks
UPDATE search_texts AS x SET block = %(number)s
FROM search_rows AS r WHERE x.number = r.number AND r.number = ANY(%(numbers)s)

-- name: erase_header
DELETE FROM search_headers WHERE number = %(thread)s RETURNING stream

-- name: erase_thread
DELETE FROM search_threads WHERE number = %(thread)s RETURNING space

-- name: numbers
SELECT nextval(pg_get_serial_sequence('public.search_texts', 'number'))
FROM generate_series(1, %(count)s)

-- name: put_texts
INSERT INTO search_texts (number, thread, message_id, space, block, tools_at, stream, extra)
SELECT row.number, %(thread)s, row.message_id, %(space)s, row.block, row.tools_at, row.stream, row.extra
FROM unnest(%(numbers)b::bigint[], %(ids)b::bytea[], %(blocks)b::bigint[], %(tools_at)b::integer[],
  %(streams)b::text[], %(extras)b::text[]) AS row(number, message_id, block, tools_at, stream, extra)

-- name: put_rows
INSERT INTO search_rows (number, place, at, fields, is_shown, part_of)
SELECT row.number, row.place, row.at, row.fields, true, row.part_of
FROM unnest(%(numbers)b::bigint[], %(places)b::bigint[], %(times)b::bigint[], %(fields)b::smallint[],
  %(parts)b::bigint[]) AS row(number, place, at, fields, part_of)

-- name: mark_shown
UPDATE search_rows AS r SET is_shown = m.is_shown
FROM search_texts AS x, messages AS m
WHERE x.thread = %(thread)s AND r.number = x.number
  AND m.space_id = %(space_id)s AND m.thread_id = %(thread_id)s AND m.id = x.message_id
  AND r.is_shown <> m.is_shown
RETURNING r.number, r.is_shown, x.block, r.place %% 4 = 0 AND r.part_of IS NULL

-- name: read_by_index
-- For this transaction. Both indexes ask for words by a function, whose plan would else be to read the whole table for
-- each message as long as statistics say that it is short, which they do all through a first sync.
SELECT set_config('enable_seqscan', 'off', true)

-- name: empty_lists
-- What was written lies in a list beside each index, which every search reads; put it where it belongs, all at once.
SELECT gin_clean_pending_list(c.oid) FROM pg_class AS c
WHERE c.oid IN (to_regclass('public.search_rows_words'), to_regclass('public.search_blocks_words'))
  AND pg_has_role(c.relowner, 'USAGE')

-- name: share_terms
SELECT pg_advisory_xact_lock_shared(%(lock)s, %(space)s)

-- name: own_terms
SELECT pg_advisory_xact_lock(%(lock)s, %(space)s)

-- name: put_terms
INSERT INTO search_terms (space, term)
SELECT %(space)s, new.term FROM unnest(%(terms)s::text[]) AS new(term)
WHERE NOT EXISTS (SELECT FROM search_terms AS s WHERE s.space = %(space)s AND s.term = new.term)

-- name: newest_streams
SELECT stream FROM (
  SELECT space, stream FROM search_texts ORDER BY number DESC LIMIT 500
) AS newest WHERE space = %(space)s

-- name: streams_with
(
  SELECT x.stream FROM search_rows AS r JOIN search_texts AS x ON x.number = r.number
  WHERE search_words_of(r.number) @@ %(query)s::tsquery LIMIT 200
) UNION ALL (
  SELECT h.stream FROM search_headers AS h
  WHERE search_lexemes(h.space, h.stream, h.facts) @@ %(query)s::tsquery LIMIT 200
)

-- name: forget_terms
DELETE FROM search_terms WHERE space = %(space)s AND term = ANY(%(terms)s)

-- name: threads_to_put
SELECT t.number FROM threads AS t
LEFT JOIN search_threads AS i ON i.number = t.number AND i.format = %(format)s
WHERE i.number IS NULL AND NOT t.is_private AND t.purged_at IS NULL AND t.number > %(after)s
ORDER BY t.number LIMIT %(limit)s

-- name: lock_thread
SELECT summary FROM threads
WHERE number = %(thread)s AND NOT is_private AND purged_at IS NULL FOR UPDATE
