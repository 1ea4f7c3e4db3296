-- name: begin
INSERT INTO sessions (token_hash, user_id, expires_at)
VALUES (%(hash)s, %(user)s, now() + make_interval(secs => %(seconds)s))

-- name: end
DELETE FROM sessions WHERE token_hash = %(hash)s

-- name: end_all
DELETE FROM sessions WHERE user_id = %(user)s
