-- Links that let the first person in; none is left once somebody came.
CREATE TABLE setup_links (
    token_hash        bytea PRIMARY KEY,
    expires_at        timestamptz NOT NULL
);

-- Who is signed in by a browser. The cookie's value is nowhere: its SHA-256 is.
CREATE TABLE sessions (
    token_hash        bytea PRIMARY KEY,
    user_id           uuid NOT NULL REFERENCES users,
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_to_prune ON sessions (expires_at);

-- A device that asks to be let in (RFC 8628), until its token is made. Both codes are SHA-256.
CREATE TABLE device_codes (
    device_hash       bytea PRIMARY KEY,
    user_hash         bytea NOT NULL UNIQUE,
    name              text  NOT NULL,
    scopes            text[] NOT NULL,
    address           text  NOT NULL,
    asked_at          timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz NOT NULL,
    interval_seconds  integer NOT NULL,
    polled_at         timestamptz,
    decided_at        timestamptz,
    approved_by       uuid REFERENCES users   -- null in a row that is decided: it was denied
);
CREATE INDEX device_codes_to_prune ON device_codes (expires_at);

-- How often something was tried: the time at which a bucket is empty again. Keys are SHA-256.
-- Lost in a crash, which lets a guesser try a few times more, and costs no write to the log meanwhile.
CREATE UNLOGGED TABLE rate_limits (
    key               bytea PRIMARY KEY,
    empty_at          timestamptz NOT NULL
);
CREATE INDEX rate_limits_to_prune ON rate_limits (empty_at);

-- May that reader read that thread? The twin of raddle.model.threads.visibility.may_read, and proved equal to it
-- (tests/property/test_access_twins.py). Every list, search, feed and count asks this and nothing else.
-- `reader` null: nobody is signed in. The planner puts its body in the place of a call: one expression, and
-- nothing of SET, STRICT or SECURITY DEFINER. Trimmed are the characters that Python's str.strip takes away.
CREATE FUNCTION thread_is_readable(
    reader uuid, reader_spaces uuid[], reader_is_support boolean,
    space_id uuid, owner_id uuid, visibility text,
    is_private boolean, is_deleted boolean, is_shared_with_support boolean, purged_at timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT purged_at IS NULL AND (
    owner_id IS NOT DISTINCT FROM reader
    OR (
      NOT is_private AND NOT is_deleted AND (
        (is_shared_with_support AND reader_is_support AND reader IS NOT NULL)
        OR CASE lower(btrim(visibility, E' \t\n\u000b\f\r\u001c\u001d\u001e\u001f\u0085\u00a0\u1680'
            '\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'
          ) COLLATE "C")
          WHEN 'public' THEN true
          WHEN 'organization' THEN reader IS NOT NULL AND COALESCE(space_id = ANY (reader_spaces), false)
          WHEN 'organisation' THEN reader IS NOT NULL AND COALESCE(space_id = ANY (reader_spaces), false)
          ELSE false
        END
      )
    )
  )
$$;
