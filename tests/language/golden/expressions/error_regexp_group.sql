SELECT REGEXP_EXTRACT(dest, 'a(b)', 2) FROM flights
