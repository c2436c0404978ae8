-- Published as GROUP BY hop(INTERVAL '1' minute, INTERVAL '1' hour), the rank over the window as one value.
SELECT window_start AS "start", window_end AS "end", driver_id, num AS "count", row_number FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY num DESC, driver_id DESC) AS row_number
    FROM (
        SELECT driver_id, window_start, window_end, COUNT(*) AS num
        FROM HOP(cars, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)
        GROUP BY 1, 2, 3
    )
)
WHERE row_number = 1
