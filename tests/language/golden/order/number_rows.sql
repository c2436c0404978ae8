SELECT carrier, ROW_NUMBER() OVER (ORDER BY ts) FROM flights
