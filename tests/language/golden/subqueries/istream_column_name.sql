SELECT istream, rstream + 1 AS r FROM (SELECT flight AS istream, flight AS rstream FROM flights) f
