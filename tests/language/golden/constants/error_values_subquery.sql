VALUES ((SELECT MAX(delay) FROM flights))
