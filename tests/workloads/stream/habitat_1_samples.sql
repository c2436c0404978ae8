-- A stream has no sample period: the last value of every ten seconds.
SELECT sensor, window_end, LAST(light) AS light, LAST(temperature) AS temperature
FROM TUMBLE(reading, INTERVAL '10' SECOND)
GROUP BY sensor, window_end
