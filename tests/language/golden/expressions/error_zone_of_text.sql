SELECT carrier AT TIME ZONE 'UTC' FROM flights
