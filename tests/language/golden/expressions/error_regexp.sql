SELECT REGEXP_LIKE(dest, 'a(?=b)') FROM flights
