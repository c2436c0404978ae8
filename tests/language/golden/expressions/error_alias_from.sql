SELECT dest AS FROM flights
