-- The second stream is the same data with a watermark ten minutes behind.
SELECT a.window_start AS "start", a.counter AS counter
FROM (SELECT window_start, counter, COUNT(*) FROM TUMBLE(impulse, INTERVAL '1' SECOND) GROUP BY 1, 2) AS a
JOIN (SELECT window_start, counter, COUNT(*) FROM TUMBLE(delayed_impulse, INTERVAL '1' SECOND) GROUP BY 1, 2) AS b
ON a.counter = b.counter
