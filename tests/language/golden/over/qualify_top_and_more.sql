SELECT carrier, LAG(delay) OVER w AS before, ROW_NUMBER() OVER w AS n FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY ts) QUALIFY n <= 2 AND before IS NOT NULL
