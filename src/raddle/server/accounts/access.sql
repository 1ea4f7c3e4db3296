-- name: is_readable
SELECT thread_is_readable(
  %(reader)s, %(spaces)s::uuid[], %(is_support)s,
  space_id, owner_id, visibility, is_private, is_deleted, is_shared_with_support, purged_at)
FROM threads WHERE space_id = %(space)s AND id = %(thread)s

-- name: facts
SELECT space_id, owner_id, visibility, is_private, is_deleted, is_shared_with_support, purged_at IS NOT NULL
FROM threads WHERE space_id = %(space)s AND id = %(thread)s

-- name: find
SELECT space_id, owner_id, visibility, is_private, is_deleted, is_shared_with_support, purged_at IS NOT NULL
FROM threads
WHERE id = %(thread)s AND (%(space)s::uuid IS NULL OR space_id = %(space)s)
  AND (
    (owner_id = %(reader)s AND purged_at IS NOT NULL)
    OR thread_is_readable(
      %(reader)s, %(spaces)s::uuid[], %(is_support)s,
      space_id, owner_id, visibility, is_private, is_deleted, is_shared_with_support, purged_at)
  )
ORDER BY space_id = %(own)s::uuid DESC NULLS LAST, owner_id = %(reader)s DESC NULLS LAST,
  space_id = ANY (%(spaces)s::uuid[]) DESC, space_id
LIMIT 1
