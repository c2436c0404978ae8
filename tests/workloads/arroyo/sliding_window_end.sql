-- Published as GROUP BY hop(INTERVAL '2' SECOND, INTERVAL '10' SECOND).
SELECT COUNT(*) AS "count", MIN(counter) AS "min", MAX(counter) AS "max", window_start AS "start", window_end AS "end"
FROM HOP(impulse, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
GROUP BY window_start, window_end
