SELECT (regexp_match(dest, 'a'))[flight] FROM flights
