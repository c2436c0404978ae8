SELECT my_median(counter) AS median, none_udf(counter) AS none_value, max_product(counter, subtask_index) AS max_product
FROM TUMBLE(impulse, INTERVAL '30' DAY)
GROUP BY window_start
