SELECT ts + INTERVAL '1' MONTH * delay FROM flights
