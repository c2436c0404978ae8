SELECT TO_TIMESTAMP(carrier, 'yyyy-QQ') FROM flights
