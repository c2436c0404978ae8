SELECT MEDIAN(delay) FROM flights
