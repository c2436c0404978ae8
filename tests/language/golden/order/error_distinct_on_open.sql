SELECT DISTINCT ON dest carrier FROM flights
