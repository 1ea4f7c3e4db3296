-- name: take
INSERT INTO rate_limits AS r (key, empty_at) VALUES (%(key)s, now() + make_interval(secs => %(each)s))
ON CONFLICT (key) DO UPDATE SET empty_at = GREATEST(r.empty_at, now()) + make_interval(secs => %(each)s)
WHERE r.empty_at <= now() + make_interval(secs => %(slack)s)
RETURNING key

-- name: wait
SELECT extract(epoch FROM empty_at - now())::float8 FROM rate_limits WHERE key = %(key)s
