SELECT * FROM (SELECT dest, delay + 1 AS later FROM flights) f RIGHT JOIN weather USING (dest) WHERE wind > 3
