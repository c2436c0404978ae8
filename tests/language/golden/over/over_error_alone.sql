SELECT LAG(delay) FROM flights
