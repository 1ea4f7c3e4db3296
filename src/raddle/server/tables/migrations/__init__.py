"""The files that change the tables: `NNNN_pre_what.sql`, `NNNN_post_what.sql`."""
