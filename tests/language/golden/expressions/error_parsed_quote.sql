SELECT TO_TIMESTAMP(dest, 'yyyy''T') FROM flights
