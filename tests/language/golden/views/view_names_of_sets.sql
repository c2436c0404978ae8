CREATE OR REPLACE VIEW v ("From", n) AS WITH x AS (SELECT dest, delay FROM flights) SELECT * FROM x UNION ALL (SELECT dest, wind FROM weather ORDER BY wind LIMIT 3)
