-- Published as two queries that write to one sink; here the predicates are joined by OR.
SELECT * FROM cars
WHERE (driver_id = 100 AND event_type = 'pickup') OR (driver_id = 101 AND event_type = 'dropoff')
