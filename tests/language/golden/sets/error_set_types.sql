SELECT carrier, delay FROM flights
INTERSECT SELECT dest, ts FROM flights
