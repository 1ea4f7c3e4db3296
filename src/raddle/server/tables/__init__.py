"""PostgreSQL: the tables, the way to them, and every query, each by its name in a `.sql` file."""
