SELECT ARRAY[1, 'a'] FROM flights
