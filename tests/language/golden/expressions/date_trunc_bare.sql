SELECT DATE_TRUNC(HOUR, ts), date_part(minute, ts) FROM flights
