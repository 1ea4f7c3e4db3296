-- name: forget_attachments
DELETE FROM thread_blobs WHERE space_id = %(space)s AND thread_id = %(thread)s AND NOT is_source

-- name: bodies
SELECT body FROM messages WHERE space_id = %(space)s AND thread_id = %(thread)s

-- name: name_attachments
INSERT INTO thread_blobs (space_id, thread_id, sha256)
SELECT %(space)s, %(thread)s, hash FROM unnest(%(hashes)s::bytea[]) AS hash
ON CONFLICT DO NOTHING
