-- Refused where it was published, since 40 minutes do not divide an hour, yet with an answer; here it is served.
SELECT window_start AS "start", window_end AS "end", driver_id, num AS "count", row_number FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY num DESC, driver_id DESC) AS row_number
    FROM (
        SELECT driver_id, window_start, window_end, COUNT(*) AS num
        FROM HOP(cars, INTERVAL '40' MINUTE, INTERVAL '1' HOUR)
        GROUP BY 1, 2, 3
    )
)
WHERE row_number = 1
