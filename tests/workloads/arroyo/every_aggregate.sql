-- Without the bit aggregates, correlation, covariance, regression, and the weighted quantile; see refused/.
SELECT
    event_type,
    ROUND(AVG(driver_id), 4) AS avg_driver,
    BOOL_AND(driver_id > 0) AS bool_and_driver,
    BOOL_OR(driver_id > 0) AS bool_or_driver,
    COUNT(*) AS cnt,
    MAX(driver_id) AS max_driver,
    MIN(driver_id) AS min_driver,
    SUM(driver_id) AS sum_driver,
    ROUND(STDDEV(driver_id), 4) AS stddev_driver,
    ROUND(STDDEV_POP(driver_id), 4) AS stddev_pop_driver,
    ROUND(VAR(driver_id), 4) AS var_driver,
    ROUND(VAR_POP(driver_id), 4) AS var_pop_driver,
    APPROX_DISTINCT(driver_id) AS approx_distinct_driver,
    APPROX_QUANTILE(driver_id, 0.5) AS approx_median_driver
FROM cars
GROUP BY event_type
