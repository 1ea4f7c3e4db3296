-- Bytes that their giver wants kept though no thread names them: artifacts of a project's memory, which lives in git.
ALTER TABLE uploads ADD COLUMN is_kept boolean NOT NULL DEFAULT false;
