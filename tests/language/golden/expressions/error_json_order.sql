SELECT CAST(carrier AS JSON) < '5' FROM flights
