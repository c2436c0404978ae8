SELECT ts AT TIME ZONE 'berlin' FROM flights
