-- name: wait
INSERT INTO search_waiting (space_id, thread, version)
SELECT space_id, number, version FROM threads WHERE number = %(thread)s

-- name: tell
SELECT pg_notify('raddle_words', '')

-- name: forget
WITH waiting AS (DELETE FROM search_waiting WHERE thread = %(thread)s)
DELETE FROM search_progress WHERE thread = %(thread)s

-- name: start_over
DELETE FROM search_progress WHERE thread = %(thread)s

-- name: has_the_thread
SELECT pg_advisory_xact_lock(%(lock)s, hashint8(%(thread)s::bigint))

-- name: next_thread
SELECT w.thread FROM (
  SELECT thread, min(number) AS number FROM search_waiting
  WHERE %(spaces)s::uuid[] IS NULL OR space_id = ANY(%(spaces)s::uuid[])
  GROUP BY thread ORDER BY 2 LIMIT 64
) AS w
WHERE pg_try_advisory_xact_lock(%(lock)s, hashint8(w.thread))
LIMIT 1

-- name: reach
SELECT t.space_id, t.id, t.version, COALESCE(p.version, 0)
FROM threads AS t LEFT JOIN search_progress AS p ON p.thread = t.number
WHERE t.number = %(thread)s AND t.purged_at IS NULL AND NOT t.is_private

-- name: page_end
SELECT max(changed_version) FILTER (WHERE total <= %(limit)s), min(changed_version)
FROM (
  SELECT changed_version, sum(sum(size)) OVER (ORDER BY changed_version) AS total FROM messages
  WHERE space_id = %(space)s AND thread_id = %(thread_id)s
    AND changed_version > %(since)s AND changed_version <= %(version)s
  GROUP BY changed_version
) AS versions

-- name: messages_between
SELECT body FROM messages
WHERE space_id = %(space)s AND thread_id = %(thread_id)s
  AND changed_version > %(since)s AND changed_version <= %(version)s
ORDER BY seq, id

-- name: note_progress
WITH done AS (DELETE FROM search_waiting WHERE thread = %(thread)s AND version <= %(version)s)
INSERT INTO search_progress (thread, version) VALUES (%(thread)s, %(version)s)
ON CONFLICT (thread) DO UPDATE SET version = excluded.version

-- name: count
SELECT count(DISTINCT thread) FROM search_waiting WHERE space_id = ANY(%(spaces)s::uuid[])

-- name: oldest
SELECT COALESCE(extract(epoch FROM clock_timestamp() - min(since)), -1)::float8 FROM search_waiting
