-- name: spaces
SELECT ARRAY(SELECT number FROM search_spaces WHERE space_id = ANY(%(spaces)s) ORDER BY number),
  EXISTS (SELECT FROM search_rows WHERE part_of IS NOT NULL),
  EXISTS (SELECT FROM search_threads WHERE format < %(format)s OR format > %(format)s),
  -- For this transaction: reading all rows instead of an index would cut the words of each of them anew.
  set_config('enable_seqscan', 'off', true)

-- name: containing
SELECT DISTINCT term FROM search_terms
WHERE space = ANY(%(spaces)s) AND term LIKE %(pattern)s
LIMIT %(most)s

-- name: readable
SELECT count(*) FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)

-- name: all_readable
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)

-- name: flagged
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND NOT t.is_deleted AND t.owner_id = %(reader)s
  AND CASE %(flag)s WHEN 'pinned' THEN t.is_pinned WHEN 'archived' THEN t.is_archived ELSE false END

-- name: headers
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (NOT %(is_owner)s OR t.owner_id = %(reader)s)
  -- An array: joined, it would be all threads that are read.
  AND t.number = ANY(ARRAY(
    SELECT h.number FROM search_headers AS h
    WHERE search_lexemes(h.space, h.stream, h.facts) @@ %(query)s::tsquery
      AND (cardinality(%(text)s::text[]) = 0 OR EXISTS (
        SELECT FROM unnest(%(text)s::text[]) AS p(pattern)
        WHERE strpos(CASE WHEN %(is_fact)s THEN h.facts ELSE h.stream END, p.pattern) > 0
      ))
  ))

-- name: summaries
SELECT i.number, i.owner_id = %(reader)s, t.summary
FROM search_threads AS i JOIN threads AS t ON t.number = i.number
WHERE i.number = ANY(%(numbers)s) AND search_may_read(i.owner_id, i.is_open, i.is_deleted, %(reader)s)

-- name: found
WITH hits AS MATERIALIZED (
  -- `+ 0`: an order that no index has, or the planner may walk the index of places and cut the words of each row.
  SELECT DISTINCT r.place + 0 AS place FROM search_rows AS r
  WHERE search_words_of(r.number) @@ %(query)s::tsquery
    AND r.part_of IS NULL AND r.is_shown <> %(is_removed)s
    AND (%(start)s::bigint IS NULL OR r.at > 0 AND r.at >= %(start)s::bigint)
    AND (%(end)s::bigint IS NULL OR r.at > 0 AND r.at < %(end)s::bigint)
)
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM hits AS r JOIN search_threads AS t ON t.number = r.place / 4
WHERE t.number = ANY(ARRAY(SELECT place / 4 FROM hits))
  AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (r.place %% 4 = 0 OR (r.place %% 4 = 1) = (t.owner_id = %(reader)s))
  AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)
  AND (%(threads)s::bigint[] IS NULL OR t.number = ANY(%(threads)s::bigint[]))

-- name: found_in_blocks
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND t.number = ANY(ARRAY(
    SELECT b.thread FROM search_blocks AS b WHERE search_words_of_block(b.number) @@ %(query)s::tsquery
  ))

-- name: newest_in_blocks
WITH hits AS MATERIALIZED (
  SELECT ARRAY(
    SELECT b.thread FROM search_blocks AS b WHERE search_words_of_block(b.number) @@ %(query)s::tsquery
  ) || %(alone)s::bigint[] AS threads
), cut AS MATERIALIZED (
  -- Where the newest threads probably end. All that is found is counted; to keep and to sort it would cost as much.
  SELECT max(i.activity) AS activity
  FROM unnest(%(spaces)s::integer[]) AS s(space) CROSS JOIN LATERAL (
    SELECT t.activity FROM search_threads AS t
    WHERE t.space = s.space AND (%(after_activity)s::bigint IS NULL
      OR (t.activity, t.number) < (%(after_activity)s::bigint, %(after_number)s::bigint))
    ORDER BY t.activity DESC, t.number DESC
    OFFSET %(looked_at)s::bigint / (SELECT cardinality(h.threads) + 1 FROM hits AS h) LIMIT 1
  ) AS i
  WHERE (SELECT cardinality(h.threads) FROM hits AS h) > %(kept)s
)
SELECT count(*),
  string_agg(int8send(t.activity) || int8send(t.number), ''::bytea)
    FILTER (WHERE t.number = ANY(%(never)s::bigint[])),
  string_agg(int8send(t.activity) || int8send(t.number), ''::bytea)
    FILTER (WHERE t.activity >= COALESCE((SELECT c.activity FROM cut AS c), 0)
      AND (%(after_activity)s::bigint IS NULL
        OR (t.activity, t.number) < (%(after_activity)s::bigint, %(after_number)s::bigint))
      AND t.number <> ALL(%(never)s::bigint[])),
  (SELECT c.activity IS NOT NULL FROM cut AS c)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s::integer[]) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND t.number = ANY((SELECT h.threads FROM hits AS h)::bigint[])

-- name: newest_rows
WITH hits AS MATERIALIZED (
  SELECT r.number, r.place, r.at, r.fields FROM search_rows AS r
  WHERE search_words_of(r.number) @@ %(query)s::tsquery
    AND r.part_of IS NULL AND r.is_shown <> %(is_removed)s
    AND (%(start)s::bigint IS NULL OR r.at > 0 AND r.at >= %(start)s::bigint)
    AND (%(end)s::bigint IS NULL OR r.at > 0 AND r.at < %(end)s::bigint)
)
SELECT string_agg(
  int8send(c.number) || int8send(c.thread) || int8send(c.at) || int8send(c.fields), ''::bytea
  ORDER BY c.activity DESC, c.thread DESC, c.number DESC
)
FROM (
  SELECT t.activity, t.number AS thread, r.number, r.at, r.fields::bigint
  FROM hits AS r JOIN search_threads AS t ON t.number = r.place / 4
  WHERE t.number = ANY(ARRAY(SELECT place / 4 FROM hits))
    AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
    AND (r.place %% 4 = 0 OR (r.place %% 4 = 1) = (t.owner_id = %(reader)s))
    AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)
  ORDER BY t.activity DESC, t.number DESC, r.number DESC
  LIMIT %(most)s
) AS c

-- name: of_threads
SELECT string_agg(int8send(r.number) || int8send(r.place / 4) || int8send(r.at) || int8send(r.fields::bigint),
  ''::bytea)
FROM search_rows AS r JOIN search_threads AS t ON t.number = r.place / 4
-- Two conditions: the index walks each by itself. As one tsquery, it would weigh every thread's name for every row.
WHERE search_words_of(r.number) @@ %(query)s::tsquery AND search_words_of(r.number) @@ %(names)s::tsquery
  AND t.number = ANY(%(threads)s::bigint[])
  AND r.part_of IS NULL AND r.is_shown <> %(is_removed)s
  AND (%(start)s::bigint IS NULL OR r.at > 0 AND r.at >= %(start)s::bigint)
  AND (%(end)s::bigint IS NULL OR r.at > 0 AND r.at < %(end)s::bigint)
  AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (r.place %% 4 = 0 OR (r.place %% 4 = 1) = (t.owner_id = %(reader)s))
  AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)

-- name: first_rows
-- How many messages each of these threads has, and the one to show of it: the first thing that the user said.
SELECT t.number, r.count, r.number
FROM search_threads AS t CROSS JOIN LATERAL (
  SELECT r.number, count(*) OVER () AS count FROM search_rows AS r
  WHERE r.place IN (4 * t.number, 4 * t.number + CASE WHEN t.owner_id = %(reader)s THEN 1 ELSE 2 END)
    AND r.part_of IS NULL AND r.is_shown <> %(is_removed)s
  ORDER BY r.fields & %(user)s = 0, r.at, r.number LIMIT 1
) AS r
WHERE t.number = ANY(%(threads)s::bigint[]) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)

-- name: extras
SELECT number, extra FROM search_texts WHERE number = ANY(%(numbers)s)

-- name: within
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)
  AND (%(threads)s::bigint[] IS NULL OR t.number = ANY(%(threads)s::bigint[]))
  AND EXISTS (
    SELECT FROM search_rows AS r
    WHERE r.place IN (4 * t.number, 4 * t.number + CASE WHEN t.owner_id = %(reader)s THEN 1 ELSE 2 END)
      AND r.is_shown <> %(is_removed)s
      AND (%(start)s::bigint IS NULL OR r.at > 0 AND r.at >= %(start)s::bigint)
      AND (%(end)s::bigint IS NULL OR r.at > 0 AND r.at < %(end)s::bigint)
  )

-- name: with_blocks
SELECT string_agg(int8send(t.activity) || int8send(t.number), ''::bytea ORDER BY t.activity DESC, t.number DESC)
FROM search_threads AS t
WHERE t.space = ANY(%(spaces)s) AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND t.number = ANY(ARRAY(SELECT b.thread FROM search_blocks AS b))

-- name: fitting
SELECT x.number, EXISTS (
    SELECT FROM unnest(%(unwanted)s::text[]) AS p(pattern) WHERE strpos(x.stream, p.pattern) > 0
  ), EXISTS (
    SELECT FROM unnest(%(suspect)s::text[]) AS p(pattern) WHERE strpos(x.stream, p.pattern) > 0
  )
FROM search_texts AS x
WHERE x.number = ANY(%(numbers)s)
  AND NOT EXISTS (
    SELECT FROM unnest(%(text)s::text[]) AS g(patterns)
    WHERE NOT EXISTS (
      SELECT FROM unnest(string_to_array(g.patterns, E'\n')) AS p(pattern) WHERE strpos(x.stream, p.pattern) > 0
    )
  )
  AND NOT EXISTS (
    SELECT FROM unnest(%(tools)s::text[]) AS g(patterns)
    WHERE NOT EXISTS (
      SELECT FROM unnest(string_to_array(g.patterns, E'\n')) AS p(pattern)
      WHERE strpos(substr(x.stream, x.tools_at), p.pattern) > 0
    )
  )
  AND NOT EXISTS (
    SELECT FROM unnest(%(facts)s::text[]) AS g(patterns)
    WHERE NOT EXISTS (
      SELECT FROM unnest(string_to_array(g.patterns, E'\n')) AS p(pattern) WHERE strpos(x.extra, p.pattern) > 0
    )
  )

-- name: parts
SELECT DISTINCT r.part_of FROM search_rows AS r
WHERE search_words_of(r.number) @@ %(query)s::tsquery AND r.part_of IS NOT NULL

-- name: wholes
SELECT r.number, t.number, t.activity, r.at, r.fields
FROM search_rows AS r JOIN search_threads AS t ON t.number = r.place / 4
WHERE r.number = ANY(%(numbers)s) AND r.is_shown <> %(is_removed)s
  AND (%(start)s::bigint IS NULL OR r.at > 0 AND r.at >= %(start)s::bigint)
  AND (%(end)s::bigint IS NULL OR r.at > 0 AND r.at < %(end)s::bigint)
  AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (r.place %% 4 = 0 OR (r.place %% 4 = 1) = (t.owner_id = %(reader)s))
  AND (t.owner_id = %(reader)s OR NOT %(is_removed)s)

-- name: part_streams
SELECT r.part_of, x.stream, x.extra, x.tools_at
FROM search_rows AS r JOIN search_texts AS x ON x.number = r.number
WHERE r.part_of = ANY(%(numbers)s) ORDER BY r.part_of, r.number

-- name: bodies
SELECT r.number, r.place %% 4 = 2, m.body
FROM search_rows AS r
JOIN search_texts AS x ON x.number = r.number
JOIN threads AS t ON t.number = x.thread
JOIN messages AS m ON m.space_id = t.space_id AND m.thread_id = t.id AND m.id = x.message_id
WHERE r.number = ANY(%(numbers)s)

-- name: newest_threads
-- Space by space, each along its index: one question for all spaces would sort all threads.
SELECT i.activity, i.number
FROM unnest(%(spaces)s::integer[]) AS s(space) CROSS JOIN LATERAL (
  SELECT t.activity, t.number FROM search_threads AS t
  WHERE t.space = s.space AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
    AND (%(after_activity)s::bigint IS NULL
      OR (t.activity, t.number) < (%(after_activity)s::bigint, %(after_number)s::bigint))
  ORDER BY t.activity DESC, t.number DESC LIMIT %(limit)s
) AS i
ORDER BY i.activity DESC, i.number DESC LIMIT %(limit)s

-- name: partly_known
SELECT count(*) FROM search_rows AS r JOIN search_threads AS t ON t.number = r.place / 4
WHERE search_words_of(r.number) @@ %(query)s::tsquery AND r.is_shown
  AND search_may_read(t.owner_id, t.is_open, t.is_deleted, %(reader)s)
  AND (r.place %% 4 = 0 OR (r.place %% 4 = 1) = (t.owner_id = %(reader)s))

-- name: has_rows
SELECT EXISTS (SELECT FROM search_rows AS r WHERE search_words_of(r.number) @@ %(alone)s::tsquery),
  EXISTS (SELECT FROM search_rows AS r WHERE search_words_of(r.number) @@ %(partial)s::tsquery)

-- name: thread_numbers
SELECT string_agg(int8send(i.activity) || int8send(i.number), ''::bytea)
FROM threads AS t JOIN search_threads AS i ON i.number = t.number
WHERE t.id = %(thread_id)s AND i.space = ANY(%(spaces)s)
  AND search_may_read(i.owner_id, i.is_open, i.is_deleted, %(reader)s)
