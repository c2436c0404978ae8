SELECT ts AT TIME ZONE 'Europe/Berlim' FROM flights
