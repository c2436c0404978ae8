SELECT
    event_type,
    APPROX_PERCENTILE_CONT_WITH_WEIGHT(driver_id, LENGTH(location), 0.5) AS approx_percentile_cont_weighted_driver
FROM cars
GROUP BY event_type
