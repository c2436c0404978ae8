"""The page: watch queries and data meet, and change how while they run."""
