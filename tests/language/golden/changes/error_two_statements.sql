SELECT * FROM flights; DROP STREAM flights
