SELECT [dest] FROM flights
