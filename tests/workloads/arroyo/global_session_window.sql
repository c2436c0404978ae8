-- Published as GROUP BY SESSION(INTERVAL '20 seconds').
SELECT window_start AS "start", window_end AS "end", COUNT(*) AS "rows"
FROM SESSION(impulse, INTERVAL '20' SECOND)
GROUP BY window_start, window_end
