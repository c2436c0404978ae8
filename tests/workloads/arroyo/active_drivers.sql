-- As published.
SELECT COUNT(*) AS drivers FROM (
    SELECT driver_id, COUNT(*) FROM cars GROUP BY driver_id HAVING COUNT(*) > 85
)
