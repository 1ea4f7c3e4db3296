-- name: put_link
INSERT INTO setup_links (token_hash, expires_at)
SELECT %(hash)s, now() + make_interval(secs => %(seconds)s) WHERE NOT EXISTS (SELECT FROM users)
RETURNING token_hash

-- name: is_open
SELECT FROM setup_links
WHERE token_hash = %(hash)s AND expires_at > now() AND NOT EXISTS (SELECT FROM users)

-- name: lock
LOCK TABLE setup_links IN SHARE ROW EXCLUSIVE MODE

-- name: end_all
DELETE FROM setup_links
