SELECT REGEXP_LIKE(dest, carrier) FROM flights
