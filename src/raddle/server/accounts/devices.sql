-- name: mint
INSERT INTO devices (id, user_id, name, token_hash, scopes)
VALUES (%(device)s, %(user)s, %(name)s, %(hash)s, %(scopes)s)

-- name: list
SELECT id, name, scopes, created_at, last_used_at FROM devices
WHERE user_id = %(user)s AND revoked_at IS NULL
ORDER BY created_at DESC, id DESC

-- name: rename
UPDATE devices SET name = %(name)s
WHERE id = %(device)s AND user_id = %(user)s AND revoked_at IS NULL
RETURNING id

-- name: revoke
UPDATE devices SET revoked_at = now()
WHERE id = %(device)s AND user_id = %(user)s AND revoked_at IS NULL
RETURNING name

-- name: name
SELECT name FROM devices WHERE id = %(device)s
