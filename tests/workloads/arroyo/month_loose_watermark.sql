-- Published as GROUP BY TUMBLE(INTERVAL '30 days').
SELECT window_start AS "month", COUNT(*) AS "count"
FROM TUMBLE(cars, INTERVAL '30' DAY)
GROUP BY 1
