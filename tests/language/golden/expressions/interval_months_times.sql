SELECT ts + INTERVAL '1' MONTH * flight AS a, ts - 2 * INTERVAL '1 year 2 days' AS b FROM flights
