SELECT flight / 2 AS a, delay / wind AS b FROM flights f JOIN weather w USING (dest) INTERSECT SELECT 1, wind FROM weather
