"""Project memory's values and their laws: what its files hold, where they stand, how two copies become one."""
