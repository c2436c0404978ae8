SELECT dropoffs.window_start AS "hour", dropoff_drivers AS drivers, pickup_drivers AS pickups
FROM (
    SELECT window_start, COUNT(DISTINCT driver_id) AS dropoff_drivers
    FROM TUMBLE(cars, INTERVAL '1' HOUR) WHERE event_type = 'dropoff' GROUP BY 1
) AS dropoffs
INNER JOIN (
    SELECT window_start, COUNT(DISTINCT driver_id) AS pickup_drivers
    FROM TUMBLE(cars, INTERVAL '1' HOUR) WHERE event_type = 'pickup' GROUP BY 1
) AS pickups
ON dropoffs.window_start = pickups.window_start
