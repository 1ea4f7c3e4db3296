-- name: ask
INSERT INTO device_codes (device_hash, user_hash, name, scopes, address, expires_at, interval_seconds)
VALUES (%(device_hash)s, %(user_hash)s, %(name)s, %(scopes)s, %(address)s,
  now() + make_interval(secs => %(seconds)s), %(interval)s)
ON CONFLICT DO NOTHING
RETURNING device_hash

-- name: by_user_code
SELECT name, scopes, address, asked_at FROM device_codes
WHERE user_hash = %(user_hash)s AND expires_at > now() AND decided_at IS NULL

-- name: decide
UPDATE device_codes SET decided_at = now(), approved_by = %(approver)s
WHERE user_hash = %(user_hash)s AND expires_at > now() AND decided_at IS NULL
RETURNING name

-- name: poll
UPDATE device_codes AS c
SET polled_at = now(), interval_seconds = c.interval_seconds + CASE WHEN old.is_early THEN %(slower)s ELSE 0 END
FROM (
  SELECT device_hash,
    decided_at IS NULL AND COALESCE(polled_at > now() - make_interval(secs => interval_seconds - 1), false) AS is_early
  FROM device_codes WHERE device_hash = %(device_hash)s FOR UPDATE
) AS old
WHERE c.device_hash = old.device_hash
RETURNING c.expires_at <= now(), c.decided_at IS NOT NULL, c.approved_by IS NOT NULL, old.is_early, c.interval_seconds

-- name: mint
WITH taken AS (
  DELETE FROM device_codes AS c USING users AS u
  WHERE c.device_hash = %(device_hash)s AND u.id = c.approved_by AND u.disabled_at IS NULL AND c.expires_at > now()
  RETURNING u.id AS user_id, c.name, c.scopes
)
INSERT INTO devices (id, user_id, name, token_hash, scopes)
SELECT %(device)s, user_id, name, %(token_hash)s, scopes FROM taken
RETURNING name, scopes
