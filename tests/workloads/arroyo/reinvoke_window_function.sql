-- Published with a tumbling window put over the groups of another of the same size.
SELECT window_start AS "start", window_end AS "end", COUNT(DISTINCT driver_id) AS drivers
FROM (
    SELECT driver_id, window_start, window_end, COUNT(*) AS pickups
    FROM TUMBLE(cars, INTERVAL '1' HOUR)
    WHERE event_type = 'pickup'
    GROUP BY driver_id, window_start, window_end
)
WHERE pickups > 2
GROUP BY window_start, window_end
