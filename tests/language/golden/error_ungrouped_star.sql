SELECT *, COUNT(*) FROM flights
