SELECT time_bucket('foo', ts) AS a FROM flights
