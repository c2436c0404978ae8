select Carrier, FLIGHTS.dest, delay AS "Late By", distance miles
FROM Flights
