-- name: hold
SELECT version, is_private, purged_at IS NOT NULL FROM threads
WHERE space_id = %(space)s AND id = %(thread)s FOR UPDATE

-- name: lists
SELECT device, body FROM thread_sources
WHERE space_id = %(space)s AND thread_id = %(thread)s ORDER BY device

-- name: put_list
INSERT INTO thread_sources (space_id, thread_id, device, body)
VALUES (%(space)s, %(thread)s, %(device)s, %(body)s)
ON CONFLICT (space_id, thread_id, device) DO UPDATE SET body = excluded.body

-- name: drop_list
DELETE FROM thread_sources WHERE space_id = %(space)s AND thread_id = %(thread)s AND device = %(device)s

-- name: drop_lists
DELETE FROM thread_sources WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: forget_blobs
DELETE FROM thread_blobs
WHERE space_id = %(space)s AND thread_id = %(thread)s AND is_source AND NOT sha256 = ANY (%(hashes)s::bytea[])

-- name: name_blobs
INSERT INTO thread_blobs (space_id, thread_id, sha256, is_source)
SELECT %(space)s, %(thread)s, hash, true FROM unnest(%(hashes)s::bytea[]) AS hash
ON CONFLICT DO NOTHING

-- name: missing
WITH given AS (
  SELECT sha256 FROM uploads WHERE space_id = %(space)s AND sha256 = ANY (%(hashes)s::bytea[]) FOR KEY SHARE
)
SELECT hash FROM unnest(%(hashes)s::bytea[]) AS hash WHERE hash NOT IN (SELECT sha256 FROM given) ORDER BY hash
