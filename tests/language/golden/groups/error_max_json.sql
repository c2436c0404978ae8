SELECT MAX(CAST(carrier AS JSON)) FROM flights
