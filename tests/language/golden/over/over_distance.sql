SELECT LAG(delay) OVER w AS before, LEAD(delay, 2, 0) OVER w AS behind, LAG(dest) IGNORE NULLS OVER w, LEAD(dest IGNORE NULLS) OVER w FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY ts)
