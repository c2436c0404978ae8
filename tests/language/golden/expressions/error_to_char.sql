SELECT TO_CHAR(ts, 'Day, DD') FROM flights
