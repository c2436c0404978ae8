-- Published with a table in memory between the two; a subquery stands in its place.
SELECT driver_id, event_type FROM (SELECT event_type, location, driver_id FROM cars)
