SELECT REGEXP_MATCH(dest, 'a') FROM flights
