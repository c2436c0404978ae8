SELECT * FROM broken
