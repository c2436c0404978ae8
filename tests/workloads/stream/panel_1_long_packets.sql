SELECT p.*
FROM packet [NOW] p
JOIN (SELECT AVG(bytes) AS mean FROM packet [RANGE 1 HOUR]) m ON p.bytes > 2 * m.mean
