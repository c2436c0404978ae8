SELECT COUNT(*) FILTER (WHERE delay > 15) AS late, COUNT(DISTINCT dest) filter (where delay > 15 and not cancelled), SUM(delay) FILTER (WHERE TRUE) FROM flights
