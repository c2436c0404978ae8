SELECT UNNEST(counters) AS counter FROM (
    SELECT ARRAY_AGG(counter) AS counters, window_start FROM TUMBLE(impulse, INTERVAL '1' DAY) GROUP BY window_start
)
