-- Published as GROUP BY event_type, TUMBLE(INTERVAL '1' HOUR).
SELECT event_type, window_start AS "hour", COUNT(*) AS "count"
FROM TUMBLE(cars, INTERVAL '1' HOUR)
GROUP BY 1, 2
