SELECT ARRAY[1, 2]['a'] FROM flights
