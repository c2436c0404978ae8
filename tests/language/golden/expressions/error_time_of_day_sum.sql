SELECT SUM(ts::TIME) FROM flights
