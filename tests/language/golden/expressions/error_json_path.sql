SELECT JSON_EXTRACT(carrier, 'a.b') FROM flights
