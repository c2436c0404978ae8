"""How answers change: rows with the instants at which they come and go."""
