SELECT dest, later FROM (SELECT dest, delay + 1 AS later FROM flights) f FULL OUTER JOIN weather USING (dest)
