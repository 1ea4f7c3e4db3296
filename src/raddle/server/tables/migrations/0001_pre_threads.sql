-- One row: which life of this hub it is. A restored backup is another life (docs/adr/0080).
CREATE TABLE hub (
    is_one            boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    epoch             text   NOT NULL,
    cluster           text   NOT NULL  -- system identifier and timeline of the cluster that wrote it
);

CREATE TABLE spaces (
    id                uuid PRIMARY KEY,
    kind              text   NOT NULL CHECK (kind IN ('personal', 'org')),
    name              text   NOT NULL,
    feed_number       bigint NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id                uuid PRIMARY KEY,
    name              text   NOT NULL UNIQUE,
    password_hash     text,              -- argon2id; null: signs in by no password
    is_admin          boolean NOT NULL DEFAULT false,
    is_support        boolean NOT NULL DEFAULT false,
    personal_space    uuid   NOT NULL REFERENCES spaces,
    created_at        timestamptz NOT NULL DEFAULT now(),
    disabled_at       timestamptz
);

CREATE TABLE memberships (
    space_id          uuid NOT NULL REFERENCES spaces,
    user_id           uuid NOT NULL REFERENCES users,
    role              text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    PRIMARY KEY (space_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);

-- What a person's program signs in with. The token itself is nowhere: its SHA-256 is.
CREATE TABLE devices (
    id                uuid PRIMARY KEY,
    user_id           uuid NOT NULL REFERENCES users,
    name              text NOT NULL,
    token_hash        bytea NOT NULL UNIQUE,
    scopes            text[] NOT NULL DEFAULT '{threads}',
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_used_at      timestamptz,
    revoked_at        timestamptz
);
CREATE INDEX devices_of_user ON devices (user_id);

-- A thread as this hub holds it: its version, what lists and access ask of it. Its words are in the rows below.
CREATE TABLE threads (
    space_id          uuid   NOT NULL REFERENCES spaces,
    id                text   NOT NULL COLLATE "C",
    number            bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    owner_id          uuid   NOT NULL REFERENCES users,
    version           bigint NOT NULL,
    erased_at_version bigint NOT NULL DEFAULT 0,
    pushed_digest     bytea,               -- SHA-256 of the push that made `version`: a repeated push is known by it
    clock             bigint NOT NULL DEFAULT 0,
    message_count     integer NOT NULL DEFAULT 0,   -- all of them
    shown_count       integer NOT NULL DEFAULT 0,
    has_removed       boolean NOT NULL DEFAULT false,
    edit_clock        bytea  NOT NULL DEFAULT '\x7b7d',  -- JSON {device: newest message of its}
    summary           bytea  NOT NULL,     -- JSON of what a list shows
    last_activity     bigint NOT NULL DEFAULT 0,         -- microseconds since 1970
    visibility        text   NOT NULL DEFAULT 'organization',
    is_private        boolean NOT NULL DEFAULT false,
    is_deleted        boolean NOT NULL DEFAULT false,
    is_shared_with_support boolean NOT NULL DEFAULT false,
    is_pinned         boolean NOT NULL DEFAULT false,
    is_archived       boolean NOT NULL DEFAULT false,
    deleted_since     timestamptz,         -- of this hub's clock, for the job that purges
    purged_at         timestamptz,
    PRIMARY KEY (space_id, id)
);
CREATE INDEX threads_newest ON threads (space_id, last_activity DESC, id DESC);
CREATE INDEX threads_to_purge ON threads (deleted_since) WHERE deleted_since IS NOT NULL AND purged_at IS NULL;
CREATE INDEX threads_public ON threads (id) WHERE visibility = 'public';
CREATE INDEX threads_by_id ON threads (id);

-- One row a message. Ids are bytes, since text refuses NUL; `body` is JSON, compressed where that pays.
CREATE TABLE messages (
    space_id          uuid   NOT NULL,
    thread_id         text   NOT NULL COLLATE "C",
    id                bytea  NOT NULL,
    seq               bigint NOT NULL,
    parent_id         bytea,
    changed_version   bigint NOT NULL,
    is_shown          boolean NOT NULL DEFAULT true,
    size              integer NOT NULL,    -- of the JSON, in bytes
    body              bytea  NOT NULL,
    PRIMARY KEY (space_id, thread_id, id),
    FOREIGN KEY (space_id, thread_id) REFERENCES threads (space_id, id)
);
ALTER TABLE messages ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX messages_changed ON messages (space_id, thread_id, changed_version, seq);

CREATE TABLE registers (
    space_id          uuid   NOT NULL,
    thread_id         text   NOT NULL COLLATE "C",
    path              bytea  NOT NULL,
    changed_version   bigint NOT NULL,
    size              integer NOT NULL,
    body              bytea  NOT NULL,
    PRIMARY KEY (space_id, thread_id, path),
    FOREIGN KEY (space_id, thread_id) REFERENCES threads (space_id, id)
);
CREATE INDEX registers_changed ON registers (space_id, thread_id, changed_version);

-- The feed: the newest change of each thread in each space. Numbers are given last in a transaction.
CREATE TABLE thread_changes (
    space_id          uuid   NOT NULL REFERENCES spaces,
    thread_id         text   NOT NULL COLLATE "C",
    number            bigint NOT NULL,
    version           bigint NOT NULL,
    kind              text   NOT NULL,
    PRIMARY KEY (space_id, thread_id)
);
CREATE INDEX thread_changes_feed ON thread_changes (space_id, number);

-- Which blob belongs to which thread: the only way to one. `sha256` alone says where its bytes are.
CREATE TABLE blobs (
    sha256            bytea  PRIMARY KEY,
    size              bigint NOT NULL,
    stored_at         timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE thread_blobs (
    space_id          uuid   NOT NULL,
    thread_id         text   NOT NULL COLLATE "C",
    sha256            bytea  NOT NULL,
    is_source         boolean NOT NULL DEFAULT false,  -- bytes of the agent's own file: the owner's alone
    PRIMARY KEY (space_id, thread_id, sha256, is_source),
    FOREIGN KEY (space_id, thread_id) REFERENCES threads (space_id, id)
);
CREATE INDEX thread_blobs_by_hash ON thread_blobs (sha256);
-- What a device uploaded, before a push or a source list names it.
CREATE TABLE uploads (
    space_id          uuid   NOT NULL REFERENCES spaces,
    sha256            bytea  NOT NULL REFERENCES blobs,
    uploaded_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space_id, sha256)
);
CREATE INDEX uploads_by_hash ON uploads (sha256);

-- What each device keeps of the agent's own file of a thread (segments of it are blobs).
CREATE TABLE thread_sources (
    space_id          uuid   NOT NULL,
    thread_id         text   NOT NULL COLLATE "C",
    device            text   NOT NULL,
    body              bytea  NOT NULL,
    PRIMARY KEY (space_id, thread_id, device),
    FOREIGN KEY (space_id, thread_id) REFERENCES threads (space_id, id)
);
