SELECT f.dest, wind FROM flights f ASOF LEFT JOIN weather w USING (dest, ts)
