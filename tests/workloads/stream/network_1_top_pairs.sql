WITH load AS (SELECT src, dst, SUM(bytes) AS bytes FROM packet [RANGE 20 MINUTES] GROUP BY src, dst)
SELECT src, dst, bytes
FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY bytes DESC) AS place FROM load)
CROSS JOIN (SELECT COUNT(*) AS pairs FROM load)
WHERE 20 * place <= pairs
