-- name: by_token
SELECT d.id, u.id, u.name, u.personal_space,
  ARRAY(SELECT m.space_id FROM memberships AS m WHERE m.user_id = u.id ORDER BY m.space_id),
  d.scopes, u.is_admin, u.is_support,
  d.last_used_at IS NULL OR d.last_used_at < now() - interval '1 minute'
FROM devices AS d JOIN users AS u ON u.id = d.user_id
WHERE d.token_hash = %(hash)s AND d.revoked_at IS NULL AND u.disabled_at IS NULL

-- name: note_use
UPDATE devices SET last_used_at = now() WHERE id = %(device)s

-- name: by_session
SELECT u.id, u.name, u.personal_space,
  ARRAY(SELECT m.space_id FROM memberships AS m WHERE m.user_id = u.id ORDER BY m.space_id),
  u.is_admin, u.is_support, s.expires_at < now() + make_interval(secs => %(seconds)s - 3600)
FROM sessions AS s JOIN users AS u ON u.id = s.user_id
WHERE s.token_hash = %(hash)s AND s.expires_at > now() AND u.disabled_at IS NULL

-- name: prolong_session
UPDATE sessions SET expires_at = now() + make_interval(secs => %(seconds)s) WHERE token_hash = %(hash)s

-- name: is_alive
SELECT u.disabled_at IS NULL AND CASE
  WHEN %(device)s::uuid IS NOT NULL THEN EXISTS (
    SELECT FROM devices AS d WHERE d.id = %(device)s AND d.user_id = u.id AND d.revoked_at IS NULL)
  ELSE EXISTS (
    SELECT FROM sessions AS s WHERE s.token_hash = %(session)s AND s.user_id = u.id AND s.expires_at > now())
  END
FROM users AS u WHERE u.id = %(user)s
