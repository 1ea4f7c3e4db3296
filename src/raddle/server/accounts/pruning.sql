-- name: sessions
DELETE FROM sessions WHERE expires_at < now()

-- name: device_codes
DELETE FROM device_codes WHERE expires_at < now() - interval '1 hour'

-- name: setup_links
DELETE FROM setup_links WHERE expires_at < now()

-- name: rate_limits
DELETE FROM rate_limits WHERE empty_at < now()
