-- Published as GROUP BY SESSION(INTERVAL '20 seconds') and an expression for the user.
SELECT window_start AS "start", window_end AS "end",
    CASE WHEN counter % 10 = 0 THEN 0 ELSE counter END AS user_id, COUNT(*) AS "rows"
FROM SESSION(impulse PARTITION BY CASE WHEN counter % 10 = 0 THEN 0 ELSE counter END, INTERVAL '20' SECOND)
GROUP BY 1, 2, 3
