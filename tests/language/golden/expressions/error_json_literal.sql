SELECT CAST(carrier AS JSON) = 'abc' FROM flights
