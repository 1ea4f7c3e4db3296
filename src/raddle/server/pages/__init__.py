"""What people see of the server: pages made here whole, which need no script."""
