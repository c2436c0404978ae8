SELECT COUNT(DISTINCT dest), SUM(DISTINCT flight), AVG(DISTINCT delay), MIN(DISTINCT delay), MIN(delay), BOOL_OR(DISTINCT cancelled) FROM flights
