SELECT ts - '2025-06-01' AS a FROM flights
