ALTER QUERY alerts RENAME TO "late-flights"
