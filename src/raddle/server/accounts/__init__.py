"""Who asks: people, the devices they signed in with, and what each may do."""
