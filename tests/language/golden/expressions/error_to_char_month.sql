SELECT TO_CHAR(ts, 'DD Month YYYY') FROM flights
