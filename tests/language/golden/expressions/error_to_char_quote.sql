SELECT TO_CHAR(ts, 'YYYY "unclosed') FROM flights
