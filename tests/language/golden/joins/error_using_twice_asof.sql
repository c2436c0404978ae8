SELECT f.dest FROM flights f ASOF JOIN weather w USING (dest, ts, ts)
