-- Published without a cast, which the sink's type implies there.
SELECT "timestamp", CAST(driver_id AS STRING) AS driver_id FROM cars
