-- name: hub_epoch
SELECT epoch, cluster FROM hub

-- name: cluster
SELECT system_identifier::text || '/' || timeline_id::text FROM pg_control_system(), pg_control_checkpoint()

-- name: set_hub
INSERT INTO hub (epoch, cluster) VALUES (%(epoch)s, %(cluster)s)
ON CONFLICT (is_one) DO UPDATE SET epoch = excluded.epoch, cluster = excluded.cluster

-- name: create_thread
INSERT INTO threads (space_id, id, owner_id, version, pushed_digest, summary)
VALUES (%(space)s, %(thread)s, %(owner)s, GREATEST(1, %(version)s), %(digest)s, ''::bytea)
ON CONFLICT DO NOTHING
RETURNING number, version, is_private, message_count, shown_count, has_removed, edit_clock, clock

-- name: take_version
UPDATE threads SET version = GREATEST(version + 1, %(version)s), pushed_digest = %(digest)s
WHERE space_id = %(space)s AND id = %(thread)s AND version = %(base)s AND purged_at IS NULL
RETURNING number, version, is_private, message_count, shown_count, has_removed, edit_clock, clock

-- name: at_one_moment
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY

-- name: state
SELECT version, erased_at_version, pushed_digest, is_private, purged_at IS NOT NULL
FROM threads WHERE space_id = %(space)s AND id = %(thread)s

-- name: registers
SELECT path, body FROM registers WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: messages_of_ids
SELECT id, is_shown, body FROM messages
WHERE space_id = %(space)s AND thread_id = %(thread)s AND id = ANY(%(ids)s)

-- name: outlines
SELECT id, parent_id, seq, is_shown FROM messages WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: put_messages
INSERT INTO messages (space_id, thread_id, id, seq, parent_id, changed_version, size, body)
SELECT %(space)s, %(thread)s, row.id, row.seq, row.parent_id, %(version)s, row.size, row.body
FROM unnest(%(ids)b::bytea[], %(seqs)b::bigint[], %(parents)b::bytea[], %(sizes)b::integer[], %(bodies)b::bytea[])
  AS row(id, seq, parent_id, size, body)
ON CONFLICT (space_id, thread_id, id) DO UPDATE
SET seq = excluded.seq, parent_id = excluded.parent_id, changed_version = excluded.changed_version,
    size = excluded.size, body = excluded.body

-- name: show_messages
UPDATE messages SET is_shown = %(is_shown)s
WHERE space_id = %(space)s AND thread_id = %(thread)s AND id = ANY(%(ids)s)

-- name: put_registers
INSERT INTO registers (space_id, thread_id, path, changed_version, size, body)
SELECT %(space)s, %(thread)s, row.path, %(version)s, row.size, row.body
FROM unnest(%(paths)b::bytea[], %(sizes)b::integer[], %(bodies)b::bytea[]) AS row(path, size, body)
ON CONFLICT (space_id, thread_id, path) DO UPDATE
SET changed_version = excluded.changed_version, size = excluded.size, body = excluded.body

-- name: note_thread
UPDATE threads SET
  message_count = %(message_count)s, shown_count = %(shown_count)s, has_removed = %(has_removed)s,
  edit_clock = %(edit_clock)s, clock = %(clock)s, summary = %(summary)s, last_activity = %(last_activity)s,
  visibility = %(visibility)s, is_private = %(is_private)s, is_deleted = %(is_deleted)s,
  is_shared_with_support = %(is_shared_with_support)s, is_pinned = %(is_pinned)s, is_archived = %(is_archived)s,
  deleted_since = CASE WHEN %(is_deleted)s THEN COALESCE(deleted_since, now()) END
WHERE space_id = %(space)s AND id = %(thread)s

-- name: erase_messages
DELETE FROM messages WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: erase_registers
DELETE FROM registers WHERE space_id = %(space)s AND thread_id = %(thread)s AND path <> %(kept)s

-- name: erase_blobs
DELETE FROM thread_blobs WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: erase_sources
DELETE FROM thread_sources WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: note_erasure
UPDATE threads SET erased_at_version = version, message_count = 0, shown_count = 0, has_removed = false,
  edit_clock = '\x7b7d'
WHERE space_id = %(space)s AND id = %(thread)s

-- name: note_purge
UPDATE threads SET purged_at = now(), is_deleted = true, version = version + 1
WHERE space_id = %(space)s AND id = %(thread)s AND purged_at IS NULL
RETURNING number, version, is_private, message_count, shown_count, has_removed, edit_clock, clock

-- name: forget_names
UPDATE threads SET summary = %(summary)s, pushed_digest = NULL WHERE space_id = %(space)s AND id = %(thread)s

-- name: to_purge
SELECT space_id, id FROM threads
WHERE deleted_since < now() - make_interval(secs => %(seconds)s) AND purged_at IS NULL AND is_deleted
ORDER BY deleted_since LIMIT 20 FOR UPDATE SKIP LOCKED

-- name: page_end
SELECT max(changed_version) FILTER (WHERE total <= %(limit)s), min(changed_version), max(changed_version)
FROM (
  SELECT changed_version, sum(sum(size)) OVER (ORDER BY changed_version) AS total
  FROM (
    SELECT changed_version, size FROM messages
    WHERE space_id = %(space)s AND thread_id = %(thread)s
      AND changed_version > %(since)s AND changed_version <= %(version)s
    UNION ALL
    SELECT changed_version, size FROM registers
    WHERE space_id = %(space)s AND thread_id = %(thread)s
      AND changed_version > %(since)s AND changed_version <= %(version)s
  ) AS rows
  GROUP BY changed_version
) AS versions

-- name: messages_between
SELECT body FROM messages
WHERE space_id = %(space)s AND thread_id = %(thread)s
  AND changed_version > %(since)s AND changed_version <= %(version)s
ORDER BY changed_version, seq, id

-- name: registers_between
SELECT path, body FROM registers
WHERE space_id = %(space)s AND thread_id = %(thread)s
  AND changed_version > %(since)s AND changed_version <= %(version)s
ORDER BY changed_version, path

-- name: note_change
WITH numbered AS (
  UPDATE spaces SET feed_number = feed_number + 1 WHERE id = %(space)s RETURNING feed_number
), fed AS (
  INSERT INTO thread_changes (space_id, thread_id, number, version, kind)
  SELECT %(space)s, %(thread)s, feed_number, %(version)s, %(kind)s FROM numbered
  ON CONFLICT (space_id, thread_id) DO UPDATE
  SET number = excluded.number, version = excluded.version, kind = excluded.kind
  RETURNING number
)
SELECT number, pg_notify('raddle_changes', %(space)s::text) FROM fed

-- name: changes
SELECT c.thread_id, c.version, c.kind, c.number, COALESCE(t.is_deleted, false)
FROM thread_changes AS c LEFT JOIN threads AS t ON t.space_id = c.space_id AND t.id = c.thread_id
WHERE c.space_id = %(space)s AND c.number > %(after)s
ORDER BY c.number LIMIT %(limit)s
