-- name: create
WITH space AS (
  INSERT INTO spaces (id, kind, name) VALUES (%(space)s, 'personal', %(name)s)
), person AS (
  INSERT INTO users (id, name, password_hash, is_admin, personal_space)
  VALUES (%(user)s, %(name)s, %(password_hash)s, %(is_admin)s, %(space)s)
)
INSERT INTO memberships (space_id, user_id, role) VALUES (%(space)s, %(user)s, 'owner')

-- name: by_name
SELECT id FROM users WHERE name = %(name)s

-- name: password
SELECT id, password_hash, disabled_at IS NOT NULL FROM users WHERE name = %(name)s

-- name: set_password
UPDATE users SET password_hash = %(password_hash)s WHERE id = %(user)s RETURNING id

-- name: disable
UPDATE users SET disabled_at = COALESCE(disabled_at, now()) WHERE id = %(user)s RETURNING id

-- name: enable
UPDATE users SET disabled_at = NULL WHERE id = %(user)s RETURNING id

-- name: all
SELECT id, name, is_admin, password_hash IS NOT NULL, disabled_at IS NOT NULL, created_at,
  (SELECT count(*) FROM threads WHERE threads.space_id = users.personal_space)
FROM users ORDER BY name

-- name: count
SELECT count(*) FROM users
