SELECT
    event_type,
    BIT_AND(driver_id) AS bit_and_driver,
    CORR(driver_id, EXTRACT(EPOCH FROM "timestamp")) AS corr_driver_ts,
    COVAR_POP(driver_id, EXTRACT(EPOCH FROM "timestamp")) AS covar_pop_driver_ts,
    MEDIAN(driver_id) AS median_driver,
    REGR_SLOPE(driver_id, EXTRACT(EPOCH FROM "timestamp")) AS regr_slope
FROM cars
GROUP BY event_type
