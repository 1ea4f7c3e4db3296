-- name: note_upload
WITH stored AS (
  INSERT INTO blobs (sha256, size) VALUES (%(sha256)s, %(size)s)
  ON CONFLICT (sha256) DO UPDATE SET stored_at = now()
)
INSERT INTO uploads (space_id, sha256, is_kept) VALUES (%(space)s, %(sha256)s, %(is_kept)s)
ON CONFLICT (space_id, sha256) DO UPDATE SET uploaded_at = now(), is_kept = uploads.is_kept OR excluded.is_kept

-- name: is_kept
SELECT u.is_kept FROM uploads AS u WHERE u.space_id = %(own)s AND u.sha256 = %(sha256)s

-- name: keep_no_longer
UPDATE uploads SET is_kept = false, uploaded_at = now() WHERE space_id = %(own)s AND sha256 = %(sha256)s
RETURNING sha256

-- name: size_for
SELECT b.size FROM blobs AS b
WHERE b.sha256 = %(sha256)s AND (
  EXISTS (SELECT FROM uploads AS u WHERE u.sha256 = b.sha256 AND u.space_id = %(own)s::uuid)
  OR EXISTS (
    SELECT FROM thread_blobs AS n
    JOIN uploads AS u ON u.space_id = n.space_id AND u.sha256 = n.sha256
    JOIN threads AS t ON t.space_id = n.space_id AND t.id = n.thread_id
    WHERE n.sha256 = b.sha256 AND (t.owner_id = %(reader)s::uuid OR NOT n.is_source)
      AND thread_is_readable(
        %(reader)s, %(spaces)s::uuid[], %(is_support)s,
        t.space_id, t.owner_id, t.visibility, t.is_private, t.is_deleted, t.is_shared_with_support, t.purged_at)
  )
)

-- name: hold
SELECT pg_advisory_lock(%(lock)s, hashtext(%(sha256)s))

-- name: let_go
SELECT pg_advisory_unlock(%(lock)s, hashtext(%(sha256)s))

-- name: unnamed
SELECT u.space_id, u.sha256 FROM uploads AS u
WHERE u.uploaded_at < now() - make_interval(secs => %(seconds)s) AND NOT u.is_kept
  AND NOT EXISTS (SELECT FROM thread_blobs AS n WHERE n.space_id = u.space_id AND n.sha256 = u.sha256)
ORDER BY u.uploaded_at LIMIT 200

-- name: forget_upload
DELETE FROM uploads AS u
WHERE u.space_id = %(space)s AND u.sha256 = %(sha256)s
  AND u.uploaded_at < now() - make_interval(secs => %(seconds)s) AND NOT u.is_kept
  AND NOT EXISTS (SELECT FROM thread_blobs AS n WHERE n.space_id = u.space_id AND n.sha256 = u.sha256)
RETURNING u.sha256

-- name: unused
DELETE FROM blobs AS b
WHERE b.sha256 = %(sha256)s AND NOT EXISTS (SELECT FROM uploads AS u WHERE u.sha256 = b.sha256)
RETURNING b.sha256
